/* run_profile.h: --profile of weir run. A step is a batch. Each window of steps is written to a trace file, and
 * reported in one line with the steps' times by the loop's clock. */
#ifndef WEIR_CLI_RUN_RUN_PROFILE_H
#define WEIR_CLI_RUN_RUN_PROFILE_H

#include "weir/loader.h"
#include "weir/profiler.h"
#include "weir/report.h"
#include "weir/trace.h"

struct weir_run_profile_config {
    const char *command; /* command name for messages, such as "run" */
    const char *folder;  /* NULL to record no traces */
    bool nvtx;           /* emits NVTX ranges for Nsight; does not require a folder */
    struct weir_schedule schedule;
    bool record_shapes, profile_memory, with_stack, worker_ops;
    const char *sort_by;
    int row_limit;
};

struct weir_run_profile;

int weir_run_profile_open(struct weir_run_profile **out, const struct weir_run_profile_config *config,
                          struct weir_loader *loader, struct weir_err *err);
/* Ends a step. wait_ns is how long the consumer waited for the step's batch. profile can be NULL, as in the other
 * functions. */
void weir_run_profile_step(struct weir_run_profile *profile, uint64_t wait_ns);
/* Ends the recording and waits until its files are written. */
void weir_run_profile_finish(struct weir_run_profile *profile);
/* Gets the GPU's idle time in the last window. Call it after weir_run_profile_finish. traced_s is 0 if there is no GPU
 * or no window. */
void weir_run_profile_idle(struct weir_run_profile *profile, struct weir_report_idle *idle);
/* Prints the windows, and the averages of the last one. */
void weir_run_profile_print(FILE *out, struct weir_run_profile *profile);
/* Writes the windows as one JSON line, {"type": "profile", ...}. */
void weir_run_profile_log(FILE *log, struct weir_run_profile *profile);
/* Returns 0, or -EIO if a trace was not written. Call it after weir_run_profile_finish. */
int weir_run_profile_error(struct weir_run_profile *profile, struct weir_err *err);
void weir_run_profile_close(struct weir_run_profile **profile);

#endif
