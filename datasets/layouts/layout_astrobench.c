/* AstroBench (astrobench_dual_arm): /observations/rgb_{camera} (T,) of variable-length uint8, each a JPEG;
 * /observations/depth_{camera}, stored the same way with 16-bit PNGs; /observations/joint_pos and
 * /action/joint_positions (T, D) float. */
#include "datasets/dataset_ops.h"

#include <stdlib.h>
#include <string.h>

#define STATE   "/observations/joint_pos"
#define ACTIONS "/action/joint_positions"

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
    return found || (weir_store_has(store, STATE) && weir_store_has(store, ACTIONS));
}

static int add_camera(struct weir_episode_builder *builder, const char *name, const char *key, struct weir_err *err)
{
    if (is_camera(name))
        return weir_builder_camera(builder, name, key, err);
    return weir_is_depth_name(name) ? weir_builder_depth(builder, name, key, err) : 0;
}

static int index_episode(struct weir_store *store, struct weir_episode_builder *builder, struct weir_err *err)
{
    (void)store;
    return weir_builder_members(builder, "/observations", add_camera, err);
}

const struct weir_layout_ops weir_layout_astrobench = {
    .name = "astrobench",
    .summary = "AstroBench: variable-length JPEGs in /observations/rgb_*",
    .detect = detect,
    .state = STATE,
    .actions = ACTIONS,
    .index = index_episode,
};
