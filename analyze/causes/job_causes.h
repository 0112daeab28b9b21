/* job_causes.h: the causes that limit a training job with a PyTorch DataLoader, and the advice for each, in PyTorch's
 * words. `weir top`, which watches a job from outside, and weir.watch, which times it inside, use the same table. */
#ifndef WEIR_ANALYZE_CAUSES_JOB_CAUSES_H
#define WEIR_ANALYZE_CAUSES_JOB_CAUSES_H

#include <stdbool.h>
#include <stdio.h>

enum weir_job_cause {
    WEIR_JOB_UNSURE,
    WEIR_JOB_NOT_DATA_BOUND,
    WEIR_JOB_STEP,              /* everything is idle between steps: launches or synchronisation */
    WEIR_JOB_WORKERS_SATURATED, /* the workers are busy all the time; the stage that takes most is not known */
    WEIR_JOB_DECODE,            /* the workers are busy, mostly with this */
    WEIR_JOB_TRANSFORM,
    WEIR_JOB_OWN_CODE,
    WEIR_JOB_READ_CPU,
    WEIR_JOB_TOO_FEW_WORKERS,
    WEIR_JOB_STORAGE,
    WEIR_JOB_SLOW_FILE,
    WEIR_JOB_SLOW_WORKER,
    WEIR_JOB_LOCK,
    WEIR_JOB_TOO_MANY_THREADS,
    WEIR_JOB_QUOTA,
    WEIR_JOB_NEIGHBOURS,
    WEIR_JOB_COLLATE,
    WEIR_JOB_PIN_OFF,
    WEIR_JOB_TRANSFER,
    WEIR_JOB_GIL, /* the main process cannot take batches that are ready */
    WEIR_JOB_START_UP,
    WEIR_JOB_IMBALANCE, /* batches differ too much in time for the batches that are prefetched */
    WEIR_JOB_CAUSES
};

enum weir_job_advice {
    WEIR_JOB_ADVICE_NONE,
    WEIR_JOB_ADVICE_WATCH,      /* look inside, with weir.watch */
    WEIR_JOB_ADVICE_OWN_REPORT, /* of Weir's loader */
    WEIR_JOB_ADVICE_TRACE,      /* the step */
    WEIR_JOB_ADVICE_TIME_PARTS,
    WEIR_JOB_ADVICE_NUM_WORKERS,
    WEIR_JOB_ADVICE_FEWER_WORKERS,
    WEIR_JOB_ADVICE_PREFETCH,
    WEIR_JOB_ADVICE_PERSISTENT,
    WEIR_JOB_ADVICE_PIN_MEMORY,
    WEIR_JOB_ADVICE_THREADS,
    WEIR_JOB_ADVICE_OPEN_PER_WORKER,
    WEIR_JOB_ADVICE_KEEP_OPEN,
    WEIR_JOB_ADVICE_CHEAPER_DECODE, /* these five: weir_job_advice_halves */
    WEIR_JOB_ADVICE_CHEAPER_TRANSFORM,
    WEIR_JOB_ADVICE_CHEAPER_ITEM,
    WEIR_JOB_ADVICE_CHEAPER_READ,
    WEIR_JOB_ADVICE_CHEAPER_COLLATE,
    WEIR_JOB_ADVICE_FASTER_STORAGE,
    WEIR_JOB_ADVICE_SLOW_FILE,
    WEIR_JOB_ADVICE_SLOW_WORKER,
    WEIR_JOB_ADVICE_OUT_OF_ORDER,
    WEIR_JOB_ADVICE_EVEN_SHARES,
    WEIR_JOB_ADVICE_SMALLER_TRANSFER,
    WEIR_JOB_ADVICE_MAIN_PROCESS,
    WEIR_JOB_ADVICE_QUOTA,
    WEIR_JOB_ADVICE_NEIGHBOURS,
    WEIR_JOB_ADVICES
};

struct weir_job_cause_info {
    const char *name;            /* in JSON and logs, such as "too-few-workers" */
    const char *sentence;        /* "the workers spend their time decoding images"; the evidence follows it */
    enum weir_job_advice advice; /* the usual advice */
};

/* Return the table's row, valid for the life of the process. An unknown number is WEIR_JOB_UNSURE. */
const struct weir_job_cause_info *weir_job_cause_info(enum weir_job_cause cause);

struct weir_job_advice_info {
    const char *name; /* in JSON and logs, such as "num-workers" */
    const char *what; /* "raise num_workers" */
    const char *why;  /* how to do it, or what to try first; can be empty */
};

/* Returns the table's row, valid for the life of the process. An unknown number is WEIR_JOB_ADVICE_NONE. */
const struct weir_job_advice_info *weir_job_advice_info(enum weir_job_advice advice);
/* Returns whether a predicted gain is that of halving what the advice makes cheaper. */
bool weir_job_advice_halves(enum weir_job_advice advice);
/* Prints how to do it after what to do, as a part of the same sentence; nothing without a `why`. */
void weir_job_advice_print_why(FILE *out, const struct weir_job_advice_info *info);

/* Return the number of a name; -1: there is no such name. */
int weir_job_cause_find(const char *name);
int weir_job_advice_find(const char *name);

#endif
