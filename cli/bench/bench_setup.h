/* bench_setup.h: options of weir bench, and the copies of the dataset that it compares. */
#ifndef WEIR_CLI_BENCH_BENCH_SETUP_H
#define WEIR_CLI_BENCH_BENCH_SETUP_H

#include "analyze/trials/copies.h"
#include "analyze/trials/grid.h"
#include "analyze/trials/words.h"
#include "cli/options.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct bench_options {
    const char *formats, *num_workers, *prefetch, *batch_size, *cache, *io, *decoder, *device;
    double step_ms, min_seconds, max_minutes;
    int repeats, sample;
    const char *work_dir;
    struct weir_loader_config loader;
    bool json, csv;
};

struct bench_setup {
    const struct bench_options *options;
    const char *data;
    struct weir_copy_source source;
    char folder[4096]; /* of the copies */
    uint64_t end_ns;   /* deadline: weir_clock_monotonic_ns */
    const volatile sig_atomic_t *interrupted;
    struct weir_words common;                             /* options of weir run for every candidate */
    char cameras[WEIR_CAMERAS_MAX * (WEIR_NAME_MAX + 1)]; /* "a,b": the compared cameras, and all that copies contain */
    struct weir_words source_only; /* options of weir run and weir convert that only DATA needs */
    int n_formats;
    struct weir_grid_format formats[WEIR_GRID_FORMATS];
    char *paths[WEIR_GRID_FORMATS];                 /* owned */
    struct weir_path_list files[WEIR_GRID_FORMATS]; /* likewise */
    char left_out[2048];                            /* lines about dropped formats, with reasons; may be empty */
};

/* Opens DATA, chooses formats, and runs weir convert for missing copies, with progress on stderr. Drops formats that
 * cannot be created. Returns 0, -EINVAL for a usage error, -EINTR, or another negative code if DATA cannot be read. */
int weir_bench_setup_open(struct bench_setup *setup, const struct bench_options *options, const char *data,
                          const volatile sig_atomic_t *interrupted, struct weir_err *err);
void weir_bench_setup_close(struct bench_setup *setup);

#endif
