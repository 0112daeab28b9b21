/* filter_blosc.h: chunks in the containers of Blosc 1 (numcodecs' Blosc), by libblosc. Any thread, none waits for
 * another. */
#ifndef WEIR_DATASETS_CHUNKS_FILTER_BLOSC_H
#define WEIR_DATASETS_CHUNKS_FILTER_BLOSC_H

#include <stddef.h>
#include <stdint.h>

/* How many bytes the container says that it holds, once its header was found to make sense; -EBADMSG when not. */
int weir_blosc_bytes(const uint8_t *in, size_t n, size_t *bytes);
/* Unpacks all of it into out, which has room for what weir_blosc_bytes said. 0, or -EBADMSG. */
int weir_blosc_unpack(const uint8_t *in, size_t n, uint8_t *out, size_t bytes);

/* Packs n bytes of elements of so many bytes as zarr does by default: lz4, level 5, shuffled. Into out, which has n +
 * 16 bytes; how many they are, 0 when it cannot. */
size_t weir_blosc_pack(const uint8_t *in, size_t n, size_t element_bytes, uint8_t *out, size_t capacity);

#endif
