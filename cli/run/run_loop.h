/* run_loop.h: consumes a loader's batches like a training loop, and reports their costs. */
#ifndef WEIR_CLI_RUN_RUN_LOOP_H
#define WEIR_CLI_RUN_RUN_LOOP_H

#include "cli/run/run_profile.h"
#include "cli/run/run_serve.h"
#include "weir/loader.h"
#include "weir/report.h"

#include <signal.h>
#include <stdio.h>

/* Consumes batches in place of the simulated step of --step-ms. One thread calls the functions, in this order. */
struct weir_run_consumer {
    void *user;
    /* Adjusts the configuration before the loader is opened. */
    int (*config)(void *user, struct weir_loader_config *config, struct weir_err *err);
    /* open is called before the first batch is requested. head prints lines to stderr. json writes members of "used" in
     * the log. */
    int (*open)(void *user, struct weir_loader *loader, struct weir_err *err);
    void (*head)(void *user);
    void (*json)(void *user, struct weir_json *json);
    /* On a GPU, returns the stream on which steps are queued and which waits for each batch, or NULL for a new stream.
     * Called after open. */
    void *(*stream)(void *user);
    /* Runs a step within its own zones, or queues it on a GPU. The batch is released afterwards, on a GPU in stream
     * order. An error ends the run. */
    int (*step)(void *user, const struct weir_batch *batch, struct weir_err *err);
    /* Fills in the consumer's members of a finished or interrupted epoch's line. */
    void (*line)(void *user, struct weir_epoch_line *line);
    /* Called after an epoch's line has been printed. */
    int (*epoch)(void *user, struct weir_err *err);
    /* Called when the run is complete, interrupted or failed, before its last line. */
    int (*end)(void *user, struct weir_err *err);
    /* Frees resources on the loader's device before the loader is closed. Called after open, even if open failed. */
    void (*close)(void *user);
};

struct weir_run_config {
    int every; /* number of epochs between tables; 0: only at the end */
    enum weir_lang lang;
    bool lines;                 /* writes log lines to `out` instead of tables */
    bool only_final;            /* with lines: writes only the final table to `out`; `log` gets all */
    FILE *out;                  /* output of the epochs and tables */
    double step_ms;             /* duration of the simulated step per batch */
    bool step_spin;             /* busy-waits instead of sleeping; on a GPU, steps are always busy-waiting kernels */
    bool sync_steps;            /* on a GPU: finishes each step before starting the next */
    FILE *log;                  /* output file for JSON lines; may be NULL */
    FILE *checksums;            /* output file for hashes; may be NULL */
    struct weir_run_page *page; /* keeps the lines of `log` for --html */
    struct weir_run_profile *profile;         /* may be NULL */
    struct weir_run_ranks *ranks;             /* the other ranks */
    struct weir_run_serve *serve;             /* live figures */
    uint64_t opened_ns;                       /* when the workers started, as weir_clock_monotonic_ns */
    double seconds;                           /* measured time after a warm-up; 0: whole epochs */
    const struct weir_run_consumer *consumer; /* NULL for the simulated step of step_ms */
    const char *state;                        /* path of the progress file; may be NULL */
    double *data_wait;                  /* set by the final report: its data wait, 0..1, -1 = unknown; may be NULL */
    struct weir_report_machine machine; /* state of the machine at the start of the run */
};

/* Runs until the batches end or *interrupted is set, and prints epoch lines and tables to run->out. Returns 0 or the
 * first error, after printing the last table. The caller must have begun a zone of WEIR_STAGE_WORKER_LOOP, which this
 * function ends, so that zones cover all of the thread's time. */
int weir_run_loop(struct weir_loader *loader, const struct weir_loader_config *config,
                  const struct weir_run_config *run, const volatile sig_atomic_t *interrupted, struct weir_err *err);

#endif
