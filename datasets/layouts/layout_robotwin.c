/* RoboTwin 2 (envs/utils/pkl2hdf5.py): /observation/{camera}/rgb (T,) is a dataset of fixed-length strings. They
 * contain JPEGs, with zero bytes inside and after the JPEGs. /joint_action/vector (T, D) float64 is the state, and its
 * next row is the action. The recorder passes RGB to cv2.imencode, which swaps red and blue; since 2026 it stores true
 * colours with the comment XPL-RGB1. */
#include "datasets/dataset_ops.h"

#include <stdio.h>
#include <stdlib.h>

static bool detect(struct weir_store *store)
{
    return weir_store_is_group(store, "/observation") && weir_store_has(store, "/joint_action");
}

static int add_cameras(struct weir_store *store, struct weir_episode_builder *builder, struct weir_err *err)
{
    char(*names)[64];
    int n;
    int rc = weir_store_list(store, "/observation", &names, &n, err);
    for (int i = 0; i < n && rc == 0; i++) {
        char key[128], name[80];
        snprintf(key, sizeof key, "/observation/%s/rgb", names[i]);
        if (weir_store_has(store, key))
            rc = weir_builder_camera(builder, names[i], key, err);
        snprintf(key, sizeof key, "/observation/%s/depth", names[i]);
        snprintf(name, sizeof name, "depth_%.56s", names[i]);
        if (rc == 0 && weir_store_has(store, key))
            rc = weir_builder_depth(builder, name, key, err);
    }
    free(names);
    return rc;
}

static int index_episode(struct weir_store *store, struct weir_episode_builder *builder, struct weir_err *err)
{
    int rc = weir_builder_qpos(builder, "/joint_action/vector", err);
    if (rc == 0)
        rc = weir_builder_actions_next(builder, "/joint_action/vector", err);
    return rc < 0 ? rc : add_cameras(store, builder, err);
}

const struct weir_layout_ops weir_layout_robotwin = {
    .name = "robotwin",
    .summary = "RoboTwin 2: JPEGs in fixed-length strings, /observation/{camera}/rgb, with the next state as action",
    .detect = detect,
    .index = index_episode,
    .is_swapped = true,
};
