/* weir_side.h: the loader's half of a comparison. */
#ifndef WEIR_BENCH_WEIR_SIDE_H
#define WEIR_BENCH_WEIR_SIDE_H

#include "pipeline/loader.h"

struct weir_side {
    double images_per_s;
    double split_error;    /* largest |work + waits + other - wall| / wall of a worker */
    double profiler_share; /* zones x measured ns / thread time */
    uint64_t slots_bytes, index_bytes, extent_max;
    int workers;
};

/* Runs a loader for about this long after a warm-up of a fifth of it. */
int weir_side_run(const struct weir_loader_config *config, double seconds, struct weir_side *side,
                  struct weir_err *err);

/* The same in a child process of its own: *peak_bytes is the child's highest resident set. */
int weir_side_peak(const struct weir_loader_config *config, double seconds, struct weir_side *side,
                   uint64_t *peak_bytes);

#endif
