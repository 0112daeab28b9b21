/* report_folder.h: finds the file that weir report reads for a folder. */
#ifndef WEIR_CLI_REPORT_REPORT_FOLDER_H
#define WEIR_CLI_REPORT_REPORT_FOLDER_H

#include "weir/base.h"

#include <stdio.h>

/* What to do without a trace, for error messages. */
#define WEIR_RECORD_A_TRACE "record a trace with torch.profiler (weir report --help shows how) or weir run --profile"

/* Replaces each path of a folder by that of the newest trace in it, and prints one line on stderr that names it. A
 * folder without a trace is an error, which suggests the newest log. The new paths are also stored in found[], and the
 * caller frees them, also after an error. */
int weir_report_folders(const char **paths, int n, char **found, struct weir_err *err);

/* Opens a log; "-" is standard input. The caller closes *in, which is NULL or open also after an error. */
int weir_report_open_log(const char *path, FILE **in, struct weir_err *err);

#endif
