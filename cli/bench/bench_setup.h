/* bench_setup.h: the options of weir bench, and the dataset copies that it compares. */
#ifndef WEIR_CLI_BENCH_BENCH_SETUP_H
#define WEIR_CLI_BENCH_BENCH_SETUP_H

#include "analyze/trials/child.h"
#include "analyze/trials/copies.h"
#include "analyze/trials/grid.h"
#include "cli/options.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct bench_options {
    const char *formats, *num_workers, *prefetch, *batch_size, *cache, *io, *decoder, *device;
    double step_ms, min_seconds, max_minutes;
    int repeats, sample;
    const char *work_dir; /* NULL: a temporary folder */
    uint64_t max_copies;  /* bytes; can be WEIR_OPT_BYTES_AUTO */
    struct weir_loader_config loader;
    bool json, csv, wide;
    const char *html;
};

struct bench_setup {
    const struct weir_command *command;
    const struct bench_options *options;
    const char *data;
    struct weir_copy_source source;
    char folder[4096]; /* folder of the copies; empty without copies */
    char *temporary;   /* the same folder if it is removed at the end, owned; otherwise NULL */
    bool in_memory;    /* the folder is in a file system in memory */
    uint64_t end_ns;   /* deadline, as weir_clock_monotonic_ns */
    const volatile sig_atomic_t *interrupted;
    struct weir_words common;                             /* options that weir run gets for every candidate */
    char cameras[WEIR_CAMERAS_MAX * (WEIR_NAME_MAX + 1)]; /* compared cameras, such as "a,b"; others are not copied */
    struct weir_words source_only; /* options that weir run and weir convert need only when they read DATA */
    int n_formats;
    struct weir_grid_format formats[WEIR_GRID_FORMATS];
    char *paths[WEIR_GRID_FORMATS];                 /* owned */
    struct weir_path_list files[WEIR_GRID_FORMATS]; /* files of each format; owned */
    char left_out[2048];                            /* lines with the dropped formats and the reasons; may be empty */
};

/* Opens DATA, chooses the formats, and runs weir convert for missing copies, with progress on stderr. Drops formats
 * whose copy cannot be created or is too large. weir_bench_setup_close removes copies in a temporary folder. Returns 0,
 * -EINVAL for a usage error, -EINTR, or another negative code if DATA cannot be read. */
int weir_bench_setup_open(struct bench_setup *setup, const struct weir_command *command,
                          const struct bench_options *options, const char *data,
                          const volatile sig_atomic_t *interrupted, struct weir_err *err);
void weir_bench_setup_close(struct bench_setup *setup);

#endif
