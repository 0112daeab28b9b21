/* The texts of tasks: meta/tasks.jsonl in version 2.1, meta/tasks.parquet in version 3.0, whose row is the task's
 * number. */
#include "base/shortage.h"
#include "datasets/json_object.h"
#include "datasets/lerobot/lerobot_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#define LINES "meta/tasks.jsonl"
#define TABLE "meta/tasks.parquet"
enum { TASKS_MAX = 1000 * 1000 };

/* Makes room for task `number`. */
static int reserve(char ***tasks, int *n, int64_t number, struct weir_err *err)
{
    if (number < 0 || number >= TASKS_MAX)
        return weir_err_set(err, -EBADMSG, "the tasks' numbers must be from 0 to %d", TASKS_MAX - 1);
    if (number < *n)
        return 0;
    char **more = realloc(*tasks, (size_t)(number + 1) * sizeof *more);
    if (!more)
        return weir_no_memory(err);
    memset(more + *n, 0, (size_t)(number + 1 - *n) * sizeof *more);
    *tasks = more;
    *n = (int)number + 1;
    return 0;
}

static int add(char ***tasks, int *n, int64_t number, const char *text, size_t length, struct weir_err *err)
{
    int rc = reserve(tasks, n, number, err);
    if (rc < 0)
        return rc;
    free((*tasks)[number]);
    (*tasks)[number] = strndup(text, length);
    return (*tasks)[number] ? 0 : weir_no_memory(err);
}

static int read_line(const char *line, size_t length, int number, char ***tasks, int *n, struct weir_err *err)
{
    json_t *object;
    struct weir_err why = WEIR_ERR_NONE;
    int rc = weir_json_object_parse(line, length, &object, &why);
    if (rc < 0)
        return weir_err_set(err, rc, LINES ": line %d: %s", number, why.text);
    json_t *index = json_object_get(object, "task_index"), *task = json_object_get(object, "task");
    rc = json_is_integer(index) && json_is_string(task)
             ? add(tasks, n, json_integer_value(index), json_string_value(task), json_string_length(task), err)
             : weir_err_set(err, -EBADMSG, LINES ": line %d: needs a task_index and a task", number);
    json_decref(object);
    return rc;
}

static int read_lines(struct weir_lerobot *lerobot, char ***tasks, int *n, struct weir_err *err)
{
    char *text;
    size_t size;
    int rc = weir_lerobot_read(lerobot, LINES, &text, &size, err), number = 0;
    const char *end = text + size;
    for (const char *line = text; rc == 0 && line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        size_t length = (size_t)((stop ? stop : end) - line);
        number++;
        if (length > 0 && strspn(line, " \r\t") < length)
            rc = read_line(line, length, number, tasks, n, err);
        line += length + 1;
    }
    free(text);
    return rc;
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

static int read_table(struct weir_lerobot *lerobot, char ***tasks, int *n, struct weir_err *err)
{
    char path[WEIR_PART_PATH_MAX];
    struct weir_parquet *parquet;
    struct weir_parquet_bytes texts = {0};
    struct weir_err why = WEIR_ERR_NONE;
    snprintf(path, sizeof path, "%s/" TABLE, lerobot->path);
    int rc = weir_parquet_open(&parquet, path, &why), column = rc == 0 ? text_column(parquet) : -ENOENT;
    if (rc == 0 && column < 0)
        rc = weir_err_set(&why, -EBADMSG, "has no column of texts");
    if (rc == 0)
        rc = weir_parquet_bytes(parquet, column, 0, weir_parquet_rows(parquet), &texts, &why);
    for (uint64_t i = 0; rc == 0 && i < texts.n; i++) {
        uint64_t begin = i ? texts.ends[i - 1] : 0;
        rc = add(tasks, n, (int64_t)i, (const char *)texts.data + begin, (size_t)(texts.ends[i] - begin), &why);
    }
    weir_parquet_bytes_free(&texts);
    weir_parquet_close(&parquet);
    return rc < 0 ? weir_err_set(err, rc, TABLE ": %s", why.text) : 0;
}

int weir_lerobot_read_tasks(struct weir_lerobot *lerobot, char ***tasks, int *n, struct weir_err *err)
{
    return lerobot->is_third ? read_table(lerobot, tasks, n, err) : read_lines(lerobot, tasks, n, err);
}
