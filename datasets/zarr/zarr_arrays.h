/* zarr_arrays.h: the arrays of a Zarr store, each examined once for all episodes. */
#ifndef WEIR_DATASETS_ZARR_ZARR_ARRAYS_H
#define WEIR_DATASETS_ZARR_ZARR_ARRAYS_H

#include "base/numbers.h"
#include "datasets/index.h"
#include "datasets/store.h"
#include "datasets/zarr/zarr_files.h"

struct weir_zarr_array {
    char *path; /* "data/action" */
    struct weir_zarray about;
    bool is_located; /* the next members are valid */
    struct weir_chunk *chunks;
    uint32_t n_chunks, first_part;
    uint32_t floats; /* kind of pixels stored as floats (filter_floats.h); 0 = not examined */
    void *values;    /* the whole array in native byte order, after weir_zarr_numbers */
    enum weir_number_type type;
};

struct weir_zarr {
    struct weir_zarr_files files;
    struct weir_zarr_array *arrays;
    int n;
    struct weir_unfilter_context *unfilter;
    bool is_ours, is_bgr; /* written by Weir; with red and blue swapped */
};

/* Finds an array; lent until the next call. Negative with err, which names it, for one that is missing or unreadable.
 */
int weir_zarr_array(struct weir_zarr *zarr, const char *path, struct weir_zarr_array **array, struct weir_err *err);
/* Locates its chunks. */
int weir_zarr_locate(struct weir_zarr *zarr, struct weir_zarr_array *array, struct weir_err *err);
/* Reads all its numbers, at most 1 GiB, into values and type. */
int weir_zarr_numbers(struct weir_zarr *zarr, struct weir_zarr_array *array, struct weir_err *err);
/* Determines whether float pixels range to 1 or to 255, by the first, the middle and the last chunk that exist.
 * -ENOTSUP for other ranges, and when all are 0. */
int weir_zarr_float_range(struct weir_zarr *zarr, struct weir_zarr_array *array, struct weir_err *err);
void weir_zarr_arrays_close(struct weir_zarr *zarr);

/* Makes blocks of its rows, without chunks; false for unsupported shapes. */
bool weir_zarr_blocks(const struct weir_zarr_array *array, uint64_t rows, struct weir_blocks *blocks);

/* ---- an episode ---- */

/* Rows begin .. begin + steps - 1 of every array. */
struct weir_zarr_episode {
    struct weir_store store;
    struct weir_zarr *zarr;
    uint64_t begin, steps;
    int number;
};

extern const struct weir_store_ops weir_store_zarr;

/* Sets is_ours, and is_bgr as recorded in the store. */
int weir_zarr_read_color(struct weir_zarr *zarr, struct weir_err *err);
/* weir_store_ops.texts */
int weir_zarr_texts(struct weir_store *store, struct weir_episode *episode, struct weir_err *err);

#endif
