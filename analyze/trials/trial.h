/* trial.h: the figures of a trial, from the output of `weir run --seconds F --log -`. */
#ifndef WEIR_ANALYZE_TRIALS_TRIAL_H
#define WEIR_ANALYZE_TRIALS_TRIAL_H

#include "analyze/logs/log_read.h"

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

enum { WEIR_TRIAL_STAGES = 32 };

struct weir_trial {
    int round; /* counts from 0 */
    struct weir_log_used used;
    struct weir_measured_line measured;
    double wait_p99_s;     /* 99th percentile of the consumer's waits for a batch; -1 = none */
    double cpu_s;          /* CPU time of the process and its HDF5 helper processes */
    double read_bytes;     /* bytes read by the I/O engine and through the HDF5 library */
    double workers_wall_s; /* sum of the workers' wall times */
    double others_cores;   /* cores used by other processes; -1 = unknown */
    int n_stages;          /* first the host's stages in the table's order, then the GPU's stages */
    struct weir_report_row stages[WEIR_TRIAL_STAGES];
};

/* Reads the JSON lines that a trial printed. If last is not NULL, *last must be zeroed and gets the record with the
 * table of the whole run; free it with weir_log_record_clear. Returns 0, -ENOMEM, or -EBADMSG if the output is damaged,
 * a record is missing or nothing was measured. */
int weir_trial_parse(struct weir_trial *trial, struct weir_log_record *last, const char *text, size_t length,
                     struct weir_err *err);

/* Returns the stage that limited the trial, or NULL if it is unknown. Sets *part to the fraction of the workers' time
 * that the stage took (for a stage of the consumer, of the loop's time). docs/internals/trials.md explains the rule. */
const struct weir_report_row *weir_trial_bound(const struct weir_trial *trial, double *part);

/* ---- one measured run ---- */

/* A measured `weir run` in a child process, with its figures and the report for demands and a verdict:
 *
 *     struct weir_measured_run run;
 *     const char *args[] = {"episodes/", "--num-workers", "4", NULL};
 *     const struct weir_measured_run_config config = {.args = args, .seconds = 1, .patience_s = 120};
 *     int rc = weir_measured_run(&run, &config, &err);
 *     if (rc == 0)
 *         weir_demands_make(&demands, weir_measured_report(&run));
 *     weir_measured_run_clear(&run); */
struct weir_measured_run_config {
    const char *const *args; /* DATA and options of weir run, except --seconds, --every and --log; ends with NULL */
    double seconds;          /* duration of the measurement; the child first warms up for at least a fifth of it */
    double patience_s;       /* time limit of the child, including its start and warm-up */
    const volatile sig_atomic_t *interrupted; /* if not 0, the child is ended; can be NULL */
    const char *program;                      /* path of weir, or NULL if this program is weir */
};

/* Owns the report's memory. Large (tens of KiB). */
struct weir_measured_run {
    struct weir_trial trial; /* its round is 0 */
    struct weir_log_record record_;
};

/* Runs the child and waits until it ends. Returns 0, -EINTR if interrupted, -ETIMEDOUT, -ECHILD if the child failed
 * (err then contains the last line of its stderr), -EBADMSG if its output is not that of a measured run, or -ENOMEM. On
 * failure, *run is empty. Can be called on any thread. */
int weir_measured_run(struct weir_measured_run *run, const struct weir_measured_run_config *config,
                      struct weir_err *err);

/* Returns the report for the measured time. It is borrowed until weir_measured_run_clear. */
const struct weir_loader_report *weir_measured_report(const struct weir_measured_run *run);

/* Frees the run's memory and empties it. A zeroed struct is accepted. */
void weir_measured_run_clear(struct weir_measured_run *run);

#endif
