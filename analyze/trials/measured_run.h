/* measured_run.h: one measured run of `weir run`, as a process of its own: its figures, and its whole report, from
 * which demands and a verdict can be made.
 *
 *     struct weir_measured_run run;
 *     const char *args[] = {"episodes/", "--num-workers", "4", NULL};
 *     const struct weir_measured_run_config config = {.args = args, .seconds = 1, .patience_s = 120};
 *     int rc = weir_measured_run(&run, &config, &err);
 *     if (rc == 0)
 *         weir_demands_make(&demands, weir_measured_report(&run));
 *     weir_measured_run_clear(&run);
 */
#ifndef WEIR_ANALYZE_TRIALS_MEASURED_RUN_H
#define WEIR_ANALYZE_TRIALS_MEASURED_RUN_H

#include "analyze/logs/log_read.h"
#include "analyze/trials/trial.h"
#include "weir/base.h"

#include <signal.h>

struct weir_measured_run_config {
    const char *const *args; /* of weir run, ends with NULL: DATA and options, but for --seconds, --every and --json */
    double seconds;          /* to be measured; the child adds its warm-up, a fifth of it at least */
    double patience_s;       /* the child is killed after so long, start and warm-up included */
    const volatile sig_atomic_t *interrupted; /* not 0: the child is ended; may be NULL */
    const char *program;                      /* NULL: this program */
};

/* Owns what the report refers to; large (tens of KiB). */
struct weir_measured_run {
    struct weir_trial trial; /* round 0 */
    struct weir_log_record record_;
};

/* Runs the child and waits for its end. 0; -EINTR when interrupted, -ETIMEDOUT, -ECHILD when it failed (err has the
 * last line of its stderr), -EBADMSG when its output is not that of a measured run, -E2BIG with more than
 * WEIR_MEASURED_ARGS arguments, -ENOMEM. *run is empty after failure. Any thread. */
int weir_measured_run(struct weir_measured_run *run, const struct weir_measured_run_config *config,
                      struct weir_err *err);

/* The report of the measured seconds; borrows until weir_measured_run_clear. */
const struct weir_loader_report *weir_measured_report(const struct weir_measured_run *run);

/* Frees what it owns and empties it. An empty one (all zero) may be cleared. */
void weir_measured_run_clear(struct weir_measured_run *run);

#endif
