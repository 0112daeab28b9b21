/* run_session.h: executes a run from its options to its exit status, with signals, head, output files and the loop
 * (run_loop.h). */
#ifndef WEIR_CLI_RUN_RUN_SESSION_H
#define WEIR_CLI_RUN_RUN_SESSION_H

#include "base/ranks.h"
#include "cli/commands.h"
#include "cli/run/run_loop.h"
#include "cli/run/run_options.h"
#include "weir/base.h"
#include "weir/loader.h"
#include "weir/report.h"

#include <stdio.h>

/* ---- run_head.c: the output before a run's first batch: lines on stderr, and the "run" line of the log. */

/* All members are borrowed. */
struct weir_run_head {
    const struct weir_command *command;
    const void *values; /* the command's option values, for the log */
    const struct run_options *options;
    const char *data;
    const struct weir_ranks *ranks;
    const struct weir_run_consumer *consumer; /* may be NULL */
};

/* Prints the machine line, including the number of cores that the loader uses, to stderr. */
void weir_run_head_machine(struct weir_report_machine *machine, const struct weir_loader *loader);
/* Prints the dataset, the loader and its device to stderr. */
void weir_run_head_print(const struct weir_run_head *head, const struct weir_loader *loader);
/* Writes the "run" line. load_average is the load at the start of the run; negative if unknown. */
void weir_run_head_log(FILE *out, const struct weir_run_head *head, const struct weir_loader *loader,
                       double load_average);

/* ---- run_page.c: the page of --html, made from the log's lines at the end of a run. */

/* Keeps the lines of a log in a temporary file. Zero-initialise it. */
struct weir_run_page {
    FILE *html;  /* output file; NULL = no page */
    FILE *lines; /* temporary file; owned */
    FILE *log;   /* output file for the same lines; can be NULL; borrowed */
    FILE *both_; /* stream to lines and log; owned */
};

/* Opens the output file, unless path is NULL, and replaces *log, which can be NULL, with a stream that also keeps the
 * lines. Returns 0 or -errno. */
int weir_run_page_open(struct weir_run_page *page, const char *path, FILE **log, struct weir_err *err);
/* Closes that stream and sets *log to the output file again. Without --html it has no effect. */
int weir_run_page_detach(struct weir_run_page *page, FILE **log);
/* Writes the page, unless the run has written no lines, and closes it. Returns 0 or -errno. */
int weir_run_page_close(struct weir_run_page *page, const char *path, enum weir_lang lang, struct weir_err *err);

/* ---- run_session.c */

/* All members are borrowed. */
struct weir_run_session {
    const struct weir_command *command;
    struct run_options *options; /* loader.format is completed by weir_run_session */
    const void *values;          /* the command's option values, for the log */
    const char *data;
    const struct weir_run_consumer *consumer; /* NULL for the simulated step of --step-ms */
};

/* Runs, prints the results, and returns the exit status. Call it only once per process, because it installs handlers
 * for SIGINT and SIGTERM. */
int weir_run_session(const struct weir_run_session *session);

#endif
