/* live_priv.h: texts about the sources of a struct weir_live, made on demand. */
#ifndef WEIR_ANALYZE_LIVE_LIVE_PRIV_H
#define WEIR_ANALYZE_LIVE_LIVE_PRIV_H

#include "analyze/live/live.h"

/* The forms of the figures: metrics in a format, or a page. */
enum weir_live_form {
    WEIR_LIVE_CLASSIC = WEIR_METRICS_CLASSIC,
    WEIR_LIVE_OPENMETRICS = WEIR_METRICS_OPENMETRICS,
    WEIR_LIVE_PAGE,
    WEIR_LIVE_FORMS
};

/* Collects the figures of n sources and writes them in a form to *text, which the caller frees. Returns 0 or -ENOMEM.
 */
int weir_live_write(char **text, size_t *size, enum weir_live_form form, const struct weir_live_source *sources, int n,
                    const struct weir_metrics_process *process);

/* Returns the form that a client accepts for /metrics: OpenMetrics if its Accept header prefers that. */
enum weir_live_form weir_live_accepted(const char *accept);

#endif
