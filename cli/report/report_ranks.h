/* report_ranks.h: the table over ranks after the reports of their logs, and the logs of killed ranks that cannot be
 * reported. */
#ifndef WEIR_CLI_REPORT_REPORT_RANKS_H
#define WEIR_CLI_REPORT_REPORT_RANKS_H

#include "analyze/logs/log_ranks.h"
#include "weir/base.h"

#include <stdbool.h>
#include <stdio.h>

struct weir_report_ranks {
    int n;
    struct weir_rank_log *logs; /* owned; NULL with a single log */
    struct weir_rank_logs ranks;
    char why[400];
};

/* Reads n logs; a single one needs no comparison. The caller frees *ranks with weir_report_ranks_free. Returns 0 or
 * -ENOMEM. */
int weir_report_ranks_read(struct weir_report_ranks *ranks, const char *const *paths, int n, struct weir_err *err);
void weir_report_ranks_free(struct weir_report_ranks *ranks);
/* Returns whether log i of a rank has no complete line, after the others have shown that it belongs to their run. Its
 * report is left out; the table over ranks names it. */
bool weir_report_ranks_skips(const struct weir_report_ranks *ranks, int i);
/* Prints the table over ranks, or writes the member "ranks" (null: there is none) into the open object. */
void weir_report_ranks_print(FILE *out, const struct weir_report_ranks *ranks);
void weir_report_ranks_json(struct weir_json *json, const struct weir_report_ranks *ranks);

#endif
