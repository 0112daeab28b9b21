/* h5_write.h: writes one HDF5 file the way h5py does, reproducibly: no object times, so equal contents are equal bytes.
 *
 * The file grows under a hidden temporary name beside its own and gets its own at commit, so an interrupted run leaves
 * no half file behind a good name. One thread at a time for the whole process (the HDF5 library here may lack locks).
 * Every call returns 0 (or an id) or a negative errno with err naming file and dataset. */
#ifndef WEIR_DATASETS_HDF5_H5_WRITE_H
#define WEIR_DATASETS_HDF5_H5_WRITE_H

#include "base/numbers.h"
#include "base/spool.h"
#include "weir/base.h"

#include <stddef.h>
#include <stdint.h>

struct weir_h5w;

enum { WEIR_H5W_RANK = 4 };

/* Slowest first; rank 0 is a single value. */
struct weir_h5w_shape {
    int rank;
    uint64_t dims[WEIR_H5W_RANK];
};

enum weir_h5w_storage {
    WEIR_H5W_CONTIGUOUS,
    WEIR_H5W_ROW_CHUNKS, /* a row (a whole frame) a chunk, no filter */
    WEIR_H5W_GZIP,       /* deflate level 4 in the chunks that h5py chooses; not for single values */
};

/* Creates PATH's folder entry ".NAME.part"; the folder exists. *file is owned by the caller until commit or abandon. */
int weir_h5w_create(struct weir_h5w **file, const char *path, struct weir_err *err);
/* Closes and renames; bytes (may be NULL) gets the file's size. *file is NULL afterwards, also after a failure, which
 * removes the temporary file. */
int weir_h5w_commit(struct weir_h5w **file, uint64_t *bytes, struct weir_err *err);
/* Closes and removes; *file may be NULL. */
void weir_h5w_abandon(struct weir_h5w **file);

/* Names are absolute ("/observations/images"); parents exist. */
int weir_h5w_group(struct weir_h5w *file, const char *name, struct weir_err *err);

/* Attributes of a group, with the types that h5py gives to bool, int and str. */
int weir_h5w_attr_bool(struct weir_h5w *file, const char *group, const char *name, bool value, struct weir_err *err);
int weir_h5w_attr_int(struct weir_h5w *file, const char *group, const char *name, int64_t value, struct weir_err *err);
int weir_h5w_attr_text(struct weir_h5w *file, const char *group, const char *name, const char *value,
                       struct weir_err *err);

/* A whole array; the values are converted to type. */
int weir_h5w_array(struct weir_h5w *file, const char *name, enum weir_number_type type,
                   const struct weir_h5w_shape *shape, enum weir_h5w_storage storage, const double *values,
                   struct weir_err *err);
/* The same of values that are of this type already, contiguous. */
int weir_h5w_numbers(struct weir_h5w *file, const char *name, enum weir_number_type type,
                     const struct weir_h5w_shape *shape, const void *values, struct weir_err *err);

/* Datasets in chunks, from now on, have so many whole rows a chunk; 0 = as enum weir_h5w_storage says. */
void weir_h5w_chunk_rows(struct weir_h5w *file, uint64_t rows);

/* Datasets written frame by frame; each call returns an id for weir_h5w_frame. A dataset is complete, and its id free
 * for another, when it has all of its frames. */

/* Frames are the rows of shape, of native elements of type. */
int weir_h5w_frames(struct weir_h5w *file, const char *name, enum weir_number_type type,
                    const struct weir_h5w_shape *shape, enum weir_h5w_storage storage, struct weir_err *err);
/* (steps,) of strings of fixed size, padded with zeros (h5py's S{bytes}), contiguous */
int weir_h5w_string_frames(struct weir_h5w *file, const char *name, uint64_t steps, size_t bytes, struct weir_err *err);
/* (steps,) of variable-length uint8, contiguous */
int weir_h5w_vlen_frames(struct weir_h5w *file, const char *name, uint64_t steps, struct weir_err *err);

/* bytes: exactly a row, exactly a string, or any number for variable length. Frames are written once each, in any
 * order; equal files need an equal order, and a compressed dataset wants them one after the other. */
int weir_h5w_frame(struct weir_h5w *file, int id, uint64_t step, const void *data, size_t bytes, struct weir_err *err);
/* Writes all that the spool holds as the frames of a dataset whose rows or strings have the longest's bytes, zeros
 * behind the others. id: or the error that is returned. */
int weir_h5w_spooled(struct weir_h5w *file, int id, const struct weir_spool *spool, struct weir_err *err);

#endif
