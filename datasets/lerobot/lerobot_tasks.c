/* The texts of tasks: meta/tasks.jsonl in version 2.1, meta/tasks.parquet in version 3.0. Subtasks are only in version
 * 3.0: meta/subtasks.parquet, which is optional. */
#include "base/shortage.h"
#include "datasets/lerobot/lerobot_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#define LINES "meta/tasks.jsonl"
enum { TASKS_MAX = 1000 * 1000 };

/* Makes room for task `number`. */
static int reserve(struct weir_tasks *tasks, int64_t number, struct weir_err *err)
{
    if (number < 0 || number >= TASKS_MAX)
        return weir_err_set(err, -EBADMSG, "the tasks' numbers must be from 0 to %d; correct them", TASKS_MAX - 1);
    if (number < tasks->n)
        return 0;
    char **more = realloc(tasks->texts, (size_t)(number + 1) * sizeof *more);
    if (!more)
        return weir_no_memory(err);
    memset(more + tasks->n, 0, (size_t)(number + 1 - tasks->n) * sizeof *more);
    tasks->texts = more;
    tasks->n = (int)number + 1;
    return 0;
}

int weir_lerobot_add_task(struct weir_tasks *tasks, int64_t number, const char *text, size_t length,
                          struct weir_err *err)
{
    int rc = reserve(tasks, number, err);
    if (rc < 0)
        return rc;
    free(tasks->texts[number]);
    tasks->texts[number] = strndup(text, length);
    return tasks->texts[number] ? 0 : weir_no_memory(err);
}

static int add_line(void *user, json_t *object, int line, struct weir_err *err)
{
    json_t *index = json_object_get(object, "task_index"), *task = json_object_get(object, "task");
    return json_is_integer(index) && json_is_string(task)
               ? weir_lerobot_add_task(user, json_integer_value(index), json_string_value(task),
                                       json_string_length(task), err)
               : weir_err_set(err, -EBADMSG, LINES ": line %d: needs a task_index and a task; correct it", line);
}

/* Returns the column of texts. pandas writes them as the table's index, which may have no name. */
static int text_column(const struct weir_parquet *parquet, const char *name)
{
    int first = -ENOENT;
    for (int i = weir_parquet_columns(parquet) - 1; i >= 0; i--) {
        struct weir_parquet_column column;
        weir_parquet_column(parquet, i, &column);
        if (column.kind != WEIR_PARQUET_BYTES || column.list_depth > 0)
            continue;
        if (strcmp(column.name, name) == 0)
            return i;
        first = i;
    }
    return first;
}

/* A table of texts and their numbers. Without a column of numbers, the row is the number. */
struct table {
    const char *file, *text, *number;
};
static const struct table tasks_table = {"meta/tasks.parquet", "task", "task_index"},
                          subtasks_table = {"meta/subtasks.parquet", "subtask", "subtask_index"};

static int add_rows(struct weir_parquet *parquet, const struct table *table, struct weir_tasks *tasks,
                    struct weir_err *err)
{
    struct weir_parquet_bytes texts = {0};
    struct weir_err why = WEIR_ERR_NONE;
    void *read = NULL;
    int rc = 0, column = text_column(parquet, table->text);
    if (column < 0)
        return weir_err_set(err, -EBADMSG, "%s: has no column of texts; copy the file again", table->file);
    if (weir_parquet_find(parquet, table->number, NULL) >= 0)
        rc = weir_lerobot_read_numbers(parquet, table->file, table->number, WEIR_I64, &read, err);
    if (rc == 0 && (rc = weir_parquet_bytes(parquet, column, 0, weir_parquet_rows(parquet), &texts, &why)) < 0)
        weir_err_set(err, rc, "%s: %s", table->file, why.text);
    const int64_t *numbers = read;
    for (uint64_t i = 0; rc == 0 && i < texts.n; i++) {
        size_t length;
        const char *text = (const char *)weir_parquet_value(&texts, i, &length);
        int64_t number = numbers ? numbers[i] : (int64_t)i;
        tasks->is_unsorted |= number != (int64_t)i;
        if ((rc = weir_lerobot_add_task(tasks, number, text, length, &why)) < 0)
            weir_err_set(err, rc, "%s: %s", table->file, why.text);
    }
    weir_parquet_bytes_free(&texts);
    free(read);
    return rc;
}

static int read_table(struct weir_lerobot *lerobot, const struct table *table, struct weir_tasks *tasks,
                      struct weir_err *err)
{
    char path[WEIR_PART_PATH_MAX];
    struct weir_parquet *parquet;
    struct weir_err why = WEIR_ERR_NONE;
    int rc = weir_lerobot_path(lerobot, table->file, path, err);
    if (rc < 0)
        return rc;
    rc = weir_parquet_open(&parquet, lerobot->origin, path, &why);
    if (rc < 0)
        return weir_err_set(err, rc, "%s: %s", table->file, why.text);
    rc = add_rows(parquet, table, tasks, err);
    weir_parquet_close(&parquet);
    return rc;
}

int weir_lerobot_read_tasks(struct weir_lerobot *lerobot, struct weir_tasks *tasks, struct weir_err *err)
{
    return lerobot->is_third ? read_table(lerobot, &tasks_table, tasks, err)
                             : weir_lerobot_read_lines(lerobot, LINES, add_line, tasks, err);
}

int weir_lerobot_read_subtasks(struct weir_lerobot *lerobot, struct weir_tasks *subtasks, struct weir_err *err)
{
    const struct table *table = &subtasks_table;
    bool exists = lerobot->is_third && weir_lerobot_feature(lerobot, table->number) >= 0 &&
                  weir_lerobot_has(lerobot, table->file);
    return exists ? read_table(lerobot, table, subtasks, err) : 0;
}
