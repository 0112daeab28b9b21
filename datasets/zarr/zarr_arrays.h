/* zarr_arrays.h: the arrays of a Zarr store. Each array is examined once, for all episodes. */
#ifndef WEIR_DATASETS_ZARR_ZARR_ARRAYS_H
#define WEIR_DATASETS_ZARR_ZARR_ARRAYS_H

#include "base/numbers.h"
#include "datasets/index.h"
#include "datasets/store.h"
#include "datasets/zarr/zarr_files.h"

struct weir_zarr_array {
    char *path; /* path in the store: "data/action" */
    struct weir_zarray about;
    bool is_located; /* the next members are valid */
    struct weir_chunk *chunks;
    uint32_t n_chunks, first_part;
    uint64_t stored_bytes; /* of all chunks */
    uint32_t floats;       /* kind of pixels that are stored as floats (filters.h); 0 = not examined */
    void *values;          /* the whole array in native byte order, after weir_zarr_numbers */
    enum weir_number_type type;
};

struct weir_zarr {
    struct weir_zarr_files files;
    struct weir_zarr_array *arrays;
    int n;
    struct weir_unfilter_context *unfilter;
    uint64_t numbers_bytes, stored_bytes; /* of the numbers that were read so far: in memory, and as stored */
    bool is_ours, is_bgr;                 /* is_ours: Weir wrote the store; is_bgr: red and blue are swapped */
};

/* Finds an array, which is lent until the next call. If it is missing or unreadable, returns a negative code, with err
 * naming the array. */
int weir_zarr_array(struct weir_zarr *zarr, const char *path, struct weir_zarr_array **array, struct weir_err *err);
/* Locates the array's chunks. */
int weir_zarr_locate(struct weir_zarr *zarr, struct weir_zarr_array *array, struct weir_err *err);
/* Reads all numbers of the array, at most 1 GiB, into values and type. */
int weir_zarr_numbers(struct weir_zarr *zarr, struct weir_zarr_array *array, struct weir_err *err);
/* Determines whether float pixels have the range 0 to 1 or 0 to 255, from the first, the middle and the last existing
 * chunk. Returns -ENOTSUP for other ranges, and if all of these pixels are 0. */
int weir_zarr_float_range(struct weir_zarr *zarr, struct weir_zarr_array *array, struct weir_err *err);
void weir_zarr_arrays_close(struct weir_zarr *zarr);

/* Describes `rows` rows of the array as blocks, without chunks. Returns false for unsupported shapes. */
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

/* Sets is_ours, and sets is_bgr to the value recorded in the store. */
int weir_zarr_read_color(struct weir_zarr *zarr, struct weir_err *err);
/* Implements weir_store_ops.texts. */
int weir_zarr_texts(struct weir_store *store, struct weir_episode *episode, struct weir_err *err);

#endif
