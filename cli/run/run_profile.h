/* run_profile.h: --profile of weir run. A step is a batch; each window becomes a trace file, and one line of its steps'
 * times by the loop's clock. */
#ifndef WEIR_CLI_RUN_RUN_PROFILE_H
#define WEIR_CLI_RUN_RUN_PROFILE_H

#include "weir/loader.h"
#include "weir/profiler.h"
#include "weir/report.h"
#include "weir/trace.h"

struct weir_run_profile_config {
    const char *command; /* for messages: "run" */
    const char *folder;  /* NULL: no recording */
    bool nvtx;           /* NVTX ranges for Nsight, also without a folder */
    struct weir_schedule schedule;
    bool record_shapes, profile_memory, with_stack, worker_ops;
    const char *sort_by;
    int row_limit;
};

struct weir_run_profile;

int weir_run_profile_open(struct weir_run_profile **out, const struct weir_run_profile_config *config,
                          struct weir_loader *loader, struct weir_err *err);
/* Ends a step, in which the consumer waited wait_ns for its batch. Accepts NULL, like the other functions. */
void weir_run_profile_step(struct weir_run_profile *profile, uint64_t wait_ns);
/* Ends the recording and waits for its files. */
void weir_run_profile_finish(struct weir_run_profile *profile);
/* Fills the GPU's idle time in the last window, after finish. traced_s is 0 without a GPU or a window. */
void weir_run_profile_idle(struct weir_run_profile *profile, struct weir_report_idle *idle);
/* Prints the windows, and the averages of the last one. */
void weir_run_profile_print(FILE *out, struct weir_run_profile *profile);
/* Writes the same as one JSON line, {"type": "profile", ...}. */
void weir_run_profile_log(FILE *log, struct weir_run_profile *profile);
/* Returns 0, or -EIO if a trace was not written. Call after finish. */
int weir_run_profile_error(struct weir_run_profile *profile, struct weir_err *err);
void weir_run_profile_close(struct weir_run_profile **profile);

#endif
