/* watch_verdict_priv.h: shared by the files that make a verdict. */
#ifndef WEIR_ANALYZE_WATCH_WATCH_VERDICT_PRIV_H
#define WEIR_ANALYZE_WATCH_WATCH_VERDICT_PRIV_H

#include "analyze/watch/watch_verdict.h"

/* What the rules see. */
struct weir_watch_case {
    const struct weir_watch_figures *figures;
    const struct weir_loader_report *report;
    struct weir_watch_verdict *verdict;
    double workers, prefetch; /* as set, or as PyTorch's default */
    double cores;             /* usable, less those that others use */
    double train_s;           /* steps and waits, and creating workers */
    double wait_s;            /* waiting for batches and for workers, without the run's first batch */
    double busy;              /* fraction of the workers' time, with a batch */
};

/* Fills the verdict's model: the loader as it is, calibrated to the measured rate. */
void weir_watch_model_make(const struct weir_watch_case *c);
/* Return predicted batches/s over those now; 0 = unknown. */
double weir_watch_gain_workers(const struct weir_watch_case *c, double workers, double prefetch);
double weir_watch_gain_times(const struct weir_watch_case *c, double cpu_times, double asleep_times);
double weir_watch_gain_lock(const struct weir_watch_case *c);
/* Returns the gain if this part of the training time is saved. */
double weir_watch_gain_saved(const struct weir_watch_case *c, double saved_s);
/* Returns the smallest number of workers whose gain is within 3 % of the best one, at most `most`. */
double weir_watch_best_workers(const struct weir_watch_case *c, double most, double *gain);

/* Adds the causes that are one worker, one file or one batch of many. */
void weir_watch_find_uneven(struct weir_watch_case *c);

/* Returns the fraction of the busy time that is the workers' own, and not a lock's, the storage's or other programs'.
 */
double weir_watch_own(const struct weir_watch_case *c);

/* Adds the advice for the causes that were found. */
void weir_watch_advise(const struct weir_watch_case *c);

#endif
