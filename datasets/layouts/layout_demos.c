/* Files with many episodes: /data/demo_k with `actions` and `obs`. robomimic (docs/datasets/overview in its
 * repository), LIBERO (create_dataset.py) and Isaac Lab (hdf5_dataset_file_handler.py) differ in their attributes, and
 * only Isaac Lab has nested groups. Arrays below obs that look like images are cameras. Arrays with one row of numbers
 * per step form the state, in name order. */
#include "datasets/builder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 8, JPEG_BYTES_MIN = 100 }; /* shorter rows of bytes are numbers, not images */

/* ---- episodes ---- */

static const char demos[] = "/data/demo_";

static bool has_demos(struct weir_store *store)
{
    char(*numbers)[64];
    int n;
    if (weir_layout_episodes(store, demos, &numbers, &n, NULL) < 0)
        return false;
    free(numbers);
    return n > 0;
}

static bool detect_robomimic(struct weir_store *store)
{
    return has_demos(store);
}

static bool detect_libero(struct weir_store *store)
{
    return (weir_store_has_attribute(store, "/data", "bddl_file_name") ||
            weir_store_has_attribute(store, "/data", "problem_info")) &&
           has_demos(store);
}

/* robomimic's `states` is a dataset, but Isaac Lab's is a group. */
static bool detect_isaaclab(struct weir_store *store)
{
    char(*numbers)[64];
    int n;
    if (weir_layout_episodes(store, demos, &numbers, &n, NULL) < 0)
        return false;
    bool found = false;
    if (n > 0) {
        char path[128];
        snprintf(path, sizeof path, "%s%s/initial_state", demos, numbers[0]);
        found = weir_store_is_group(store, path);
        snprintf(path, sizeof path, "%s%s/states", demos, numbers[0]);
        found = found || weir_store_is_group(store, path);
    }
    free(numbers);
    return found;
}

/* ---- observations ---- */

/* Number of groups above the key. */
static int depth_of(const char *key)
{
    int depth = 0;
    for (; *key; key++)
        depth += *key == '/';
    return depth;
}

/* Adds a member of obs or of a group below it. For example, "obs/policy/front_rgb" becomes the camera
 * "policy/front_rgb". */
static int add_member(struct weir_episode_builder *builder, const char *last, const char *key, struct weir_err *err)
{
    struct weir_array_shape shape;
    if (weir_store_is_group(builder->store, key))
        return depth_of(key) <= DEPTH_MAX
                   ? weir_builder_members(builder, key, add_member, err)
                   : weir_err_set(err, -ELOOP, "%s: groups are nested more than %d levels deep", key, DEPTH_MAX);
    int rc = weir_store_shape(builder->store, key, &shape, err);
    if (rc < 0)
        return rc;
    const char *name = key + strlen("obs/");
    bool numbers = shape.rank == 2 && (shape.element == WEIR_ELEMENT_FLOAT || shape.element == WEIR_ELEMENT_INTEGER) &&
                   !(shape.type_bytes == 1 && shape.dims[1] >= JPEG_BYTES_MIN);
    if (numbers)
        return weir_builder_qpos(builder, key, err);
    if (weir_looks_like_depth(&shape) && (strstr(last, "depth") || !weir_looks_like_images(&shape)))
        return weir_builder_depth(builder, name, key, err);
    if (weir_looks_like_images(&shape))
        return weir_builder_camera(builder, name, key, err);
    return weir_looks_like_pixels(&shape) ? weir_builder_unread(builder, name, key, &shape, err) : 0;
}

static int index_demo(struct weir_store *store, struct weir_episode_builder *builder, struct weir_err *err)
{
    int rc = 0;
    if (weir_store_is_false(store, "/", "success"))
        rc = weir_episode_leave_out(builder->episode, err,
                                    "attribute success is false, but the demo is loaded like the others");
    if (rc < 0 || weir_store_is_group(store, "obs"))
        return rc < 0 ? rc : weir_builder_members(builder, "obs", add_member, err);
    return builder->config->qpos_keys
               ? 0
               : weir_err_set(err, -EBADMSG,
                              "has no group obs, as if only simulator states were recorded; add observations with "
                              "robomimic's dataset_states_to_obs.py, or name a state with --qpos-keys");
}

const struct weir_layout_ops weir_layout_robomimic = {
    .name = "robomimic",
    .summary = "robomimic: one file with /data/demo_k, images and state in obs",
    .detect = detect_robomimic,
    .episodes = demos,
    .actions = "actions",
    .index = index_demo,
};

const struct weir_layout_ops weir_layout_libero = {
    .name = "libero",
    .summary = "LIBERO: like robomimic, with the task's attributes at /data",
    .detect = detect_libero,
    .episodes = demos,
    .actions = "actions",
    .index = index_demo,
};

const struct weir_layout_ops weir_layout_isaaclab = {
    .name = "isaaclab",
    .summary = "Isaac Lab: like robomimic, but with groups in obs, and compressed",
    .detect = detect_isaaclab,
    .episodes = demos,
    .actions = "actions",
    .index = index_demo,
};

/* ---- unknown layouts ---- */

const struct weir_layout_ops weir_layout_custom = {
    .name = "custom",
    .summary = "any file whose arrays --qpos-keys, --action-keys and --image-keys name",
};

const struct weir_layout_ops weir_layout_custom_demos = {
    .name = "custom-demos",
    .summary = "any file with /data/demo_k, or only groups like /traj_k: keys relative to each",
    .episodes = demos,
};
