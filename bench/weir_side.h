/* weir_side.h: runs the loader in a comparison. */
#ifndef WEIR_BENCH_WEIR_SIDE_H
#define WEIR_BENCH_WEIR_SIDE_H

#include "weir/loader.h"

/* Minimum time and number of images of a trial, after a warm-up of a fifth of both. */
struct turn {
    double seconds;
    int images_min;
};

struct weir_side {
    double images_per_s, tasks_per_s; /* a task is one camera of a sample, or its state and actions */
    double split_error;               /* max over the workers of |work + waits + unattributed - wall| / wall */
    double profiler_share;            /* number of zones x measured cost of a zone / thread time */
    double decode_share, convert_share, read_share,
        wait_share; /* fractions of worker wall time, including the warm-up */
    uint64_t slots_bytes, index_bytes, extent_max;
    int workers;
};

int weir_side_run(const struct weir_loader_config *config, const struct turn *turn, struct weir_side *side,
                  struct weir_err *err);

/* Runs a trial in a child process, and stores the child's peak resident set in *peak_bytes. Call this while this
 * process is small and single-threaded, because the child inherits its pages. */
int weir_side_peak(const struct weir_loader_config *config, const struct turn *turn, struct weir_side *side,
                   uint64_t *peak_bytes, struct weir_err *err);

#endif
