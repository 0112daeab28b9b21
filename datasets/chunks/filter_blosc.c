/* Blosc containers, through libblosc, which includes the codecs (lz4, zstd, zlib, blosclz) and both shuffles. */
#include "datasets/chunks/filters.h"

#include <blosc.h>
#include <errno.h>

#if WEIR_NO_SNAPPY
/* Stubs for the Snappy functions that libblosc.a references. Snappy is written in C++ and would need a runtime library.
 * Packing and unpacking with these stubs fails. */
enum { SNAPPY_INVALID_INPUT = 1 };
int snappy_compress(const char *in, size_t n, char *out, size_t *made);
int snappy_uncompress(const char *in, size_t n, char *out, size_t *made);
size_t snappy_max_compressed_length(size_t n);

int snappy_compress(const char *in, size_t n, char *out, size_t *made)
{
    (void)in, (void)n, (void)out, (void)made;
    return SNAPPY_INVALID_INPUT;
}

int snappy_uncompress(const char *in, size_t n, char *out, size_t *made)
{
    (void)in, (void)n, (void)out, (void)made;
    return SNAPPY_INVALID_INPUT;
}

size_t snappy_max_compressed_length(size_t n)
{
    return n;
}
#endif

int weir_blosc_bytes(const uint8_t *in, size_t n, size_t *bytes)
{
    return n >= BLOSC_MIN_HEADER_LENGTH && blosc_cbuffer_validate(in, n, bytes) == 0 ? 0 : -EBADMSG;
}

/* Uses the function with a context, because the function without one takes a global lock of the library. */
int weir_blosc_unpack(const uint8_t *in, size_t n, uint8_t *out, size_t bytes)
{
    (void)n; /* weir_blosc_bytes has compared n with the size in the header */
    return blosc_decompress_ctx(in, out, bytes, 1) == (int)bytes ? 0 : -EBADMSG;
}

size_t weir_blosc_pack(const uint8_t *in, size_t n, size_t element_bytes, uint8_t *out, size_t capacity)
{
    int made = blosc_compress_ctx(5, BLOSC_SHUFFLE, element_bytes, n, in, out, capacity, BLOSC_LZ4_COMPNAME, 0, 1);
    return made > 0 ? (size_t)made : 0;
}
