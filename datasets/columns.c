/* Further columns of an episode, besides state and actions: timestamps, indexes, rewards. */
#include "base/grow.h"
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

static struct weir_column_shape shape_of(const struct weir_array_shape *shape)
{
    struct weir_column_shape row = {.type = type_of(shape)};
    for (int d = 1; d < shape->rank && row.rank < WEIR_COLUMN_RANK_MAX; d++)
        row.dims[row.rank++] = (int)shape->dims[d];
    return row;
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
    if (column->shape.type != WEIR_COLUMN_I64 || column->width != 1)
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
    struct weir_column column = {.shape = shape_of(&shape), .width = 1, .rows = (int)shape.dims[0]};
    for (int d = 0; d < column.shape.rank; d++)
        column.width *= column.shape.dims[d];
    size_t n = (size_t)column.rows * (size_t)column.width, bytes = weir_column_bytes(column.shape.type);
    column.values = more ? malloc(n * bytes + 1) : NULL;
    if (!column.values) {
        free(values);
        return weir_no_memory(err);
    }
    snprintf(column.name, sizeof column.name, "%s", name);
    weir_numbers_convert(type, values, n, number_type(column.shape.type), column.values);
    free(values);
    compress(&column, column.rows);
    e->bytes += sizeof column + (column.values ? n * bytes : 0);
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
    for (int i = 0; i < episode->n_text_columns; i++) {
        for (int k = 0; k < episode->text_columns[i].n_runs; k++)
            free(episode->text_columns[i].runs[k].text);
        free(episode->text_columns[i].runs);
    }
    free(episode->text_columns);
    episode->text_columns = NULL;
    episode->n_text_columns = 0;
}

int weir_dataset_columns(const struct weir_dataset *dataset)
{
    return dataset->n_episodes ? dataset->episodes[0].n_columns : 0;
}

const char *weir_dataset_column(const struct weir_dataset *dataset, int i, struct weir_column_shape *shape)
{
    const struct weir_column *column = &dataset->episodes[0].columns[i];
    if (shape)
        *shape = column->shape;
    return column->name;
}

void weir_dataset_column_row(const struct weir_dataset *dataset, int episode, int i, int t, void *out)
{
    const struct weir_column *column = &dataset->episodes[episode].columns[i];
    size_t bytes = (size_t)column->width * weir_column_bytes(column->shape.type);
    int64_t value = column->base + column->step * t;
    memcpy(out, column->values ? (const uint8_t *)column->values + (size_t)t * bytes : (const uint8_t *)&value, bytes);
}

/* One number per row may be stored in a list or not. */
static bool is_same_shape(const struct weir_column *a, const struct weir_column *b)
{
    return a->shape.type == b->shape.type && a->width == b->width &&
           (a->width == 1 || memcmp(&a->shape, &b->shape, sizeof a->shape) == 0);
}

const char *weir_columns_misfit(const struct weir_episode *a, const struct weir_episode *b)
{
    int n = a->n_columns < b->n_columns ? a->n_columns : b->n_columns;
    for (int i = 0; i < n; i++)
        if (strcmp(a->columns[i].name, b->columns[i].name) != 0 || !is_same_shape(&a->columns[i], &b->columns[i]))
            return a->columns[i].name;
    if (a->n_columns != b->n_columns)
        return a->n_columns > n ? a->columns[n].name : b->columns[n].name;
    n = a->n_text_columns < b->n_text_columns ? a->n_text_columns : b->n_text_columns;
    for (int i = 0; i < n; i++)
        if (strcmp(a->text_columns[i].name, b->text_columns[i].name) != 0)
            return a->text_columns[i].name;
    if (a->n_text_columns != b->n_text_columns)
        return a->n_text_columns > n ? a->text_columns[n].name : b->text_columns[n].name;
    return NULL;
}

/* ---- strings ---- */

static int add_run(struct weir_text_column *column, int row, const char *text, size_t length, struct weir_err *err)
{
    struct weir_text_run *last = column->n_runs ? &column->runs[column->n_runs - 1] : NULL;
    if (last && strlen(last->text) == length && memcmp(last->text, text, length) == 0)
        return 0;
    if (!weir_grow(&column->runs, (size_t)column->n_runs, sizeof *column->runs))
        return weir_no_memory(err);
    char *copy = strndup(text, length);
    if (!copy)
        return weir_no_memory(err);
    column->runs[column->n_runs++] = (struct weir_text_run){row, copy};
    return 0;
}

int weir_episode_text_column(struct weir_episode *e, const char *name, int rows, weir_text_of_row *row,
                             const void *user, struct weir_err *err)
{
    if (!weir_grow(&e->text_columns, (size_t)e->n_text_columns, sizeof *e->text_columns))
        return weir_no_memory(err);
    struct weir_text_column *column = &e->text_columns[e->n_text_columns++];
    *column = (struct weir_text_column){0};
    snprintf(column->name, sizeof column->name, "%s", name);
    int rc = 0;
    for (int t = 0; t < rows && rc == 0; t++) {
        size_t length;
        const char *text = row(user, t, &length);
        rc = add_run(column, t, text, length, err);
    }
    for (int i = 0; i < column->n_runs; i++)
        e->bytes += sizeof *column->runs + strlen(column->runs[i].text) + 1;
    return rc;
}

int weir_dataset_text_columns(const struct weir_dataset *dataset)
{
    return dataset->n_episodes ? dataset->episodes[0].n_text_columns : 0;
}

const char *weir_dataset_text_column(const struct weir_dataset *dataset, int i)
{
    return dataset->episodes[0].text_columns[i].name;
}

const char *weir_dataset_text_row(const struct weir_dataset *dataset, int episode, int i, int t)
{
    const struct weir_text_column *column = &dataset->episodes[episode].text_columns[i];
    return column->runs[WEIR_FIRST(run, column->n_runs - 1, column->runs[run + 1].first > t)].text;
}

/* ---- tasks ---- */

static const struct weir_file_index *file_of(const struct weir_dataset *dataset, int episode)
{
    return &dataset->files[dataset->episodes[episode].file];
}

static const char *text_of(const struct weir_tasks *tasks, int64_t number)
{
    return number >= 0 && number < tasks->n ? tasks->texts[number] : NULL;
}

const char *weir_dataset_task(const struct weir_dataset *dataset, int episode, int64_t task)
{
    return text_of(&file_of(dataset, episode)->tasks, task);
}

const char *weir_dataset_subtask(const struct weir_dataset *dataset, int episode, int64_t subtask)
{
    return text_of(&file_of(dataset, episode)->subtasks, subtask);
}

bool weir_dataset_has_subtasks(const struct weir_dataset *dataset, int episode)
{
    return file_of(dataset, episode)->subtasks.n > 0;
}

void weir_tasks_close(struct weir_tasks *tasks)
{
    for (int i = 0; i < tasks->n; i++)
        free(tasks->texts[i]);
    free(tasks->texts);
    *tasks = (struct weir_tasks){0};
}
