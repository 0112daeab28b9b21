/* job_verdict.h: what limits a training job with a DataLoader, and what to change, in PyTorch's words. One table of
 * rules judges the figures, whether weir.watch timed them, `weir top` sampled them from outside, or a log contains them
 * (docs/internals/verdict.md). Where figures are sampled or unknown, the certainty is lower.
 *
 * Gains are predicted by the simulation that `weir whatif` uses, with a batch as the task, calibrated to the measured
 * rate. Causes are in the order of their gain; but a cause that makes a stage slow (a slow file, a quota) precedes the
 * stage, and too few workers precede what each of them does. */
#ifndef WEIR_ANALYZE_JOBS_JOB_VERDICT_H
#define WEIR_ANALYZE_JOBS_JOB_VERDICT_H

#include "analyze/causes/diagnosis.h"
#include "analyze/causes/thresholds.h"
#include "analyze/jobs/dataloader.h"
#include "analyze/prediction/model.h"

enum { WEIR_JOB_CAUSES_SHOWN = 4 };

struct weir_job_verdict {
    bool ready;                      /* false: figures from outside cover too short a time, and no cause is named */
    struct weir_diagnosis found;     /* wait: without the run's first batch */
    double most;                     /* batches/s without any wait over those now; 0 = unknown */
    double headroom, headroom_error; /* the same, measured; 0 = not measured. The error is its standard error */
    double replayed, replayed_error; /* steps/s of a run that replays one batch; 0 = there was none, or too few steps.
                                        Such a run has no other verdict */
    struct weir_thread_figures workers; /* weir_dataloader_sum; waits for their own threads count as on a core */
    double threads;                     /* CPU time of workers' other threads over busy_s, without those waits */
    double for_threads;                 /* those waits over busy_s */
    struct weir_model model;
};

/* Depends on the figures only. */
void weir_job_judge(struct weir_job_verdict *verdict, const struct weir_dataloader_figures *figures);

#endif
