/* Adds the datasets that the user names with --qpos-keys, --action-keys and --image-keys. */
#include "datasets/builder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Copies the next key of a list like "a,b" to text. Returns NULL at the end of the list, or if the key is empty or too
 * long. */
static const char *next_key(const char *list, char text[WEIR_STORE_PATH_MAX])
{
    size_t n = strcspn(list, ",");
    if (n == 0 || n >= WEIR_STORE_PATH_MAX)
        return NULL;
    memcpy(text, list, n);
    text[n] = '\0';
    return list + n + (list[n] == ',');
}

static int check_list(const char *option, const char *list, struct weir_err *err)
{
    char key[WEIR_STORE_PATH_MAX];
    for (const char *at = list; at && (at == list || *at);) {
        at = next_key(at, key);
        if (!at)
            return weir_err_set(err, -EINVAL,
                                "--%s \"%s\" contains a name that is empty or too long; write the names as a,b", option,
                                list);
    }
    return 0;
}

int weir_keys_check(const struct weir_dataset_config *config, struct weir_err *err)
{
    int rc = check_list("qpos-keys", config->qpos_keys, err);
    if (rc == 0)
        rc = check_list("action-keys", config->action_keys, err);
    return rc < 0 ? rc : check_list("image-keys", config->image_keys, err);
}

static int missing(const struct weir_episode_builder *builder, const char *option, const char *key,
                   struct weir_err *err)
{
    char full[WEIR_STORE_PATH_MAX];
    weir_builder_full_key(builder, key, full);
    return weir_err_set(err, -ENOENT, "%s: no such dataset, but --%s names it; %s", full, option,
                        builder->store->ops->lister);
}

/* Names a camera after its dataset. If the dataset is called "rgb", "image" or "depth", names the camera after the
 * dataset's group. */
static const char *camera_name(char *key, char name[WEIR_NAME_MAX])
{
    char *equals = strchr(key, '=');
    if (equals) {
        *equals = '\0';
        snprintf(name, WEIR_NAME_MAX, "%.*s", WEIR_NAME_MAX - 1, key);
        return equals + 1;
    }
    const char *last = strrchr(key, '/'), *from = last ? last + 1 : key;
    size_t n = strlen(from);
    if (last && last > key && (strcmp(from, "rgb") == 0 || strcmp(from, "image") == 0 || strcmp(from, "depth") == 0)) {
        const char *end = last;
        while (last > key && last[-1] != '/')
            last--;
        from = last;
        n = (size_t)(end - from);
    }
    snprintf(name, WEIR_NAME_MAX, "%.*s", (int)(n < WEIR_NAME_MAX ? n : WEIR_NAME_MAX - 1), from);
    return key;
}

static int user_state(struct weir_episode_builder *builder, const char *option, const char *list, bool actions,
                      struct weir_err *err)
{
    int rc = 0;
    char key[WEIR_STORE_PATH_MAX];
    for (const char *at = list; at && rc == 0 && (at == list || *at);) {
        at = next_key(at, key);
        if (!weir_store_has(builder->store, key))
            return missing(builder, option, key, err);
        rc = actions ? weir_builder_actions(builder, key, err) : weir_builder_qpos(builder, key, err);
    }
    return rc;
}

static int user_images(struct weir_episode_builder *builder, const char *list, struct weir_err *err)
{
    int rc = 0;
    char text[WEIR_STORE_PATH_MAX], name[WEIR_NAME_MAX];
    for (const char *at = list; at && rc == 0 && (at == list || *at);) {
        at = next_key(at, text);
        const char *key = camera_name(text, name);
        struct weir_array_shape shape;
        if (!weir_store_has(builder->store, key))
            return missing(builder, "image-keys", key, err);
        rc = weir_store_shape(builder->store, key, &shape, err);
        if (rc < 0)
            return rc;
        bool depth = weir_looks_like_depth(&shape) && (!weir_looks_like_images(&shape) || strstr(key, "depth"));
        rc = depth ? weir_builder_depth(builder, name, key, err) : weir_builder_camera(builder, name, key, err);
    }
    return rc;
}

int weir_builder_user_keys(struct weir_episode_builder *builder, struct weir_err *err)
{
    const struct weir_dataset_config *config = builder->config;
    builder->by_keys = true;
    int rc = config->qpos_keys ? user_state(builder, "qpos-keys", config->qpos_keys, false, err) : 0;
    if (rc == 0 && config->action_keys)
        rc = user_state(builder, "action-keys", config->action_keys, true, err);
    if (rc == 0 && config->image_keys)
        rc = user_images(builder, config->image_keys, err);
    builder->by_keys = false;
    return rc;
}
