/* zarr_array_write_priv.h: one array of Zarr v2 in a folder, written row after row. A chunk is written whole and gets
 * its name when it is; the last one, which the next episode may fill up, is written again then. */
#ifndef WEIR_DATASETS_ZARR_ZARR_ARRAY_WRITE_PRIV_H
#define WEIR_DATASETS_ZARR_ZARR_ARRAY_WRITE_PRIV_H

#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_zarr_writing {
    /* for the caller to set */
    const char *root;    /* path of the store; lent */
    char name[96];       /* "data/state" */
    char dtype[4];       /* "<f4" */
    int rank;            /* 1..4 */
    uint64_t dims[4];    /* the first one is set by weir_zarr_write_about */
    uint64_t chunk_rows; /* 1 for images */
    uint32_t element_bytes;
    bool compress;     /* by blosc, where it is built in */
    const char *image; /* a chunk is an image by this codec of imagecodecs ("jpeg"); NULL: numbers */
    /* of the calls below */
    size_t row_bytes;
    uint64_t at; /* the next row */
    uint8_t *chunk, *packed;
};

/* Makes the folder. Frees what it keeps only by weir_zarr_write_close. */
int weir_zarr_write_open(struct weir_zarr_writing *array, struct weir_err *err);
void weir_zarr_write_close(struct weir_zarr_writing *array);
/* Goes on at row: what its chunk has before it is read. -EBADMSG when that is not there. */
int weir_zarr_write_resume(struct weir_zarr_writing *array, uint64_t row, struct weir_err *err);
/* The next row: row_bytes of numbers, or an image. */
int weir_zarr_write_row(struct weir_zarr_writing *array, const void *bytes, size_t length, struct weir_err *err);
/* Writes the chunk that is not full yet, if there is one. */
int weir_zarr_write_flush(struct weir_zarr_writing *array, struct weir_err *err);
/* Writes .zarray: it has so many rows. */
int weir_zarr_write_about(struct weir_zarr_writing *array, uint64_t rows, struct weir_err *err);

/* A key of the store, whole or not at all. */
int weir_zarr_write_key(const char *root, const char *key, const void *bytes, size_t n, struct weir_err *err);
/* A folder of it, and .zgroup in there. */
int weir_zarr_write_group(const char *root, const char *key, struct weir_err *err);

#endif
