/* store_ops.h: what a layout may ask of an episode, whatever file it is in: its arrays by their paths, their shapes,
 * numbers, and where the rows of images lie. A format of files implements it (HDF5: h5_store.c). */
#ifndef WEIR_DATASETS_STORE_OPS_H
#define WEIR_DATASETS_STORE_OPS_H

#include "base/numbers.h"
#include "datasets/hdf5/h5_read.h"

struct weir_episode_builder;
struct weir_frame_map;

/* All paths lie below the episode. One thread at a time. */
struct weir_store_ops {
    bool (*has)(void *store, const char *path);
    bool (*is_group)(void *store, const char *path);
    /* Names in a group, sorted; each at most WEIR_NAME_MAX - 1 long, -ENAMETOOLONG for longer ones. free(*names). */
    int (*list)(void *store, const char *group, char (**names)[64], int *n, struct weir_err *err);
    int (*shape)(void *store, const char *path, struct weir_h5_shape *shape, struct weir_err *err);
    /* A numeric array whole, in the type that it has there (float16 as float32); at most 1 GiB. free(*values). */
    int (*read_numbers)(void *store, const char *path, enum weir_number_type *type, void **values,
                        struct weir_h5_shape *shape, struct weir_err *err);
    /* Where the rows of images lie: in map, or, where that is found later and elsewhere (locate_frames.c), how they are
     * stored, in description. */
    int (*rows)(void *store, const char *path, struct weir_frame_map *map, struct weir_h5_description *description,
                struct weir_err *err);
    /* Gives the builder the texts that the file has of the episode (weir_builder_text). NULL: there are none. */
    int (*texts)(void *store, struct weir_episode_builder *builder, struct weir_err *err);
    const char *images; /* the arrays that images are read from, for messages; NULL: as HDF5 */
    const char *lister; /* what shows a user the paths of a file: "`h5ls -r` lists those of a file" */
};

extern const struct weir_store_ops weir_store_hdf5;

#endif
