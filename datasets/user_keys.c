/* Lists the arrays that the user could name with --qpos-keys, --action-keys and --image-keys. */
#include "base/shortage.h"
#include "base/text.h"
#include "datasets/builder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARRAYS_MAX = 64, VISITS_MAX = 512, DEPTH_MAX = 6, LISTED_MAX = 8, ENCODED_BYTES_MIN = 100 };

/* ---- the arrays of an episode ---- */

enum role { ROLE_NONE, ROLE_STATE, ROLE_ACTIONS, ROLE_IMAGES };

struct array {
    char key[WEIR_STORE_PATH_MAX];
    struct weir_array_shape shape;
    bool is_numbers, is_bookkeeping;
    enum role role; /* what it probably is, from its name and shape */
};

struct arrays {
    struct weir_store *store;
    int n, visits;
    struct array array[ARRAYS_MAX];
};

static bool has_word(const char *key, const char *const *words)
{
    for (; *words; words++)
        if (strstr(key, *words))
            return true;
    return false;
}

/* Returns whether a part of the name, between slashes or dots, is one of these. */
static bool has_part(const char *key, const char *const *parts)
{
    for (const char *at = key; *at; at += strcspn(at, "/.") + (at[strcspn(at, "/.")] != '\0'))
        for (const char *const *part = parts; *part; part++)
            if (strlen(*part) == strcspn(at, "/.") && strncmp(at, *part, strlen(*part)) == 0)
                return true;
    return false;
}

static bool is_images(const struct weir_array_shape *shape)
{
    bool few = shape->rank == 1 ? shape->element == WEIR_ELEMENT_FIXED_BYTES && shape->type_bytes < ENCODED_BYTES_MIN
                                : shape->rank == 2 && shape->dims[1] < ENCODED_BYTES_MIN;
    return weir_looks_like_images(shape) && !few;
}

static void add_array(struct arrays *arrays, const char *key)
{
    static const char *const bookkeeping[] = {"reward",        "rewards",  "done",        "dones",      "discount",
                                              "is_first",      "is_last",  "is_terminal", "success",    "timestamp",
                                              "timestamps",    "next_obs", "index",       "task_index", "frame_index",
                                              "episode_index", NULL};
    struct array *array = &arrays->array[arrays->n];
    if (arrays->n == ARRAYS_MAX || weir_store_shape(arrays->store, key, &array->shape, NULL) < 0 ||
        array->shape.rank < 1 || array->shape.dims[0] == 0)
        return;
    const struct weir_array_shape *shape = &array->shape;
    bool numbers = shape->element == WEIR_ELEMENT_FLOAT || shape->element == WEIR_ELEMENT_INTEGER;
    snprintf(array->key, sizeof array->key, "%s", key);
    array->is_numbers = numbers && !is_images(shape) && !weir_looks_like_pixels(shape);
    array->is_bookkeeping = has_part(key, bookkeeping);
    array->role = ROLE_NONE;
    if (is_images(shape))
        array->role = ROLE_IMAGES;
    else if (array->is_numbers && shape->rank <= 2 && !array->is_bookkeeping)
        array->role = strstr(key, "action") || strstr(key, "ctrl") ? ROLE_ACTIONS : ROLE_STATE;
    arrays->n++;
}

static void walk(struct arrays *arrays, const char *group, int depth)
{
    char(*names)[64];
    int n;
    if (weir_store_list(arrays->store, *group ? group : "/", &names, &n, NULL) < 0)
        return;
    for (int i = 0; i < n && arrays->visits < VISITS_MAX; i++, arrays->visits++) {
        char key[WEIR_STORE_PATH_MAX];
        if (snprintf(key, sizeof key, "%s%s%s", group, *group ? "/" : "", names[i]) >= (int)sizeof key)
            continue;
        if (!weir_store_is_group(arrays->store, key))
            add_array(arrays, key);
        else if (depth < DEPTH_MAX)
            walk(arrays, key, depth + 1);
    }
    free(names);
}

/* Finds the arrays below a group ("" = all), with keys relative to it. Returns NULL if the store cannot be searched.
 * The caller frees the result. */
static struct arrays *find_arrays(struct weir_store *store, const char *group)
{
    bool (*search)(struct weir_store *, bool) = store->ops->search;
    struct arrays *arrays = !search || search(store, true) ? calloc(1, sizeof *arrays) : NULL;
    if (!arrays)
        return NULL;
    arrays->store = store;
    walk(arrays, group, 0);
    for (int i = 0; i < arrays->n && *group; i++)
        memmove(arrays->array[i].key, arrays->array[i].key + strlen(group) + 1,
                strlen(arrays->array[i].key) - strlen(group));
    if (search)
        search(store, false);
    return arrays;
}

/* Prints "name (14)" or "name (64x6)": the shape of a row. */
static void print_array(FILE *out, const struct array *array)
{
    const struct weir_array_shape *shape = &array->shape;
    fprintf(out, "%s (", array->key);
    if (array->role == ROLE_IMAGES)
        fputs("images", out);
    else if (shape->rank == 1)
        fputc('1', out);
    for (int d = 1; d < shape->rank && array->role != ROLE_IMAGES; d++)
        fprintf(out, "%s%llu", d > 1 ? "x" : "", (unsigned long long)shape->dims[d]);
    fputc(')', out);
}

static void print_arrays(FILE *out, const struct arrays *arrays)
{
    int n = 0;
    for (int i = 0; i < arrays->n; i++) {
        if (arrays->array[i].role == ROLE_NONE || n++ >= LISTED_MAX)
            continue;
        fputs(n > 1 ? ", " : "", out);
        print_array(out, &arrays->array[i]);
    }
    if (n > LISTED_MAX)
        fprintf(out, " and %d more", n - LISTED_MAX);
    if (n == 0)
        fputs("no datasets of numbers or images", out);
}

void weir_keys_list(struct weir_store *store, char *text, size_t size)
{
    struct arrays *arrays = find_arrays(store, "");
    FILE *out = fmemopen(text, size, "w");
    *text = '\0';
    if (out && arrays)
        print_arrays(out, arrays);
    if (out)
        fclose(out);
    text[size - 1] = '\0';
    weir_text_printable(text);
    free(arrays);
}

/* ---- a command that names them ---- */

/* Keeps the state with known names, if there is any, and the arrays with as many rows as the first of the kind that
 * decides the length. Actions may lack the last row, because simulators also store the observation after the last
 * action. Returns whether they do. */
static bool choose(struct arrays *arrays)
{
    static const char *const words[] = {"state", "qpos", "joint", "proprio", "pose", "gripper", "arm", "eef", NULL};
    static const enum role order[] = {ROLE_IMAGES, ROLE_ACTIONS, ROLE_STATE};
    bool known = false, is_ragged = false;
    uint64_t rows = 0;
    for (int i = 0; i < arrays->n; i++)
        known |= arrays->array[i].role == ROLE_STATE && has_word(arrays->array[i].key, words);
    for (int k = 0; k < 3 && rows == 0; k++)
        for (int i = 0; i < arrays->n && rows == 0; i++)
            rows = arrays->array[i].role == order[k] ? arrays->array[i].shape.dims[0] : 0;
    for (int i = 0; i < arrays->n; i++) {
        struct array *array = &arrays->array[i];
        bool other = known && array->role == ROLE_STATE && !has_word(array->key, words);
        bool shorter = array->role == ROLE_ACTIONS && array->shape.dims[0] + 1 == rows;
        if (other || (array->shape.dims[0] != rows && !shorter) || strpbrk(array->key, ",="))
            array->role = ROLE_NONE;
        is_ragged |= shorter && array->role == ROLE_ACTIONS;
    }
    return is_ragged;
}

static bool is_last_part_unique(const struct arrays *arrays, const struct array *of)
{
    const char *slash = strrchr(of->key, '/'), *last = slash ? slash + 1 : of->key;
    int n = 0;
    for (int i = 0; i < arrays->n; i++) {
        const char *other = strrchr(arrays->array[i].key, '/');
        n += arrays->array[i].role == ROLE_IMAGES && strcmp(other ? other + 1 : arrays->array[i].key, last) == 0;
    }
    return n == 1;
}

/* Appends the keys of a role as the list "a,b" to text. Cameras with equal names are named after their path. */
static void list_role(const struct arrays *arrays, enum role role, char *text, size_t size)
{
    for (int i = 0; i < arrays->n; i++) {
        const struct array *array = &arrays->array[i];
        size_t used = strlen(text);
        if (array->role != role || used >= size)
            continue;
        used += (size_t)snprintf(text + used, size - used, "%s", used ? "," : "");
        if (role == ROLE_IMAGES && !is_last_part_unique(arrays, array) && used < size) {
            size_t name = used;
            used += (size_t)snprintf(text + used, size - used, "%s=", array->key);
            for (; name < used && name < size; name++)
                text[name] = text[name] == '/' ? '_' : text[name];
        }
        if (used < size)
            snprintf(text + used, size - used, "%s", array->key);
    }
}

/* Prints an option with the user's value, or with the keys of a role. */
static void print_option(FILE *out, const char *option, const char *given, const char *keys)
{
    if (!given && !*keys)
        return;
    fprintf(out, " --%s ", option);
    weir_shell_word(out, given ? given : keys);
}

static void print_command(FILE *out, struct arrays *arrays, const struct weir_dataset_config *config, unsigned needs)
{
    char state[WEIR_ADVICE_MAX] = "", actions[WEIR_ADVICE_MAX] = "", images[WEIR_ADVICE_MAX] = "";
    bool is_ragged = choose(arrays) && needs & WEIR_NEEDS_ACTIONS && !config->action_keys;
    if (needs & WEIR_NEEDS_STATE)
        list_role(arrays, ROLE_STATE, state, sizeof state);
    if (needs & WEIR_NEEDS_ACTIONS)
        list_role(arrays, ROLE_ACTIONS, actions, sizeof actions);
    if (needs & WEIR_NEEDS_ACTIONS && !*actions)
        list_role(arrays, ROLE_STATE, actions, sizeof actions);
    if (needs & WEIR_NEEDS_IMAGES)
        list_role(arrays, ROLE_IMAGES, images, sizeof images);
    bool missing_state = needs & WEIR_NEEDS_STATE && !config->qpos_keys && !*state;
    if (missing_state || (needs & WEIR_NEEDS_ACTIONS && !config->action_keys && !*actions) || !config->path)
        return;
    fputs("; for example: weir run ", out);
    weir_shell_word(out, config->path);
    print_option(out, "qpos-keys", config->qpos_keys, state);
    print_option(out, "action-keys", config->action_keys, actions);
    print_option(out, "image-keys", config->image_keys, images);
    print_option(out, "cameras", config->cameras && *config->cameras ? config->cameras : NULL, "");
    if (config->filter_key)
        print_option(out, "filter-key", config->filter_key, "");
    fputs(is_ragged ? " --allow-ragged" : "", out);
}

void weir_keys_advise(struct weir_store *store, const struct weir_dataset_config *config, unsigned needs,
                      const char *group, char *text, size_t size)
{
    struct arrays *arrays = find_arrays(store, group);
    char *command = NULL;
    size_t length;
    FILE *out = arrays ? fmemopen(text, size / 2, "w") : NULL;
    snprintf(text, size, "%s", "");
    if (out) {
        print_arrays(out, arrays);
        fclose(out);
        text[size / 2 - 1] = '\0';
    }
    out = arrays ? open_memstream(&command, &length) : NULL;
    if (out) {
        print_command(out, arrays, config, needs);
        fclose(out);
    }
    size_t used = strlen(text);
    if (command && *command && strlen(command) < size - used) /* a command that was cut would be another command */
        snprintf(text + used, size - used, "%s", command);
    else
        snprintf(text + used, size - used,
                 "; name state, actions and cameras with --qpos-keys, --action-keys and "
                 "--image-keys");
    weir_text_printable(text);
    free(command);
    free(arrays);
}

/* ---- arrays that are not used ---- */

/* Returns whether the list "a, b (next row)" contains the key. */
static bool is_listed(const char *list, const char *key)
{
    size_t n = strlen(key);
    for (const char *at = list ? strstr(list, key) : NULL; at; at = strstr(at + 1, key))
        if ((at == list || at[-1] == ' ') && (at[n] == '\0' || at[n] == ',' || at[n] == ' '))
            return true;
    return false;
}

static bool is_used(const struct weir_episode *episode, const char *key)
{
    char full[WEIR_STORE_PATH_MAX + 8];
    snprintf(full, sizeof full, "%s/%s", episode->root, key);
    const char *keys[] = {full, full + strlen(episode->root), key}; /* stores differ in how messages name arrays */
    for (int i = 0; i < 3; i++)
        if (is_listed(episode->qpos_key, keys[i]) || is_listed(episode->action_key, keys[i]))
            return true;
    return false;
}

int weir_builder_not_used(struct weir_episode_builder *builder, struct weir_err *err)
{
    struct weir_episode *episode = builder->episode;
    struct arrays *arrays =
        builder->config->list_unused && builder->store->is_first ? find_arrays(builder->store, "") : NULL;
    size_t size;
    int n = 0;
    if (!arrays)
        return 0;
    FILE *out = open_memstream(&episode->not_used, &size);
    for (int i = 0; out && i < arrays->n; i++) {
        const struct array *array = &arrays->array[i];
        if (!array->is_numbers || array->is_bookkeeping || array->shape.dims[0] != (uint64_t)episode->steps ||
            is_used(episode, array->key) || n++ >= LISTED_MAX)
            continue;
        fputs(n > 1 ? ", " : "", out);
        print_array(out, array);
    }
    if (out && n > LISTED_MAX)
        fprintf(out, " and %d more", n - LISTED_MAX);
    free(arrays);
    if (!out || fclose(out) != 0)
        return weir_no_memory(err);
    if (n == 0) {
        free(episode->not_used);
        episode->not_used = NULL;
    }
    return 0;
}
