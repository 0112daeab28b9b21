/* run_loop.h: consumes a loader's batches as a training loop would, and reports what they cost. */
#ifndef WEIR_CLI_RUN_RUN_LOOP_H
#define WEIR_CLI_RUN_RUN_LOOP_H

#include "cli/run/run_profile.h"
#include "pipeline/loader.h"
#include "pipeline/report/loader_report.h"

#include <signal.h>
#include <stdio.h>

struct weir_run_config {
    int every; /* epochs between tables; 0 = only at the end */
    enum weir_lang lang;
    bool json;                          /* stdout gets the log's lines instead of tables */
    double step_ms;                     /* the consumer is busy for so long per batch */
    bool step_spin;                     /* by spinning, else by sleeping; on a GPU by a kernel */
    bool sync_steps;                    /* on a GPU: each step is waited for before the next */
    FILE *log;                          /* JSON lines; may be NULL */
    FILE *checksums;                    /* may be NULL */
    struct weir_run_profile *profile;   /* may be NULL */
    uint64_t opened_ns;                 /* when the workers began: weir_clock_monotonic_ns */
    double seconds;                     /* to measure after a warm-up, in place of epochs; 0 = epochs */
    const char *state;                  /* file that keeps where the run is; may be NULL */
    struct weir_report_machine machine; /* as it was when the run began */
};

/* Runs to the end of the batches, or until *interrupted. Prints epoch lines and tables to stdout. 0, or the loader's
 * error: the table of what was done is printed all the same. The caller has begun a zone of WEIR_STAGE_WORKER_LOOP when
 * the loader was open, so that all of this thread's time is in zones; this ends it. */
int weir_run_loop(struct weir_loader *loader, const struct weir_loader_config *config,
                  const struct weir_run_config *run, const volatile sig_atomic_t *interrupted, struct weir_err *err);

#endif
