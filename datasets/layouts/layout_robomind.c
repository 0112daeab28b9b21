/* RoboMIND (trajectory.hdf5): /observations/rgb_images/{camera} and depth_images/{camera} (T,) of variable-length
 * uint8. /puppet/joint_position* is the state and /master/joint_position* is the action, both joined in name order
 * (two-armed robots have *_left and *_right). */
#include "datasets/dataset_ops.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IMAGES "/observations/rgb_images"
#define DEPTH  "/observations/depth_images"

static bool detect(struct weir_store *store)
{
    return weir_store_has(store, IMAGES);
}

typedef int add_state(struct weir_episode_builder *builder, const char *key, struct weir_err *err);

static int add_joints(struct weir_store *store, struct weir_episode_builder *builder, const char *arm, add_state *add,
                      struct weir_err *err)
{
    static const char prefix[] = "joint_position";
    char(*names)[64] = NULL;
    int n = 0, found = 0;
    int rc = weir_store_is_group(store, arm) ? weir_store_list(store, arm, &names, &n, err) : 0;
    for (int i = 0; i < n && rc == 0; i++) {
        char key[128];
        if (strncmp(names[i], prefix, sizeof prefix - 1) != 0)
            continue;
        snprintf(key, sizeof key, "%s/%s", arm, names[i]);
        rc = add(builder, key, err);
        found++;
    }
    free(names);
    if (rc == 0 && found == 0)
        rc = add(builder, strcmp(arm, "/puppet") == 0 ? "/puppet/joint_position" : "/master/joint_position", err);
    return rc;
}

static int index_episode(struct weir_store *store, struct weir_episode_builder *builder, struct weir_err *err)
{
    int rc = add_joints(store, builder, "/puppet", weir_builder_qpos, err);
    return rc < 0 ? rc : add_joints(store, builder, "/master", weir_builder_actions, err);
}

const struct weir_layout_ops weir_layout_robomind = {
    .name = "robomind",
    .summary = "RoboMIND: variable-length images in /observations/rgb_images, /puppet and /master joints",
    .detect = detect,
    .index = index_episode,
    .images = IMAGES,
    .depth = DEPTH,
};
