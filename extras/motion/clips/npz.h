/* npz.h: NumPy's arrays in files. No byte of them is trusted. */
#ifndef WEIR_EXTRAS_MOTION_CLIPS_NPZ_H
#define WEIR_EXTRAS_MOTION_CLIPS_NPZ_H

#include "datasets/chunks/chunk_grid.h"
#include "datasets/file_array.h"
#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- npy.c: the header of an array as numpy.save writes it, formats 1.0 to 3.0
 * (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html): "\x93NUMPY", the version, the length of a
 * Python dictionary, and its text: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }. The parser accepts only
 * this dictionary, with its three keys in any order. ---- */

enum {
    WEIR_NPY_PREFIX = 12,        /* bytes that weir_npy_header_bytes reads */
    WEIR_NPY_HEADER_MAX = 65536, /* maximum bytes of a header with its prefix */
};

struct weir_npy {
    char kind;           /* numpy's: 'f', 'i', 'u', 'b' numbers; 'U' UTF-32 texts; 'S' texts of bytes */
    bool big_endian;     /* for items of several bytes */
    bool fortran;        /* the first index varies fastest */
    uint32_t item_bytes; /* numbers: 1, 2, 4 or 8 */
    int rank;            /* at most WEIR_FILE_ARRAY_RANK */
    uint64_t dims[WEIR_FILE_ARRAY_RANK];
    uint64_t items, data_bytes; /* data_bytes: at most WEIR_FILE_ARRAY_BYTES */
};

/* Returns the length of the whole header from its first WEIR_NPY_PREFIX bytes, or -EBADMSG, -ENOTSUP, -EFBIG. err does
 * not name the array. */
int weir_npy_header_bytes(const uint8_t prefix[WEIR_NPY_PREFIX], struct weir_err *err);
/* Parses a header of n bytes, as returned above. 0, -EBADMSG or -EFBIG (invalid header), or -ENOTSUP (elements other
 * than numbers and texts: objects, records, complex numbers, dates). err does not name the array. */
int weir_npy_parse(const uint8_t *header, size_t n, struct weir_npy *npy, struct weir_err *err);

/* Converts the npy->data_bytes stored bytes to an array of native numbers in C order (float16 becomes float32, bool
 * uint8). 0, -EBADMSG (text is not Unicode), -ENAMETOOLONG (text over 63 bytes), -EFBIG or -ENOMEM. err does not name
 * the array. */
int weir_npy_array(const struct weir_npy *npy, const uint8_t *data, struct weir_file_array *array,
                   struct weir_err *err);

/* ---- npz.c: arrays in a zip archive, as numpy.savez and numpy.savez_compressed write them, each a member NAME.npy.
 * Refused, besides what zip_index.h, zip_unpack.h and the npy parser refuse: two members with the same name, members
 * that share bytes, and a member whose length differs from its npy header. ---- */

/* An open archive, for one thread. */
struct weir_npz;

/* Opens an archive in raw, which is borrowed until close and has base 0. 0 or -errno; err does not name the file. */
int weir_npz_open(struct weir_npz **npz, const struct weir_raw_file *raw, struct weir_err *err);
/* Accepts a pointer to NULL; sets NULL. */
void weir_npz_close(struct weir_npz **npz);

bool weir_npz_has(const struct weir_npz *npz, const char *name);
/* Reads an array; release with weir_file_array_free. 0, -ENOENT (no such array), -EBADMSG, -ENOTSUP, -EFBIG,
 * -ENAMETOOLONG, -ENOMEM, or a read error. err begins with the name. */
int weir_npz_read(struct weir_npz *npz, const char *name, struct weir_file_array *array, struct weir_err *err);

#endif
