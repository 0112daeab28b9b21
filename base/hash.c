#include "base/hash.h"

#include "base/files.h"

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

/* ---- lookup3 ---- */

/* Bob Jenkins' lookup3 (public domain, burtleburtle.net/bob/c/lookup3.c). It mixes three words, that is twelve
 * bytes, at a time. */
static uint32_t rotate(uint32_t x, int by)
{
    return x << by | x >> (32 - by);
}

static void mix(uint32_t v[3])
{
    static const int by[6] = {4, 6, 8, 16, 19, 4};
    for (int i = 0; i < 6; i++) {
        int a = i % 3, b = (i + 1) % 3, c = (i + 2) % 3;
        v[a] -= v[c];
        v[a] ^= rotate(v[c], by[i]);
        v[c] += v[b];
    }
}

static void finish(uint32_t v[3])
{
    static const int by[7] = {14, 11, 25, 16, 4, 14, 24};
    for (int i = 0; i < 7; i++) {
        int to = (i + 2) % 3, from = (i + 1) % 3;
        v[to] ^= v[from];
        v[to] -= rotate(v[from], by[i]);
    }
}

uint32_t weir_lookup3(const uint8_t *bytes, size_t n)
{
    uint32_t start = 0xdeadbeef + (uint32_t)n, v[3] = {start, start, start};
    for (; n > 12; bytes += 12, n -= 12) {
        for (int i = 0; i < 3; i++)
            v[i] += (uint32_t)weir_le(bytes + 4 * i, 4);
        mix(v);
    }
    if (n == 0)
        return v[2];
    for (size_t i = 0; i < n; i++)
        v[i / 4] += (uint32_t)bytes[i] << 8 * (i % 4);
    finish(v);
    return v[2];
}
