/* Replay buffers of diffusion_policy and UMI: /data/{camera} (T, H, W, 3), /data/action, and the other numeric arrays
 * of /data as state. UMI stores no actions, so as in its own loader, the actions are the poses and widths of the same
 * step. */
#include "base/text.h"
#include "datasets/builder.h"

#include <string.h>

#define ACTION "/data/action"

enum { FLATTENED_MAX = 256 }; /* keypoints have fewer numbers per step, and point clouds have more */

static bool is_umi_action(const char *name)
{
    return strncmp(name, "robot", 5) == 0 &&
           (weir_text_ends(name, "_eef_pos") || weir_text_ends(name, "_eef_rot_axis_angle") ||
            weir_text_ends(name, "_gripper_width"));
}

/* Rows of floats are state, but neither single numbers per step (timestamp, stage) nor point clouds are. */
static bool is_state(const char *name, const struct weir_array_shape *shape)
{
    bool named = strcmp(name, "state") == 0 || strcmp(name, "qpos") == 0;
    return shape->rank == 2 && (named || !shape->is_flattened || shape->dims[1] <= FLATTENED_MAX) &&
           strncmp(name, "action", 6) != 0 &&
           (shape->element == WEIR_ELEMENT_FLOAT || (named && shape->element == WEIR_ELEMENT_INTEGER));
}

static int add(struct weir_episode_builder *builder, const char *name, const char *key, struct weir_err *err)
{
    struct weir_array_shape shape;
    int rc = weir_store_shape(builder->store, key, &shape, err);
    if (rc < 0)
        return rc;
    if (is_state(name, &shape)) {
        rc = weir_builder_qpos(builder, key, err);
        bool acts = rc == 0 && is_umi_action(name) && !weir_store_has(builder->store, ACTION);
        return acts ? weir_builder_actions(builder, key, err) : rc;
    }
    bool encoded = shape.element == WEIR_ELEMENT_VLEN_BYTES;
    if (encoded ? shape.type_bytes == 2 : weir_looks_like_depth(&shape) && shape.rank > 2)
        return weir_builder_depth(builder, name, key, err);
    if (encoded || (weir_looks_like_images(&shape) && shape.rank == 4))
        return weir_builder_camera(builder, name, key, err);
    return weir_looks_like_pixels(&shape) ? weir_builder_unread(builder, name, key, &shape, err) : 0;
}

static int index_episode(struct weir_store *store, struct weir_episode_builder *builder, struct weir_err *err)
{
    int rc = weir_builder_members(builder, "/data", add, err);
    return rc == 0 && weir_store_has(store, ACTION) ? weir_builder_actions(builder, ACTION, err) : rc;
}

const struct weir_layout_ops weir_layout_diffusion_policy = {
    .name = "diffusion-policy",
    .summary =
        "Zarr replay buffers of diffusion_policy and UMI: /data/{camera}, /data/action, and the other numeric arrays "
        "in /data as state",
    .index = index_episode,
    .ignores_exif = true,
};
