/* job_verdict_priv.h: shared by the files that make a verdict. */
#ifndef WEIR_ANALYZE_JOBS_JOB_VERDICT_PRIV_H
#define WEIR_ANALYZE_JOBS_JOB_VERDICT_PRIV_H

#include "analyze/jobs/job_verdict.h"

/* What the rules see. */
struct weir_job_case {
    const struct weir_dataloader_figures *figures;
    struct weir_job_verdict *verdict;
    enum weir_data_bound bound; /* by the wait, or inferred from workers and the GPU */
    bool on_lock;             /* the loop waits for batches on a lock, as for other things, so its wait is not known */
    bool hidden;              /* the kernel does not show what sleeping threads wait for */
    double workers, prefetch; /* as set, or as PyTorch's default */
    double limit, cores;      /* usable, with the quota; the same less those that others use */
    double idle_cores;        /* the same less those that the job uses; -1 = unknown */
    double batches;           /* of the loop; from outside, where they are unknown, of one second each */
    double train_s;           /* steps and waits, and creating workers */
    double wait_s;            /* waiting for batches and for workers, without the run's first batch */
    double busy;              /* fraction of the workers' time, with a batch */
    double loop_core_wait;    /* fraction of the loop's time, ready to run */
};

/* Appends a finding of the case. */
#define weir_job_found(c, ...) weir_diagnosis_add(&(c)->verdict->found, __VA_ARGS__)
/* Makes it less certain than what is timed: likely, and sure only from WEIR_SAMPLED_SURE times the threshold on. */
void weir_job_sampled(const struct weir_job_case *c, struct weir_diagnosis_cause *finding, double figure,
                      double threshold);
/* The same if the figures are from outside. They are sure if the loop's wait is, and `sure`. Returns the finding. */
struct weir_diagnosis_cause *weir_job_outside(const struct weir_job_case *c, struct weir_diagnosis_cause *finding,
                                              bool sure);
/* Appends a finding that is likely if the figures are from outside. */
#define weir_job_likely(c, ...) weir_job_outside(c, weir_job_found(c, __VA_ARGS__), false)
/* Returns the workers' time of this use, as a fraction of their busy time. */
double weir_job_use(const struct weir_job_case *c, enum weir_task_use use);
/* Returns the same of the loop, as a fraction of its time. */
double weir_job_loop_use(const struct weir_job_case *c, enum weir_task_use use);
/* Appends the loop's wait to the evidence if the figures are from outside: then the text does not begin with it. */
void weir_job_say_wait(const struct weir_job_case *c, struct weir_diagnosis_cause *finding);

/* ---- gains: predicted batches/s over those now; 0 = unknown ---- */

/* Fills the verdict's model: the loader as it is, calibrated to the measured rate. */
void weir_job_model_make(const struct weir_job_case *c);
double weir_job_gain_workers(const struct weir_job_case *c, double workers, double prefetch);
double weir_job_gain_times(const struct weir_job_case *c, double cpu_times, double asleep_times);
double weir_job_gain_lock(const struct weir_job_case *c);
/* Returns the gain if this part of the training time is saved. */
double weir_job_gain_saved(const struct weir_job_case *c, double saved_s);
/* Returns the smallest number of workers whose gain is within 3 % of the best one, at most `most`. */
double weir_job_best_workers(const struct weir_job_case *c, double most, double *gain);
/* Returns whether workers sleep at work most of the time, so that more of them need no cores. */
bool weir_job_sleeps(const struct weir_job_case *c);

/* ---- rules ---- */

typedef void weir_job_rule_fn(const struct weir_job_case *c, enum weir_cause cause);
weir_job_rule_fn weir_job_find_copies, weir_job_find_pageable, weir_job_find_pin_thread,
    weir_job_find_gil; /* the loop's process */
weir_job_rule_fn weir_job_find_start_up, weir_job_find_young;
weir_job_rule_fn weir_job_find_quota, weir_job_find_threads, weir_job_find_neighbours; /* who takes cores */
weir_job_rule_fn weir_job_find_own_shares, weir_job_find_slow_worker, weir_job_find_busiest_worker; /* one of many */
weir_job_rule_fn weir_job_find_slow_item_file, weir_job_find_uneven;
weir_job_rule_fn weir_job_find_blocked; /* LOCK, STORAGE */
weir_job_rule_fn weir_job_find_too_few, weir_job_find_busy;
weir_job_rule_fn weir_job_find_part; /* DECODE, TRANSFORM, COLLATE, READ_CPU, STORAGE, OWN_CODE */
weir_job_rule_fn weir_job_find_step, weir_job_find_consumer, weir_job_find_without_workers, weir_job_find_hidden,
    weir_job_find_unsure;

/* Returns the fraction of the busy time that is the workers' own, and not a lock's, the storage's or other programs'.
 */
double weir_job_own(const struct weir_job_case *c);

/* Adds the advice for the causes that were found. */
void weir_job_advise(const struct weir_job_case *c);

#endif
