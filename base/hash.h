/* hash.h: XXH3 (64 bits, seed 0) over bytes; Python's xxhash.xxh3_64_hexdigest gives the same. */
#ifndef WEIR_BASE_HASH_H
#define WEIR_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t weir_hash64(const void *bytes, size_t length);

#endif
