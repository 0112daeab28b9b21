/* LMDB files by the keys of docs/formats.md: "e00000007/qpos", "e00000007/00000012/top" and so on. */
#include "datasets/builder.h"
#include "datasets/dataset_ops.h"

#include <stdio.h>
#include <stdlib.h>

/* Whether a camera is one of depth is in the file's metadata, and not in how its frames are stored. */
static int add_camera(struct weir_episode_builder *builder, const char *name, struct weir_err *err)
{
    char depth[WEIR_NAME_MAX + 8];
    snprintf(depth, sizeof depth, "/depth/%s", name);
    return builder->store->has(builder->opened, depth) ? weir_builder_depth(builder, name, name, err)
                                                       : weir_builder_camera(builder, name, name, err);
}

static int index_episode(struct weir_h5 *h5, struct weir_episode_builder *builder, struct weir_err *err)
{
    (void)h5;
    char(*names)[64];
    int n, rc = weir_builder_qpos(builder, "/qpos", err);
    if (rc == 0)
        rc = weir_builder_actions(builder, "/action", err);
    if (rc == 0)
        rc = builder->store->list(builder->opened, "/", &names, &n, err);
    if (rc < 0)
        return rc;
    for (int i = 0; rc == 0 && i < n; i++)
        rc = add_camera(builder, names[i], err);
    free(names);
    return rc;
}

const struct weir_layout_ops weir_layout_lmdb = {
    .name = "lmdb",
    .summary = "LMDB, one key a frame: e########/########/CAMERA, e########/qpos, e########/action",
    .index = index_episode,
};
