/* hash.h: checksums.
 *
 * XXH3 (64 bits, seed 0) gives the same result as Python's xxhash.xxh3_64_hexdigest. CRC-32C (polynomial 0x1EDC6F41,
 * reflected) also exists in the masked form that TFRecord files store, which is rotated and offset
 * (tensorflow/core/lib/hash/crc32c.h). Masking keeps the checksum effective for data that contains checksums itself. */
#ifndef WEIR_BASE_HASH_H
#define WEIR_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t weir_hash64(const void *bytes, size_t length);

/* Extends crc by n more bytes. crc is 0 at the start. */
uint32_t weir_crc32c(uint32_t crc, const void *bytes, size_t n);
uint32_t weir_crc32c_masked(const void *bytes, size_t n);
/* Returns the masked form of a completed checksum. */
uint32_t weir_crc32c_mask(uint32_t crc);

/* Returns the checksum that HDF5 uses for metadata: Bob Jenkins' lookup3, hashlittle with initial value 0. */
uint32_t weir_lookup3(const uint8_t *bytes, size_t n);

#endif
