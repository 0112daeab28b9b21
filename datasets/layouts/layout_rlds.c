/* RLDS, as written by tensorflow_datasets. The steps of an episode are flattened into features such as
 * "steps/observation/image_0". */
#include "datasets/builder.h"

#define OBSERVATION "/steps/observation"

enum { PIXELS_MIN = 32 * 32 }; /* features with at least this many integers per step are raw images */

/* Adds the first of these features that exists, unless --qpos-keys replaces the state. */
static int add_state(struct weir_store *store, struct weir_episode_builder *builder, struct weir_err *err)
{
    static const char *const keys[] = {OBSERVATION "/state", OBSERVATION "/proprio", OBSERVATION "/joint_position"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (weir_store_has(store, keys[i]))
            return weir_builder_qpos(builder, keys[i], err);
    return 0;
}

static int add_camera(struct weir_episode_builder *builder, const char *name, const char *key, struct weir_err *err)
{
    struct weir_array_shape shape;
    if (weir_store_shape(builder->store, key, &shape, NULL) < 0)
        return 0; /* these numbers do not form rows */
    bool images = shape.element == WEIR_ELEMENT_VLEN_BYTES;
    if (images && shape.rank == 1)
        return weir_is_depth_name(name) ? weir_builder_depth(builder, name, key, err)
                                        : weir_builder_camera(builder, name, key, err);
    bool pixels = images || weir_looks_like_pixels(&shape) ||
                  (shape.element == WEIR_ELEMENT_INTEGER && shape.dims[1] >= PIXELS_MIN);
    return pixels ? weir_builder_unread(builder, name, key, &shape, err) : 0;
}

static int index_episode(struct weir_store *store, struct weir_episode_builder *builder, struct weir_err *err)
{
    int rc = add_state(store, builder, err);
    if (rc == 0 && weir_store_has(store, "/steps/action"))
        rc = weir_builder_actions(builder, "/steps/action", err);
    return rc < 0 ? rc : weir_builder_members(builder, OBSERVATION, add_camera, err);
}

const struct weir_layout_ops weir_layout_rlds = {
    .name = "rlds",
    .summary = "RLDS in TFRecord files: /steps/observation/image_*, /steps/observation/state, /steps/action",
    .index = index_episode,
    .ignores_exif = true,
};
