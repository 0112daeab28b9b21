/* State and actions: columns from one or several datasets. */
#include "base/shortage.h"
#include "datasets/builder.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS_MAX = 100 * 1000 * 1000, DIM_MAX = 65536 };

/* A single NaN would make the mean NaN, and with it every normalised sample. */
static int check_finite(const char *key, const struct weir_state_part *part, struct weir_err *err)
{
    size_t dim = (size_t)part->dim, n = (size_t)part->steps * dim;
    for (size_t i = 0; i < n; i++)
        if (!isfinite(part->values[i]))
            return weir_err_set(err, -EBADMSG, "%s[%zu][%zu]: is %g; repair it or remove the episode", key, i / dim,
                                i % dim, (double)part->values[i]);
    return 0;
}

static int check_state_shape(const struct weir_episode_builder *builder, const char *key,
                             const struct weir_array_shape *shape, struct weir_err *err)
{
    /* One number per step is accepted only if the user named the dataset, or if the layout has such states. */
    bool flat = shape->rank == 1 && (builder->by_keys || builder->episode->layout->has_scalars);
    if (shape->rank != 2 && !flat)
        return weir_err_set(err, -EBADMSG, "%s: has rank %d, but its shape must be (steps, dimensions)", key,
                            shape->rank);
    if (shape->dims[0] == 0)
        return weir_err_set(err, -EBADMSG, "%s: has 0 steps; leave the episode out with --on-error skip", key);
    uint64_t dim = flat ? 1 : shape->dims[1];
    if (shape->dims[0] > STEPS_MAX || dim == 0 || dim > DIM_MAX)
        return weir_err_set(err, -EBADMSG, "%s: its shape (%llu, %llu) is invalid", key,
                            (unsigned long long)shape->dims[0], (unsigned long long)dim);
    return 0;
}

static int read_columns(const struct weir_episode_builder *builder, const char *key, struct weir_state_part *part,
                        struct weir_array_shape *shape, struct weir_err *err)
{
    void *read;
    enum weir_number_type type;
    int rc = builder->store->ops->read_numbers(builder->store, key, &type, &read, shape, err);
    if (rc < 0)
        return rc;
    part->type = type;
    if (type == WEIR_F32) {
        part->values = read;
        return 0;
    }
    size_t n = (size_t)shape->dims[0] * (size_t)(shape->rank == 1 ? 1 : shape->dims[1]);
    part->values = malloc(n * sizeof *part->values);
    if (part->values)
        weir_numbers_convert(type, read, n, WEIR_F32, part->values);
    if (part->values && builder->config->own_types)
        part->own = read;
    else
        free(read);
    return part->values ? 0 : weir_no_memory(err);
}

/* Adds to the error about an array of the layout what the file has instead. */
static int advise(const struct weir_episode_builder *builder, struct weir_err *err)
{
    char advice[WEIR_ADVICE_MAX];
    struct weir_err why = *err;
    weir_keys_advise(builder->store, builder->config, WEIR_NEEDS_STATE | WEIR_NEEDS_ACTIONS, "", advice, sizeof advice);
    *err = WEIR_ERR_NONE;
    return weir_err_set(err, -ENOENT, "%.200s; it has %s", why.text, advice);
}

static int add_columns(struct weir_episode_builder *builder, struct weir_state_columns *columns, const char *key,
                       bool next_row, struct weir_err *err)
{
    char full[WEIR_STORE_PATH_MAX];
    weir_builder_full_key(builder, key, full);
    if (columns->n == WEIR_STATE_PARTS_MAX)
        return weir_err_set(err, -EBADMSG, "%s: more than %d datasets form the state or the actions", full,
                            WEIR_STATE_PARTS_MAX);
    struct weir_array_shape shape;
    int rc = weir_store_shape(builder->store, key, &shape, err);
    if (rc == -ENOENT && err && !builder->by_keys)
        return advise(builder, err);
    if (rc == 0)
        rc = check_state_shape(builder, full, &shape, err);
    if (rc < 0)
        return rc;
    struct weir_state_part *part = &columns->parts[columns->n];
    rc = read_columns(builder, key, part, &shape, err);
    if (rc < 0)
        return rc;
    columns->n++;
    if (shape.has_fill)
        weir_builder_note(builder, WEIR_NOTE_FILL);
    part->steps = (int)shape.dims[0];
    part->dim = shape.rank == 1 ? 1 : (int)shape.dims[1];
    part->next_row = next_row;
    if (!weir_append_name(&columns->keys, full, next_row ? " (next row)" : ""))
        return weir_no_memory(err);
    return check_finite(full, part, err);
}

int weir_builder_qpos(struct weir_episode_builder *builder, const char *key, struct weir_err *err)
{
    if (builder->config->qpos_keys && !builder->by_keys)
        return 0;
    return add_columns(builder, &builder->qpos, key, false, err);
}

int weir_builder_actions(struct weir_episode_builder *builder, const char *key, struct weir_err *err)
{
    if (builder->config->action_keys && !builder->by_keys)
        return 0;
    return add_columns(builder, &builder->actions, key, false, err);
}

int weir_builder_actions_next(struct weir_episode_builder *builder, const char *key, struct weir_err *err)
{
    if (builder->config->action_keys && !builder->by_keys)
        return 0;
    return add_columns(builder, &builder->actions, key, true, err);
}

/* Concatenates the rows of all parts; sources[i] holds the numbers of part i, each of `bytes` bytes. */
static void join_rows(const struct weir_state_columns *columns, const void *const *sources, int steps, size_t bytes,
                      void *rows)
{
    char *to = rows;
    for (int t = 0; t < steps; t++)
        for (int i = 0; i < columns->n; i++) {
            const struct weir_state_part *part = &columns->parts[i];
            size_t row = (size_t)part->dim * bytes;
            int from = part->next_row && t + 1 < part->steps ? t + 1 : t;
            memcpy(to, (const char *)sources[i] + (size_t)from * row, row);
            to += row;
        }
}

static int dimensions(const struct weir_state_columns *columns)
{
    int dim = 0;
    for (int i = 0; i < columns->n; i++)
        dim += columns->parts[i].dim; /* at most 256 x 65536, so no overflow */
    return dim;
}

int weir_columns_join(const struct weir_state_columns *columns, int steps, float **out, int *dim, struct weir_err *err)
{
    const void *sources[WEIR_STATE_PARTS_MAX];
    for (int i = 0; i < columns->n; i++)
        sources[i] = columns->parts[i].values;
    *dim = dimensions(columns);
    *out = calloc((size_t)steps * (size_t)*dim, sizeof **out);
    if (!*out)
        return weir_no_memory(err);
    join_rows(columns, sources, steps, sizeof **out, *out);
    return 0;
}

/* Returns a part's numbers in the common type: the part's own array, or a converted copy in *made. */
static const void *as_common(const struct weir_state_columns *columns, int i, enum weir_number_type type, void **made,
                             struct weir_err *err)
{
    const struct weir_state_part *part = &columns->parts[i];
    const void *own = part->type == WEIR_F32 ? part->values : part->own;
    size_t n = (size_t)part->steps * (size_t)part->dim;
    *made = NULL;
    if (part->type == type)
        return own;
    *made = malloc(n * weir_number_bytes(type));
    if (!*made)
        weir_no_memory(err);
    else if (!weir_numbers_convert(part->type, own, n, type, *made))
        weir_err_set(err, -ERANGE, "%s: %s, combined with other types, becomes %s, which cannot hold all of its values",
                     columns->keys, weir_number_name(part->type), weir_number_name(type));
    return *made;
}

int weir_columns_join_own(const struct weir_state_columns *columns, int steps, struct weir_own_numbers *own,
                          struct weir_err *err)
{
    const void *sources[WEIR_STATE_PARTS_MAX];
    void *made[WEIR_STATE_PARTS_MAX];
    struct weir_err why = WEIR_ERR_NONE;
    own->type = columns->parts[0].type;
    for (int i = 1; i < columns->n; i++)
        own->type = weir_number_common(own->type, columns->parts[i].type);
    for (int i = 0; i < columns->n; i++)
        sources[i] = as_common(columns, i, own->type, &made[i], &why);
    size_t bytes = weir_number_bytes(own->type);
    if (why.code == 0 && !(own->values = calloc((size_t)steps * (size_t)dimensions(columns), bytes)))
        weir_no_memory(&why);
    if (why.code == 0)
        join_rows(columns, sources, steps, bytes, own->values);
    for (int i = 0; i < columns->n; i++)
        free(made[i]);
    return why.code < 0 ? weir_err_set(err, why.code, "%s", why.text) : 0;
}

void weir_builder_drop(struct weir_episode_builder *builder)
{
    struct weir_state_columns *both[] = {&builder->qpos, &builder->actions};
    for (int c = 0; c < 2; c++) {
        for (int i = 0; i < both[c]->n; i++) {
            free(both[c]->parts[i].values);
            free(both[c]->parts[i].own);
        }
        free(both[c]->keys);
        both[c]->keys = NULL;
        both[c]->n = 0;
    }
}

int weir_store_read_floats(struct weir_store *store, const char *path, float **values, struct weir_array_shape *shape,
                           struct weir_err *err)
{
    enum weir_number_type type;
    void *read;
    *values = NULL;
    int rc = store->ops->read_numbers(store, path, &type, &read, shape, err);
    if (rc < 0 || type == WEIR_F32) {
        *values = rc < 0 ? NULL : read;
        return rc;
    }
    size_t n = 1;
    for (int d = 0; d < shape->rank; d++)
        n *= (size_t)shape->dims[d]; /* no overflow, because at most 1 GiB was read */
    *values = malloc(n ? n * sizeof **values : 1);
    if (*values)
        weir_numbers_convert(type, read, n, WEIR_F32, *values);
    free(read);
    return *values ? 0 : weir_no_memory(err);
}
