/* h5_store.h: an HDF5 file as a store. */
#ifndef WEIR_DATASETS_HDF5_H5_STORE_H
#define WEIR_DATASETS_HDF5_H5_STORE_H

#include "datasets/hdf5/h5_read.h"

struct weir_h5_store {
    struct weir_store store;
    struct weir_h5 *h5; /* borrowed; its paths start at the group of weir_h5_enter */
    /* Of the arrays passed to rows(), in call order; owned by the caller after the layout is done. */
    struct weir_h5_description *descriptions;
    int n_descriptions;
};

extern const struct weir_store_ops weir_store_hdf5;

#endif
