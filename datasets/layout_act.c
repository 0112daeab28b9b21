/* ACT / ALOHA recorders (act record_sim_episodes.py, aloha record_episodes.py): /observations/images/{camera} uint8
 * (T, H, W, 3), /observations/qpos and /action (T, D) float. */
#include "datasets/dataset_ops.h"

#include <stdio.h>
#include <stdlib.h>

#define IMAGES "/observations/images"

static bool detect(struct weir_h5 *h5)
{
    return weir_h5_has(h5, IMAGES);
}

static int add_cameras(struct weir_h5 *h5, struct weir_episode_builder *builder, struct weir_err *err)
{
    char(*names)[64];
    int n;
    int rc = weir_h5_list(h5, IMAGES, &names, &n, err);
    for (int i = 0; i < n && rc == 0; i++) {
        char key[128];
        if (weir_is_depth_name(names[i]))
            continue;
        snprintf(key, sizeof key, IMAGES "/%s", names[i]);
        rc = weir_builder_raw_camera(builder, names[i], key, err);
    }
    free(names);
    return rc;
}

static int index_episode(struct weir_h5 *h5, struct weir_episode_builder *builder, struct weir_err *err)
{
    int rc = weir_builder_state(builder, "/observations/qpos", "/action", err);
    return rc < 0 ? rc : add_cameras(h5, builder, err);
}

const struct weir_layout_ops weir_layout_act = {
    .name = "act",
    .summary = "ACT / ALOHA: raw frames in /observations/images",
    .detect = detect,
    .index = index_episode,
};
