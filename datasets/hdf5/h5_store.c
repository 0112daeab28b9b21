/* HDF5 files as struct weir_store_ops: the library describes, in a helper process, and rows are located afterwards. */
#include "datasets/builder.h"
#include "datasets/index.h"
#include "datasets/json_object.h"
#include "datasets/store_ops.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

static bool has(void *store, const char *path)
{
    return weir_h5_has(store, path);
}

static bool is_group(void *store, const char *path)
{
    return weir_h5_is_group(store, path);
}

static int list(void *store, const char *group, char (**names)[64], int *n, struct weir_err *err)
{
    return weir_h5_list(store, group, names, n, err);
}

static int shape(void *store, const char *path, struct weir_h5_shape *found, struct weir_err *err)
{
    return weir_h5_shape(store, path, found, err);
}

static int read_numbers(void *store, const char *path, enum weir_number_type *type, void **values,
                        struct weir_h5_shape *found, struct weir_err *err)
{
    return weir_h5_read_numbers(store, path, type, values, found, err);
}

static int rows(void *store, const char *path, struct weir_frame_map *map, struct weir_h5_description *description,
                struct weir_err *err)
{
    (void)map;
    return weir_h5_describe(store, path, description, err);
}

/* ---- texts ---- */

struct taking {
    struct weir_episode_builder *builder;
    bool all; /* else instructions only: groups of simulators have models and settings of any length as well */
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

/* LIBERO's: JSON, whose language_instruction is a text or a list of them. */
static int take_problem_info(const struct taking *taking, const char *value)
{
    char all[WEIR_TEXT_MAX] = "";
    struct weir_err why = WEIR_ERR_NONE;
    json_t *json;
    int rc = weir_json_object_parse(value, strlen(value), &json, &why);
    if (rc == -ENOMEM)
        return weir_err_set(taking->err, rc, "out of memory");
    if (rc < 0)
        return weir_episode_leave_out(taking->builder->episode, taking->err, "attribute problem_info is left out: %s",
                                      why.text);
    const json_t *instruction = json_object_get(json, "language_instruction");
    size_t n = json_is_array(instruction) ? json_array_size(instruction) : 1, used = 0;
    for (size_t i = 0; i < n && used < sizeof all; i++) {
        const char *part = json_string_value(json_is_array(instruction) ? json_array_get(instruction, i) : instruction);
        used += (size_t)snprintf(all + used, sizeof all - used, "%s", part ? part : "");
    }
    json_decref(json);
    return used > 0 && used < sizeof all
               ? weir_builder_text(taking->builder, "language_instruction", all, used, taking->err)
               : 0;
}

static int take_text(void *user, const char *name, const char *value)
{
    const struct taking *taking = user;
    bool is_problem = strcmp(name, "problem_info") == 0;
    if (!is_problem && !taking->all && !is_instruction(name))
        return 0;
    if (!value)
        return weir_episode_leave_out(taking->builder->episode, taking->err,
                                      "attribute %s is left out: it cannot be read; repair it, or copy the file anew",
                                      name);
    return is_problem ? take_problem_info(taking, value)
                      : weir_builder_text(taking->builder, name, value, strlen(value), taking->err);
}

/* Datasets of one text, where RoboMIND has its instruction. */
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

/* Attributes of the episode's group, then of the file: all of its root, where Weir's own copies have theirs. */
static int texts(void *store, struct weir_episode_builder *builder, struct weir_err *err)
{
    static const char *const others[] = {"/data", "/metadata"};
    struct taking taking = {.builder = builder, .err = err};
    const char *root = builder->episode->root;
    int rc = take_datasets(&taking, store);
    if (rc == 0 && *root)
        rc = weir_h5_texts(store, root, take_text, &taking);
    weir_h5_enter(store, "");
    for (size_t i = 0; i < sizeof others / sizeof others[0] && rc == 0; i++)
        if (weir_h5_is_group(store, others[i]))
            rc = weir_h5_texts(store, others[i], take_text, &taking);
    weir_h5_enter(store, root);
    taking.all = true;
    return rc < 0 ? rc : weir_h5_texts(store, "/", take_text, &taking);
}

const struct weir_store_ops weir_store_hdf5 = {
    .has = has,
    .is_group = is_group,
    .list = list,
    .shape = shape,
    .read_numbers = read_numbers,
    .rows = rows,
    .texts = texts,
    .lister = "`h5ls -r` lists those of a file",
};
