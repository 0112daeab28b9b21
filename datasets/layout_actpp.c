/* act-plus-plus after compress_data.py: /observations/images/{camera} uint8 (T, max_len), each row a JPEG padded with
 * zeros; /compress_len (cameras, T), rows in the order of the sorted camera names, says how much of each row is used.
 * The original writes it as float32. Files without it are read too: a JPEG ends by itself. */
#include "datasets/dataset_ops.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define IMAGES  "/observations/images"
#define LENGTHS "/compress_len"

/* Rows of bytes instead of images: any camera of rank 2 makes the file one of these. */
static bool detect(struct weir_h5 *h5)
{
    if (weir_h5_has(h5, LENGTHS))
        return true;
    if (!weir_h5_has(h5, IMAGES))
        return false;
    char(*names)[64];
    int n;
    if (weir_h5_list(h5, IMAGES, &names, &n, NULL) < 0)
        return false;
    bool found = false;
    for (int i = 0; i < n && !found; i++) {
        char key[128];
        struct weir_h5_shape shape;
        snprintf(key, sizeof key, IMAGES "/%s", names[i]);
        found = weir_h5_shape(h5, key, &shape, NULL) == 0 && shape.rank == 2 && shape.class == WEIR_H5_INTEGER &&
                shape.type_bytes == 1;
    }
    free(names);
    return found;
}

/* compress_len, (cameras, steps). Whether depth cameras have a row too depends on who wrote it. */
struct lengths {
    float *values;
    uint64_t rows, steps;
};

static int read_lengths(struct weir_h5 *h5, int cameras, int with_depth, uint64_t steps, struct lengths *lengths,
                        struct weir_err *err)
{
    *lengths = (struct lengths){0};
    if (!weir_h5_has(h5, LENGTHS))
        return 0;
    struct weir_h5_shape shape;
    int rc = weir_h5_read_floats(h5, LENGTHS, &lengths->values, &shape, err);
    if (rc < 0)
        return rc;
    lengths->rows = shape.dims[0];
    lengths->steps = shape.dims[1];
    bool fits = lengths->rows == (uint64_t)cameras || lengths->rows == (uint64_t)with_depth;
    if (shape.rank == 2 && fits && lengths->steps == steps)
        return 0;
    free(lengths->values);
    lengths->values = NULL;
    return weir_err_set(err, -EBADMSG, LENGTHS ": its shape is not (%d cameras, %llu steps)", cameras,
                        (unsigned long long)steps);
}

static int add_cameras(struct weir_h5 *h5, struct weir_episode_builder *builder, char (*names)[64], int n,
                       struct weir_err *err)
{
    struct lengths lengths;
    uint64_t steps = 0, row = 0;
    int cameras = 0;
    char key[128];
    for (int i = 0; i < n; i++) {
        struct weir_h5_shape shape;
        snprintf(key, sizeof key, IMAGES "/%s", names[i]);
        cameras += !weir_is_depth_name(names[i]);
        if (steps == 0 && !weir_is_depth_name(names[i]) && weir_h5_shape(h5, key, &shape, NULL) == 0)
            steps = shape.dims[0];
    }
    int rc = read_lengths(h5, cameras, n, steps, &lengths, err);
    for (int i = 0; i < n && rc == 0; i++) {
        snprintf(key, sizeof key, IMAGES "/%s", names[i]);
        bool depth = weir_is_depth_name(names[i]), has_row = !depth || lengths.rows == (uint64_t)n;
        rc = depth ? weir_builder_depth(builder, names[i], key, err) : weir_builder_camera(builder, names[i], key, err);
        if (rc == 0 && lengths.values && has_row)
            rc = weir_builder_lengths(builder, lengths.values + row * steps, steps, err);
        row += has_row;
    }
    free(lengths.values);
    return rc;
}

static int index_episode(struct weir_h5 *h5, struct weir_episode_builder *builder, struct weir_err *err)
{
    int rc = weir_builder_qpos(builder, "/observations/qpos", err);
    if (rc == 0)
        rc = weir_builder_actions(builder, "/action", err);
    if (rc < 0)
        return rc;
    char(*names)[64];
    int n;
    rc = weir_h5_list(h5, IMAGES, &names, &n, err);
    if (rc == 0)
        rc = add_cameras(h5, builder, names, n, err);
    free(names);
    return rc;
}

const struct weir_layout_ops weir_layout_actpp = {
    .name = "act-plus-plus",
    .summary = "act-plus-plus: JPEG rows padded with zeros, /compress_len",
    .detect = detect,
    .index = index_episode,
};
