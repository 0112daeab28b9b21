/* hash.h: checksums.
 *
 * XXH3 (64 bits, seed 0), as Python's xxhash.xxh3_64_hexdigest; and CRC-32C (polynomial 0x1EDC6F41 reflected) with the
 * form that TFRecord files store: rotated and offset ("masked", tensorflow/core/lib/hash/crc32c.h), so that checksums
 * of data that contains checksums stay useful. */
#ifndef WEIR_BASE_HASH_H
#define WEIR_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t weir_hash64(const void *bytes, size_t length);

/* Continues crc over n more bytes; crc is 0 at the beginning. */
uint32_t weir_crc32c(uint32_t crc, const void *bytes, size_t n);
uint32_t weir_crc32c_masked(const void *bytes, size_t n);
/* Masked form of a finished checksum. */
uint32_t weir_crc32c_mask(uint32_t crc);

#endif
