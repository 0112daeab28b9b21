/* run_serve.h: a run's figures for others while it runs (--serve, --prometheus). */
#ifndef WEIR_CLI_RUN_RUN_SERVE_H
#define WEIR_CLI_RUN_RUN_SERVE_H

#include "analyze/live/live.h"
#include "analyze/ranks/rank_session.h"
#include "base/ranks.h"
#include "cli/run/run_options.h"
#include "weir/report.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

struct weir_run_head;

struct weir_run_serve {
    struct weir_live *live; /* NULL = neither option was used */
    struct weir_loader *loader;
    struct weir_loader_reports *reports;
    char label[64];
    char *run_line;     /* of the log, for the page; owned; may be NULL */
    _Atomic int epochs; /* number of epochs completed */
};

/* Checks the address. Returns 0 or -EINVAL. */
int weir_run_serve_check(const struct run_options *options, const struct weir_ranks *ranks, struct weir_err *err);
/* Opens the address, and prints the URL to stderr. command: name of the command. */
int weir_run_serve_open(struct weir_run_serve *serve, const struct run_options *options, const struct weir_ranks *ranks,
                        const char *command, struct weir_err *err);
/* Keeps the run's line of the log for the page. head and load_average: as weir_run_head_log. */
void weir_run_serve_head(struct weir_run_serve *serve, const struct weir_run_head *head,
                         const struct weir_loader *loader, double load_average);
/* Creates the file and shows a loader, on the consumer's thread, until weir_run_serve_end. data: path of the dataset.
 */
int weir_run_serve_begin(struct weir_run_serve *serve, struct weir_loader *loader, struct weir_loader_reports *reports,
                         const char *data, struct weir_err *err);
void weir_run_serve_epoch(struct weir_run_serve *serve, int epochs_done);
void weir_run_serve_end(struct weir_run_serve *serve);
void weir_run_serve_close(struct weir_run_serve *serve);

/* ---- run_ranks.c: the table over the ranks of a distributed run, printed by rank 0 after each of its own tables. */

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
