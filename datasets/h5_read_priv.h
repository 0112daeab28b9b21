/* h5_read_priv.h: reading HDF5, as layouts need it. h5_read.c alone includes hdf5.h for reading. */
#ifndef WEIR_DATASETS_H5_READ_PRIV_H
#define WEIR_DATASETS_H5_READ_PRIV_H

#include "prof/err.h"

#include <stddef.h>
#include <stdint.h>

struct weir_h5; /* an open file; one thread at a time */

int weir_h5_open(struct weir_h5 **out, const char *path, struct weir_err *err);
void weir_h5_close(struct weir_h5 **h5);

/* True when every part of the path exists and leads to an object. */
bool weir_h5_has(struct weir_h5 *h5, const char *path);

/* Names in a group, sorted; each at most WEIR_NAME_MAX - 1 long, -ENAMETOOLONG for longer ones.
 * free(*names). */
int weir_h5_list(struct weir_h5 *h5, const char *group, char (**names)[64], int *n, struct weir_err *err);

enum weir_h5_class { WEIR_H5_INTEGER, WEIR_H5_FLOAT, WEIR_H5_STRING, WEIR_H5_VLEN_BYTES, WEIR_H5_OTHER };

enum { WEIR_H5_RANK_MAX = 8 };

struct weir_h5_shape {
    int rank; /* datasets of a higher rank are refused */
    uint64_t dims[WEIR_H5_RANK_MAX];
    enum weir_h5_class class;
    size_t type_bytes;
};
int weir_h5_shape(struct weir_h5 *h5, const char *path, struct weir_h5_shape *shape, struct weir_err *err);

/* Reads a numeric dataset whole, converted to float; at most 1 GiB. free(*values). */
int weir_h5_read_floats(struct weir_h5 *h5, const char *path, float **values, struct weir_h5_shape *shape,
                        struct weir_err *err);

enum weir_h5_storage {
    WEIR_H5_CONTIGUOUS, /* row t is at base + t * row_bytes */
    WEIR_H5_CHUNKS,     /* row t is at offsets[t], UINT64_MAX where no chunk was ever written */
    WEIR_H5_HEAP,       /* row t is a reference into a global heap collection */
    WEIR_H5_LIBRARY,    /* only the library can read it */
};

struct weir_heap_ref {
    uint64_t address; /* of the collection, from the start of the file; 0 = empty */
    uint32_t length, index;
};

struct weir_h5_place {
    enum weir_h5_storage storage;
    uint64_t base;
    size_t row_bytes;
    uint64_t *offsets;          /* owned by the caller */
    struct weir_heap_ref *refs; /* owned by the caller */
};

/* Finds out where the rows of a dataset lie. Every extent is checked to be inside the file. */
int weir_h5_locate(struct weir_h5 *h5, const char *path, struct weir_h5_place *place, struct weir_err *err);

/* Reads row t through the library: bytes of a raw or padded row, or the content of a variable-length element. *length
 * is its size; -ENOSPC (err not set) when that is over capacity. */
int weir_h5_read_row(struct weir_h5 *h5, const char *path, uint64_t t, void *buffer, size_t capacity, size_t *length,
                     struct weir_err *err);

void weir_h5_library(char *text, size_t size);

#endif
