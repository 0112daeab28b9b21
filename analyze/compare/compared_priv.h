/* compared_priv.h: shared by the readers of files. */
#ifndef WEIR_ANALYZE_COMPARE_COMPARED_PRIV_H
#define WEIR_ANALYZE_COMPARE_COMPARED_PRIV_H

#include "analyze/compare/compared.h"
#include "analyze/logs/log_lines.h"

/* Begins a file of which nothing is known. path is borrowed. */
void weir_compared_begin(struct weir_compared *compared, const char *path);
/* Adds a measurement of a stage. Stages beyond the limit are left out. Returns 0 or -ENOMEM. */
int weir_compared_stage(struct weir_compared *compared, const char *name, double seconds);
/* Adds the fastest call of the same measurement, and the number of calls. Returns 0 or -ENOMEM. */
int weir_compared_fastest(struct weir_compared *compared, const char *name, double fastest_s, double calls);
/* Adds or replaces a setting. The last one wins, and those beyond the limit are left out. */
int weir_compared_setting(struct weir_compared *compared, const char *name, const char *value);
/* Forgets the first of the measurements after `from` if more than enough remain. */
void weir_series_drop_first(struct weir_series *series, size_t from);

int weir_compared_records(struct weir_compared *compared, struct weir_lines *lines, struct weir_err *err);
int weir_compared_plain(struct weir_compared *compared, struct weir_lines *lines, struct weir_err *err);
int weir_compared_trace(struct weir_compared *compared, struct weir_err *err);
/* Reads the output of a command's --json, as the lines of the log that it contains. */
int weir_compared_json(struct weir_compared *compared, FILE *in, struct weir_err *err);

#endif
