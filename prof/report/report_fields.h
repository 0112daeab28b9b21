/* report_fields.h: parts of the profiler's report: its members of a log line, as tables for their writer and their
 * reader; the lines of threads. */
#ifndef WEIR_PROF_REPORT_REPORT_FIELDS_H
#define WEIR_PROF_REPORT_REPORT_FIELDS_H

#include "base/fields.h"
#include "weir/profiler.h"

/* More threads in a log are an error. */
enum { WEIR_REPORT_WORKERS_MAX = 1024 };

extern const struct weir_fields weir_row_fields;  /* struct weir_report_row */
extern const struct weir_fields weir_prof_fields; /* struct weir_report: "stages", "workers", "consumer", "machine" */
extern const struct weir_fields weir_cost_fields; /* struct weir_report: "profiler" */

/* Fills the lines of threads. Returns 0 or -ENOMEM. */
int weir_report_fill_threads(struct weir_report *report, const struct weir_snapshot *snapshot);

#endif
