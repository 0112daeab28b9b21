#include "base/files.h"
#include "datasets/chunks/unpack.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

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
static size_t read_tag(const uint8_t *in, size_t n, struct weir_snappy_element *element)
{
    static const uint8_t extra[] = {0, 1, 2, 4}; /* bytes after the tag, by type */
    uint8_t tag = in[0];
    size_t more = extra[tag & 3];
    if ((tag & 3) == 0) {
        more = tag >> 2 < 60 ? 0 : (size_t)(tag >> 2) - 59;
        if (n < 1 + more)
            return 0;
        *element = (struct weir_snappy_element){.length = 1 + (more ? weir_le(in + 1, (int)more) : (size_t)(tag >> 2))};
        return 1 + more;
    }
    if (n < 1 + more)
        return 0;
    size_t offset = weir_le(in + 1, (int)more);
    *element = (tag & 3) == 1 ? (struct weir_snappy_element){.length = 4 + (size_t)(tag >> 2 & 7),
                                                             .offset = (size_t)(tag >> 5) << 8 | offset}
                              : (struct weir_snappy_element){.length = 1 + (size_t)(tag >> 2), .offset = offset};
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

/* Decompresses elements from `at` on, after the rest of a literal. may_cut: input may follow the last byte of out. */
static int expand(const uint8_t *in, size_t n, size_t at, size_t literal, uint8_t *out, size_t out_n, bool may_cut)
{
    struct weir_snappy_element element = {.length = literal};
    size_t done = 0;
    for (;;) {
        size_t left = out_n - done, length = element.length < left ? element.length : left;
        if (length < element.length && !may_cut)
            return -EBADMSG;
        if (element.offset) {
            if (element.offset > done)
                return -EBADMSG;
            copy_back(out + done, element.offset, length);
        } else {
            if (length > n - at)
                return -EBADMSG;
            memcpy(out + done, in + at, length);
            at += length;
        }
        done += length;
        if (at == n || (may_cut && done == out_n))
            return done == out_n ? 0 : -EBADMSG;
        size_t tag = read_tag(in + at, n - at, &element);
        if (tag == 0)
            return -EBADMSG;
        at += tag;
    }
}

int weir_snappy_decompress(const uint8_t *in, size_t n, uint8_t *out, size_t out_n)
{
    size_t length, at = read_length(in, n, &length);
    return at == 0 || length != out_n ? -EBADMSG : expand(in, n, at, 0, out, out_n, false);
}

int weir_snappy_resume(const uint8_t *in, size_t n, size_t literal, uint8_t *out, size_t out_n)
{
    return expand(in, n, 0, literal, out, out_n, true);
}

int weir_snappy_walk(const uint8_t *in, size_t n, weir_snappy_element_fn *element, void *user)
{
    size_t length, at = read_length(in, n, &length), done = 0;
    int rc = at ? 0 : -EBADMSG;
    while (at < n && rc == 0) {
        struct weir_snappy_element it;
        size_t tag = read_tag(in + at, n - at, &it);
        if (tag == 0 || it.length > length - done || it.offset > done || (!it.offset && it.length > n - at - tag))
            return -EBADMSG;
        it.tag_at = at;
        it.in_at = at + tag;
        it.out_at = done;
        rc = element(user, &it);
        at += tag + (it.offset ? 0 : it.length);
        done += it.length;
    }
    return rc;
}
