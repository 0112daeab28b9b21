/* run_ranks.h: the table over the ranks of a distributed run, printed by rank 0 after each of its own tables. */
#ifndef WEIR_CLI_RUN_RUN_RANKS_H
#define WEIR_CLI_RUN_RUN_RANKS_H

#include "analyze/ranks/rank_session.h"
#include "base/ranks.h"
#include "weir/report.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

struct weir_run_ranks {
    struct weir_rank_session *session; /* NULL: a single process, no store, or no timings */
    FILE *out, *log;                   /* borrowed; log may be NULL */
    bool lines;                        /* out receives log lines */
    const char *logs;                  /* rank 0 without a store: the path of its log (borrowed), else NULL */
    int world_size;
    /* A report's addition that publishes the report, then calls the next one. */
    struct weir_report_addition addition;
    const struct weir_report_addition *next;
};

/* Opens the connection to the other ranks; out, log and lines are set. Without one, rank 0 prints a line to stderr that
 * names what to do, and the run goes on. command: name of the command; log: typed path of --log, or NULL. */
void weir_run_ranks_open(struct weir_run_ranks *ranks, const struct weir_ranks *of, const char *command,
                         const char *log);
/* Returns an addition that also publishes each report, valid until the next call. */
const struct weir_report_addition *weir_run_ranks_addition(struct weir_run_ranks *ranks,
                                                           const struct weir_report_addition *addition);
/* Prints the table if all ranks have reported. Call it after each batch. */
void weir_run_ranks_poll(struct weir_run_ranks *ranks);
/* Waits for the last reports of the other ranks, shortly if *interrupted is set, prints the table, and closes. */
void weir_run_ranks_finish(struct weir_run_ranks *ranks, const volatile sig_atomic_t *interrupted);

#endif
