/* trial.h: figures of one trial, from the output of `weir run --seconds F --json`. */
#ifndef WEIR_ANALYZE_TRIALS_TRIAL_H
#define WEIR_ANALYZE_TRIALS_TRIAL_H

#include "analyze/logs/log_read.h"

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

enum { WEIR_TRIAL_STAGES = 32 };

struct weir_trial {
    int round; /* from 0 */
    struct weir_log_used used;
    struct weir_measured_line measured;
    double wait_p99_s;     /* 99th percentile of the consumer's requests for a batch; -1 = none */
    double cpu_s;          /* of the process and its HDF5 helper processes */
    double read_bytes;     /* by the io engine and through the HDF5 library */
    double workers_wall_s; /* sum over the workers */
    double others_cores;   /* cores that other processes used; -1 = not known */
    int n_stages;          /* those of the host in the table's order, then those of the GPU */
    struct weir_report_row stages[WEIR_TRIAL_STAGES];
};

/* Reads the JSON lines that a trial printed. *last, unless NULL, gets the record of the whole run's table (zeroed
 * before; owned: weir_log_record_clear). -EBADMSG when the text is damaged, a record is missing, or nothing was
 * measured; -ENOMEM. */
int weir_trial_parse(struct weir_trial *trial, struct weir_log_record *last, const char *text, size_t length,
                     struct weir_err *err);

/* The stage that limited the trial, and its part of the time of all workers, 0..1; NULL when it is not known.
 * docs/bench.md has the rule. */
const struct weir_report_row *weir_trial_bound(const struct weir_trial *trial, double *part);

/* ---- one measured run ---- */

/* A measured `weir run` as a child process: its figures, and the report for demands and a verdict.
 *
 *     struct weir_measured_run run;
 *     const char *args[] = {"episodes/", "--num-workers", "4", NULL};
 *     const struct weir_measured_run_config config = {.args = args, .seconds = 1, .patience_s = 120};
 *     int rc = weir_measured_run(&run, &config, &err);
 *     if (rc == 0)
 *         weir_demands_make(&demands, weir_measured_report(&run));
 *     weir_measured_run_clear(&run);
 */
struct weir_measured_run_config {
    const char *const *args; /* DATA and options of weir run other than --seconds, --every and --json; NULL-ended */
    double seconds;          /* measured; the child adds a warm-up of at least a fifth */
    double patience_s;       /* the child is killed after this time, including start and warm-up */
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
