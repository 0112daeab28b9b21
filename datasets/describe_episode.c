/* Fills an episode with the arrays that its layout and the user name in its store. */
#include "base/shortage.h"
#include "datasets/builder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the user's keys ---- */

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
    char full[WEIR_STORE_PATH_MAX], have[WEIR_ADVICE_MAX];
    weir_builder_full_key(builder, key, full);
    weir_keys_list(builder->store, have, sizeof have);
    return weir_err_set(err, -ENOENT, "%s: no such dataset, but --%s names it; it has %s", full, option, have);
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

/* Adds the datasets named by --qpos-keys, --action-keys and --image-keys, which replace those of the layout. */
static int add_user_keys(struct weir_episode_builder *builder, struct weir_err *err)
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

/* ---- length ---- */

struct length {
    const char *what, *unit;
    int steps;
};

static void look_at_length(struct length *shortest, struct length *longest, struct length now)
{
    if (!shortest->what || now.steps < shortest->steps)
        *shortest = now;
    if (!longest->what || now.steps > longest->steps)
        *longest = now;
}

static int complete_length(struct weir_episode_builder *builder, struct weir_err *err)
{
    struct weir_episode *e = builder->episode;
    struct length shortest = {0}, longest = {0};
    const struct weir_state_columns *both[] = {&builder->qpos, &builder->actions};
    for (int c = 0; c < 2; c++)
        for (int i = 0; i < both[c]->n; i++)
            look_at_length(&shortest, &longest, (struct length){both[c]->keys, "steps", both[c]->parts[i].steps});
    for (int i = 0; i < e->n_maps; i++)
        look_at_length(&shortest, &longest, (struct length){e->maps[i].key, "frames", e->maps[i].frames});
    e->steps = shortest.steps;
    e->rows_cut = longest.steps - shortest.steps;
    if (e->rows_cut == 0 || builder->config->allow_ragged)
        return 0;
    return weir_err_set(err, -EBADMSG,
                        "%s has %d %s, but %s has %d %s; cut them to the same length, or load only the common steps "
                        "with --allow-ragged",
                        longest.what, longest.steps, longest.unit, shortest.what, shortest.steps, shortest.unit);
}

static int no_numbers(const struct weir_episode_builder *builder, struct weir_err *err)
{
    bool no_state = builder->qpos.n == 0, no_actions = builder->actions.n == 0;
    char advice[WEIR_ADVICE_MAX];
    unsigned needs = (no_state ? WEIR_NEEDS_STATE : 0) | (no_actions ? WEIR_NEEDS_ACTIONS : 0);
    weir_keys_advise(builder->store, builder->config, needs, "", advice, sizeof advice);
    return weir_err_set(err, -EBADMSG, "layout %s, but the episode has no %s%s%s that the layout names; it has %s",
                        builder->episode->layout->name, no_state ? "state" : "",
                        no_state && no_actions ? " and no " : "", no_actions ? "actions" : "", advice);
}

/* Joins the columns and moves the state into the episode. All parts must have the same length; with allow_ragged, they
 * are cut to the shortest. */
static int complete(struct weir_episode_builder *builder, struct weir_err *err)
{
    struct weir_episode *e = builder->episode;
    if (builder->qpos.n == 0 || builder->actions.n == 0)
        return no_numbers(builder, err);
    int rc = complete_length(builder, err);
    if (rc == 0)
        rc = weir_columns_join(&builder->qpos, e->steps, &e->qpos, &e->qpos_dim, err);
    if (rc == 0)
        rc = weir_columns_join(&builder->actions, e->steps, &e->actions, &e->action_dim, err);
    if (rc == 0 && builder->config->own_types)
        rc = weir_columns_join_own(&builder->qpos, e->steps, &e->qpos_own, err);
    if (rc == 0 && builder->config->own_types)
        rc = weir_columns_join_own(&builder->actions, e->steps, &e->actions_own, err);
    if (rc < 0)
        return rc;
    e->bytes += (size_t)e->steps * (size_t)(e->qpos_dim + e->action_dim) * sizeof(float);
    if (e->qpos_own.values)
        e->bytes += (size_t)e->steps * ((size_t)e->qpos_dim * weir_number_bytes(e->qpos_own.type) +
                                        (size_t)e->action_dim * weir_number_bytes(e->actions_own.type));
    e->qpos_key = builder->qpos.keys;
    e->action_key = builder->actions.keys;
    builder->qpos.keys = builder->actions.keys = NULL;
    return 0;
}

/* ---- an episode ---- */

/* An episode may have no cameras, but it is not loaded without those that it has. */
static int check_cameras(const struct weir_episode_builder *builder, struct weir_err *err)
{
    const struct weir_episode *episode = builder->episode;
    const char *cameras = builder->config->cameras;
    if (episode->n_maps > 0 || (cameras && *cameras))
        return 0;
    if (builder->has_unread)
        return weir_err_set(err, -EBADMSG, "layout %s, but it has no supported cameras: %.*s", episode->layout->name,
                            (int)strcspn(episode->left_out, "\n"), episode->left_out);
    if (episode->passed_over)
        return weir_err_set(err, -EBADMSG, "layout %s, but it has no cameras but depth: %s; choose them with --cameras",
                            episode->layout->name, episode->passed_over);
    return 0;
}

/* Returns a copy of the first n bytes, and frees the array. realloc would shrink it in place, and the rest would be too
 * small for the next episode's array. */
static void *shrink(void *array, size_t n)
{
    void *copy = n ? malloc(n) : NULL;
    if (!copy)
        return array;
    memcpy(copy, array, n);
    free(array);
    return copy;
}

/* Adds the arrays that the layout names. */
static int add_layout(const struct weir_layout_ops *layout, struct weir_episode_builder *builder, struct weir_err *err)
{
    int rc = layout->state ? weir_builder_qpos(builder, layout->state, err) : 0;
    if (rc == 0 && layout->actions)
        rc = layout->next_actions ? weir_builder_actions_next(builder, layout->actions, err)
                                  : weir_builder_actions(builder, layout->actions, err);
    if (rc == 0 && layout->index)
        rc = layout->index(builder->store, builder, err);
    if (rc == 0 && layout->images)
        rc = weir_builder_group(builder, layout->images, false, err);
    if (rc == 0 && layout->depth && weir_store_has(builder->store, layout->depth))
        rc = weir_builder_group(builder, layout->depth, true, err);
    return rc;
}

int weir_episode_describe(struct weir_store *store, struct weir_episode *episode,
                          const struct weir_dataset_config *config, struct weir_err *err)
{
    struct weir_episode_builder *builder = calloc(1, sizeof *builder);
    if (!builder)
        return weir_no_memory(err);
    builder->store = store;
    builder->episode = episode;
    builder->config = config;
    int rc = add_layout(episode->layout, builder, err);
    if (rc == 0)
        rc = add_user_keys(builder, err);
    if (rc == 0)
        rc = check_cameras(builder, err);
    if (rc == 0)
        rc = complete(builder, err);
    if (rc == 0)
        rc = store->ops->texts(store, episode, err);
    if (rc == 0)
        rc = weir_builder_not_used(builder, err);
    store->is_first = false;
    weir_builder_drop(builder);
    free(builder);
    episode->maps = shrink(episode->maps, (size_t)episode->n_maps * sizeof *episode->maps);
    episode->names = shrink(episode->names, (size_t)episode->n_maps * sizeof *episode->names);
    return rc;
}
