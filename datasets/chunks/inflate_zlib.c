/* Unpacks zlib streams through zlib, in builds without libdeflate. */
#include "datasets/chunks/unpack.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#define ZLIB_CONST /* makes zlib's input pointers const */
#include <zlib.h>

struct weir_inflater {
    z_stream stream;
};

struct weir_inflater *weir_inflater_open(void)
{
    struct weir_inflater *inflater = calloc(1, sizeof *inflater);
    if (inflater && inflateInit(&inflater->stream) != Z_OK) {
        free(inflater);
        return NULL;
    }
    return inflater;
}

void weir_inflater_close(struct weir_inflater **inflater)
{
    if (*inflater)
        inflateEnd(&(*inflater)->stream);
    free(*inflater);
    *inflater = NULL;
}

static uInt part(size_t n)
{
    return n < UINT_MAX ? (uInt)n : UINT_MAX;
}

/* Accepts one byte beyond capacity in a separate buffer, to distinguish a stream that is too long from a truncated one.
 */
static int unpack(struct weir_inflater *inflater, int window_bits, const uint8_t *in, size_t n, uint8_t *out,
                  size_t capacity, size_t *made)
{
    z_stream *stream = &inflater->stream;
    uint8_t beyond;
    size_t filled = 0;
    int rc = inflateReset2(stream, window_bits);
    stream->next_in = in;
    while (rc == Z_OK && filled <= capacity) {
        uInt given = part(n), space = filled < capacity ? part(capacity - filled) : 1;
        stream->avail_in = given;
        stream->next_out = filled < capacity ? out + filled : &beyond;
        stream->avail_out = space;
        rc = inflate(stream, Z_NO_FLUSH);
        n -= given - stream->avail_in;
        filled += space - stream->avail_out;
    }
    if (filled > capacity)
        return -ENOSPC;
    *made = filled;
    return rc == Z_STREAM_END ? 0 : -EBADMSG;
}

int weir_inflate(struct weir_inflater *inflater, const uint8_t *in, size_t n, uint8_t *out, size_t capacity,
                 size_t *made)
{
    return unpack(inflater, MAX_WBITS, in, n, out, capacity, made);
}

int weir_inflate_gzip(struct weir_inflater *inflater, const uint8_t *in, size_t n, uint8_t *out, size_t capacity,
                      size_t *made)
{
    return unpack(inflater, MAX_WBITS + 16, in, n, out, capacity, made); /* adding 16 selects gzip (zlib.h) */
}

void weir_inflate_library(char *text, size_t size)
{
    snprintf(text, size, "zlib %s (built without libdeflate)", zlibVersion());
}
