/* act-plus-plus after compress_data.py: /observations/images/{camera} uint8 (T, max_len), each row a JPEG padded with
 * zeros; /compress_len (cameras, T), rows in the order of the sorted camera names, says how much of each row is used.
 * The original writes it as float32. Files without it are read too: a JPEG ends by itself. */
#include "datasets/dataset_ops.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* compress_len has a row for every camera; whether depth cameras have one too depends on who wrote it: *rows says. */
static int read_lengths(struct weir_h5 *h5, const int counts[2], int steps, float **lengths, int *rows,
                        struct weir_err *err)
{
    *lengths = NULL;
    if (!weir_h5_has(h5, LENGTHS))
        return 0;
    struct weir_h5_shape shape;
    int rc = weir_h5_read_floats(h5, LENGTHS, lengths, &shape, err);
    if (rc < 0)
        return rc;
    for (int i = 0; i < 2; i++) {
        *rows = counts[i];
        if (shape.rank == 2 && shape.dims[0] == (uint64_t)counts[i] && shape.dims[1] == (uint64_t)steps)
            return 0;
    }
    free(*lengths);
    *lengths = NULL;
    return weir_err_set(err, -EBADMSG, LENGTHS ": its shape is not (%d cameras, %d steps)", counts[0], steps);
}

static int add_cameras(struct weir_h5 *h5, struct weir_episode_builder *builder, char (*names)[64], int n,
                       struct weir_err *err)
{
    float *lengths;
    int steps = weir_builder_steps(builder), counts[2] = {0, n}, rows = 0, row = 0;
    for (int i = 0; i < n; i++)
        counts[0] += !weir_is_depth_name(names[i]);
    int rc = read_lengths(h5, counts, steps, &lengths, &rows, err);
    for (int i = 0; i < n && rc == 0; i++) {
        char key[128];
        if (weir_is_depth_name(names[i])) {
            row += rows == n;
            continue;
        }
        snprintf(key, sizeof key, IMAGES "/%s", names[i]);
        const float *of_row = lengths ? lengths + (size_t)row * (size_t)steps : NULL;
        rc = weir_builder_jpeg_camera(builder, names[i], key, of_row, err);
        row++;
    }
    free(lengths);
    return rc;
}

static int index_episode(struct weir_h5 *h5, struct weir_episode_builder *builder, struct weir_err *err)
{
    int rc = weir_builder_state(builder, "/observations/qpos", "/action", err);
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
