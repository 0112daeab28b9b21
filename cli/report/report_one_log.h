/* report_one_log.h: reports one log, of weir or of another training program. */
#ifndef WEIR_CLI_REPORT_REPORT_ONE_LOG_H
#define WEIR_CLI_REPORT_REPORT_ONE_LOG_H

#include "weir/base.h"
#include "weir/report.h"

#include <stdio.h>

/* Prints the report of a log, or standard input if path is "-", to `out`, or into the open object json if it is not
 * NULL. A damaged log can leave a partial report, so `out` should be a temporary file. Returns 0 or -errno. */
int weir_report_one_log(const char *path, enum weir_lang lang, FILE *out, struct weir_json *json, struct weir_err *err);

#endif
