/* zarray.h: the metadata of a Zarr v2 array: .zarray, JSON of at most 1 MiB. Unsupported metadata is refused by name.
 */
#ifndef WEIR_DATASETS_ZARR_ZARRAY_H
#define WEIR_DATASETS_ZARR_ZARRAY_H

#include "datasets/chunks/chunk_grid.h"
#include "datasets/chunks/filters.h"
#include "weir/base.h"
#include "weir/frames.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WEIR_ZARRAY_BYTES_MAX = 1 << 20 };

struct weir_zarray {
    struct weir_chunk_grid grid; /* rank 1..8, no zero in chunk; elements as stored */
    char kind;                   /* numpy's: 'f', 'i', 'u', 'b' */
    bool big_endian;
    uint8_t fill[8];             /* one stored element; zero for null */
    char separator;              /* between numbers in the name of a chunk */
    struct weir_filters filters; /* at most one */
    bool is_image;               /* chunks are encoded images */
    enum weir_frame_kind image;  /* their kind; WEIR_FRAME_IMAGE: by the first bytes, including depth */
};

/* 0; or -EBADMSG, -ENOTSUP, -EFBIG, -ENOMEM with err, which does not name the array. */
int weir_zarray_parse(const char *text, size_t n, struct weir_zarray *array, struct weir_err *err);

#endif
