#include "base/files.h"
#include "base/hash.h"
#include "datasets/tfrecord/tfrecord_writer_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER = 1 << 20 };

int weir_record_open(struct weir_record_writer *w, int fd, const struct weir_spool *spool)
{
    *w = (struct weir_record_writer){.fd = fd, .spool = spool, .buffer = malloc(BUFFER)};
    return w->buffer ? 0 : -ENOMEM;
}

void weir_record_close(struct weir_record_writer *w)
{
    free(w->buffer);
    free(w->frame);
    *w = (struct weir_record_writer){.fd = -1};
}

/* ---- sizes ---- */

static uint64_t varint_bytes(uint64_t value)
{
    uint64_t n = 1;
    while (value >>= 7)
        n++;
    return n;
}

/* Returns the size of a field of wire type 2, including its tag and length. Field numbers are below 16. */
static uint64_t field_bytes(uint64_t content)
{
    return 1 + varint_bytes(content) + content;
}

static uint64_t packed_bytes(const struct weir_list *list)
{
    if (list->kind == WEIR_LIST_FLOATS)
        return list->n * sizeof(float);
    uint64_t bytes = 0;
    const int64_t *values = list->values;
    for (uint64_t i = 0; i < list->n; i++)
        bytes += varint_bytes((uint64_t)values[i]);
    return bytes;
}

static uint64_t list_bytes(const struct weir_record_writer *w, const struct weir_list *list)
{
    uint64_t bytes = 0;
    if (list->kind == WEIR_LIST_FLOATS || list->kind == WEIR_LIST_INTEGERS)
        return field_bytes(packed_bytes(list));
    if (list->kind == WEIR_LIST_TEXTS)
        return list->n * field_bytes(strlen(list->text));
    const size_t *lengths = w->spool->lengths + list->first;
    for (uint64_t t = 0; t < list->n; t++)
        bytes += field_bytes(lengths[t]);
    return bytes;
}

static uint64_t entry_bytes(const struct weir_list *list)
{
    return field_bytes(strlen(list->name)) + field_bytes(field_bytes(list->bytes));
}

/* ---- writing ---- */

static int flush(struct weir_record_writer *w)
{
    w->crc = weir_crc32c(w->crc, w->buffer, w->buffered);
    int rc = weir_write_at(w->fd, w->at, w->buffer, w->buffered);
    if (rc < 0)
        return rc;
    w->at += w->buffered;
    w->buffered = 0;
    return 0;
}

static int put(struct weir_record_writer *w, const void *bytes, size_t n)
{
    const uint8_t *from = bytes;
    int rc = 0;
    while (n > 0 && rc == 0) {
        size_t part = n < BUFFER - w->buffered ? n : BUFFER - w->buffered;
        memcpy(w->buffer + w->buffered, from, part);
        w->buffered += part;
        from += part;
        n -= part;
        if (w->buffered == BUFFER)
            rc = flush(w);
    }
    return rc;
}

static int put_varint(struct weir_record_writer *w, uint64_t value)
{
    uint8_t bytes[10];
    size_t n = 0;
    do {
        bytes[n++] = (uint8_t)((value & 127) | (value > 127 ? 128 : 0));
    } while (value >>= 7);
    return put(w, bytes, n);
}

/* Writes the tag and length of a field of wire type 2. */
static int put_head(struct weir_record_writer *w, unsigned number, uint64_t content)
{
    int rc = put_varint(w, (uint64_t)number << 3 | 2);
    return rc < 0 ? rc : put_varint(w, content);
}

static int put_frames(struct weir_record_writer *w, const struct weir_list *list, struct weir_err *err)
{
    uint64_t at = 0;
    for (size_t i = 0; i < list->first; i++)
        at += w->spool->lengths[i];
    int rc = 0;
    for (uint64_t t = 0; t < list->n && rc == 0; t++) {
        size_t length = w->spool->lengths[list->first + t];
        rc = weir_spool_get(w->spool, at, w->frame, length, err);
        if (rc == 0)
            rc = put_head(w, 1, length);
        if (rc == 0)
            rc = put(w, w->frame, length);
        at += length;
    }
    return rc;
}

/* Writes packed numbers, as tensorflow does. */
static int put_numbers(struct weir_record_writer *w, const struct weir_list *list)
{
    const int64_t *integers = list->values;
    int rc = put_head(w, 1, packed_bytes(list));
    if (rc == 0 && list->kind == WEIR_LIST_FLOATS)
        return put(w, list->values, (size_t)list->n * sizeof(float));
    for (uint64_t i = 0; i < list->n && rc == 0; i++)
        rc = put_varint(w, (uint64_t)integers[i]);
    return rc;
}

static int put_texts(struct weir_record_writer *w, const struct weir_list *list)
{
    size_t length = strlen(list->text);
    int rc = 0;
    for (uint64_t i = 0; i < list->n && rc == 0; i++) {
        rc = put_head(w, 1, length);
        if (rc == 0)
            rc = put(w, list->text, length);
    }
    return rc;
}

static int put_entry(struct weir_record_writer *w, const struct weir_list *list, struct weir_err *err)
{
    unsigned field = list->kind == WEIR_LIST_TEXTS ? (unsigned)WEIR_LIST_FRAMES : (unsigned)list->kind;
    size_t name = strlen(list->name);
    int rc = put_head(w, 1, entry_bytes(list));
    if (rc == 0)
        rc = put_head(w, 1, name);
    if (rc == 0)
        rc = put(w, list->name, name);
    if (rc == 0)
        rc = put_head(w, 2, field_bytes(list->bytes));
    if (rc == 0)
        rc = put_head(w, field, list->bytes);
    if (rc < 0)
        return rc;
    if (list->kind == WEIR_LIST_FRAMES)
        return put_frames(w, list, err);
    return list->kind == WEIR_LIST_TEXTS ? put_texts(w, list) : put_numbers(w, list);
}

static uint64_t features_bytes(const struct weir_list *lists, int n)
{
    uint64_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += field_bytes(entry_bytes(&lists[i]));
    return bytes;
}

uint64_t weir_record_bytes(const struct weir_record_writer *w, struct weir_list *lists, int n)
{
    for (int i = 0; i < n; i++)
        lists[i].bytes = list_bytes(w, &lists[i]);
    return field_bytes(features_bytes(lists, n));
}

static int put_length(struct weir_record_writer *w, uint64_t length)
{
    uint32_t crc = weir_crc32c_masked(&length, sizeof length);
    int rc = put(w, &length, sizeof length);
    if (rc == 0)
        rc = put(w, &crc, sizeof crc);
    return rc < 0 ? rc : flush(w);
}

static int put_data(struct weir_record_writer *w, const struct weir_list *lists, int n, struct weir_err *err)
{
    w->crc = 0;
    int rc = put_head(w, 1, features_bytes(lists, n));
    for (int i = 0; i < n && rc == 0; i++)
        rc = put_entry(w, &lists[i], err);
    return rc < 0 ? rc : flush(w);
}

static int reserve_frame(struct weir_record_writer *w)
{
    if (w->spool->longest <= w->frame_bytes)
        return 0;
    free(w->frame);
    w->frame = malloc(w->spool->longest);
    w->frame_bytes = w->frame ? w->spool->longest : 0;
    return w->frame ? 0 : -ENOMEM;
}

int weir_record_put(struct weir_record_writer *w, const struct weir_list *lists, int n, uint64_t at, uint64_t *end,
                    struct weir_err *err)
{
    w->at = at;
    w->buffered = 0;
    int rc = reserve_frame(w);
    if (rc == 0)
        rc = put_length(w, field_bytes(features_bytes(lists, n)));
    if (rc == 0)
        rc = put_data(w, lists, n, err);
    uint32_t crc = weir_crc32c_mask(w->crc);
    if (rc == 0)
        rc = put(w, &crc, sizeof crc);
    if (rc == 0)
        rc = flush(w);
    *end = w->at;
    return rc;
}
