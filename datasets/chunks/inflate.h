/* inflate.h: zlib streams (the deflate filter's), unpacked whole: by libdeflate, or by zlib where weir was built
 * without it (-DWEIR_WITH_LIBDEFLATE=OFF). Both take and refuse the same streams. */
#ifndef WEIR_DATASETS_CHUNKS_INFLATE_H
#define WEIR_DATASETS_CHUNKS_INFLATE_H

#include <stddef.h>
#include <stdint.h>

/* One thread's tool. */
struct weir_inflater;
struct weir_inflater *weir_inflater_open(void); /* NULL = out of memory */
void weir_inflater_close(struct weir_inflater **inflater);

/* Unpacks the stream that in begins with; bytes after its end are passed over, as the HDF5 library does. 0 and *made
 * bytes in out; -ENOSPC: it unpacks to more than capacity bytes; -EBADMSG: it is damaged or cut off. What out holds
 * after a refusal is undefined. */
int weir_inflate(struct weir_inflater *inflater, const uint8_t *in, size_t n, uint8_t *out, size_t capacity,
                 size_t *made);

/* The same of a gzip stream. */
int weir_inflate_gzip(struct weir_inflater *inflater, const uint8_t *in, size_t n, uint8_t *out, size_t capacity,
                      size_t *made);

/* "libdeflate 1.14". */
void weir_inflate_library(char *text, size_t size);

#endif
