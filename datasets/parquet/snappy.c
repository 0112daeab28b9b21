#include "datasets/parquet/snappy.h"

#include <errno.h>
#include <string.h>

/* An element: a literal (offset 0) or a copy of earlier output. */
struct element {
    size_t length, offset;
};

static size_t little_endian(const uint8_t *at, size_t bytes)
{
    size_t value = 0;
    for (size_t i = 0; i < bytes; i++)
        value |= (size_t)at[i] << 8 * i;
    return value;
}

/* Reads the uncompressed length. Returns the bytes read, or 0. */
static size_t read_length(const uint8_t *in, size_t n, size_t *length)
{
    *length = 0;
    for (size_t i = 0; i < n && i < 5; i++) {
        *length |= (size_t)(in[i] & 0x7f) << 7 * i;
        if (in[i] < 0x80)
            return i + 1;
    }
    return 0;
}

/* Reads the tag of an element. Returns its bytes without those of a literal, or 0 if it is truncated. */
static size_t read_tag(const uint8_t *in, size_t n, struct element *element)
{
    static const uint8_t extra[] = {0, 1, 2, 4}; /* bytes after the tag, by type */
    uint8_t tag = in[0];
    size_t more = extra[tag & 3];
    if ((tag & 3) == 0) {
        more = tag >> 2 < 60 ? 0 : (size_t)(tag >> 2) - 59;
        if (n < 1 + more)
            return 0;
        *element = (struct element){.length = 1 + (more ? little_endian(in + 1, more) : (size_t)(tag >> 2))};
        return 1 + more;
    }
    if (n < 1 + more)
        return 0;
    size_t offset = little_endian(in + 1, more);
    *element = (tag & 3) == 1 ? (struct element){4 + (size_t)(tag >> 2 & 7), (size_t)(tag >> 5) << 8 | offset}
                              : (struct element){1 + (size_t)(tag >> 2), offset};
    return element->offset ? 1 + more : 0; /* a copy from distance 0 is invalid */
}

static void copy_back(uint8_t *to, size_t offset, size_t length)
{
    const uint8_t *from = to - offset;
    if (offset >= length)
        memcpy(to, from, length);
    else
        for (size_t i = 0; i < length; i++) /* overlapping: repeats the last `offset` bytes */
            to[i] = from[i];
}

int weir_snappy_decompress(const uint8_t *in, size_t n, uint8_t *out, size_t out_n)
{
    size_t length, at = read_length(in, n, &length), done = 0;
    if (at == 0 || length != out_n)
        return -EBADMSG;
    while (at < n) {
        struct element element;
        size_t tag = read_tag(in + at, n - at, &element);
        if (tag == 0 || element.length > out_n - done)
            return -EBADMSG;
        at += tag;
        if (element.offset) {
            if (element.offset > done)
                return -EBADMSG;
            copy_back(out + done, element.offset, element.length);
        } else {
            if (element.length > n - at)
                return -EBADMSG;
            memcpy(out + done, in + at, element.length);
            at += element.length;
        }
        done += element.length;
    }
    return done == out_n ? 0 : -EBADMSG;
}

int weir_snappy_literals(const uint8_t *in, size_t n, weir_snappy_literal_fn *literal, void *user)
{
    size_t length, at = read_length(in, n, &length), done = 0;
    int rc = at ? 0 : -EBADMSG;
    while (at < n && rc == 0) {
        struct element element;
        size_t tag = read_tag(in + at, n - at, &element);
        if (tag == 0 || element.length > length - done)
            return -EBADMSG;
        at += tag;
        if (!element.offset) {
            if (element.length > n - at)
                return -EBADMSG;
            rc = literal(user, done, at, element.length);
            at += element.length;
        }
        done += element.length;
    }
    return rc;
}

size_t weir_snappy_literal_tag(const uint8_t *in, size_t n, size_t *length)
{
    struct element element = {0};
    size_t tag = n > 0 && (in[0] & 3) == 0 ? read_tag(in, n, &element) : 0;
    *length = element.length;
    return tag;
}
