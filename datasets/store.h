/* store.h: one episode as layouts see it, whatever the file format is: arrays by path, their shapes and numbers, and
 * the locations of image rows. Each format implements struct weir_store_ops in its folder. Layouts call the functions
 * below and depend on no format.
 *
 * Stores locate frames but do not read them: rows() fills a struct weir_frame_map, usually with one extent per frame.
 * Later reads use io/ and no store.
 * - An extent lies in a source, which is identified by a number. It is the number of one of the dataset's files or, for
 * a folder, the number of one of its parts (weir_dataset_read_file). No path is opened here, so an object behind HTTP
 * or S3 would be another kind of source.
 * - Numbers are read as whole arrays. Columns of a table (Parquet) would need no other function.
 * - A video sample depends on the sync sample before it. The number of the sync sample would belong in struct
 * weir_frame_extent, next to offset and length, because stores fill extents, and only fetching and decoding use them.
 *
 * A store is used by one thread at a time. Paths start at the episode's root. */
#ifndef WEIR_DATASETS_STORE_H
#define WEIR_DATASETS_STORE_H

#include "base/numbers.h"
#include "datasets/chunks/chunk_grid.h"
#include "weir/base.h"
#include "weir/frames.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_episode;
struct weir_frame_map;

enum { WEIR_STORE_PATH_MAX = 512 };

enum weir_element {
    WEIR_ELEMENT_INTEGER,
    WEIR_ELEMENT_FLOAT,
    WEIR_ELEMENT_FIXED_BYTES, /* strings of fixed length, not interpreted */
    WEIR_ELEMENT_VLEN_BYTES,
    WEIR_ELEMENT_VLEN_STRING,
    WEIR_ELEMENT_OTHER
};

struct weir_array_shape {
    int rank; /* at most WEIR_GRID_RANK_MAX; stores refuse a higher rank */
    uint64_t dims[WEIR_GRID_RANK_MAX];
    enum weir_element element;
    size_t type_bytes;
    bool is_big_endian; /* for integers of more than one byte */
    bool has_fill;      /* set by read_numbers if some elements were never written and hold the fill value */
    bool is_signed;     /* for integers */
    bool is_bool;       /* for integers of one byte */
    bool is_flattened;  /* the last of two dimensions is the product of several */
};

/* The first member of every format's store. */
struct weir_store {
    const struct weir_store_ops *ops;
    bool is_first; /* the next episode is the first of its file, whose unused arrays are listed */
};

struct weir_store_ops {
    bool (*has)(struct weir_store *store, const char *path);
    bool (*is_group)(struct weir_store *store, const char *path);
    /* Lists the names in a group. Returns -ENAMETOOLONG if a name is longer than WEIR_NAME_MAX - 1 bytes. The caller
     * frees *names. */
    int (*list)(struct weir_store *store, const char *group, char (**names)[64], int *n, struct weir_err *err);
    int (*shape)(struct weir_store *store, const char *path, struct weir_array_shape *shape, struct weir_err *err);
    /* Reads a whole numeric array of at most 1 GiB in its stored type, except that float16 becomes float32, and types
     * over 8 bytes become float64. The caller frees *values. */
    int (*read_numbers)(struct weir_store *store, const char *path, enum weir_number_type *type, void **values,
                        struct weir_array_shape *shape, struct weir_err *err);
    /* Locates the rows of images and fills map. The HDF5 store leaves map empty and locates the rows after the layout
     * has finished. The caller refuses shapes that are not images. */
    int (*rows)(struct weir_store *store, const char *path, struct weir_frame_map *map, struct weir_array_shape *shape,
                struct weir_err *err);
    /* Returns true if the object at path has this attribute. NULL: the format has no attributes. */
    bool (*has_attribute)(struct weir_store *store, const char *path, const char *name);
    /* Returns true if the object at path has this attribute and its value is the boolean false. NULL: the format has no
     * attributes. */
    bool (*is_false)(struct weir_store *store, const char *path, const char *name);
    /* Begins or ends a search of all groups, whose failures do not count. Returns false if there must be no search,
     * because an earlier failure would be lost. NULL: failures have no effect on later calls. */
    bool (*search)(struct weir_store *store, bool begins);
    /* Adds the episode's metadata strings (weir_episode_add_text), and sets the episode's colour order if they record
     * it. */
    int (*texts)(struct weir_store *store, struct weir_episode *episode, struct weir_err *err);
    const char *images; /* for messages: which arrays can be images */
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

static inline bool weir_store_is_false(struct weir_store *store, const char *path, const char *name)
{
    return store->ops->is_false && store->ops->is_false(store, path, name);
}

/* Reads a whole numeric array as floats. The caller frees *values, which is NULL after an error. */
int weir_store_read_floats(struct weir_store *store, const char *path, float **values, struct weir_array_shape *shape,
                           struct weir_err *err);

/* ---- shapes of images ---- */

/* The image in one row of an array. */
struct weir_image_shape {
    uint64_t height, width;
    uint32_t channels; /* 1, 3 or 4; 0 = not an image */
    bool is_planar;    /* channels are the first dimension of the image */
};
/* Interprets a shape as (steps, height, width, channels), (steps, channels, height, width) or (steps, height, width),
 * and uses the first that fits. Arrays under 8 x 8, and one-channel floats under 32 x 32, count as numbers
 * (transformations, keypoints), unless their last dimension is 3. */
struct weir_image_shape weir_image_shape(int rank, const uint64_t *dims, bool is_float);

/* Returns true if the shape is that of images, even if the type is not supported. */
bool weir_looks_like_pixels(const struct weir_array_shape *shape);

/* Return true for arrays that weir_builder_camera and weir_builder_depth accept. */
bool weir_looks_like_images(const struct weir_array_shape *shape);
bool weir_looks_like_depth(const struct weir_array_shape *shape);

/* Return the shape of so many frames of a kind, and of so many rows of numbers. */
struct weir_array_shape weir_shape_of_frames(enum weir_frame_kind kind, int width, int height, uint64_t n);
struct weir_array_shape weir_shape_of_numbers(enum weir_number_type type, int dim, uint64_t n);

#endif
