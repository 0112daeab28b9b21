/* Copies that `weir convert` writes to LMDB and packed files, and LMDB files with the same keys: state in /qpos,
 * actions in /action. Packed files list cameras in /images and /depth. LMDB files list all cameras at the root, and
 * depth cameras again in /depth. */
#include "datasets/builder.h"

#include <stdio.h>

/* The file records which cameras are depth cameras, so their names do not matter. */
static bool is_depth(struct weir_store *store, const char *name)
{
    char path[WEIR_STORE_PATH_MAX];
    snprintf(path, sizeof path, "/depth/%s", name);
    return weir_store_has(store, path);
}

static int add_camera(struct weir_episode_builder *builder, const char *name, const char *key, struct weir_err *err)
{
    return is_depth(builder->store, name) ? weir_builder_depth(builder, name, key, err)
                                          : weir_builder_camera(builder, name, key, err);
}

static int index_episode(struct weir_store *store, struct weir_episode_builder *builder, struct weir_err *err)
{
    bool has_groups = weir_store_is_group(store, "/images");
    int rc = weir_builder_members(builder, has_groups ? "/images" : "", add_camera, err);
    return rc < 0 || !has_groups ? rc : weir_builder_members(builder, "/depth", add_camera, err);
}

const struct weir_layout_ops weir_layout_weir = {
    .name = "weir",
    .summary = "copies in LMDB or packed files: qpos, action and cameras by name",
    .state = "/qpos",
    .actions = "/action",
    .index = index_episode,
};
