/* zarray.h: the metadata of an array of Zarr v2: .zarray, JSON of at most 1 MiB. Everything that cannot be read is
 * refused by its name. */
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
    struct weir_chunk_grid grid; /* rank 1..8, chunks that have no zero in them; elements as stored */
    char kind;                   /* of numpy: 'f', 'i', 'u', 'b' */
    bool big_endian;
    uint8_t fill[8];             /* one element, as stored; zero for null */
    char separator;              /* between the numbers in a chunk's name */
    struct weir_filters filters; /* one or none */
    bool is_image;               /* a chunk is an encoded image */
    enum weir_frame_kind image;  /* its kind; WEIR_FRAME_IMAGE: by its first bytes, depth too */
};

/* 0; or -EBADMSG, -ENOTSUP, -EFBIG, -ENOMEM with err, which does not name the array. */
int weir_zarray_parse(const char *text, size_t n, struct weir_zarray *array, struct weir_err *err);

#endif
