/* run_loop.h: consumes a loader's batches as a training loop would, and reports what they cost. */
#ifndef WEIR_CLI_RUN_RUN_LOOP_H
#define WEIR_CLI_RUN_RUN_LOOP_H

#include "cli/run/run_profile.h"
#include "weir/loader.h"
#include "weir/report.h"

#include <signal.h>
#include <stdio.h>

/* Who takes the batches, where it is not the stand-in of --step-ms: one thread calls these, in this order. */
struct weir_run_consumer {
    void *user;
    /* Before the loader is opened: what the consumer wants of it. */
    int (*config)(void *user, struct weir_loader_config *config, struct weir_err *err);
    /* Before the first batch is asked for; then its lines of the head, to stderr, and members of the log's "used". */
    int (*open)(void *user, struct weir_loader *loader, struct weir_err *err);
    void (*head)(void *user);
    void (*json)(void *user, struct weir_json *json);
    /* On a GPU: the stream that steps are queued on, which waits for each batch; called after open. NULL: none. */
    void *(*stream)(void *user);
    /* A step, in zones of its own; on a GPU it is queued. The batch is the loader's again afterwards, behind the
     * stream. An error ends the run. */
    int (*step)(void *user, const struct weir_batch *batch, struct weir_err *err);
    /* Fills what it knows of the epoch that is over, or cut short. */
    void (*line)(void *user, struct weir_epoch_line *line);
    /* The epoch is over, and its line is printed. */
    int (*epoch)(void *user, struct weir_err *err);
    /* The run is over, whole, interrupted or failed, and its last line is not printed yet. */
    int (*end)(void *user, struct weir_err *err);
    /* What it has on the loader's device goes: the loader is closed next. Called after open, whatever that gave. */
    void (*close)(void *user);
};

struct weir_run_config {
    int every; /* epochs between tables; 0 = only at the end */
    enum weir_lang lang;
    bool json;                                /* stdout gets the log's lines instead of tables */
    double step_ms;                           /* the consumer is busy for so long per batch */
    bool step_spin;                           /* by spinning, else by sleeping; on a GPU by a kernel */
    bool sync_steps;                          /* on a GPU: each step is waited for before the next */
    FILE *log;                                /* JSON lines; may be NULL */
    FILE *checksums;                          /* may be NULL */
    struct weir_run_profile *profile;         /* may be NULL */
    uint64_t opened_ns;                       /* when the workers began: weir_clock_monotonic_ns */
    double seconds;                           /* to measure after a warm-up, in place of epochs; 0 = epochs */
    const struct weir_run_consumer *consumer; /* NULL: the stand-in of step_ms */
    const char *state;                        /* file that keeps where the run is; may be NULL */
    struct weir_report_machine machine;       /* as it was when the run began */
};

/* Runs to the end of the batches, or until *interrupted. Prints epoch lines and tables to stdout. 0, or the loader's
 * error: the table of what was done is printed all the same. The caller has begun a zone of WEIR_STAGE_WORKER_LOOP when
 * the loader was open, so that all of this thread's time is in zones; this ends it. */
int weir_run_loop(struct weir_loader *loader, const struct weir_loader_config *config,
                  const struct weir_run_config *run, const volatile sig_atomic_t *interrupted, struct weir_err *err);

#endif
