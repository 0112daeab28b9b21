/* report_command.h: the parts of weir report: the file of a folder, traces, one log, the ranks of several logs, and
 * the page. */
#ifndef WEIR_CLI_REPORT_REPORT_COMMAND_H
#define WEIR_CLI_REPORT_REPORT_COMMAND_H

#include "analyze/logs/log_ranks.h"
#include "base/document.h"
#include "weir/base.h"
#include "weir/report.h"
#include "weir/trace.h"

#include <stdbool.h>
#include <stdio.h>

/* ---- report_folder.c: finds the file that weir report reads for a folder. */

/* What to do without a trace, for error messages. */
#define WEIR_RECORD_A_TRACE "record a trace with torch.profiler (weir report --help shows how) or weir run --profile"

/* Replaces each path of a folder by that of the newest trace in it, and prints one line on stderr that names it. A
 * folder without a trace is an error, which suggests the newest log. The new paths are also stored in found[], and the
 * caller frees them, also after an error. */
int weir_report_folders(const char **paths, int n, char **found, struct weir_err *err);

/* Opens a log; "-" is standard input. The caller closes *in, which is NULL or open also after an error. */
int weir_report_open_log(const char *path, FILE **in, struct weir_err *err);

/* ---- report_trace.c: traces: averages, the parts of each step's time, GPU idle time, and the clocks inside kernels.
 */

struct weir_report_trace_config {
    struct weir_averages_config by;
    struct weir_averages_table table;
    const char *export_stacks; /* output file for stacks; NULL: none */
    const char *export_clocks; /* output CSV file for clocks inside kernels; NULL: none */
};

/* Describes one trace as an element of the open array. title: print the path above the report, to distinguish several
 * traces. */
int weir_report_trace(struct weir_document *document, const char *path, const struct weir_report_trace_config *config,
                      bool title, struct weir_err *err);

/* ---- report_one_log.c: reports one log, of weir or of another training program. */

/* Describes a log, or standard input if path is "-", in the open object. A damaged log can leave a partial report, so
 * the document should be in a temporary file. Returns 0 or -errno. */
int weir_report_one_log(struct weir_document *document, const char *path, enum weir_lang lang, struct weir_err *err);

/* ---- report_ranks.c: the table over ranks after the reports of their logs, and the logs of killed ranks that cannot
 * be reported. */

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
/* Describes the table over ranks: the member "ranks" of the open object, null without a table. */
void weir_report_ranks_describe(struct weir_document *document, const struct weir_report_ranks *ranks);

/* ---- report_page.c: the page of --html, from logs. */

/* Writes the page of the logs to the file. Nothing is written unless all of them can be read. Returns 0 or -errno. */
int weir_report_page(const char *html, const char *const *paths, int n, enum weir_lang lang,
                     const struct weir_report_ranks *ranks, struct weir_err *err);

#endif
