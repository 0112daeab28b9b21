/* trial.h: the figures of a trial, from the output of `weir run --seconds F --log -`. */
#ifndef WEIR_ANALYZE_TRIALS_TRIAL_H
#define WEIR_ANALYZE_TRIALS_TRIAL_H

#include "analyze/logs/log_read.h"
#include "analyze/trials/child.h"

#include <stddef.h>
#include <stdint.h>

enum { WEIR_TRIAL_STAGES = 32 };

struct weir_trial {
    int round; /* counts from 1; otherwise the trial is not part of a round */
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

/* Runs a command that ends with the options of weir_words_add_measured, and parses its output as above. Returns 0,
 * -EINTR if interrupted, another error of weir_child_run, or an error of weir_trial_parse; *trial is then empty. Can be
 * called on any thread. */
int weir_trial_run(struct weir_trial *trial, struct weir_log_record *last, const struct weir_child_config *command,
                   struct weir_err *err);

/* Returns the stage that limited the trial, or NULL if it is unknown. Sets *part to the fraction of the workers' time
 * that the stage took (for a stage of the consumer, of the loop's time). docs/internals/trials.md explains the rule. */
const struct weir_report_row *weir_trial_bound(const struct weir_trial *trial, double *part);

#endif
