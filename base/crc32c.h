/* crc32c.h: CRC-32C (polynomial 0x1EDC6F41 reflected), and the form of it that TFRecord files store: rotated and offset
 * ("masked", tensorflow/core/lib/hash/crc32c.h), so that checksums of data with checksums in it stay useful. */
#ifndef WEIR_BASE_CRC32C_H
#define WEIR_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Of n more bytes; crc is 0 at the beginning. */
uint32_t weir_crc32c(uint32_t crc, const void *bytes, size_t n);
uint32_t weir_crc32c_masked(const void *bytes, size_t n);
/* The masked form of a finished checksum. */
uint32_t weir_crc32c_mask(uint32_t crc);

#endif
