/* measured_run.h: one measured `weir run` as a child process: its figures, and the report for demands and a verdict.
 *
 *     struct weir_measured_run run;
 *     const char *args[] = {"episodes/", "--num-workers", "4", NULL};
 *     const struct weir_measured_run_config config = {.args = args, .seconds = 1, .patience_s = 120};
 *     int rc = weir_measured_run(&run, &config, &err);
 *     if (rc == 0)
 *         weir_demands_make(&demands, weir_measured_report(&run));
 *     weir_measured_run_clear(&run); */
#ifndef WEIR_ANALYZE_TRIALS_MEASURED_RUN_H
#define WEIR_ANALYZE_TRIALS_MEASURED_RUN_H

#include "analyze/logs/log_read.h"
#include "analyze/trials/trial.h"
#include "weir/base.h"

#include <signal.h>

struct weir_measured_run_config {
    const char *const
        *args;         /* of weir run, ends with NULL: DATA and options other than --seconds, --every and --json */
    double seconds;    /* measured; the child adds a warm-up of at least a fifth */
    double patience_s; /* the child is killed after this time, including start and warm-up */
    const volatile sig_atomic_t *interrupted; /* not 0: end the child; may be NULL */
    const char *program;                      /* NULL: this program */
};

/* Owns the report's memory; large (tens of KiB). */
struct weir_measured_run {
    struct weir_trial trial; /* round 0 */
    struct weir_log_record record_;
};

/* Runs the child and waits for its end. 0; -EINTR when interrupted, -ETIMEDOUT, -ECHILD when it failed (err has the
 * last line of its stderr), -EBADMSG when its output is not that of a measured run, -ENOMEM. *run is empty after
 * failure. Any thread. */
int weir_measured_run(struct weir_measured_run *run, const struct weir_measured_run_config *config,
                      struct weir_err *err);

/* The report of the measured seconds; borrowed until weir_measured_run_clear. */
const struct weir_loader_report *weir_measured_report(const struct weir_measured_run *run);

/* Frees and empties it. A zeroed struct may be cleared. */
void weir_measured_run_clear(struct weir_measured_run *run);

#endif
