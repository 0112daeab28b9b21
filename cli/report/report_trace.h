/* report_trace.h: weir report of traces: the averages, how the time of the steps was spent, GPU idle time, clocks
 * inside kernels. */
#ifndef WEIR_CLI_REPORT_REPORT_TRACE_H
#define WEIR_CLI_REPORT_REPORT_TRACE_H

#include "weir/trace.h"

struct weir_report_trace_config {
    struct weir_averages_config by;
    struct weir_averages_table table;
    const char *export_stacks; /* file to write stacks to; NULL = none */
    const char *export_clocks; /* the same of clocks inside kernels, as CSV */
};

/* Prints one trace; title: with its name above, as one of several. */
int weir_report_trace_print(FILE *out, const char *path, const struct weir_report_trace_config *config, bool title,
                            struct weir_err *err);
/* The same as an object of the array that is open in json. */
int weir_report_trace_json(struct weir_json *json, const char *path, const struct weir_report_trace_config *config,
                           struct weir_err *err);

#endif
