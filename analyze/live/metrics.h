/* metrics.h: the figures of running loaders as metrics, in the text formats that Prometheus reads. */
#ifndef WEIR_ANALYZE_LIVE_METRICS_H
#define WEIR_ANALYZE_LIVE_METRICS_H

#include "weir/loader.h"
#include "weir/report.h"

#include <stdint.h>
#include <stdio.h>

enum weir_metrics_format {
    WEIR_METRICS_CLASSIC,    /* text/plain; version=0.0.4 */
    WEIR_METRICS_OPENMETRICS /* application/openmetrics-text; version=1.0.0 */
};

/* One loader since its counting began. Counts never fall while the loader is open. */
struct weir_metrics {
    char loader[64]; /* label; different for each loader of a process */
    struct weir_loader_report report;
    struct weir_loader_now now;
    double epochs; /* epochs completed; -1 = unknown */
    bool watched;  /* another program's loader: its reads and errors are unknown */
};

/* What all metrics of a process share. */
struct weir_metrics_process {
    const char *version; /* of Weir */
    const char *source;  /* "run", "train", "loader" or "watch" */
    int rank, world_size;
    double start_unix_s; /* when counting began */
};

/* Writes all metrics of n loaders. Unknown figures are left out. */
void weir_metrics_write(FILE *out, const struct weir_metrics *metrics, int n,
                        const struct weir_metrics_process *process, enum weir_metrics_format format);

/* Sets the label to the last part of a path. */
void weir_metrics_label(char label[64], const char *path);

/* Returns the format's media type. */
const char *weir_metrics_media_type(enum weir_metrics_format format);

#endif
