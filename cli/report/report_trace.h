/* report_trace.h: weir report for traces: averages, the parts of each step's time, GPU idle time, and the clocks inside
 * kernels. */
#ifndef WEIR_CLI_REPORT_REPORT_TRACE_H
#define WEIR_CLI_REPORT_REPORT_TRACE_H

#include "weir/trace.h"

struct weir_report_trace_config {
    struct weir_averages_config by;
    struct weir_averages_table table;
    const char *export_stacks; /* output file for stacks; NULL: none */
    const char *export_clocks; /* output CSV file for clocks inside kernels; NULL: none */
};

/* Prints the report of one trace. title: print the path above the report, to distinguish several traces. */
int weir_report_trace_print(FILE *out, const char *path, const struct weir_report_trace_config *config, bool title,
                            struct weir_err *err);
/* Writes the report of one trace as an element of the open JSON array. */
int weir_report_trace_json(struct weir_json *json, const char *path, const struct weir_report_trace_config *config,
                           struct weir_err *err);

#endif
