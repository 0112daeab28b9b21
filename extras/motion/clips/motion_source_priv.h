/* motion_source_priv.h: a file of motions, as arrays by name: NPZ or HDF5. One thread. */
#ifndef WEIR_EXTRAS_MOTION_CLIPS_MOTION_SOURCE_PRIV_H
#define WEIR_EXTRAS_MOTION_CLIPS_MOTION_SOURCE_PRIV_H

#include "datasets/chunks/chunk_grid.h"
#include "datasets/file_array.h"
#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>

struct weir_motion_source_ops {
    bool (*has)(void *file, const char *key);
    /* The array of this name, for weir_file_array_free. Errors name the array, not the file. */
    int (*read)(void *file, const char *key, struct weir_file_array *array, struct weir_err *err);
    /* Goes on to part i, whose name is lent until the next call: each has arrays of its own. *name NULL: the file is
     * one part and has no more. NULL: the file is one part. */
    int (*enter)(void *file, size_t i, const char **name, struct weir_err *err);
    void (*close)(void *file);
};

struct weir_motion_source {
    const struct weir_motion_source_ops *ops;
    void *file;
};

/* Errors do not name the file. After an error nothing is open. */
int weir_motion_npz_open(struct weir_motion_source *source, const char *path, struct weir_err *err);
int weir_motion_hdf5_open(struct weir_motion_source *source, const char *path, struct weir_err *err);
/* An archive of bytes that are read by raw, which is lent until close. */
int weir_motion_raw_npz_open(struct weir_motion_source *source, const struct weir_raw_file *raw, struct weir_err *err);

#endif
