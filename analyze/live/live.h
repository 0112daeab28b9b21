/* live.h: shows the figures of running loaders to others: in a file for Prometheus, and over HTTP as metrics and as a
 * page. A thread of its own reads what the loaders count, so that neither clients nor a slow disk delay batches.
 *
 *     weir_live_open(&live, &config, &err);
 *     weir_live_add(live, &source);          when a loader has been opened
 *     weir_live_epoch(live);                 after an epoch
 *     weir_live_remove(live, source.user);   before it is closed
 *     weir_live_close(&live);
 *
 * All functions are thread-safe. In a child of fork() they do nothing. */
#ifndef WEIR_ANALYZE_LIVE_LIVE_H
#define WEIR_ANALYZE_LIVE_LIVE_H

#include "analyze/live/metrics.h"

#include <stdbool.h>

struct weir_live_history;

/* A loader. The functions are called one at a time, on the thread of live or in weir_live_add and _remove. */
struct weir_live_source {
    /* Fills in the metrics; the caller clears their report. Returns 0, or -errno to leave the loader out. */
    int (*collect)(void *user, struct weir_metrics *metrics);
    /* Writes the "run" line of the loader's log, for the page. */
    void (*write_run)(void *user, FILE *out);
    /* Writes its other lines: weir_live_log, which needs keeps_history, or a function that knows the epochs itself. */
    void (*write_log)(void *user, FILE *out, struct weir_metrics *metrics, const struct weir_live_history *history);
    /* Prints the verdict and the tables, where there is no page; may be NULL if there is. */
    void (*print)(void *user, FILE *out);
    void *user;
    bool keeps_history;
    struct weir_live_history *history_; /* private, like the next */
    char label_[sizeof(((struct weir_metrics *)0)->loader)];
};

/* Writes the lines of epochs and stages, from the figures collected so far. */
void weir_live_log(void *user, FILE *out, struct weir_metrics *metrics, const struct weir_live_history *history);

/* Makes the page of n logs. Returns 0 or -errno. The library of weir.watch, which cannot make one, gets the function of
 * the Python extension if that is loaded. */
typedef int weir_live_page_fn(FILE *out, const char *const *names, const char *const *logs, int n);
int weir_live_page(FILE *out, const char *const *names, const char *const *logs, int n);

struct weir_live_config {
    const char *prometheus;              /* file; NULL = none */
    const char *serve;                   /* address to listen on (weir_http_address_parse); NULL = none */
    int local_rank;                      /* is added to the port */
    weir_live_page_fn *page;             /* weir_live_page; NULL = a page of plain tables */
    struct weir_metrics_process process; /* start_unix_s is set by weir_live_open */
};

struct weir_live;

/* Opens the address and starts the thread. A second call with the same file and address in a process
 * returns the same object. Returns 0, or -errno with an error that names the address. */
int weir_live_open(struct weir_live **out, const struct weir_live_config *config, struct weir_err *err);
/* Returns "http://127.0.0.1:9464", or NULL. */
const char *weir_live_url(const struct weir_live *live);

/* At most WEIR_LIVE_SOURCES loaders are shown; further ones are left out. Labels of the same name are numbered.
 * Writes the file, which the caller must have checked: it must be no part of the dataset. Returns 0, or -errno with an
 * error that names the file; the loader is then not shown. */
enum { WEIR_LIVE_SOURCES = 64 };
int weir_live_add(struct weir_live *live, const struct weir_live_source *source, struct weir_err *err);
/* Writes the file once more, and forgets the loader; with NULL, all loaders. */
void weir_live_remove(struct weir_live *live, const void *user);
/* No thread of `live` exists between pause and resume: for fork() in programs that must not have one. */
void weir_live_pause(struct weir_live *live);
void weir_live_resume(struct weir_live *live);
/* Has the file written within a second. Costs a system call, and waits for nothing. */
void weir_live_epoch(struct weir_live *live);
/* Accepts NULL. The last call for an object stops its thread. */
void weir_live_close(struct weir_live **live);

/* Writes the metrics of these loaders, as the file contains them, to *text, which the caller frees. Returns 0 or
 * -ENOMEM. */
int weir_live_text(char **text, struct weir_live_source *sources, int n, const struct weir_metrics_process *process);

#endif
