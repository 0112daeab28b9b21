/* zarr_store_priv.h: one episode of a Zarr store as layouts see it. */
#ifndef WEIR_DATASETS_ZARR_ZARR_STORE_PRIV_H
#define WEIR_DATASETS_ZARR_ZARR_STORE_PRIV_H

#include "datasets/store_ops.h"
#include "datasets/zarr/zarr_arrays.h"

/* What the functions of weir_store_zarr take: rows begin .. begin + steps - 1 of every array. */
struct weir_zarr_episode {
    struct weir_zarr *zarr;
    uint64_t begin, steps;
};

extern const struct weir_store_ops weir_store_zarr;

#endif
