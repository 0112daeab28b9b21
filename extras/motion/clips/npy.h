/* npy.h: the header of an array as numpy.save writes it, formats 1.0 to 3.0
 * (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html): "\x93NUMPY", the version, the length of a
 * Python dictionary, and that as text: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }. Every byte is taken
 * to be hostile: exactly this dictionary is read, with its three keys in any order, and nothing else of Python. */
#ifndef WEIR_EXTRAS_MOTION_CLIPS_NPY_H
#define WEIR_EXTRAS_MOTION_CLIPS_NPY_H

#include "datasets/file_array.h"
#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WEIR_NPY_PREFIX = 12,        /* bytes that weir_npy_header_bytes looks at */
    WEIR_NPY_HEADER_MAX = 65536, /* of a header with its prefix */
};

struct weir_npy {
    char kind;           /* numpy's: 'f', 'i', 'u', 'b' numbers; 'U' UTF-32 texts; 'S' texts of bytes */
    bool big_endian;     /* of items of more than one byte */
    bool fortran;        /* the first index moves fastest */
    uint32_t item_bytes; /* numbers: 1, 2, 4 or 8 */
    int rank;            /* at most WEIR_FILE_ARRAY_RANK */
    uint64_t dims[WEIR_FILE_ARRAY_RANK];
    uint64_t items, data_bytes; /* data_bytes: at most WEIR_FILE_ARRAY_BYTES */
};

/* Length of the whole header by its first WEIR_NPY_PREFIX bytes. -EBADMSG, -ENOTSUP, -EFBIG with err, which does not
 * name the array. */
int weir_npy_header_bytes(const uint8_t prefix[WEIR_NPY_PREFIX], struct weir_err *err);
/* n: as that call returned. 0; or -EBADMSG, -EFBIG for a header that is wrong, -ENOTSUP for elements that are no
 * numbers and no texts (objects, records, complex numbers, dates), with err, which does not name the array. */
int weir_npy_parse(const uint8_t *header, size_t n, struct weir_npy *npy, struct weir_err *err);

/* The array, of data as it is stored, npy->data_bytes of it. Numbers become their type of the machine (float16 float32,
 * bool uint8), in C order. 0; -EBADMSG for texts that are not Unicode, -ENAMETOOLONG for those of over 63 bytes,
 * -EFBIG, -ENOMEM; with err, which does not name it. */
int weir_npy_array(const struct weir_npy *npy, const uint8_t *data, struct weir_file_array *array,
                   struct weir_err *err);

#endif
