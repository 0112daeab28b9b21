/* h5_read_priv.h: an open file and an open dataset of it. */
#ifndef WEIR_DATASETS_HDF5_H5_READ_PRIV_H
#define WEIR_DATASETS_HDF5_H5_READ_PRIV_H

#include "datasets/hdf5/h5_read.h"

/* What layouts ask of an open file, who are in every program: the library is in its helper program alone. h5_read.h has
 * what each does. */
struct weir_h5_calls {
    bool (*has)(struct weir_h5 *h5, const char *path);
    bool (*is_group)(struct weir_h5 *h5, const char *path);
    bool (*has_attribute)(struct weir_h5 *h5, const char *path, const char *name);
    bool (*is_false)(struct weir_h5 *h5, const char *name);
    int (*list)(struct weir_h5 *h5, const char *group, char (**names)[64], int *n, struct weir_err *err);
    int (*shape)(struct weir_h5 *h5, const char *path, struct weir_h5_shape *shape, struct weir_err *err);
    int (*read_floats)(struct weir_h5 *h5, const char *path, float **values, struct weir_h5_shape *shape,
                       struct weir_err *err);
};

struct weir_h5 {
    const struct weir_h5_calls *calls;
    int64_t file;
    uint64_t user_block;
    bool plain_sizes;     /* addresses and lengths of 8 bytes */
    unsigned long fileno; /* tells objects of this file from those behind external links */
    bool chunks_probed;
    char unreadable[64];         /* weir_h5_unreadable's attribute; "" = none */
    char root[WEIR_H5_PATH_MAX]; /* put before paths; "" or "/data/demo_0" */
};

/* An open dataset, with the properties that are needed for every row. */
struct weir_h5_dataset {
    int64_t id, type, space, plist;
    struct weir_h5_shape shape;
    char path[WEIR_H5_PATH_MAX]; /* from the file's root */
};

/* Of weir_h5_calls, by the library. */
bool weir_h5_attribute_is_false(struct weir_h5 *h5, const char *name);
int weir_h5_library_floats(struct weir_h5 *h5, const char *path, float **values, struct weir_h5_shape *shape,
                           struct weir_err *err);

/* Its shape is one to go by, also where the library works it out of what others hold. */
int weir_h5_open_whole(struct weir_h5 *h5, const char *path, struct weir_h5_dataset *d, struct weir_err *err);
void weir_h5_close_dataset(struct weir_h5_dataset *d);

#endif
