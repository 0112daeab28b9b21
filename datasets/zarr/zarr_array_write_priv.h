/* zarr_array_write_priv.h: writes one Zarr v2 array in a folder, row by row. Chunks are written whole, under a
 * temporary name. The last chunk is rewritten when the next episode adds rows to it. */
#ifndef WEIR_DATASETS_ZARR_ZARR_ARRAY_WRITE_PRIV_H
#define WEIR_DATASETS_ZARR_ZARR_ARRAY_WRITE_PRIV_H

#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_zarr_writing {
    /* set by the caller: */
    const char *root;    /* path of the store; lent */
    char name[96];       /* path of the array: "data/state" */
    char dtype[4];       /* type of the elements: "<f4" */
    int rank;            /* 1..4 */
    uint64_t dims[4];    /* weir_zarr_write_about sets the first dimension */
    uint64_t chunk_rows; /* 1 for images */
    uint32_t element_bytes;
    bool compress;     /* with blosc, if it is built in */
    const char *image; /* codec of imagecodecs ("jpeg"), with one image per chunk; NULL: the array contains numbers */
    /* used by the functions below: */
    size_t row_bytes;
    uint64_t at; /* number of the next row */
    uint8_t *chunk, *packed;
};

/* Creates the array's folder. weir_zarr_write_close frees the memory. */
int weir_zarr_write_open(struct weir_zarr_writing *array, struct weir_err *err);
void weir_zarr_write_close(struct weir_zarr_writing *array);
/* Resumes at row, and reads the earlier rows of its chunk. Returns -EBADMSG if they are missing. */
int weir_zarr_write_resume(struct weir_zarr_writing *array, uint64_t row, struct weir_err *err);
/* Writes the next row: row_bytes bytes of numbers, or an image. */
int weir_zarr_write_row(struct weir_zarr_writing *array, const void *bytes, size_t length, struct weir_err *err);
/* Writes a partly filled chunk, if any. */
int weir_zarr_write_flush(struct weir_zarr_writing *array, struct weir_err *err);
/* Writes .zarray for an array of `rows` rows. */
int weir_zarr_write_about(struct weir_zarr_writing *array, uint64_t rows, struct weir_err *err);

/* Writes a key of the store atomically. */
int weir_zarr_write_key(const char *root, const char *key, const void *bytes, size_t n, struct weir_err *err);
/* Creates a folder of the store, with .zgroup. */
int weir_zarr_write_group(const char *root, const char *key, struct weir_err *err);

#endif
