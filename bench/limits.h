/* limits.h: what the limits benchmark measures, for those who print it. */
#ifndef WEIR_BENCH_LIMITS_H
#define WEIR_BENCH_LIMITS_H

#include "bench/raw_turbo.h"
#include "bench/series.h"
#include "cli/options.h"

struct limits_options {
    const char *data, *workers, *formats, *first_batch;
    int rounds, batch_size, prefetch;
    double seconds;
    bool json, raw_only;
};

/* One number of workers with one output format. */
struct comparison {
    int workers;
    const char *format;
    double target; /* least ratio that is promised; 0 = none */
    struct series raw, weir, ratio;
    double split_error, profiler_share;                         /* the largest of all turns */
    double decode_share, convert_share, read_share, wait_share; /* of the workers' time, means over the turns */
    uint64_t peak_bytes, bound_bytes;                           /* resident set of a process that only loads */
    double harness_tasks_per_s, harness_images_per_s;           /* with null engines */
};

/* What is promised of the loader (README). */
#define LIMITS_SPLIT_MAX    0.01
#define LIMITS_PROFILER_MAX 0.01

void limits_print(const struct limits_options *o, const struct raw_frames *frames, const struct comparison *c, int n);
void limits_print_json(const struct weir_command *command, const struct limits_options *o,
                       const struct raw_frames *frames, const struct comparison *c, int n);

#endif
