/* The table of I/O engines. */
#include "io/io_ops.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The first row is the default engine. */
static const struct weir_io_ops *const rows[] = {&weir_io_pread, &weir_io_mmap, &weir_io_uring, &weir_io_http,
                                                 &weir_io_null};
enum { ROWS = sizeof rows / sizeof rows[0] };

const struct weir_io_ops *weir_io_ops_at(int row)
{
    return row >= 0 && row < ROWS ? rows[row] : NULL;
}

const struct weir_io_ops *weir_io_find(const char *name)
{
    for (int i = 0; i < ROWS; i++)
        if (strcmp(rows[i]->name, name) == 0)
            return rows[i];
    return NULL;
}

bool weir_io_row(int i, const char **name, const char **summary, const char **why_not)
{
    const struct weir_io_ops *ops = weir_io_ops_at(i);
    if (!ops)
        return false;
    *name = ops->name;
    *summary = ops->summary;
    *why_not = ops->why_not;
    return true;
}

int weir_io_check(const char *engine, struct weir_err *err)
{
    const struct weir_io_ops *ops = weir_io_find(engine);
    if (ops && ops->why_not)
        return weir_err_set(err, -ENOTSUP, "io engine %s is not available: %s", engine, ops->why_not);
    if (ops)
        return 0;
    char names[128] = "auto";
    for (int i = 0; i < ROWS; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), ", %s", rows[i]->name);
    return weir_err_set(err, -EINVAL, "unknown io engine \"%s\"; choose one of %s", engine, names);
}

int weir_io_ready(const char *engine, struct weir_err *err)
{
    int rc = weir_io_check(engine, err);
    const struct weir_io_ops *ops = weir_io_find(engine);
    return rc == 0 && ops && ops->ready ? ops->ready(err) : rc;
}

int weir_io_check_direct(const char *engine, struct weir_err *err)
{
    int rc = weir_io_check(engine, err);
    if (rc < 0 || weir_io_find(engine)->can_direct)
        return rc;
    char names[128] = "";
    for (int i = 0; i < ROWS; i++)
        if (rows[i]->can_direct)
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", names[0] ? " or " : "",
                     rows[i]->name);
    return weir_err_set(err, -EINVAL, "io engine %s does not support direct reads; use --io %s", engine, names);
}

const char *weir_io_default(void)
{
    return rows[0]->name;
}

const char *weir_file_set_engine(const struct weir_file_set *set)
{
    const struct weir_origin *origin = weir_file_set_origin(set);
    return origin ? origin->ops->engine : weir_io_default();
}

bool weir_io_from_memory(const char *engine)
{
    const struct weir_io_ops *ops = weir_io_find(engine);
    return ops && ops->from_memory;
}

bool weir_io_is_remote(const char *engine)
{
    const struct weir_io_ops *ops = weir_io_find(engine);
    return ops && ops->is_remote;
}

bool weir_io_maps(const char *engine)
{
    const struct weir_io_ops *ops = weir_io_find(engine);
    return ops && ops->maps;
}

bool weir_io_has_depth(const char *engine)
{
    const struct weir_io_ops *ops = weir_io_find(engine);
    return ops && ops->ring;
}
