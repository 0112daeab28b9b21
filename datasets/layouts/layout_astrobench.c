/* AstroBench (astrobench_dual_arm): /observations/rgb_{camera} (T,) of variable-length uint8, each a JPEG;
 * /observations/depth_{camera}, stored the same way with 16-bit PNGs; /observations/joint_pos and
 * /action/joint_positions (T, D) float. */
#include "datasets/dataset_ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_camera(const char *name)
{
    return strncmp(name, "rgb_", 4) == 0;
}

static bool detect(struct weir_store *store)
{
    char(*names)[64];
    int n;
    if (!weir_store_has(store, "/observations") || weir_store_list(store, "/observations", &names, &n, NULL) < 0)
        return false;
    bool found = false;
    for (int i = 0; i < n && !found; i++)
        found = is_camera(names[i]);
    free(names);
    return found ||
           (weir_store_has(store, "/observations/joint_pos") && weir_store_has(store, "/action/joint_positions"));
}

static int index_episode(struct weir_store *store, struct weir_episode_builder *builder, struct weir_err *err)
{
    int rc = weir_builder_qpos(builder, "/observations/joint_pos", err);
    if (rc == 0)
        rc = weir_builder_actions(builder, "/action/joint_positions", err);
    if (rc < 0)
        return rc;
    char(*names)[64];
    int n;
    rc = weir_store_list(store, "/observations", &names, &n, err);
    for (int i = 0; i < n && rc == 0; i++) {
        char key[128];
        snprintf(key, sizeof key, "/observations/%s", names[i]);
        if (is_camera(names[i]))
            rc = weir_builder_camera(builder, names[i], key, err);
        else if (weir_is_depth_name(names[i]))
            rc = weir_builder_depth(builder, names[i], key, err);
    }
    free(names);
    return rc;
}

const struct weir_layout_ops weir_layout_astrobench = {
    .name = "astrobench",
    .summary = "AstroBench: variable-length JPEGs in /observations/rgb_*",
    .detect = detect,
    .index = index_episode,
};
