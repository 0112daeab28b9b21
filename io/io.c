#include "io/io.h"
#include "base/threads.h"
#include "io/ahead.h"
#include "io/file_set_priv.h"
#include "io/io_ops.h"
#include "origin/origin.h"
#include "weir/recorder.h"
#include "weir/stages.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct weir_reader {
    const struct weir_io_ops *ops;
    struct weir_file_set *set;
    void *shared;
    struct weir_bounce bounce; /* for direct reads */
    struct weir_ahead *ahead;  /* read-ahead of the current task, between weir_reader_begin and weir_reader_end */
    struct weir_ahead_taken taken;
    struct weir_err err;                   /* of the last read, if it failed and the engine has set it */
    _Atomic uint64_t reads, bytes, staged; /* written only by the reader's thread */
};

int weir_reader_open(struct weir_reader **out, const char *engine, struct weir_file_set *set, struct weir_err *err)
{
    *out = NULL;
    int rc = weir_file_set_align(set) > 1 ? weir_io_check_direct(engine, err) : weir_io_check(engine, err);
    if (rc < 0)
        return rc;
    const struct weir_io_ops *ops = weir_io_find(engine);
    void *shared = NULL;
    if (ops->is_remote != (weir_file_set_origin(set) != NULL))
        return weir_err_set(err, -EINVAL, "io engine %s does not read these files; use --io %s", engine,
                            weir_file_set_engine(set));
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
    if (*reader)
        free((*reader)->bounce.bytes);
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
    size_t align = weir_file_set_align(reader->set);
    int rc = align > 1 ? weir_direct_read(&reader->bounce, fd, align, offset, length, data)
                       : reader->ops->read(reader->shared, file, fd, offset, length, buffer, data, &reader->err);
    return rc < 0 || reader->ops->from_memory ? rc : weir_file_check(reader->set, file, fd);
}

/* Returns 0, -ESTALE, or 1 after any other error. A failed merged read does not prove that this extent is unreadable,
 * so the caller then reads the extent by itself. */
static int wait_timed(struct weir_reader *reader, int file, int entry, const uint8_t **data)
{
    WEIR_ZONE(WEIR_STAGE_READ_BYTES);
    int fd;
    if (weir_ahead_wait(reader->ahead, entry, data) < 0 || weir_file_acquire(reader->set, file, &fd) < 0)
        return 1;
    int rc = weir_file_check(reader->set, file, fd);
    weir_file_release(reader->set, file);
    return rc;
}

static int read_now(struct weir_reader *reader, int file, uint64_t offset, size_t length, void *buffer,
                    const uint8_t **data)
{
    int fd;
    reader->err.code = 0;
    int rc = acquire(reader->set, file, &fd);
    if (rc < 0)
        return rc;
    rc = read_timed(reader, file, fd, offset, length, buffer, data);
    weir_file_release(reader->set, file);
    return rc;
}

/* Returns the number of bytes from the start of the extent on that were read ahead, which *data then points to; 0 if
 * there are none; or -ESTALE. */
static ssize_t read_ahead(struct weir_reader *reader, const struct weir_extent *extent, const uint8_t **data)
{
    size_t length = 0;
    int entry = reader->ahead ? weir_ahead_find(reader->ahead, &reader->taken, extent, &length) : -1;
    if (entry < 0 || weir_file_set_is_spoiled(reader->set, extent->file))
        return 0;
    int rc = wait_timed(reader, extent->file, entry, data);
    return rc < 0 ? rc : rc == 0 ? (ssize_t)length : 0;
}

int weir_read(struct weir_reader *reader, int file, uint64_t offset, size_t length, void *buffer, const uint8_t **data)
{
    bool ahead = true;
    size_t at = 0;
    do { /* usually once; an extent that was read ahead in several parts is joined in the buffer */
        const struct weir_extent rest = {file, offset + at, length - at};
        uint8_t *to = (uint8_t *)buffer + at;
        const uint8_t *part = NULL;
        ssize_t found = read_ahead(reader, &rest, &part);
        if (found == 0) {
            int rc = read_now(reader, file, rest.offset, rest.length, to, &part);
            found = rc < 0 ? rc : (ssize_t)rest.length;
            ahead = false;
        }
        if (found < 0)
            return (int)found;
        *data = (size_t)found == length ? part : buffer;
        if (*data == buffer && part != to)
            memcpy(to, part, (size_t)found);
        at += (size_t)found;
    } while (at < length);
    weir_counter_add(&reader->reads, 1);
    weir_counter_add(&reader->bytes, length);
    weir_counter_add(&reader->staged, ahead);
    return 0;
}

void weir_reader_begin(struct weir_reader *reader, struct weir_ahead *ahead, uint64_t task_id)
{
    reader->ahead = ahead;
    if (!ahead)
        return;
    WEIR_ZONE(WEIR_STAGE_WAIT_AHEAD);
    weir_ahead_take(ahead, task_id, &reader->taken);
}

void weir_reader_end(struct weir_reader *reader)
{
    if (!reader->ahead)
        return;
    WEIR_ZONE(WEIR_STAGE_WAIT_AHEAD);
    weir_ahead_end(reader->ahead, &reader->taken);
    reader->ahead = NULL;
}

const char *weir_read_reason(int code)
{
    switch (code) {
    case -ENODATA:
        return "the file is shorter than its index says (truncated?)";
    case -ESTALE:
        return "the file changed since it was opened; rerun to index it again";
    case -EIO:
        return "the storage failed to read the file (Input/output error)";
    default:
        return strerror(-code);
    }
}

const char *weir_reader_reason(const struct weir_reader *reader, int code)
{
    return reader->err.code == code && code < 0 ? reader->err.text : weir_read_reason(code);
}

void weir_reader_counts(const struct weir_reader *reader, struct weir_read_counts *counts)
{
    counts->reads = atomic_load_explicit(&reader->reads, memory_order_relaxed);
    counts->bytes = atomic_load_explicit(&reader->bytes, memory_order_relaxed);
    counts->ahead = atomic_load_explicit(&reader->staged, memory_order_relaxed);
}
