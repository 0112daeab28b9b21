#include "io/io.h"
#include "io/file_set_priv.h"
#include "io/io_ops.h"
#include "prof/recorder.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct weir_io_ops *const engines[] = {&weir_io_pread, &weir_io_null};
enum { ENGINE_COUNT = sizeof engines / sizeof engines[0] };

struct weir_reader {
    const struct weir_io_ops *ops;
    struct weir_file_set *set;
    void *shared;
    _Atomic uint64_t reads, bytes; /* one writer */
};

bool weir_io_row(int i, const char **name, const char **summary, const char **why_not)
{
    if (i < 0 || i >= ENGINE_COUNT)
        return false;
    *name = engines[i]->name;
    *summary = engines[i]->summary;
    *why_not = engines[i]->why_not;
    return true;
}

static const struct weir_io_ops *find(const char *name)
{
    for (int i = 0; i < ENGINE_COUNT; i++)
        if (strcmp(engines[i]->name, name) == 0)
            return engines[i];
    return NULL;
}

int weir_io_check(const char *engine, struct weir_err *err)
{
    const struct weir_io_ops *ops = find(engine);
    if (ops && ops->why_not)
        return weir_err_set(err, -ENOTSUP, "io engine %s is not there: %s", engine, ops->why_not);
    if (ops)
        return 0;
    char names[128] = "";
    for (int i = 0; i < ENGINE_COUNT; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "", engines[i]->name);
    return weir_err_set(err, -EINVAL, "no io engine is named \"%s\"; there are %s", engine, names);
}

int weir_reader_open(struct weir_reader **out, const char *engine, struct weir_file_set *set, struct weir_err *err)
{
    *out = NULL;
    int rc = weir_io_check(engine, err);
    if (rc < 0)
        return rc;
    const struct weir_io_ops *ops = find(engine);
    void *shared = NULL;
    rc = weir_file_set_share(set, ops, &shared, err);
    if (rc < 0)
        return rc;
    struct weir_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return weir_err_set(err, -ENOMEM, "out of memory");
    reader->ops = ops;
    reader->set = set;
    reader->shared = shared;
    *out = reader;
    return 0;
}

void weir_reader_close(struct weir_reader **reader)
{
    free(*reader);
    *reader = NULL;
}

static int acquire(struct weir_file_set *set, int file, int *fd)
{
    WEIR_ZONE(WEIR_STAGE_FILE_CACHE);
    return weir_file_acquire(set, file, fd);
}

static int read_timed(struct weir_reader *reader, int file, int fd, uint64_t offset, size_t length, void *buffer,
                      const uint8_t **data)
{
    WEIR_ZONE(WEIR_STAGE_READ_BYTES);
    return reader->ops->read(reader->shared, file, fd, offset, length, buffer, data);
}

int weir_read(struct weir_reader *reader, int file, uint64_t offset, size_t length, void *buffer, const uint8_t **data)
{
    int fd;
    int rc = acquire(reader->set, file, &fd);
    if (rc < 0)
        return rc;
    rc = read_timed(reader, file, fd, offset, length, buffer, data);
    weir_file_release(reader->set, file);
    if (rc < 0)
        return rc;
    atomic_store_explicit(&reader->reads, reader->reads + 1, memory_order_relaxed);
    atomic_store_explicit(&reader->bytes, reader->bytes + length, memory_order_relaxed);
    return 0;
}

const char *weir_read_reason(int code)
{
    switch (code) {
    case -ENODATA:
        return "the file is shorter than its index says (truncated?)";
    case -ESTALE:
        return "the file changed since it was opened; run again to index it anew";
    default:
        return strerror(-code);
    }
}

void weir_reader_counts(const struct weir_reader *reader, struct weir_read_counts *counts)
{
    counts->reads = atomic_load_explicit(&reader->reads, memory_order_relaxed);
    counts->bytes = atomic_load_explicit(&reader->bytes, memory_order_relaxed);
}
