/* inflate.h: unpacks whole zlib streams (as written by the deflate filter), through libdeflate, or through zlib in
 * builds without libdeflate (-DWEIR_WITH_LIBDEFLATE=OFF). Both libraries accept the same streams. */
#ifndef WEIR_DATASETS_CHUNKS_INFLATE_H
#define WEIR_DATASETS_CHUNKS_INFLATE_H

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

#endif
