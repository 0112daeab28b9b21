/* zarr_store_priv.h: one episode of a Zarr store. */
#ifndef WEIR_DATASETS_ZARR_ZARR_STORE_PRIV_H
#define WEIR_DATASETS_ZARR_ZARR_STORE_PRIV_H

#include "datasets/store.h"
#include "datasets/zarr/zarr_arrays.h"

/* Rows begin .. begin + steps - 1 of every array. */
struct weir_zarr_episode {
    struct weir_store store;
    struct weir_zarr *zarr;
    uint64_t begin, steps;
    int number;
};

extern const struct weir_store_ops weir_store_zarr;

/* Sets is_ours, and is_bgr as recorded in the store. */
int weir_zarr_read_color(struct weir_zarr *zarr, struct weir_err *err);
/* weir_store_ops.texts */
int weir_zarr_texts(struct weir_store *store, struct weir_episode *episode, struct weir_err *err);

#endif
