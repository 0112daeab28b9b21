/* RoboTwin 2 (envs/utils/pkl2hdf5.py): /observation/{camera}/rgb (T,) is a dataset of fixed-length strings. They
 * contain JPEGs, with zero bytes inside and after the JPEGs. /joint_action/vector (T, D) float64 is the state, and its
 * next row is the action. The recorder passes RGB to cv2.imencode, which swaps red and blue; since 2026 it stores true
 * colours with the comment XPL-RGB1. */
#include "datasets/builder.h"

#include <stdio.h>

static bool detect(struct weir_store *store)
{
    return weir_store_is_group(store, "/observation") && weir_store_has(store, "/joint_action");
}

static int add_camera(struct weir_episode_builder *builder, const char *camera, const char *group, struct weir_err *err)
{
    char key[WEIR_STORE_PATH_MAX + 8], name[80];
    int rc = 0;
    snprintf(key, sizeof key, "%s/rgb", group);
    if (weir_store_has(builder->store, key))
        rc = weir_builder_camera(builder, camera, key, err);
    snprintf(key, sizeof key, "%s/depth", group);
    snprintf(name, sizeof name, "depth_%.56s", camera);
    return rc == 0 && weir_store_has(builder->store, key) ? weir_builder_depth(builder, name, key, err) : rc;
}

static int index_episode(struct weir_store *store, struct weir_episode_builder *builder, struct weir_err *err)
{
    (void)store;
    return weir_builder_members(builder, "/observation", add_camera, err);
}

const struct weir_layout_ops weir_layout_robotwin = {
    .name = "robotwin",
    .summary = "RoboTwin 2: JPEGs in fixed-length strings, /observation/{camera}/rgb, with the next state as action",
    .detect = detect,
    .state = "/joint_action/vector",
    .actions = "/joint_action/vector",
    .next_actions = true,
    .index = index_episode,
    .is_swapped = true,
};
