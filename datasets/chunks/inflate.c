/* Unpacks zlib streams through libdeflate. */
#include "datasets/chunks/unpack.h"

#include <errno.h>
#include <libdeflate.h>
#include <stdio.h>

/* Casts to the library's type. */
static struct libdeflate_decompressor *library_type(struct weir_inflater *inflater)
{
    return (struct libdeflate_decompressor *)inflater;
}

struct weir_inflater *weir_inflater_open(void)
{
    return (struct weir_inflater *)libdeflate_alloc_decompressor();
}

void weir_inflater_close(struct weir_inflater **inflater)
{
    if (*inflater)
        libdeflate_free_decompressor(library_type(*inflater));
    *inflater = NULL;
}

static int code_of(enum libdeflate_result result)
{
    switch (result) {
    case LIBDEFLATE_SUCCESS:
        return 0;
    case LIBDEFLATE_INSUFFICIENT_SPACE:
        return -ENOSPC;
    default:
        return -EBADMSG;
    }
}

int weir_inflate(struct weir_inflater *inflater, const uint8_t *in, size_t n, uint8_t *out, size_t capacity,
                 size_t *made)
{
    return code_of(libdeflate_zlib_decompress(library_type(inflater), in, n, out, capacity, made));
}

int weir_inflate_gzip(struct weir_inflater *inflater, const uint8_t *in, size_t n, uint8_t *out, size_t capacity,
                      size_t *made)
{
    return code_of(libdeflate_gzip_decompress(library_type(inflater), in, n, out, capacity, made));
}

void weir_inflate_library(char *text, size_t size)
{
    snprintf(text, size, "libdeflate %s", LIBDEFLATE_VERSION_STRING);
}
