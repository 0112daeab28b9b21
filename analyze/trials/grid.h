/* grid.h: all combinations of formats and settings, with one candidate for each, and advice from their trials. */
#ifndef WEIR_ANALYZE_TRIALS_GRID_H
#define WEIR_ANALYZE_TRIALS_GRID_H

#include "analyze/trials/candidate.h"
#include "weir/base.h"

#include <stdint.h>

/* DATA itself, or a copy of it in another format. */
struct weir_grid_format {
    char name[64];     /* name in --formats, such as "as-is" or "hdf5:raw" */
    char what[64];     /* name in sentences, such as "jpeg in hdf5" */
    const char *path;  /* borrowed */
    bool is_source;    /* DATA itself, which is read with the data options */
    bool is_remote;    /* on a server: the page cache does not contain it */
    uint64_t bytes;    /* size of all its files */
    double bytes_each; /* size per frame; 0 = unknown */
    int limit_batches; /* batches per epoch of candidates that are upper bounds; 0 = no such candidates */
};

enum { WEIR_GRID_LIST = 16, WEIR_GRID_CANDIDATES = 512, WEIR_GRID_FORMATS = 32 };

struct weir_grid_config {
    const struct weir_grid_format *formats; /* borrowed by the grid */
    int n_formats;
    /* Comma-separated values for the options of weir run with these names. cache: "warm,cold". */
    const char *num_workers, *prefetch, *batch_size, *cache, *io, *decoder, *device;
    double step_ms, seconds;
    const char *const *common;      /* further arguments for every candidate; ends with NULL; borrowed */
    const char *const *source_only; /* further arguments for candidates that read DATA itself */
};

struct weir_grid {
    const struct weir_grid_format *formats;
    int n_formats;
    struct weir_candidate *candidates; /* owned; warm candidates and upper bounds first, then cold candidates */
    int n, n_warm;
};

/* Checks only the lists of values. Returns 0, or -EINVAL with the option and the invalid value in err. */
int weir_grid_check(const struct weir_grid_config *config, struct weir_err *err);
/* Adds a candidate for each combination, in the order of the lists, with formats as the outermost loop. Skips
 * combinations of a GPU decoder with batches on the CPU. */
int weir_grid_open(struct weir_grid *grid, const struct weir_grid_config *config, struct weir_err *err);
void weir_grid_close(struct weir_grid *grid);

/* Writes the settings that differ between candidates, such as "num-workers 2, prefetch 4". */
void weir_grid_settings(const struct weir_grid *grid, const struct weir_candidate *candidate, char *text, size_t size);

/* Returns the format's candidate with the highest median, excluding upper bounds, or NULL if none was measured. */
const struct weir_candidate *weir_grid_best(const struct weir_grid *grid, int format, bool cold);

/* Splits "a,b" into at most WEIR_GRID_LIST values. Returns their number, or -EINVAL with the option's name in err. */
int weir_grid_split(const char *option, const char *list, char values[WEIR_GRID_LIST][32], struct weir_err *err);

/* ---- advice: two sentences about a measured grid ---- */

struct weir_grid_advice {
    char format[1024];                 /* first sentence */
    char next[1024];                   /* second sentence */
    const struct weir_candidate *best; /* best candidate of the recommended format, or of the source if the first
                                          sentence recommends none; NULL = nothing was measured */
    bool cold_best;                    /* the best candidate is a cold one */
    double others_cores; /* cores that other processes used, if that makes comparisons unreliable; otherwise 0 */
};

/* Recommends the source's format, unless another format is at least 1.1 times as fast with a warm or a cold page cache
 * (over the whole interval of the ratio), is slower in neither, and is at most 1.5 times as large. Of several such
 * formats, recommends the fastest; warm counts before cold. A faster format that does not meet one of these conditions
 * is mentioned with the reason. Formats are compared with weir_relation_of. If the source is not among the formats, the
 * first measured format takes its place.
 *
 * Recommends none, with the reason and what to do, if formats were compared in fewer than 3 rounds, if other processes
 * used a tenth of the cores, or if the ranges of the trials of both formats overlap. step_ms is the duration of the
 * candidates' training step, cores the number of usable cores. */
void weir_advise(const struct weir_grid *grid, double step_ms, double cores, struct weir_grid_advice *advice);

#endif
