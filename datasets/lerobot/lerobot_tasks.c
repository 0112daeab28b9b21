/* The texts of tasks: meta/tasks.jsonl in version 2.1, meta/tasks.parquet in version 3.0, whose row is the task's
 * number. Subtasks are only in version 3.0: meta/subtasks.parquet, which is optional. */
#include "base/shortage.h"
#include "datasets/lerobot/lerobot_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#define LINES    "meta/tasks.jsonl"
#define TABLE    "meta/tasks.parquet"
#define SUBTASKS "meta/subtasks.parquet"
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

static int add(struct weir_tasks *tasks, int64_t number, const char *text, size_t length, struct weir_err *err)
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
               ? add(user, json_integer_value(index), json_string_value(task), json_string_length(task), err)
               : weir_err_set(err, -EBADMSG, LINES ": line %d: needs a task_index and a task; correct it", line);
}

/* pandas writes the texts as the table's index, whose column has no fixed name. */
static int text_column(const struct weir_parquet *parquet)
{
    for (int i = 0; i < weir_parquet_columns(parquet); i++) {
        struct weir_parquet_column column;
        weir_parquet_column(parquet, i, &column);
        if (column.kind == WEIR_PARQUET_BYTES && column.list_depth == 0)
            return i;
    }
    return -ENOENT;
}

static int read_table(struct weir_lerobot *lerobot, const char *name, struct weir_tasks *tasks, struct weir_err *err)
{
    char path[WEIR_PART_PATH_MAX];
    struct weir_parquet *parquet;
    struct weir_parquet_bytes texts = {0};
    struct weir_err why = WEIR_ERR_NONE;
    int rc = weir_lerobot_path(lerobot, name, path, err);
    if (rc < 0)
        return rc;
    rc = weir_parquet_open(&parquet, lerobot->origin, path, &why);
    int column = rc == 0 ? text_column(parquet) : -ENOENT;
    if (rc == 0 && column < 0)
        rc = weir_err_set(&why, -EBADMSG, "has no column of texts; copy the file again");
    if (rc == 0)
        rc = weir_parquet_bytes(parquet, column, 0, weir_parquet_rows(parquet), &texts, &why);
    for (uint64_t i = 0; rc == 0 && i < texts.n; i++) {
        size_t length;
        const char *text = (const char *)weir_parquet_value(&texts, i, &length);
        rc = add(tasks, (int64_t)i, text, length, &why);
    }
    weir_parquet_bytes_free(&texts);
    weir_parquet_close(&parquet);
    return rc < 0 ? weir_err_set(err, rc, "%s: %s", name, why.text) : 0;
}

int weir_lerobot_read_tasks(struct weir_lerobot *lerobot, struct weir_tasks *tasks, struct weir_err *err)
{
    return lerobot->is_third ? read_table(lerobot, TABLE, tasks, err)
                             : weir_lerobot_read_lines(lerobot, LINES, add_line, tasks, err);
}

int weir_lerobot_read_subtasks(struct weir_lerobot *lerobot, struct weir_tasks *subtasks, struct weir_err *err)
{
    bool exists =
        lerobot->is_third && weir_lerobot_feature(lerobot, "subtask_index") >= 0 && weir_lerobot_has(lerobot, SUBTASKS);
    return exists ? read_table(lerobot, SUBTASKS, subtasks, err) : 0;
}
