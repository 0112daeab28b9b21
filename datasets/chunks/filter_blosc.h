/* filter_blosc.h: chunks in Blosc 1 containers (numcodecs' Blosc), by libblosc. Any thread, without locks. */
#ifndef WEIR_DATASETS_CHUNKS_FILTER_BLOSC_H
#define WEIR_DATASETS_CHUNKS_FILTER_BLOSC_H

#include <stddef.h>
#include <stdint.h>

/* Returns the unpacked size in *bytes, from a checked header; -EBADMSG for a malformed one. */
int weir_blosc_bytes(const uint8_t *in, size_t n, size_t *bytes);
/* Unpacks a container into out, which holds the size from weir_blosc_bytes. 0 or -EBADMSG. */
int weir_blosc_unpack(const uint8_t *in, size_t n, uint8_t *out, size_t bytes);

/* Packs n bytes into out (n + 16 bytes) with zarr's defaults: lz4, level 5, shuffled by elements of so many bytes.
 * Returns the packed size; 0 on failure. */
size_t weir_blosc_pack(const uint8_t *in, size_t n, size_t element_bytes, uint8_t *out, size_t capacity);

#endif
