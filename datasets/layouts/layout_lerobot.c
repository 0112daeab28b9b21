/* LeRobot's features: observation.state (or state), action, and cameras, which are named by the last part of their key.
 */
#include "datasets/builder.h"
#include "datasets/dataset_ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ACTION "/action"
#define IMAGES "observation.images."

/* Returns the camera's name: "top" for observation.images.top. */
static const char *camera_name(const char *key)
{
    const char *dot = strrchr(key, '.');
    if (strncmp(key, IMAGES, strlen(IMAGES)) == 0)
        return key + strlen(IMAGES);
    return dot && dot[1] ? dot + 1 : key;
}

static bool is_taken(char (*names)[64], int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(camera_name(names[i]), name) == 0)
            return true;
    return false;
}

static int add_camera(struct weir_store *store, struct weir_episode_builder *builder, char (*names)[64], int i,
                      struct weir_err *err)
{
    char key[WEIR_STORE_PATH_MAX];
    struct weir_array_shape shape;
    snprintf(key, sizeof key, "/%s", names[i]);
    int rc = weir_store_shape(store, key, &shape, err);
    if (rc < 0 || shape.element != WEIR_ELEMENT_VLEN_BYTES)
        return rc;
    const char *name = camera_name(names[i]);
    name = is_taken(names, i, name) ? names[i] : name;
    return shape.type_bytes == 2 ? weir_builder_depth(builder, name, key, err)
                                 : weir_builder_camera(builder, name, key, err);
}

/* Datasets without a state have other numbers that begin with "observation.". */
static int add_observations(struct weir_store *store, struct weir_episode_builder *builder, char (*names)[64], int n,
                            struct weir_err *err)
{
    int rc = 0;
    for (int i = 0; i < n && rc == 0; i++) {
        char key[WEIR_STORE_PATH_MAX];
        struct weir_array_shape shape;
        snprintf(key, sizeof key, "/%s", names[i]);
        if (strncmp(names[i], "observation.", 12) != 0)
            continue;
        rc = weir_store_shape(store, key, &shape, err);
        if (rc == 0 && shape.rank <= 2 &&
            (shape.element == WEIR_ELEMENT_FLOAT || shape.element == WEIR_ELEMENT_INTEGER))
            rc = weir_builder_qpos(builder, key, err);
    }
    return rc;
}

/* Adds every feature of numbers, state and actions included. */
static int add_columns(struct weir_store *store, struct weir_episode_builder *builder, char (*names)[64], int n,
                       struct weir_err *err)
{
    int rc = 0;
    for (int i = 0; i < n && rc == 0; i++) {
        char key[WEIR_STORE_PATH_MAX];
        struct weir_array_shape shape;
        snprintf(key, sizeof key, "/%s", names[i]);
        rc = weir_store_shape(store, key, &shape, err);
        if (rc == 0 && (shape.element == WEIR_ELEMENT_FLOAT || shape.element == WEIR_ELEMENT_INTEGER))
            rc = weir_builder_column(builder, names[i], key, err);
    }
    return rc;
}

/* With all columns, batches have every feature by its name. Another feature stands in for a state or actions that the
 * dataset does not have under these names. */
static int add_stand_ins(struct weir_store *store, struct weir_episode_builder *builder, char (*names)[64], int n,
                         struct weir_err *err)
{
    int rc = 0;
    for (int i = 0; i < n && rc == 0 && (builder->qpos.n == 0 || builder->actions.n == 0); i++) {
        char key[WEIR_STORE_PATH_MAX];
        struct weir_array_shape shape;
        snprintf(key, sizeof key, "/%s", names[i]);
        rc = weir_store_shape(store, key, &shape, err);
        if (rc < 0 || shape.rank > 2 || (shape.element != WEIR_ELEMENT_FLOAT && shape.element != WEIR_ELEMENT_INTEGER))
            continue;
        if (builder->qpos.n == 0)
            rc = weir_builder_qpos(builder, key, err);
        if (rc == 0 && builder->actions.n == 0)
            rc = weir_builder_actions(builder, key, err);
    }
    return rc;
}

static int index_episode(struct weir_store *store, struct weir_episode_builder *builder, struct weir_err *err)
{
    char(*names)[64];
    int n, rc = weir_store_list(store, "/", &names, &n, err);
    if (rc < 0)
        return rc;
    const char *state = weir_store_has(store, "/observation.state") ? "/observation.state" : "/state";
    rc = weir_store_has(store, state) ? weir_builder_qpos(builder, state, err)
                                      : add_observations(store, builder, names, n, err);
    if (rc == 0 && weir_store_has(store, ACTION))
        rc = weir_builder_actions(builder, ACTION, err);
    for (int i = 0; i < n && rc == 0; i++)
        rc = add_camera(store, builder, names, i, err);
    if (rc == 0 && builder->config->columns)
        rc = add_columns(store, builder, names, n, err);
    if (rc == 0 && builder->config->columns)
        rc = add_stand_ins(store, builder, names, n, err);
    free(names);
    return rc;
}

const struct weir_layout_ops weir_layout_lerobot = {
    .name = "lerobot",
    .summary = "LeRobot's features: observation.state, action, and videos or images as cameras",
    .index = index_episode,
    .has_scalars = true,
};
