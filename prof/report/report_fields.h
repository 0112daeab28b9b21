/* report_fields.h: the profiler's part of a log line, as tables for its writer and its reader. */
#ifndef WEIR_PROF_REPORT_REPORT_FIELDS_H
#define WEIR_PROF_REPORT_REPORT_FIELDS_H

#include "base/fields.h"

/* More threads in a log are an error. */
enum { WEIR_REPORT_WORKERS_MAX = 1024 };

extern const struct weir_fields weir_row_fields;  /* struct weir_report_row */
extern const struct weir_fields weir_prof_fields; /* struct weir_report: "stages", "workers", "consumer", "machine" */
extern const struct weir_fields weir_cost_fields; /* struct weir_report: "profiler" */

#endif
