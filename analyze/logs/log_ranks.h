/* log_ranks.h: the table over ranks, from the logs of weir run --log of all ranks. */
#ifndef WEIR_ANALYZE_LOGS_LOG_RANKS_H
#define WEIR_ANALYZE_LOGS_LOG_RANKS_H

#include "analyze/ranks/rank_verdict.h"
#include "weir/base.h"

#include <stdbool.h>

enum { WEIR_RANK_LOGS = 64, WEIR_RANK_LOG_EPOCHS = WEIR_RANK_TABLES };

/* What a log says about its rank. */
struct weir_rank_log {
    const char *path; /* borrowed */
    int rank;         /* -1 = not a log of a rank of several */
    int world_size;   /* 0 = unknown */
    bool readable;    /* false: it has no complete line */
    bool cut, final;  /* its last line is cut off; it has the table of the whole run */
    bool has_record;
    struct weir_rank_record record; /* of the last table */
    char host[WEIR_RANK_HOST];
    int pid;
    int n_epochs; /* the newest ones */
    struct {
        int epoch;
        double train_s, wait_s;
    } epochs[WEIR_RANK_LOG_EPOCHS];
};

/* Reads a log. Damaged logs count as far as they can be read. Returns 0, or -ENOMEM. */
int weir_rank_log_read(struct weir_rank_log *log, const char *path);

/* Returns whether the process that wrote the log runs on this machine, or may run on another one. */
bool weir_rank_log_runs(const struct weir_rank_log *log);

/* The ranks of the logs, with those whose logs are missing or damaged. */
struct weir_rank_logs {
    int n; /* number of ranks; 0 = there is no table over ranks */
    struct weir_rank *ranks;
    struct weir_rank_verdict verdict;
};

/* Compares the logs of the ranks of one run. logs->n is 0, with the reason in `why` (empty: they are not logs of
 * several ranks), if there is no table. The caller frees logs with weir_rank_logs_free; the ranks borrow the logs'
 * records. Returns 0 or -ENOMEM. */
int weir_rank_logs_compare(struct weir_rank_logs *logs, const struct weir_rank_log *of, int n, char *why,
                           size_t why_size);
void weir_rank_logs_free(struct weir_rank_logs *logs);

#endif
