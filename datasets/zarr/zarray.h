/* zarray.h: the metadata of a Zarr v2 array: .zarray, which is JSON of at most 1 MiB. Messages name the metadata that
 * is not supported. */
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
    struct weir_chunk_grid grid; /* rank 1..8; chunk sizes are not zero; elements as stored */
    char kind;                   /* kind of the type, as in numpy: 'f', 'i', 'u', 'b' */
    bool big_endian;
    uint8_t fill[8];             /* fill value of one stored element; zero if it is null */
    char separator;              /* character between the numbers in a chunk's name */
    struct weir_filters filters; /* at most one filter */
    bool is_image;               /* chunks are encoded images */
    enum weir_frame_kind image; /* kind of the images; WEIR_FRAME_IMAGE: decided by their first bytes, also for depth */
};

/* Returns 0; or -EBADMSG, -ENOTSUP, -EFBIG or -ENOMEM with err, which does not name the array. */
int weir_zarray_parse(const char *text, size_t n, struct weir_zarray *array, struct weir_err *err);

#endif
