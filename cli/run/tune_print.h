/* tune_print.h: a call of weir tune, and its outputs: the curve and the command line, one JSON object, a file for
 * --config. */
#ifndef WEIR_CLI_RUN_TUNE_PRINT_H
#define WEIR_CLI_RUN_TUNE_PRINT_H

#include "analyze/tuning/tune_trials.h"
#include "base/gz_file.h"
#include "cli/run/run_options.h"

#include <stdio.h>

struct tune_options {
    struct run_options run;         /* first: weir_tune_sets */
    uint64_t max_memory, max_cache; /* max_cache may be WEIR_OPT_BYTES_AUTO */
    int max_cpu;
    double min_seconds, max_minutes;
    const char *out, *log;
    bool json;
};
extern const struct weir_opt_set weir_tune_sets[];

enum { TUNE_LINES = 128 };

struct tune_session {
    const struct tune_options *options;
    const char *data;
    FILE *out;                     /* for the steps of the search */
    FILE *log;                     /* NULL = none */
    struct weir_gz_file *settings; /* of --out, open from the beginning to find out early that it cannot be written */
    uint64_t begin_ns;             /* weir_clock_monotonic_ns */
    double cached;                 /* part of the files in the page cache at the beginning; -1 = not known */
    char *lines[TUNE_LINES];       /* owned: the steps */
    int n_lines;
    struct weir_words words; /* options of every trial */
    struct weir_tune_config config;
    struct weir_tune_trials trials;
};

void tune_print_head(const struct tune_session *session, FILE *out);
/* The curve, the noise, how it ended, and the command line, which is the last line. */
void tune_print(const struct tune_session *session, FILE *out);
void tune_print_json(const struct tune_session *session, const struct weir_command *command, FILE *out);
/* Writes the file of --out; it is replaced as a whole. 0 or -errno. */
int tune_write_config(struct tune_session *session, struct weir_err *err);

#endif
