/* HDF5 files as stores. The library describes how datasets are stored; frames are located afterwards, without the
 * library. */
#include "base/shortage.h"
#include "datasets/hdf5/hdf5_open.h"
#include "datasets/index.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

static struct weir_h5 *file_of(struct weir_store *store)
{
    return ((struct weir_h5_store *)store)->h5;
}

static bool has(struct weir_store *store, const char *path)
{
    return weir_h5_has(file_of(store), path);
}

static bool is_group(struct weir_store *store, const char *path)
{
    return weir_h5_is_group(file_of(store), path);
}

static int list(struct weir_store *store, const char *group, char (**names)[64], int *n, struct weir_err *err)
{
    return weir_h5_list(file_of(store), group, names, n, err);
}

static int shape(struct weir_store *store, const char *path, struct weir_array_shape *found, struct weir_err *err)
{
    return weir_h5_shape(file_of(store), path, found, err);
}

static int read_numbers(struct weir_store *store, const char *path, enum weir_number_type *type, void **values,
                        struct weir_array_shape *found, struct weir_err *err)
{
    return weir_h5_read_numbers(file_of(store), path, type, values, found, err);
}

static int rows(struct weir_store *store, const char *path, struct weir_frame_map *map, struct weir_array_shape *found,
                struct weir_err *err)
{
    struct weir_h5_store *s = (struct weir_h5_store *)store;
    (void)map;
    if (!s->descriptions)
        s->descriptions = calloc(WEIR_CAMERAS_MAX, sizeof *s->descriptions);
    if (!s->descriptions)
        return weir_no_memory(err);
    struct weir_h5_description *description = &s->descriptions[s->n_descriptions];
    int rc = weir_h5_describe(s->h5, path, description, err);
    *found = description->shape;
    s->n_descriptions += rc == 0;
    return rc;
}

static bool has_attribute(struct weir_store *store, const char *path, const char *name)
{
    return weir_h5_has_attribute(file_of(store), path, name);
}

static bool is_false(struct weir_store *store, const char *path, const char *name)
{
    return weir_h5_is_false(file_of(store), path, name);
}

static bool search(struct weir_store *store, bool begins)
{
    (void)store;
    return begins ? weir_h5_search_begin() : (weir_h5_search_end(), true);
}

/* ---- metadata strings ---- */

struct taking {
    struct weir_episode *episode;
    bool all; /* false: only instructions, because groups of simulators contain models and settings of any length */
    struct weir_err *err;
};

static bool is_instruction(const char *name)
{
    static const char *const names[] = {"task", "task_name", "task_description", "language", "lang", "prompt"};
    bool found = strstr(name, "instruction") != NULL || strncmp(name, "language_raw", 12) == 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !found; i++)
        found = strcmp(name, names[i]) == 0;
    return found;
}

/* In LIBERO's JSON attribute, language_instruction is a string or a list of strings. */
static int take_problem_info(const struct taking *taking, const char *value)
{
    char all[WEIR_TEXT_MAX] = "";
    struct weir_err why = WEIR_ERR_NONE;
    json_t *json;
    int rc = weir_json_object_parse(value, strlen(value), &json, &why);
    if (rc == -ENOMEM)
        return weir_err_set(taking->err, rc, "out of memory");
    if (rc < 0)
        return weir_episode_leave_out(taking->episode, taking->err, "attribute problem_info is left out: %s", why.text);
    const json_t *instruction = json_object_get(json, "language_instruction");
    size_t n = json_is_array(instruction) ? json_array_size(instruction) : 1, used = 0;
    for (size_t i = 0; i < n && used < sizeof all; i++) {
        const char *part = json_string_value(json_is_array(instruction) ? json_array_get(instruction, i) : instruction);
        used += (size_t)snprintf(all + used, sizeof all - used, "%s", part ? part : "");
    }
    json_decref(json);
    return used > 0 && used < sizeof all
               ? weir_episode_add_text(taking->episode, "language_instruction", all, used, taking->err)
               : 0;
}

static int take_text(void *user, const char *name, const char *value)
{
    const struct taking *taking = user;
    if (strcmp(name, "macros_image_convention") == 0 && value && strcmp(value, "opengl") == 0 &&
        taking->episode->n_maps > 0)
        return weir_episode_leave_out(taking->episode, taking->err,
                                      "images are upside down in the file ("
                                      "macros_image_convention is opengl) and in "
                                      "batches");
    bool is_problem = strcmp(name, "problem_info") == 0;
    if (!is_problem && !taking->all && !is_instruction(name))
        return 0;
    if (!value)
        return weir_episode_leave_out(taking->episode, taking->err,
                                      "attribute %s is left out: it cannot be read; repair it, or copy the file again",
                                      name);
    return is_problem ? take_problem_info(taking, value)
                      : weir_episode_add_text(taking->episode, name, value, strlen(value), taking->err);
}

/* Adds datasets that hold a single string, such as RoboMIND's instruction. */
static int take_datasets(struct taking *taking, struct weir_h5 *h5)
{
    static const char *const names[] = {"language_instruction", "language_raw", "instruction", "task"};
    char text[WEIR_TEXT_MAX];
    int rc = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && rc == 0; i++) {
        char path[64];
        snprintf(path, sizeof path, "/%s", names[i]);
        if (weir_h5_has(h5, path) && weir_h5_text_of(h5, path, text, sizeof text))
            rc = take_text(taking, names[i], text);
    }
    return rc;
}

/* Adds attributes of the episode's group and of the file. Copies that Weir wrote have their strings at the root, so all
 * attributes of the root are added. */
static int texts(struct weir_store *store, struct weir_episode *episode, struct weir_err *err)
{
    static const char *const others[] = {"/data", "/metadata"};
    struct weir_h5 *h5 = file_of(store);
    struct taking taking = {.episode = episode, .err = err};
    int rc = take_datasets(&taking, h5);
    if (rc == 0 && *episode->root)
        rc = weir_h5_texts(h5, episode->root, take_text, &taking);
    weir_h5_enter(h5, "");
    for (size_t i = 0; i < sizeof others / sizeof others[0] && rc == 0; i++)
        if (weir_h5_is_group(h5, others[i]))
            rc = weir_h5_texts(h5, others[i], take_text, &taking);
    weir_h5_enter(h5, episode->root);
    taking.all = true;
    return rc < 0 ? rc : weir_h5_texts(h5, "/", take_text, &taking);
}

const struct weir_store_ops weir_store_hdf5 = {
    .has = has,
    .is_group = is_group,
    .list = list,
    .shape = shape,
    .read_numbers = read_numbers,
    .rows = rows,
    .has_attribute = has_attribute,
    .is_false = is_false,
    .search = search,
    .texts = texts,
    .images = "uint8 (steps, height, width, 3), or from JPEGs in rows of uint8 (steps, bytes), in fixed-length strings "
              "or in variable-length uint8 (steps)",
};
