/* weir_side.h: the loader's side of a comparison. */
#ifndef WEIR_BENCH_WEIR_SIDE_H
#define WEIR_BENCH_WEIR_SIDE_H

#include "weir/loader.h"

/* One trial: at least this long and this many images, after a warm-up of a fifth of both. */
struct turn {
    double seconds;
    int images_min;
};

struct weir_side {
    double images_per_s, tasks_per_s; /* a task is one camera of a sample, or its state */
    double split_error;               /* max |work + waits + unattributed - wall| / wall over the workers */
    double profiler_share;            /* zones x measured ns / thread time */
    double decode_share, convert_share, read_share, wait_share; /* fractions of worker wall time, warm-up included */
    uint64_t slots_bytes, index_bytes, extent_max;
    int workers;
};

int weir_side_run(const struct weir_loader_config *config, const struct turn *turn, struct weir_side *side,
                  struct weir_err *err);

/* Runs the same in a child process: *peak_bytes is the child's peak resident set. Call it while this process is small
 * and single-threaded, as the child inherits its pages. */
int weir_side_peak(const struct weir_loader_config *config, const struct turn *turn, struct weir_side *side,
                   uint64_t *peak_bytes, struct weir_err *err);

#endif
