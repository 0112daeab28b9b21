/* RLDS, as tensorflow_datasets writes it: the steps of an episode flattened, "steps/observation/image_0" and so on. */
#include "datasets/builder.h"
#include "datasets/dataset_ops.h"

#include <stdio.h>
#include <stdlib.h>

#define OBSERVATION "/steps/observation"

enum { PIXELS_MIN = 32 * 32 }; /* so many integers a step are an image that is not encoded */

/* The first of these that is there; with --qpos-keys none of them counts. */
static int add_state(struct weir_episode_builder *builder, struct weir_err *err)
{
    static const char *const keys[] = {OBSERVATION "/state", OBSERVATION "/proprio", OBSERVATION "/joint_position"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (builder->store->has(builder->opened, keys[i]))
            return weir_builder_qpos(builder, keys[i], err);
    return 0;
}

static int add_cameras(struct weir_episode_builder *builder, struct weir_err *err)
{
    char(*names)[64];
    int n, rc = builder->store->list(builder->opened, OBSERVATION, &names, &n, err);
    for (int i = 0; rc == 0 && i < n; i++) {
        char key[WEIR_H5_PATH_MAX];
        struct weir_h5_shape shape;
        snprintf(key, sizeof key, OBSERVATION "/%s", names[i]);
        if (builder->store->shape(builder->opened, key, &shape, NULL) < 0)
            continue; /* numbers that are no rows */
        bool images = shape.class == WEIR_H5_VLEN_BYTES;
        if (images && shape.rank == 1)
            rc = weir_is_depth_name(names[i]) ? weir_builder_depth(builder, names[i], key, err)
                                              : weir_builder_camera(builder, names[i], key, err);
        else if (images || (shape.class == WEIR_H5_INTEGER && shape.dims[1] >= PIXELS_MIN))
            rc = weir_builder_unread(builder, names[i], key, &shape, err);
    }
    free(names);
    return rc;
}

static int index_episode(struct weir_h5 *h5, struct weir_episode_builder *builder, struct weir_err *err)
{
    (void)h5;
    int rc = add_state(builder, err);
    if (rc == 0 && builder->store->has(builder->opened, "/steps/action"))
        rc = weir_builder_actions(builder, "/steps/action", err);
    return rc < 0 ? rc : add_cameras(builder, err);
}

const struct weir_layout_ops weir_layout_rlds = {
    .name = "rlds",
    .summary = "RLDS in TFRecord files: /steps/observation/image_*, /steps/observation/state, /steps/action",
    .index = index_episode,
};
