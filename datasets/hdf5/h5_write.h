/* h5_write.h: writes one HDF5 file the way h5py does, reproducibly: without object times, so equal contents give equal
 * bytes. The file grows under a hidden temporary name and is renamed at commit, so an interrupted run leaves no partial
 * file under its final name. One thread at a time for the whole process (the HDF5 library here may lack locks). Every
 * call returns 0 (or an id) or a negative errno with err naming file and dataset. */
#ifndef WEIR_DATASETS_HDF5_H5_WRITE_H
#define WEIR_DATASETS_HDF5_H5_WRITE_H

#include "base/numbers.h"
#include "base/spool.h"
#include "weir/base.h"

#include <stddef.h>
#include <stdint.h>

struct weir_h5w;

enum { WEIR_H5W_RANK = 4 };

/* Slowest dimension first; rank 0 is a single value. */
struct weir_h5w_shape {
    int rank;
    uint64_t dims[WEIR_H5W_RANK];
};

enum weir_h5w_storage {
    WEIR_H5W_CONTIGUOUS,
    WEIR_H5W_ROW_CHUNKS, /* one row (a whole frame) per chunk, no filter */
    WEIR_H5W_GZIP,       /* deflate level 4 in h5py's default chunks; not for single values */
};

/* Creates ".NAME.part" in path's folder, which must exist. The caller owns *file until commit or abandon. */
int weir_h5w_create(struct weir_h5w **file, const char *path, struct weir_err *err);
/* Closes and renames the file; bytes (may be NULL) gets its size. *file is NULL afterwards, also after a failure, which
 * removes the temporary file. */
int weir_h5w_commit(struct weir_h5w **file, uint64_t *bytes, struct weir_err *err);
/* Closes and removes the file; *file may be NULL. */
void weir_h5w_abandon(struct weir_h5w **file);

/* Names are absolute ("/observations/images"); parents must exist. */
int weir_h5w_group(struct weir_h5w *file, const char *name, struct weir_err *err);

/* Attributes of a group, in h5py's types for bool, int and str. */
int weir_h5w_attr_bool(struct weir_h5w *file, const char *group, const char *name, bool value, struct weir_err *err);
int weir_h5w_attr_int(struct weir_h5w *file, const char *group, const char *name, int64_t value, struct weir_err *err);
int weir_h5w_attr_text(struct weir_h5w *file, const char *group, const char *name, const char *value,
                       struct weir_err *err);

/* Writes a whole array, converting the values to type. */
int weir_h5w_array(struct weir_h5w *file, const char *name, enum weir_number_type type,
                   const struct weir_h5w_shape *shape, enum weir_h5w_storage storage, const double *values,
                   struct weir_err *err);
/* The same for contiguous values of this type. */
int weir_h5w_numbers(struct weir_h5w *file, const char *name, enum weir_number_type type,
                     const struct weir_h5w_shape *shape, const void *values, struct weir_err *err);

/* Sets the rows per chunk of subsequent chunked datasets; 0 = the default of enum weir_h5w_storage. */
void weir_h5w_chunk_rows(struct weir_h5w *file, uint64_t rows);

/* Datasets written frame by frame; each call returns an id for weir_h5w_frame. A dataset is complete, and its id
 * reusable, after its last frame. */

/* A frame is one row of shape, in native elements of type. */
int weir_h5w_frames(struct weir_h5w *file, const char *name, enum weir_number_type type,
                    const struct weir_h5w_shape *shape, enum weir_h5w_storage storage, struct weir_err *err);
/* (steps,) of strings of fixed size, padded with zeros (h5py's S{bytes}), contiguous */
int weir_h5w_string_frames(struct weir_h5w *file, const char *name, uint64_t steps, size_t bytes, struct weir_err *err);
/* (steps,) of variable-length uint8, contiguous */
int weir_h5w_vlen_frames(struct weir_h5w *file, const char *name, uint64_t steps, struct weir_err *err);

/* bytes: one row, one string, or any number for variable length. Each frame is written once, in any order. Equal files
 * need an equal order; compressed datasets need the frames in sequence. */
int weir_h5w_frame(struct weir_h5w *file, int id, uint64_t step, const void *data, size_t bytes, struct weir_err *err);
/* Writes all frames of the spool as rows or strings of the longest frame's size, padded with zeros. id: may be the
 * error to return. */
int weir_h5w_spooled(struct weir_h5w *file, int id, const struct weir_spool *spool, struct weir_err *err);

/* ---- chunks ---- */

/* dims: `rank` (at least 1) sizes, slowest first; 0 = unlimited. chunk gets `rank` sizes. */
void weir_chunk_guess(const uint64_t *dims, int rank, size_t element_bytes, uint64_t *chunk);

#endif
