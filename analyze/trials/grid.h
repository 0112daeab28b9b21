/* grid.h: every combination of formats and settings, a cell each. */
#ifndef WEIR_ANALYZE_TRIALS_GRID_H
#define WEIR_ANALYZE_TRIALS_GRID_H

#include "analyze/trials/candidate.h"
#include "weir/base.h"

#include <stdint.h>

/* A dataset that takes part: DATA itself, or a copy of it. */
struct weir_grid_format {
    char name[64];     /* as in --formats: "as-is", "hdf5:raw" */
    char what[64];     /* how it is stored, for sentences: "jpeg in hdf5" */
    const char *path;  /* lent */
    bool is_source;    /* DATA itself: read with the data options */
    uint64_t bytes;    /* of all its files */
    double bytes_each; /* of these a frame; 0 = not known */
    int limit_batches; /* batches of an epoch of its limit cells; 0 = it has none */
};

enum { WEIR_GRID_LIST = 16, WEIR_GRID_CANDIDATES = 512, WEIR_GRID_FORMATS = 32 };

struct weir_grid_config {
    const struct weir_grid_format *formats; /* lent to the grid */
    int n_formats;
    /* "a,b": the options of weir run with these names; cache: "warm,cold" */
    const char *num_workers, *prefetch, *batch_size, *cache, *io, *decoder, *device;
    double step_ms, seconds;
    const char *const *common;      /* further arguments of every cell, NULL-ended; lent */
    const char *const *source_only; /* and of those of DATA itself */
};

struct weir_grid {
    const struct weir_grid_format *formats;
    int n_formats;
    struct weir_candidate *candidates; /* owned: warm ones, the limits among them, then cold ones */
    int n, n_warm;
};

/* Checks the lists alone: -EINVAL names the option and the value that is wrong. */
int weir_grid_check(const struct weir_grid_config *config, struct weir_err *err);
/* Cells in the order of the lists, formats outermost; a GPU's decoder has none with the CPU. */
int weir_grid_open(struct weir_grid *grid, const struct weir_grid_config *config, struct weir_err *err);
void weir_grid_close(struct weir_grid *grid);

/* "num-workers 2, prefetch 4": the settings that are not the same in all cells; "" when all are. */
void weir_grid_settings(const struct weir_grid *grid, const struct weir_candidate *candidate, char *text, size_t size);

/* The cell of this format with the highest median, not a limit; NULL when none was measured. */
const struct weir_candidate *weir_grid_best(const struct weir_grid *grid, int format, bool cold);

/* "a,b" into at most WEIR_GRID_LIST values; how many, or -EINVAL with err naming the option. */
int weir_grid_split(const char *option, const char *list, char values[WEIR_GRID_LIST][32], struct weir_err *err);

#endif
