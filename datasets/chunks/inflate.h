/* inflate.h: unpacks whole zlib streams (of the deflate filter), by libdeflate, or by zlib in builds without it
 * (-DWEIR_WITH_LIBDEFLATE=OFF). Both accept the same streams. */
#ifndef WEIR_DATASETS_CHUNKS_INFLATE_H
#define WEIR_DATASETS_CHUNKS_INFLATE_H

#include <stddef.h>
#include <stdint.h>

/* Per-thread state. */
struct weir_inflater;
struct weir_inflater *weir_inflater_open(void); /* NULL = out of memory */
void weir_inflater_close(struct weir_inflater **inflater);

/* Unpacks the stream at the start of in; bytes after its end are ignored, as by the HDF5 library. 0 with *made bytes in
 * out; -ENOSPC when it unpacks to more than capacity bytes; -EBADMSG when it is damaged or truncated. After an error
 * the contents of out are undefined. */
int weir_inflate(struct weir_inflater *inflater, const uint8_t *in, size_t n, uint8_t *out, size_t capacity,
                 size_t *made);

/* The same for a gzip stream. */
int weir_inflate_gzip(struct weir_inflater *inflater, const uint8_t *in, size_t n, uint8_t *out, size_t capacity,
                      size_t *made);

/* Writes "libdeflate 1.14". */
void weir_inflate_library(char *text, size_t size);

#endif
