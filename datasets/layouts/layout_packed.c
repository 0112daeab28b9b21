/* What weir convert --to packed writes: every camera under /images or /depth, state in /qpos and /action. */
#include "datasets/builder.h"
#include "datasets/dataset_ops.h"

#include <stdio.h>
#include <stdlib.h>

/* The file says what is depth, whatever the cameras are called. */
static int add_group(struct weir_episode_builder *builder, const char *group, bool depth, struct weir_err *err)
{
    char(*names)[64];
    int n, rc = builder->store->list(builder->opened, group, &names, &n, err);
    for (int i = 0; rc == 0 && i < n; i++) {
        char key[WEIR_H5_PATH_MAX];
        snprintf(key, sizeof key, "%s/%s", group, names[i]);
        rc = depth ? weir_builder_depth(builder, names[i], key, err) : weir_builder_camera(builder, names[i], key, err);
    }
    free(names);
    return rc;
}

static int index_episode(struct weir_h5 *h5, struct weir_episode_builder *builder, struct weir_err *err)
{
    (void)h5;
    int rc = weir_builder_qpos(builder, "/qpos", err);
    if (rc == 0)
        rc = weir_builder_actions(builder, "/action", err);
    if (rc == 0)
        rc = add_group(builder, "/images", false, err);
    return rc < 0 ? rc : add_group(builder, "/depth", true, err);
}

const struct weir_layout_ops weir_layout_packed = {
    .name = "packed",
    .summary = "packed files: /images/*, /depth/*, /qpos, /action",
    .index = index_episode,
};
