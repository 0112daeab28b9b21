/* h5_read_priv.h: an open HDF5 file and its open datasets. */
#ifndef WEIR_DATASETS_HDF5_H5_READ_PRIV_H
#define WEIR_DATASETS_HDF5_H5_READ_PRIV_H

#include "datasets/hdf5/h5_read.h"

struct weir_h5 {
    int64_t file;
    uint64_t user_block;
    bool plain_sizes;     /* addresses and lengths have 8 bytes */
    unsigned long fileno; /* distinguishes objects of this file from objects that external links lead to */
    bool chunks_probed;
    uint64_t numbers_bytes;         /* of the file's numbers that were read so far */
    char unreadable[64];            /* name of the attribute that weir_h5_unreadable reports; "" = none */
    char unreadable_why[256];       /* the library's reason */
    char root[WEIR_STORE_PATH_MAX]; /* group that paths are relative to: "" or "/data/demo_0" */
};

/* An open dataset, with the properties that reading a row needs. */
struct weir_h5_dataset {
    int64_t id, type, space, plist;
    struct weir_array_shape shape;
    char path[WEIR_STORE_PATH_MAX]; /* path from the file's root */
};

/* Opens a dataset whose shape is reliable. The library derives the shape of a virtual dataset from its sources; an
 * error is returned if one of them cannot be opened (weir_h5_check_extent). */
int weir_h5_open_whole(struct weir_h5 *h5, const char *path, struct weir_h5_dataset *d, struct weir_err *err);
void weir_h5_close_dataset(struct weir_h5_dataset *d);

/* Makes a path from the file's root. If the path is too long, writes a path that no file contains. */
void weir_h5_absolute(const struct weir_h5 *h5, const char *path, char text[WEIR_STORE_PATH_MAX]);

#endif
