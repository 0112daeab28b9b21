/* zarr_arrays.h: the arrays of a Zarr store, each looked at once however many episodes it has. */
#ifndef WEIR_DATASETS_ZARR_ZARR_ARRAYS_H
#define WEIR_DATASETS_ZARR_ZARR_ARRAYS_H

#include "base/numbers.h"
#include "datasets/index.h"
#include "datasets/zarr/zarr_files.h"

struct weir_zarr_array {
    char *path; /* "data/action" */
    struct weir_zarray about;
    bool is_located; /* the following; when somebody asked */
    struct weir_chunk *chunks;
    uint32_t n_chunks, first_part;
    uint32_t floats; /* kind of the floats that its pixels are (filter_floats.h); 0 = not looked at */
    void *values;    /* all of it, once somebody asked, in the machine's byte order */
    enum weir_number_type type;
};

struct weir_zarr {
    struct weir_zarr_files files;
    struct weir_zarr_array *arrays;
    int n, capacity;
    struct weir_unfilter_context *unfilter;
    bool is_ours, is_bgr; /* written by weir; with red and blue swapped */
};

/* Finds one; lent until another one is asked for. Negative with err (which names it) when there is none, or one that
 * cannot be read. */
int weir_zarr_array(struct weir_zarr *zarr, const char *path, struct weir_zarr_array **array, struct weir_err *err);
/* Finds its chunks. */
int weir_zarr_locate(struct weir_zarr *zarr, struct weir_zarr_array *array, struct weir_err *err);
/* All of its numbers, into values and type; at most 1 GiB. */
int weir_zarr_numbers(struct weir_zarr *zarr, struct weir_zarr_array *array, struct weir_err *err);
/* Whether the floats of its pixels end at 1 or at 255, by those of the first, the middle and the last chunk that is
 * there: up to 1 they are of 0..1. -ENOTSUP when they are of neither range, or all of them are 0. */
int weir_zarr_float_range(struct weir_zarr *zarr, struct weir_zarr_array *array, struct weir_err *err);
void weir_zarr_arrays_close(struct weir_zarr *zarr);

/* Its grid as blocks of the rows of elements, without chunks; false for shapes that blocks are not made of. */
bool weir_zarr_blocks(const struct weir_zarr_array *array, uint64_t rows, struct weir_blocks *blocks);

#endif
