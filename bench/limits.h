/* limits.h: types that the parts of the limits benchmark share: planning, measuring and printing. */
#ifndef WEIR_BENCH_LIMITS_H
#define WEIR_BENCH_LIMITS_H

#include "bench/raw_turbo.h"
#include "bench/series.h"
#include "bench/weir_side.h"
#include "cli/options.h"

#include <limits.h>

enum { LIMITS_COUNTS_MAX = 16, LIMITS_LIST_MAX = 8, LIMITS_NAME_BYTES = 32 };

struct limits_options {
    const char *data, *quality, *workers, *formats, *decoder, *simplejpeg, *first_batch;
    int rounds, batch_size, prefetch;
    double seconds;
    bool json, raw_only;
};

struct limits_format {
    char name[LIMITS_NAME_BYTES]; /* "u8", or with a size, "u8@224x224" */
    enum weir_dtype dtype;
    enum weir_image_layout layout;
    int width, height; /* of the images; 0 = as stored */
};

struct limits_data {
    char path[PATH_MAX];
    int quality_made;          /* quality of JPEGs that the benchmark generates */
    int frames, width, height; /* like the members below, set when the frames are loaded */
    int quality;               /* derived from the quantisation tables; 0 if frames differ */
    double bytes_mean;         /* mean size of a frame */
    bool has_simplejpeg;       /* whether simplejpeg is compared */
    char simplejpeg[sizeof(((struct weir_err *)0)->text)]; /* its version, or why it is missing */
};

/* A comparison for one number of workers, one output format and one of Weir's decoders. */
struct comparison {
    const struct limits_data *data;
    const struct limits_format *format;
    const char *decoder;
    int workers;
    struct series raw, simplejpeg, weir;                        /* images/s, with one value per round */
    double split_error, profiler_share;                         /* maximum over all trials */
    double decode_share, convert_share, read_share, wait_share; /* fractions of worker time, as means over the trials */
    uint64_t peak_bytes, bound_bytes; /* peak resident set of a process that only loads, and its limit */
    double harness_tasks_per_s, harness_images_per_s; /* with I/O and decoding disabled */
};

struct limits_plan {
    int n_data, n_formats, n_counts, n_decoders;
    struct limits_data data[LIMITS_LIST_MAX];
    struct limits_format formats[LIMITS_LIST_MAX];
    int counts[LIMITS_COUNTS_MAX];
    char decoders[LIMITS_LIST_MAX][LIMITS_NAME_BYTES];
    struct comparison *comparisons; /* in order of dataset, format, number of workers and decoder */
};

/* Targets of the benchmark. */
#define LIMITS_SPLIT_MAX    0.01
#define LIMITS_PROFILER_MAX 0.01

/* Fills in the loader's configuration for a comparison. */
void limits_config(const struct limits_options *o, const struct limits_data *data, const struct limits_format *format,
                   int workers, struct weir_loader_config *config);
/* Generates missing datasets, measures all comparisons, and calls done after each dataset. */
int limits_measure(const struct limits_options *o, struct limits_plan *plan,
                   void (*done)(const struct limits_options *o, const struct limits_plan *plan,
                                const struct limits_data *data),
                   struct weir_err *err);

void limits_print_head(const struct limits_options *o);
void limits_print(const struct limits_options *o, const struct limits_plan *plan, const struct limits_data *data);
void limits_print_json(const struct weir_command *command, const struct limits_options *o,
                       const struct limits_plan *plan);

#endif
