/* tune_print.h: the state of weir tune, and its outputs: the curve with the command line, a JSON object, and a settings
 * file for --config. */
#ifndef WEIR_CLI_RUN_TUNE_PRINT_H
#define WEIR_CLI_RUN_TUNE_PRINT_H

#include "analyze/tuning/tune_trials.h"
#include "base/gz_file.h"
#include "cli/outputs.h"
#include "cli/progress.h"
#include "cli/run/run_options.h"

#include <stdio.h>

struct tune_options {
    struct run_options run;         /* must be first, because weir_tune_sets uses offset 0 */
    uint64_t max_memory, max_cache; /* max_cache can be WEIR_OPT_BYTES_AUTO */
    int max_cpu;
    double min_seconds, max_minutes;
    const char *out, *log, *html;
    bool json, wide;
};
extern const struct weir_opt_set weir_tune_sets[];

enum { TUNE_LINES = 128 };

struct tune_session {
    const struct tune_options *options;
    const char *data;
    FILE *out; /* receives the steps of the search */
    FILE *log; /* NULL: no log */
    struct weir_output_page page;
    struct weir_gz_file *settings; /* file of --out; opened at the start, so that an unwritable file fails early */
    uint64_t begin_ns;             /* start of the search, as weir_clock_monotonic_ns */
    double cached;                 /* fraction of the files in the page cache at the start; -1 if unknown */
    char *lines[TUNE_LINES];       /* steps of the search; owned */
    int n_lines;
    struct weir_trial_progress progress;
    struct weir_words words; /* options of weir run for every trial */
    struct weir_tune_config config;
    struct weir_tune_trials trials;
};

void tune_print_head(const struct tune_session *session, FILE *out);
/* Describes the chosen setting, the curve, the noise, how the search ended and, as the last line, the command line.
 * Closes the document. */
void tune_describe(struct weir_document *document, const struct tune_session *session,
                   const struct weir_command *command);
/* Writes the settings file of --out, replacing an existing file atomically. Returns 0 or -errno. */
int tune_write_config(struct tune_session *session, struct weir_err *err);

#endif
