/* act-plus-plus and Mobile ALOHA: /observations/images/{camera} uint8 (T, max_len), where each row is a JPEG padded
 * with zeros. /compress_len (cameras, T), mostly float32, contains the used length of each row. Its cameras are in the
 * order of the recorder's camera list, which the file does not contain, or in the order of the camera names if
 * compress_data.py wrote it. So it is only a hint: no image at step t is longer than the maximum of that column. The
 * JPEG itself determines where it ends. */
#include "datasets/dataset_ops.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define IMAGES  "/observations/images"
#define LENGTHS "/compress_len"

/* Detects rows of bytes instead of images. One camera of rank 2 is enough. */
static bool detect(struct weir_store *store)
{
    if (weir_store_has(store, LENGTHS))
        return true;
    if (!weir_store_has(store, IMAGES))
        return false;
    char(*names)[64];
    int n;
    if (weir_store_list(store, IMAGES, &names, &n, NULL) < 0)
        return false;
    bool found = false;
    for (int i = 0; i < n && !found; i++) {
        char key[128];
        struct weir_array_shape shape;
        snprintf(key, sizeof key, IMAGES "/%s", names[i]);
        found = weir_store_shape(store, key, &shape, NULL) == 0 && shape.rank == 2 &&
                shape.element == WEIR_ELEMENT_INTEGER && shape.type_bytes == 1;
    }
    free(names);
    return found;
}

/* The number of colour cameras, of all cameras, and of steps, and the length of the longest row. */
struct images {
    uint64_t colour, all, steps, row_bytes;
};

static struct images look_at(struct weir_store *store, char (*names)[64], int n)
{
    struct images images = {.all = (uint64_t)n};
    for (int i = 0; i < n; i++) {
        char key[128];
        struct weir_array_shape shape;
        snprintf(key, sizeof key, IMAGES "/%s", names[i]);
        if (weir_is_depth_name(names[i]))
            continue;
        images.colour++;
        if (weir_store_shape(store, key, &shape, NULL) < 0 || shape.rank != 2)
            continue;
        images.steps = images.steps ? images.steps : shape.dims[0];
        images.row_bytes = shape.dims[1] > images.row_bytes ? shape.dims[1] : images.row_bytes;
    }
    return images;
}

/* Sets *hint to the maximum of the plausible lengths at step t. Returns false if a value is not a length. */
static bool take_column(const float *values, uint64_t rows, const struct images *images, uint64_t t, uint32_t *hint)
{
    bool fine = true;
    for (uint64_t row = 0; row < rows; row++) {
        float bytes = values[row * images->steps + t];
        bool sane =
            bytes >= 0 && bytes < 0x1p31f && (double)bytes < (double)images->row_bytes + 1; /* 0 for a depth camera */
        uint32_t length = sane ? (uint32_t)ceilf(bytes) : 0;
        *hint = length > *hint ? length : *hint;
        fine &= sane;
    }
    return fine;
}

/* Reads compress_len as one hint per step. Returns 0 with NULL if the file has no compress_len. Irregularities are
 * recorded as notes. */
static int read_hints(struct weir_store *store, struct weir_episode_builder *builder, const struct images *images,
                      uint32_t **hints, struct weir_err *err)
{
    struct weir_array_shape shape;
    struct weir_err why = WEIR_ERR_NONE;
    float *values = NULL;
    *hints = NULL;
    if (!weir_store_has(store, LENGTHS) || images->steps == 0)
        return 0;
    int rc = weir_store_shape(store, LENGTHS, &shape, &why);
    if (rc == 0 && (shape.rank != 2 || (shape.dims[0] != images->colour && shape.dims[0] != images->all) ||
                    shape.dims[1] != images->steps)) {
        weir_builder_note(builder, WEIR_NOTE_LENGTHS_SHAPE);
        return 0;
    }
    rc = rc < 0 ? rc : weir_store_read_floats(store, LENGTHS, &values, &shape, &why);
    if (rc == 0)
        *hints = calloc(images->steps, sizeof **hints);
    if (rc == -ENOMEM || (rc == 0 && !*hints)) {
        free(values);
        return weir_err_set(err, -ENOMEM, LENGTHS ": out of memory");
    }
    if (rc < 0)
        weir_builder_note(builder, WEIR_NOTE_LENGTHS_UNREADABLE);
    for (uint64_t t = 0; t < images->steps && rc == 0; t++)
        if (!take_column(values, shape.dims[0], images, t, &(*hints)[t]))
            weir_builder_note(builder, WEIR_NOTE_LENGTHS_VALUES);
    free(values);
    return 0;
}

static int add_cameras(struct weir_store *store, struct weir_episode_builder *builder, char (*names)[64], int n,
                       struct weir_err *err)
{
    struct images images = look_at(store, names, n);
    uint32_t *hints;
    int rc = read_hints(store, builder, &images, &hints, err);
    for (int i = 0; i < n && rc == 0; i++) {
        char key[128];
        snprintf(key, sizeof key, IMAGES "/%s", names[i]);
        bool depth = weir_is_depth_name(names[i]);
        rc = depth ? weir_builder_depth(builder, names[i], key, err) : weir_builder_camera(builder, names[i], key, err);
        if (rc == 0 && hints && !depth)
            rc = weir_builder_hints(builder, hints, images.steps, err);
    }
    free(hints);
    return rc;
}

static int index_episode(struct weir_store *store, struct weir_episode_builder *builder, struct weir_err *err)
{
    char(*names)[64];
    int n;
    int rc = weir_store_list(store, IMAGES, &names, &n, err);
    if (rc == 0)
        rc = add_cameras(store, builder, names, n, err);
    free(names);
    return rc;
}

const struct weir_layout_ops weir_layout_actpp = {
    .name = "act-plus-plus",
    .summary = "act-plus-plus: JPEG rows padded with zeros, /compress_len",
    .detect = detect,
    .state = "/observations/qpos",
    .actions = "/action",
    .index = index_episode,
};
