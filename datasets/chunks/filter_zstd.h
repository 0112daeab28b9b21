/* filter_zstd.h: chunks that are Zstandard frames, unpacked by libzstd. */
#ifndef WEIR_DATASETS_CHUNKS_FILTER_ZSTD_H
#define WEIR_DATASETS_CHUNKS_FILTER_ZSTD_H

#include <stddef.h>
#include <stdint.h>

/* Per-thread state. */
struct weir_zstd;
struct weir_zstd *weir_zstd_open(void); /* NULL = out of memory */
void weir_zstd_close(struct weir_zstd **zstd);

/* Returns the declared size of the first frame in *bytes; SIZE_MAX when undeclared. -EBADMSG for another format. */
int weir_zstd_bytes(const uint8_t *in, size_t n, size_t *bytes);
/* Unpacks all frames. 0 with *made bytes in out; -ENOSPC when they exceed capacity; -EBADMSG. */
int weir_zstd_unpack(struct weir_zstd *zstd, const uint8_t *in, size_t n, uint8_t *out, size_t capacity, size_t *made);

#endif
