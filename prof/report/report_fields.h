/* report_fields.h: field tables that map the profiler's report to the members of a log line, for both writing and
 * reading, and the part of the report about threads. */
#ifndef WEIR_PROF_REPORT_REPORT_FIELDS_H
#define WEIR_PROF_REPORT_REPORT_FIELDS_H

#include "base/fields.h"
#include "weir/profiler.h"

/* Limit for a log line; more threads are an error. */
enum { WEIR_REPORT_WORKERS_MAX = 1024 };

extern const struct weir_fields weir_row_fields;    /* fields of struct weir_report_row */
extern const struct weir_fields weir_thread_fields; /* struct weir_report_worker */
extern const struct weir_fields weir_prof_fields;   /* struct weir_report: "stages", "workers", "consumer", "machine" */
extern const struct weir_fields weir_cost_fields;   /* struct weir_report: "profiler" */

/* Fills the report's workers and consumer from the snapshot's threads. Returns 0 or -ENOMEM. */
int weir_report_fill_threads(struct weir_report *report, const struct weir_snapshot *snapshot);

#endif
