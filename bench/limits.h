/* limits.h: types shared by the planning, measuring and printing of the limits benchmark. */
#ifndef WEIR_BENCH_LIMITS_H
#define WEIR_BENCH_LIMITS_H

#include "bench/raw_turbo.h"
#include "bench/series.h"
#include "bench/weir_side.h"
#include "cli/options.h"

#include <limits.h>

enum { LIMITS_COUNTS_MAX = 16, LIMITS_LIST_MAX = 4, LIMITS_NAME_BYTES = 32 };

struct limits_options {
    const char *data, *quality, *workers, *formats, *decoder, *simplejpeg, *first_batch;
    int rounds, batch_size, prefetch;
    double seconds;
    bool json, raw_only;
};

struct limits_format {
    const char *name;
    enum weir_dtype dtype;
    enum weir_image_layout layout;
};

struct limits_data {
    char path[PATH_MAX];
    int quality_made;          /* of data made here */
    int frames, width, height; /* set once the frames are loaded, as are the members below */
    int quality;               /* from the quantisation tables; 0: mixed */
    double bytes_mean;         /* per frame */
    bool has_simplejpeg;       /* simplejpeg is compared */
    char simplejpeg[sizeof(((struct weir_err *)0)->text)]; /* its version, or why it is absent; "" with --raw-only */
};

/* One number of workers, one output format, one decoder of Weir. */
struct comparison {
    const struct limits_data *data;
    const struct limits_format *format;
    const char *decoder;
    int workers;
    struct series raw, simplejpeg, weir;                        /* images/s, one value per round */
    double split_error, profiler_share;                         /* max over all trials */
    double decode_share, convert_share, read_share, wait_share; /* fractions of worker time, means over the trials */
    uint64_t peak_bytes, bound_bytes;                           /* resident set of a process that only loads */
    double harness_tasks_per_s, harness_images_per_s;           /* with null engines */
};

struct limits_plan {
    int n_data, n_formats, n_counts, n_decoders;
    struct limits_data data[LIMITS_LIST_MAX];
    const struct limits_format *formats[LIMITS_LIST_MAX];
    int counts[LIMITS_COUNTS_MAX];
    char decoders[LIMITS_LIST_MAX][LIMITS_NAME_BYTES];
    struct comparison *comparisons; /* data x formats x counts x decoders: those of one data set, format and count are
                                     * measured together */
};

/* Targets stated in README. */
#define LIMITS_SPLIT_MAX    0.01
#define LIMITS_PROFILER_MAX 0.01

/* Configures a loader for one comparison. */
void limits_config(const struct limits_options *o, const struct limits_data *data, const struct limits_format *format,
                   int workers, struct weir_loader_config *config);
/* Makes missing data, measures all comparisons, and calls done after each dataset. */
int limits_measure(const struct limits_options *o, struct limits_plan *plan,
                   void (*done)(const struct limits_options *o, const struct limits_plan *plan,
                                const struct limits_data *data),
                   struct weir_err *err);

void limits_print_head(const struct limits_options *o);
void limits_print(const struct limits_options *o, const struct limits_plan *plan, const struct limits_data *data);
void limits_print_json(const struct weir_command *command, const struct limits_options *o,
                       const struct limits_plan *plan);

#endif
