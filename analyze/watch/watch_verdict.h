/* watch_verdict.h: what limits a watched loader, and what to change, in PyTorch's words. Pure functions of the figures.
 *
 * Gains are predicted by the simulation that `weir whatif` uses, with a batch as the task, calibrated to the measured
 * rate. Causes are in the order of their gain; but a cause that makes a stage slow (a slow file, a quota) precedes the
 * stage, and too few workers precede what each of them does. */
#ifndef WEIR_ANALYZE_WATCH_WATCH_VERDICT_H
#define WEIR_ANALYZE_WATCH_WATCH_VERDICT_H

#include "analyze/causes/diagnosis.h"
#include "analyze/causes/thresholds.h"
#include "analyze/prediction/model.h"
#include "analyze/watch/watch_figures.h"

enum { WEIR_WATCH_CAUSES_SHOWN = 4 };

struct weir_watch_verdict {
    struct weir_diagnosis found;     /* wait: without the run's first batch */
    double most;                     /* batches/s without any wait over those now; 0 = unknown */
    double headroom, headroom_error; /* the same, measured; 0 = not measured. The error is its standard error */
    double replayed, replayed_error; /* steps/s of a run that replays one batch; 0 = there was none, or too few steps.
                                        Such a run has no other verdict */
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
