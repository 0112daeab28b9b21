/* hdf5_open.h: opens an HDF5 file in two steps. First the library, in a helper process, describes how the file's
 * datasets are stored and reads the state (hdf5_describe.c). Then frames are located without the library
 * (hdf5_format.c, locate_frames.c). */
#ifndef WEIR_DATASETS_HDF5_HDF5_OPEN_H
#define WEIR_DATASETS_HDF5_HDF5_OPEN_H

#include "datasets/hdf5/h5_read.h"
#include "datasets/index.h"

/* Result of the first step. */
struct weir_hdf5_described {
    struct weir_h5_description **cameras; /* one array per episode, with one description per map */
    int n;
    uint64_t base; /* size of the user block */
};

/* The first step, which uses the library. supplied: identity of a file of an origin (weir_h5_supply_from); NULL = a
 * file of this machine. */
void weir_hdf5_describe(struct weir_file_result *result, struct weir_hdf5_described *described, const char *path,
                        const struct weir_dataset_file *supplied, const struct weir_dataset_config *config);
void weir_hdf5_described_free(struct weir_hdf5_described *described);

/* The second step, for one camera. held_bytes: bytes that the file occupies on the storage, without holes; 0 = unknown.
 */
int weir_locate_frames(struct weir_frame_map *map, const struct weir_h5_description *description,
                       const struct weir_raw_file *raw, uint64_t held_bytes, struct weir_unfilter_context *unfilter,
                       struct weir_err *err);

/* ---- the file as a store ---- */

struct weir_h5_store {
    struct weir_store store;
    struct weir_h5 *h5; /* borrowed; its paths are relative to the group from weir_h5_enter */
    /* Arrays that were passed to rows(), in call order. The caller owns them after the layout has finished. */
    struct weir_h5_description *descriptions;
    int n_descriptions;
};

extern const struct weir_store_ops weir_store_hdf5;

#endif
