/* Copies that `weir convert` writes to LMDB and packed files, and LMDB files with the same keys: state in /qpos,
 * actions in /action. Packed files list cameras in /images and /depth. LMDB files list all cameras at the root, and
 * depth cameras again in /depth. */
#include "datasets/dataset_ops.h"

#include <stdio.h>
#include <stdlib.h>

/* The file records which cameras are depth cameras, so their names do not matter. */
static bool is_depth(struct weir_store *store, const char *name)
{
    char path[WEIR_STORE_PATH_MAX];
    snprintf(path, sizeof path, "/depth/%s", name);
    return weir_store_has(store, path);
}

static int add_cameras(struct weir_store *store, struct weir_episode_builder *builder, const char *group,
                       struct weir_err *err)
{
    char(*names)[64];
    int n, rc = weir_store_list(store, *group ? group : "/", &names, &n, err);
    for (int i = 0; rc == 0 && i < n; i++) {
        char key[WEIR_STORE_PATH_MAX];
        snprintf(key, sizeof key, "%s%s%s", group, *group ? "/" : "", names[i]);
        rc = is_depth(store, names[i]) ? weir_builder_depth(builder, names[i], key, err)
                                       : weir_builder_camera(builder, names[i], key, err);
    }
    free(names);
    return rc;
}

static int index_episode(struct weir_store *store, struct weir_episode_builder *builder, struct weir_err *err)
{
    bool has_groups = weir_store_is_group(store, "/images");
    int rc = weir_builder_qpos(builder, "/qpos", err);
    if (rc == 0)
        rc = weir_builder_actions(builder, "/action", err);
    if (rc == 0)
        rc = add_cameras(store, builder, has_groups ? "/images" : "", err);
    return rc < 0 || !has_groups ? rc : add_cameras(store, builder, "/depth", err);
}

const struct weir_layout_ops weir_layout_weir = {
    .name = "weir",
    .summary = "copies in LMDB or packed files: qpos, action and cameras by name",
    .index = index_episode,
};
