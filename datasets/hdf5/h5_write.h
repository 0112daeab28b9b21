/* h5_write.h: writes one HDF5 file in the way h5py does. Output is reproducible: object times are not stored, so equal
 * contents give equal bytes. The file is written under a hidden temporary name and renamed at commit, so an interrupted
 * run leaves no partial file under the final name. Only one thread of the process may use these functions at a time,
 * because the HDF5 library may have been built without locks. Every call returns 0 (or an id), or a negative errno with
 * err naming file and dataset. */
#ifndef WEIR_DATASETS_HDF5_H5_WRITE_H
#define WEIR_DATASETS_HDF5_H5_WRITE_H

#include "base/files.h"
#include "base/numbers.h"
#include "weir/base.h"

#include <stddef.h>
#include <stdint.h>

struct weir_h5w;

enum { WEIR_H5W_RANK = 4 };

/* The slowest dimension comes first; rank 0 is a single value. */
struct weir_h5w_shape {
    int rank;
    uint64_t dims[WEIR_H5W_RANK];
};

enum weir_h5w_storage {
    WEIR_H5W_CONTIGUOUS,
    WEIR_H5W_ROW_CHUNKS, /* one row (a whole frame) per chunk, without filters */
    WEIR_H5W_GZIP,       /* deflate level 4 in h5py's default chunks; not for single values */
};

/* Creates ".NAME.part" in path's folder, which must exist. The caller owns *file until commit or abandon. */
int weir_h5w_create(struct weir_h5w **file, const char *path, struct weir_err *err);
/* Closes and renames the file. If bytes is not NULL, *bytes becomes its size. *file is NULL afterwards, even after a
 * failure. A failure also removes the temporary file. */
int weir_h5w_commit(struct weir_h5w **file, uint64_t *bytes, struct weir_err *err);
/* Closes and removes the file; *file may be NULL. */
void weir_h5w_abandon(struct weir_h5w **file);

/* Creates a group. Names are absolute ("/observations/images"), and parents must exist. */
int weir_h5w_group(struct weir_h5w *file, const char *name, struct weir_err *err);

/* Write attributes of a group, in the types that h5py uses for bool, int and str. */
int weir_h5w_attr_bool(struct weir_h5w *file, const char *group, const char *name, bool value, struct weir_err *err);
int weir_h5w_attr_int(struct weir_h5w *file, const char *group, const char *name, int64_t value, struct weir_err *err);
int weir_h5w_attr_text(struct weir_h5w *file, const char *group, const char *name, const char *value,
                       struct weir_err *err);

/* Writes a whole array and converts the values to type. */
int weir_h5w_array(struct weir_h5w *file, const char *name, enum weir_number_type type,
                   const struct weir_h5w_shape *shape, enum weir_h5w_storage storage, const double *values,
                   struct weir_err *err);
/* Like weir_h5w_array, for values that already have this type, in contiguous storage. */
int weir_h5w_numbers(struct weir_h5w *file, const char *name, enum weir_number_type type,
                     const struct weir_h5w_shape *shape, const void *values, struct weir_err *err);

/* Sets the rows per chunk of subsequent chunked datasets; 0 = the default of the storage (enum weir_h5w_storage). */
void weir_h5w_chunk_rows(struct weir_h5w *file, uint64_t rows);

/* For datasets that are written frame by frame. Each function returns an id for weir_h5w_frame. After its last frame, a
 * dataset is complete and its id can be reused. */

/* Creates a dataset of frames. A frame is one row of shape, in native elements of type. */
int weir_h5w_frames(struct weir_h5w *file, const char *name, enum weir_number_type type,
                    const struct weir_h5w_shape *shape, enum weir_h5w_storage storage, struct weir_err *err);
/* Creates (steps,) strings of fixed size, padded with zeros (h5py's S{bytes}), in contiguous storage. */
int weir_h5w_string_frames(struct weir_h5w *file, const char *name, uint64_t steps, size_t bytes, struct weir_err *err);
/* Creates (steps,) variable-length uint8 in contiguous storage. */
int weir_h5w_vlen_frames(struct weir_h5w *file, const char *name, uint64_t steps, struct weir_err *err);

/* Writes one frame. bytes: the size of one row or string; for variable length, any size. Each frame is written once, in
 * any order. Compressed datasets need the frames in sequence. Files are only identical if their frames were written in
 * the same order. */
int weir_h5w_frame(struct weir_h5w *file, int id, uint64_t step, const void *data, size_t bytes, struct weir_err *err);
/* Writes all frames of the spool as rows or strings that have the size of the longest frame and are padded with zeros.
 * If id is a negative code, returns it. */
int weir_h5w_spooled(struct weir_h5w *file, int id, const struct weir_spool *spool, struct weir_err *err);

/* ---- chunks ---- */

/* dims: `rank` (at least 1) sizes, slowest first; 0 = unlimited. chunk receives `rank` sizes. */
void weir_chunk_guess(const uint64_t *dims, int rank, size_t element_bytes, uint64_t *chunk);

#endif
