/* grid.h: all combinations of formats and settings, one candidate each. */
#ifndef WEIR_ANALYZE_TRIALS_GRID_H
#define WEIR_ANALYZE_TRIALS_GRID_H

#include "analyze/trials/candidate.h"
#include "weir/base.h"

#include <stdint.h>

/* DATA itself, or a copy of it. */
struct weir_grid_format {
    char name[64];     /* as in --formats: "as-is", "hdf5:raw" */
    char what[64];     /* for sentences: "jpeg in hdf5" */
    const char *path;  /* borrowed */
    bool is_source;    /* DATA itself, read with the data options */
    uint64_t bytes;    /* of all its files */
    double bytes_each; /* per frame; 0 = not known */
    int limit_batches; /* batches per epoch of its limit candidates; 0 = none */
};

enum { WEIR_GRID_LIST = 16, WEIR_GRID_CANDIDATES = 512, WEIR_GRID_FORMATS = 32 };

struct weir_grid_config {
    const struct weir_grid_format *formats; /* borrowed by the grid */
    int n_formats;
    /* "a,b": values of the options of weir run with these names; cache: "warm,cold" */
    const char *num_workers, *prefetch, *batch_size, *cache, *io, *decoder, *device;
    double step_ms, seconds;
    const char *const *common;      /* further arguments of every candidate, NULL-ended; borrowed */
    const char *const *source_only; /* further arguments of candidates of DATA itself */
};

struct weir_grid {
    const struct weir_grid_format *formats;
    int n_formats;
    struct weir_candidate *candidates; /* owned: warm ones with the limits, then cold ones */
    int n, n_warm;
};

/* Checks only the lists. -EINVAL: err names the option and the invalid value. */
int weir_grid_check(const struct weir_grid_config *config, struct weir_err *err);
/* Adds candidates in the order of the lists, formats outermost, without combinations of a GPU decoder and the CPU. */
int weir_grid_open(struct weir_grid *grid, const struct weir_grid_config *config, struct weir_err *err);
void weir_grid_close(struct weir_grid *grid);

/* Writes the settings that differ between candidates: "num-workers 2, prefetch 4". */
void weir_grid_settings(const struct weir_grid *grid, const struct weir_candidate *candidate, char *text, size_t size);

/* The candidate of this format with the highest median, limits excluded; NULL when none was measured. */
const struct weir_candidate *weir_grid_best(const struct weir_grid *grid, int format, bool cold);

/* Splits "a,b" into at most WEIR_GRID_LIST values. Returns their number, or -EINVAL with err naming the option. */
int weir_grid_split(const char *option, const char *list, char values[WEIR_GRID_LIST][32], struct weir_err *err);

#endif
