/* trial.h: figures of one trial, from the output of `weir run --seconds F --json`. */
#ifndef WEIR_ANALYZE_TRIALS_TRIAL_H
#define WEIR_ANALYZE_TRIALS_TRIAL_H

#include "analyze/logs/log_read.h"

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

#endif
