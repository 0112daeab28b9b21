/* store.h: one episode as layouts see it, in any file format: arrays by path, their shapes and numbers, and the places
 * of image rows. Each format implements struct weir_store_ops in its folder. Layouts call the functions below and
 * depend on no format.
 *
 * Stores locate frames and do not read them: rows() fills a struct weir_frame_map, usually with one extent per frame.
 * Later reads use io/ and no store.
 * - An extent lies in a source, which is a number: that of one of the dataset's files, or, for a folder, of one of its
 *   parts (weir_dataset_read_file). Nothing here opens a path, so an object behind HTTP or S3 is another kind of
 * source.
 * - Numbers are read as whole arrays. Columns of a table (Parquet) need no other call.
 * - A video sample depends on the sync sample before it. Its number belongs in struct weir_frame_extent, beside offset
 * and length: stores fill extents, and only fetching and decoding use them.
 *
 * A store is used by one thread at a time. Paths start at the episode's root. */
#ifndef WEIR_DATASETS_STORE_H
#define WEIR_DATASETS_STORE_H

#include "base/numbers.h"
#include "datasets/chunks/chunk_grid.h"
#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_episode;
struct weir_frame_map;

enum { WEIR_STORE_PATH_MAX = 512 };

enum weir_element {
    WEIR_ELEMENT_INTEGER,
    WEIR_ELEMENT_FLOAT,
    WEIR_ELEMENT_FIXED_BYTES, /* strings of fixed length, opaque */
    WEIR_ELEMENT_VLEN_BYTES,
    WEIR_ELEMENT_VLEN_STRING,
    WEIR_ELEMENT_OTHER
};

struct weir_array_shape {
    int rank; /* stores refuse a higher rank than WEIR_GRID_RANK_MAX */
    uint64_t dims[WEIR_GRID_RANK_MAX];
    enum weir_element element;
    size_t type_bytes;
    bool is_big_endian; /* integers of more than one byte */
    bool has_fill;      /* set by read_numbers: some elements were never written and hold the fill value */
    bool is_signed;     /* integers */
};

/* A format's store begins with this. */
struct weir_store {
    const struct weir_store_ops *ops;
};

struct weir_store_ops {
    bool (*has)(struct weir_store *store, const char *path);
    bool (*is_group)(struct weir_store *store, const char *path);
    /* Lists the names in a group, each at most WEIR_NAME_MAX - 1 long, else -ENAMETOOLONG. free(*names). */
    int (*list)(struct weir_store *store, const char *group, char (**names)[64], int *n, struct weir_err *err);
    int (*shape)(struct weir_store *store, const char *path, struct weir_array_shape *shape, struct weir_err *err);
    /* Reads a whole numeric array of at most 1 GiB in its stored type; float16 becomes float32, and types over 8 bytes
     * become float64. free(*values). */
    int (*read_numbers)(struct weir_store *store, const char *path, enum weir_number_type *type, void **values,
                        struct weir_array_shape *shape, struct weir_err *err);
    /* Locates the rows of images and fills map. HDF5 leaves map empty and locates rows after the layout is done. The
     * caller refuses shapes that are not images. */
    int (*rows)(struct weir_store *store, const char *path, struct weir_frame_map *map, struct weir_array_shape *shape,
                struct weir_err *err);
    /* Returns true when the object at path has this attribute. NULL: the format has no attributes. */
    bool (*has_attribute)(struct weir_store *store, const char *path, const char *name);
    /* Returns true when the root's attribute is a boolean and false. NULL: the format has no attributes. */
    bool (*is_false)(struct weir_store *store, const char *name);
    /* Adds the episode's texts (weir_episode_add_text), and sets its colour order if the texts record it. */
    int (*texts)(struct weir_store *store, struct weir_episode *episode, struct weir_err *err);
    const char *images; /* for messages: the arrays that can be images */
    const char *lister; /* for messages: how to list the paths of a file, "`h5ls -r` lists those of a file" */
};

static inline bool weir_store_has(struct weir_store *store, const char *path)
{
    return store->ops->has(store, path);
}

static inline bool weir_store_is_group(struct weir_store *store, const char *path)
{
    return store->ops->is_group(store, path);
}

static inline int weir_store_list(struct weir_store *store, const char *group, char (**names)[64], int *n,
                                  struct weir_err *err)
{
    return store->ops->list(store, group, names, n, err);
}

static inline int weir_store_shape(struct weir_store *store, const char *path, struct weir_array_shape *shape,
                                   struct weir_err *err)
{
    return store->ops->shape(store, path, shape, err);
}

static inline bool weir_store_has_attribute(struct weir_store *store, const char *path, const char *name)
{
    return store->ops->has_attribute && store->ops->has_attribute(store, path, name);
}

static inline bool weir_store_is_false(struct weir_store *store, const char *name)
{
    return store->ops->is_false && store->ops->is_false(store, name);
}

/* Reads a whole numeric array as floats. free(*values), which is NULL after an error. */
int weir_store_read_floats(struct weir_store *store, const char *path, float **values, struct weir_array_shape *shape,
                           struct weir_err *err);

/* ---- shapes of images ---- */

/* The image in one row of an array. */
struct weir_image_shape {
    uint64_t height, width;
    uint32_t channels; /* 1, 3 or 4; 0: not an image */
    bool is_planar;    /* channels are the first dimension */
};
/* Interprets a shape as (steps, height, width, channels), (steps, channels, height, width) or (steps, height, width),
 * in this order. Arrays under 8 x 8, and one-channel floats under 32 x 32, are numbers (transformations, keypoints),
 * unless they end in three channels. */
struct weir_image_shape weir_image_shape(int rank, const uint64_t *dims, bool is_float);

/* Returns true for the shape of images of any type, including types that are not read. */
bool weir_looks_like_pixels(const struct weir_array_shape *shape);

/* Return true for arrays that weir_builder_camera and weir_builder_depth accept. */
bool weir_looks_like_images(const struct weir_array_shape *shape);
bool weir_looks_like_depth(const struct weir_array_shape *shape);

#endif
