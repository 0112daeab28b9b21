/* run_loop.h: consumes a loader's batches like a training loop, and reports their costs. */
#ifndef WEIR_CLI_RUN_RUN_LOOP_H
#define WEIR_CLI_RUN_RUN_LOOP_H

#include "cli/run/run_profile.h"
#include "weir/loader.h"
#include "weir/report.h"

#include <signal.h>
#include <stdio.h>

/* A consumer of batches in place of the simulated step of --step-ms. One thread calls these, in this order. */
struct weir_run_consumer {
    void *user;
    /* Adjusts the configuration before the loader is opened. */
    int (*config)(void *user, struct weir_loader_config *config, struct weir_err *err);
    /* Called before the first batch is requested. head prints lines to stderr; json writes members of the log's "used".
     */
    int (*open)(void *user, struct weir_loader *loader, struct weir_err *err);
    void (*head)(void *user);
    void (*json)(void *user, struct weir_json *json);
    /* On a GPU: returns the stream of the steps, which waits for each batch. Called after open. NULL: none. */
    void *(*stream)(void *user);
    /* Runs a step within zones of its own, or queues it on a GPU. The batch is released afterwards, in stream order. An
     * error ends the run. */
    int (*step)(void *user, const struct weir_batch *batch, struct weir_err *err);
    /* Fills its part of the line of a finished or interrupted epoch. */
    void (*line)(void *user, struct weir_epoch_line *line);
    /* Called after an epoch's line is printed. */
    int (*epoch)(void *user, struct weir_err *err);
    /* Called when the run is over (complete, interrupted or failed), before its last line. */
    int (*end)(void *user, struct weir_err *err);
    /* Frees what is on the loader's device, before the loader is closed. Called after open, even if open failed. */
    void (*close)(void *user);
};

struct weir_run_config {
    int every; /* epochs between tables; 0: only at the end */
    enum weir_lang lang;
    bool json;                                /* log lines on stdout instead of tables */
    double step_ms;                           /* duration of the simulated step per batch */
    bool step_spin;                           /* spins instead of sleeping; on a GPU a kernel does */
    bool sync_steps;                          /* on a GPU: finishes each step before the next */
    FILE *log;                                /* JSON lines; may be NULL */
    FILE *checksums;                          /* may be NULL */
    struct weir_run_profile *profile;         /* may be NULL */
    uint64_t opened_ns;                       /* start of the workers: weir_clock_monotonic_ns */
    double seconds;                           /* measured time after a warm-up; 0: whole epochs */
    const struct weir_run_consumer *consumer; /* NULL: the simulated step of step_ms */
    const char *state;                        /* progress file; may be NULL */
    struct weir_report_machine machine;       /* at the start of the run */
};

/* Runs until the batches end or *interrupted is set, printing epoch lines and tables to stdout. Returns 0 or the
 * loader's error, after printing the table. The caller has begun a zone of WEIR_STAGE_WORKER_LOOP, which this ends, so
 * that all of the thread's time is in zones. */
int weir_run_loop(struct weir_loader *loader, const struct weir_loader_config *config,
                  const struct weir_run_config *run, const volatile sig_atomic_t *interrupted, struct weir_err *err);

#endif
