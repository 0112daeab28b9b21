#include "base/hash.h"

#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t weir_hash64(const void *bytes, size_t length)
{
    return XXH3_64bits(bytes, length);
}

static uint32_t plain(uint32_t crc, const uint8_t *bytes, size_t n)
{
    enum { POLYNOMIAL_REFLECTED = (int)0x82F63B78 };
    for (size_t i = 0; i < n; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? (uint32_t)POLYNOMIAL_REFLECTED : 0);
    }
    return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2,crc32"))) static uint32_t by_instruction(uint32_t crc, const uint8_t *bytes, size_t n)
{
    uint64_t wide = crc;
    for (; n >= 8; bytes += 8, n -= 8) {
        uint64_t eight;
        memcpy(&eight, bytes, sizeof eight);
        wide = _mm_crc32_u64(wide, eight);
    }
    crc = (uint32_t)wide;
    for (; n > 0; bytes++, n--)
        crc = _mm_crc32_u8(crc, *bytes);
    return crc;
}
#endif

uint32_t weir_crc32c(uint32_t crc, const void *bytes, size_t n)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2"))
        return ~by_instruction(~crc, bytes, n);
#endif
    return ~plain(~crc, bytes, n);
}

uint32_t weir_crc32c_mask(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

uint32_t weir_crc32c_masked(const void *bytes, size_t n)
{
    return weir_crc32c_mask(weir_crc32c(0, bytes, n));
}
