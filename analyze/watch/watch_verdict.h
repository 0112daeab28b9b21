/* watch_verdict.h: what limits a watched loader, and what to change, in PyTorch's words. Pure functions of the figures.
 *
 * Gains are predicted by the simulation that `weir whatif` uses, with a batch as the task, calibrated to the measured
 * rate. Causes are in the order of their gain; but a cause that makes a stage slow (a slow file, a quota) precedes the
 * stage, and too few workers precede what each of them does. */
#ifndef WEIR_ANALYZE_WATCH_WATCH_VERDICT_H
#define WEIR_ANALYZE_WATCH_WATCH_VERDICT_H

#include "analyze/causes/job_causes.h"
#include "analyze/verdict/verdict.h"
#include "analyze/watch/watch_figures.h"

enum { WEIR_WATCH_CAUSES = 10, WEIR_WATCH_CAUSES_SHOWN = 4, WEIR_WATCH_ADVICES = 5, WEIR_WATCH_EVIDENCE = 320 };

struct weir_watch_cause {
    enum weir_job_cause cause;
    double share;                       /* main evidence, a fraction */
    double gain;                        /* predicted batches/s without it over those now; 0 = no prediction */
    char who[WEIR_WATCH_PATH];          /* file, worker or stage; can be empty */
    char evidence[WEIR_WATCH_EVIDENCE]; /* figures, as text */
};

struct weir_watch_advice {
    enum weir_job_advice advice;
    double value;     /* for num_workers= and prefetch_factor=; 0 = none */
    double ratio;     /* predicted batches/s over those now; 0 = no prediction */
    char setting[64]; /* "num_workers=8", empty = not a setting */
};

struct weir_watch_verdict {
    enum weir_data_bound bound;
    double wait;                     /* fraction of training time, without the run's first batch; -1 = unknown */
    double most;                     /* batches/s without any wait over those now; 0 = unknown */
    double headroom, headroom_error; /* the same, measured; 0 = not measured. The error is its standard error */
    double replayed, replayed_error; /* steps/s of a run that replays one batch; 0 = there was none, or too few steps.
                                        Such a run has no other verdict */
    int n_causes;
    struct weir_watch_cause causes[WEIR_WATCH_CAUSES];
    int n_advices;
    struct weir_watch_advice advices[WEIR_WATCH_ADVICES];
    struct weir_watch_sums sums;
    struct weir_watch_parts parts;
    struct weir_model model;
};

void weir_watch_verdict_make(struct weir_watch_verdict *verdict, const struct weir_watch_figures *figures,
                             const struct weir_loader_report *report);

/* Adds the member "verdict" to the open JSON object. */
void weir_watch_verdict_json(struct weir_json *json, const struct weir_watch_verdict *verdict);

/* Prints the verdict, wrapped at the width of the output. */
void weir_watch_verdict_print(FILE *out, const struct weir_watch_verdict *verdict,
                              const struct weir_watch_figures *figures);
/* Writes the same text with one line per cause, advice and so on, however long, and without colour. */
void weir_watch_verdict_lines(FILE *out, const struct weir_watch_verdict *verdict,
                              const struct weir_watch_figures *figures);

#endif
