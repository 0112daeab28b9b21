/* h5_read_priv.h: an open file and an open dataset of it. */
#ifndef WEIR_DATASETS_HDF5_H5_READ_PRIV_H
#define WEIR_DATASETS_HDF5_H5_READ_PRIV_H

#include "datasets/hdf5/h5_read.h"

struct weir_h5 {
    int64_t file;
    uint64_t user_block;
    bool plain_sizes;     /* addresses and lengths of 8 bytes */
    unsigned long fileno; /* distinguishes objects of this file from those behind external links */
    bool chunks_probed;
    char unreadable[64];            /* attribute for weir_h5_unreadable; "" = none */
    char root[WEIR_STORE_PATH_MAX]; /* prefix of paths: "" or "/data/demo_0" */
};

/* An open dataset, with properties that every row needs. */
struct weir_h5_dataset {
    int64_t id, type, space, plist;
    struct weir_array_shape shape;
    char path[WEIR_STORE_PATH_MAX]; /* from the file's root */
};

/* Its shape is one to go by, also where the library works it out of what others hold. */
int weir_h5_open_whole(struct weir_h5 *h5, const char *path, struct weir_h5_dataset *d, struct weir_err *err);
void weir_h5_close_dataset(struct weir_h5_dataset *d);

#endif
