/* run_serve.h: a run's figures for others while it runs (--serve, --prometheus). */
#ifndef WEIR_CLI_RUN_RUN_SERVE_H
#define WEIR_CLI_RUN_RUN_SERVE_H

#include "analyze/live/live.h"
#include "base/ranks.h"
#include "cli/run/run_options.h"

#include <stdatomic.h>

struct weir_run_head;

struct weir_run_serve {
    struct weir_live *live; /* NULL = neither option was used */
    struct weir_loader *loader;
    struct weir_loader_reports *reports;
    char label[64];
    char *run_line;     /* of the log, for the page; owned; may be NULL */
    _Atomic int epochs; /* number of epochs completed */
};

/* Checks the address. Returns 0 or -EINVAL. */
int weir_run_serve_check(const struct run_options *options, const struct weir_ranks *ranks, struct weir_err *err);
/* Opens the address, and prints the URL to stderr. command: name of the command. */
int weir_run_serve_open(struct weir_run_serve *serve, const struct run_options *options, const struct weir_ranks *ranks,
                        const char *command, struct weir_err *err);
/* Keeps the run's line of the log for the page. head and load_average: as weir_run_head_log. */
void weir_run_serve_head(struct weir_run_serve *serve, const struct weir_run_head *head,
                         const struct weir_loader *loader, double load_average);
/* Creates the file and shows a loader, on the consumer's thread, until weir_run_serve_end. data: path of the dataset.
 */
int weir_run_serve_begin(struct weir_run_serve *serve, struct weir_loader *loader, struct weir_loader_reports *reports,
                         const char *data, struct weir_err *err);
void weir_run_serve_epoch(struct weir_run_serve *serve, int epochs_done);
void weir_run_serve_end(struct weir_run_serve *serve);
void weir_run_serve_close(struct weir_run_serve *serve);

#endif
