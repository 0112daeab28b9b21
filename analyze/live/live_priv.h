/* live_priv.h: texts about the sources of a struct weir_live, made on demand. */
#ifndef WEIR_ANALYZE_LIVE_LIVE_PRIV_H
#define WEIR_ANALYZE_LIVE_LIVE_PRIV_H

#include "analyze/live/live.h"

/* The last epochs of a loader, for the page. */
enum { WEIR_LIVE_EPOCHS = 512 };
struct weir_live_history {
    uint64_t n; /* number of lines so far; line i is at i % WEIR_LIVE_EPOCHS */
    struct weir_epoch_line lines[WEIR_LIVE_EPOCHS];
    double epochs, wall_s, step_s, wait_s, images; /* at the last line */
};

/* Adds a line for the epochs since the last one, if there are any. */
void weir_live_note_epoch(struct weir_live_history *history, const struct weir_metrics *metrics);

/* The forms of the figures: metrics in a format, or a page. */
enum weir_live_form {
    WEIR_LIVE_CLASSIC = WEIR_METRICS_CLASSIC,
    WEIR_LIVE_OPENMETRICS = WEIR_METRICS_OPENMETRICS,
    WEIR_LIVE_PAGE,
    WEIR_LIVE_FORMS
};

/* Collects the figures of n sources and writes them in a form to *text, which the caller frees. Returns 0 or -ENOMEM.
 */
int weir_live_write(char **text, size_t *size, enum weir_live_form form, struct weir_live_source *sources, int n,
                    const struct weir_metrics_process *process, weir_live_page_fn *page);

/* Returns the form that a client accepts for /metrics: OpenMetrics if its Accept header prefers that. */
enum weir_live_form weir_live_accepted(const char *accept);

#endif
