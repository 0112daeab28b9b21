/* run_options.h: the options of weir run: what they are called, and what they were set to. */
#ifndef WEIR_CLI_RUN_RUN_OPTIONS_H
#define WEIR_CLI_RUN_RUN_OPTIONS_H

#include "cli/data_options.h"
#include "weir/decoder.h"

struct run_options {
    int batch_size, num_workers, prefetch, num_epochs, max_batches;
    int sampling, obs_history, chunk_size, pad, action_offset;
    uint64_t seed;
    bool no_shuffle, drop_last;
    const char *cameras;
    struct weir_data_options data;
    int color, output, layout;
    const char *mean, *std, *crop;
    struct weir_pixel_format format; /* made of color, output, layout, mean and std */
    struct weir_opt_size image_size;
    double train_split;
    int rank, world_size;
    bool wrap;
    int on_error;
    const char *io, *decoder, *device;
    int io_depth;
    bool direct, cold;
    uint64_t decode_cache;
    double step_ms, seconds;
    bool deterministic, step_spin, sync_steps, no_timing;
    int every, lang;
    const char *log, *checksums, *state;
    bool json;
    const char *profile, *schedule, *sort_by;
    bool record_shapes, profile_memory, with_stack, worker_ops, nvtx;
    int row_limit;
};

enum { WEIR_RUN_OPTS = 61 };
extern const struct weir_opt weir_run_opts[WEIR_RUN_OPTS];
extern const struct weir_opt_topic weir_run_topics[]; /* ends with a heading of NULL */
extern const char weir_run_examples[];

/* The rows of these names, with spaces between them, n in all: for tables of other commands, whose structs begin with
 * a struct run_options. */
void weir_run_options_take(struct weir_opt *to, int n, const char *names);

#endif
