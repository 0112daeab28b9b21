/* Further columns of an episode, besides state and actions: timestamps, indexes, rewards. */
#include "base/shortage.h"
#include "datasets/builder.h"
#include "datasets/index.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum weir_column_type type_of(const struct weir_array_shape *shape)
{
    if (shape->is_bool)
        return WEIR_COLUMN_BOOL;
    return shape->element == WEIR_ELEMENT_FLOAT ? WEIR_COLUMN_F32 : WEIR_COLUMN_I64;
}

static enum weir_number_type number_type(enum weir_column_type type)
{
    static const enum weir_number_type types[] = {
        [WEIR_COLUMN_F32] = WEIR_F32, [WEIR_COLUMN_I64] = WEIR_I64, [WEIR_COLUMN_BOOL] = WEIR_U8};
    return types[type];
}

size_t weir_column_bytes(enum weir_column_type type)
{
    return weir_number_bytes(number_type(type));
}

/* Replaces numbers that increase steadily (indexes) or are all equal (the task) by the first one and the step. */
static void compress(struct weir_column *column, int steps)
{
    const int64_t *values = column->values;
    int64_t step = 0;
    if (column->type != WEIR_COLUMN_I64 || column->width != 1)
        return;
    if (steps > 1 && __builtin_sub_overflow(values[1], values[0], &step))
        return;
    for (int t = 1; t < steps; t++) {
        int64_t next;
        if (__builtin_add_overflow(values[t - 1], step, &next) || values[t] != next)
            return;
    }
    column->base = values[0];
    column->step = step;
    free(column->values);
    column->values = NULL;
}

int weir_builder_column(struct weir_episode_builder *builder, const char *name, const char *key, struct weir_err *err)
{
    struct weir_episode *e = builder->episode;
    struct weir_array_shape shape;
    enum weir_number_type type;
    void *values;
    int rc = builder->store->ops->read_numbers(builder->store, key, &type, &values, &shape, err);
    if (rc < 0)
        return rc;
    struct weir_column *more = realloc(e->columns, ((size_t)e->n_columns + 1) * sizeof *more);
    e->columns = more ? more : e->columns;
    struct weir_column column = {.type = type_of(&shape),
                                 .width = shape.rank > 1 ? (int)shape.dims[1] : 1,
                                 .is_list = shape.rank > 1,
                                 .rows = (int)shape.dims[0]};
    size_t n = (size_t)column.rows * (size_t)column.width;
    column.values = more ? malloc(n * weir_column_bytes(column.type) + 1) : NULL;
    if (!column.values) {
        free(values);
        return weir_no_memory(err);
    }
    snprintf(column.name, sizeof column.name, "%s", name);
    weir_numbers_convert(type, values, n, number_type(column.type), column.values);
    free(values);
    compress(&column, column.rows);
    e->bytes += sizeof column + (column.values ? n * weir_column_bytes(column.type) : 0);
    e->columns[e->n_columns++] = column;
    return 0;
}

void weir_columns_close(struct weir_episode *episode)
{
    for (int i = 0; i < episode->n_columns; i++)
        free(episode->columns[i].values);
    free(episode->columns);
    episode->columns = NULL;
    episode->n_columns = 0;
}

int weir_dataset_columns(const struct weir_dataset *dataset)
{
    return dataset->n_episodes ? dataset->episodes[0].n_columns : 0;
}

const char *weir_dataset_column(const struct weir_dataset *dataset, int i, enum weir_column_type *type, int *width)
{
    const struct weir_column *column = &dataset->episodes[0].columns[i];
    *type = column->type;
    *width = column->is_list ? column->width : 0;
    return column->name;
}

void weir_dataset_column_row(const struct weir_dataset *dataset, int episode, int i, int t, void *out)
{
    const struct weir_column *column = &dataset->episodes[episode].columns[i];
    size_t bytes = (size_t)column->width * weir_column_bytes(column->type);
    int64_t value = column->base + column->step * t;
    memcpy(out, column->values ? (const uint8_t *)column->values + (size_t)t * bytes : (const uint8_t *)&value, bytes);
}

bool weir_columns_fit(const struct weir_episode *a, const struct weir_episode *b)
{
    bool fit = a->n_columns == b->n_columns;
    for (int i = 0; i < a->n_columns && fit; i++)
        fit = strcmp(a->columns[i].name, b->columns[i].name) == 0 && a->columns[i].type == b->columns[i].type &&
              a->columns[i].width == b->columns[i].width && a->columns[i].is_list == b->columns[i].is_list;
    return fit;
}

const char *weir_dataset_task(const struct weir_dataset *dataset, int episode, int64_t task)
{
    const struct weir_file_index *file = &dataset->files[dataset->episodes[episode].file];
    return task >= 0 && task < file->n_tasks ? file->tasks[task] : NULL;
}
