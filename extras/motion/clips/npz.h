/* npz.h: reads NumPy's array files. Their contents are not trusted. */
#ifndef WEIR_EXTRAS_MOTION_CLIPS_NPZ_H
#define WEIR_EXTRAS_MOTION_CLIPS_NPZ_H

#include "datasets/chunks/chunk_grid.h"
#include "datasets/file_array.h"
#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- npy.c: the header of an array as numpy.save writes it, formats 1.0 to 3.0
 * (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html). It consists of "\x93NUMPY", the version,
 * the length of a Python dictionary, and the dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
 * The parser accepts only a dictionary with these three keys, in any order. ---- */

enum {
    WEIR_NPY_PREFIX = 12,        /* number of bytes that weir_npy_header_bytes reads */
    WEIR_NPY_HEADER_MAX = 65536, /* maximum size of a header, including its prefix */
};

struct weir_npy {
    char kind;           /* NumPy's kind: numbers 'f', 'i', 'u', 'b'; UTF-32 strings 'U'; byte strings 'S' */
    bool big_endian;     /* relevant only if items have several bytes */
    bool fortran;        /* Fortran order: the first index varies fastest */
    uint32_t item_bytes; /* 1, 2, 4 or 8 for numbers */
    int rank;            /* at most WEIR_FILE_ARRAY_RANK */
    uint64_t dims[WEIR_FILE_ARRAY_RANK];
    uint64_t items, data_bytes; /* data_bytes is at most WEIR_FILE_ARRAY_BYTES */
};

/* Returns the length of the whole header, as given in its first WEIR_NPY_PREFIX bytes, or -EBADMSG, -ENOTSUP or -EFBIG.
 * err does not contain the array's name. */
int weir_npy_header_bytes(const uint8_t prefix[WEIR_NPY_PREFIX], struct weir_err *err);
/* Parses a header of n bytes, where weir_npy_header_bytes returned n. 0, -EBADMSG or -EFBIG (invalid header), or
 * -ENOTSUP (elements that are neither numbers nor strings: objects, records, complex numbers, dates). err does not
 * contain the array's name. */
int weir_npy_parse(const uint8_t *header, size_t n, struct weir_npy *npy, struct weir_err *err);

/* Converts npy->data_bytes bytes of stored data to an array of native numbers in C order (float16 becomes float32, bool
 * becomes uint8). 0, -EBADMSG (a string is not valid Unicode), -ENAMETOOLONG (a string is longer than 63 bytes), -EFBIG
 * or -ENOMEM. err does not contain the array's name. */
int weir_npy_array(const struct weir_npy *npy, const uint8_t *data, struct weir_file_array *array,
                   struct weir_err *err);

/* ---- npz.c: arrays in a zip archive, as written by numpy.savez and numpy.savez_compressed. Each array is a member
 * NAME.npy. Archives are refused in the cases listed in zip_index.h, if the npy parser fails, if two
 * members have the same name or overlap, and if a member's length does not match its npy header. ---- */

/* An open archive, which must be used by one thread only. */
struct weir_npz;

/* Opens an archive in raw, which is borrowed until close and must have base 0. 0 or -errno; err does not contain the
 * file name. */
int weir_npz_open(struct weir_npz **npz, const struct weir_raw_file *raw, struct weir_err *err);
/* Accepts a pointer to NULL, and sets the pointer to NULL. */
void weir_npz_close(struct weir_npz **npz);

bool weir_npz_has(const struct weir_npz *npz, const char *name);
/* Reads an array, which the caller releases with weir_file_array_free. 0, -ENOENT (no such array), -EBADMSG, -ENOTSUP,
 * -EFBIG, -ENAMETOOLONG, -ENOMEM, or a read error. err begins with the array's name. */
int weir_npz_read(struct weir_npz *npz, const char *name, struct weir_file_array *array, struct weir_err *err);

#endif
