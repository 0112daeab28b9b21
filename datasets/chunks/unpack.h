/* unpack.h: unpacks compressed bytes: zlib and gzip streams, and Snappy.
 *
 * zlib streams (as written by the deflate filter) go through libdeflate, or through zlib in builds without libdeflate
 * (-DWEIR_WITH_LIBDEFLATE=OFF). Both libraries accept the same streams. */
#ifndef WEIR_DATASETS_CHUNKS_UNPACK_H
#define WEIR_DATASETS_CHUNKS_UNPACK_H

#include <stddef.h>
#include <stdint.h>

/* Per-thread state. */
struct weir_inflater;
struct weir_inflater *weir_inflater_open(void); /* NULL = out of memory */
void weir_inflater_close(struct weir_inflater **inflater);

/* Unpacks the stream at the start of in. Ignores bytes after the end of the stream, as the HDF5 library does. Returns 0
 * with *made bytes in out; -ENOSPC if the stream unpacks to more than capacity bytes; -EBADMSG if it is damaged or
 * truncated. After an error the contents of out are undefined. */
int weir_inflate(struct weir_inflater *inflater, const uint8_t *in, size_t n, uint8_t *out, size_t capacity,
                 size_t *made);

/* Like weir_inflate, for a gzip stream. */
int weir_inflate_gzip(struct weir_inflater *inflater, const uint8_t *in, size_t n, uint8_t *out, size_t capacity,
                      size_t *made);

/* Writes the name and version of the library, such as "libdeflate 1.14". */
void weir_inflate_library(char *text, size_t size);

/* ---- snappy.c: the raw format of Snappy (github.com/google/snappy describes it). */

/* Decompresses n bytes to exactly out_n bytes. Returns 0 or -EBADMSG. */
int weir_snappy_decompress(const uint8_t *in, size_t n, uint8_t *out, size_t out_n);

/* Decompresses out_n bytes from the middle of such data. The first `literal` bytes are the rest of a literal, and an
 * element follows; copies must not refer to earlier output. The last element may continue after out_n bytes, and
 * further bytes may follow. Returns 0 or -EBADMSG. */
int weir_snappy_resume(const uint8_t *in, size_t n, size_t literal, uint8_t *out, size_t out_n);

struct weir_snappy_element {
    size_t length, offset; /* offset: distance of the earlier output that is copied; 0 = a literal */
    size_t tag_at, in_at;  /* positions in the input: of the element, and of a literal's bytes */
    size_t out_at;         /* position in the output */
};
/* Called for each element. Returns 0, or a negative code that ends the walk. */
typedef int weir_snappy_element_fn(void *user, const struct weir_snappy_element *element);
/* Walks through the elements of data that weir_snappy_decompress accepts. Returns 0, -EBADMSG, or the function's code.
 */
int weir_snappy_walk(const uint8_t *in, size_t n, weir_snappy_element_fn *element, void *user);

#endif
