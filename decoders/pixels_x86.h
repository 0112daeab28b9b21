/* pixels_x86.h: 32 pixels at a time with AVX2: their samples as 16-bit values, and their channels as rows of pixels. */
#ifndef WEIR_DECODERS_PIXELS_X86_H
#define WEIR_DECODERS_PIXELS_X86_H

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define AVX2   __attribute__((target("avx2")))
#define INLINE static inline __attribute__((always_inline))

/* For code that pixels_avx512.h serves too: the instruction set, a vector, and the name of its function. */
#define TARGET  AVX2
#define V(name) _mm256_##name
typedef __m256i vec;

enum { AT_ONCE = 32 };

/* 32 columns as 16-bit values: the even columns 0, 2 .. and the odd columns 1, 3 .. */
struct halves {
    __m256i even, odd;
};

AVX2 INLINE __m256i load(const void *from)
{
    return _mm256_loadu_si256((const __m256i *)from);
}

AVX2 INLINE void store(void *to, __m256i v)
{
    _mm256_storeu_si256((__m256i *)to, v);
}

AVX2 INLINE __m256i widen(const uint8_t *from)
{
    return _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(const void *)from));
}

AVX2 INLINE struct halves split(__m256i bytes)
{
    return (struct halves){_mm256_and_si256(bytes, _mm256_set1_epi16(255)), _mm256_srli_epi16(bytes, 8)};
}

/* Adds luma to the even and odd columns of a channel, and returns them as bytes. */
AVX2 INLINE __m256i join(struct halves luma, __m256i even, __m256i odd)
{
    const __m256i in_turn =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15));
    even = _mm256_add_epi16(luma.even, even);
    odd = _mm256_add_epi16(luma.odd, odd);
    return _mm256_shuffle_epi8(_mm256_packus_epi16(even, odd), in_turn);
}

/* ---- interleaving ---- */

/* When three vectors of 16 bytes hold interleaved channels, byte j of vector k is channel (16 k + j) % 3 of pixel
 * (16 k + j) / 3. spread_by[c] moves the bytes of channel c to their positions j in all three vectors. masks[c] selects
 * the bytes that channel c has in vector 0. */
static const uint8_t spread_by[3][16] = {
    {0, 11, 6, 1, 12, 7, 2, 13, 8, 3, 14, 9, 4, 15, 10, 5},
    {5, 0, 11, 6, 1, 12, 7, 2, 13, 8, 3, 14, 9, 4, 15, 10},
    {10, 5, 0, 11, 6, 1, 12, 7, 2, 13, 8, 3, 14, 9, 4, 15},
};
#define M 0xFF
static const uint8_t masks[3][16] = {
    {M, 0, 0, M, 0, 0, M, 0, 0, M, 0, 0, M, 0, 0, M},
    {0, M, 0, 0, M, 0, 0, M, 0, 0, M, 0, 0, M, 0, 0},
    {0, 0, M, 0, 0, M, 0, 0, M, 0, 0, M, 0, 0, M, 0},
};
#undef M

AVX2 INLINE __m256i both(const uint8_t lane[16])
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)lane));
}

/* Returns vector k: selects channel c for the bytes j with (16 k + j) % 3 == c. Because 16 % 3 is 1, each vector needs
 * the previous vector's masks rotated by one channel. */
AVX2 INLINE __m256i choose(const __m256i spreads[3], int k)
{
    __m256i two = _mm256_blendv_epi8(spreads[0], spreads[1], both(masks[(4 - k) % 3]));
    return _mm256_blendv_epi8(two, spreads[2], both(masks[(5 - k) % 3]));
}

AVX2 INLINE void store_interleaved(const __m256i channels[3], uint8_t *to)
{
    __m256i spreads[3];
    for (int c = 0; c < 3; c++)
        spreads[c] = _mm256_shuffle_epi8(channels[c], both(spread_by[c]));
    __m256i a = choose(spreads, 0), b = choose(spreads, 1), c = choose(spreads, 2);
    _mm256_storeu_si256((__m256i *)(void *)to, _mm256_permute2x128_si256(a, b, 0x20));
    _mm256_storeu_si256((__m256i *)(void *)(to + 32), _mm256_permute2x128_si256(c, a, 0x30));
    _mm256_storeu_si256((__m256i *)(void *)(to + 64), _mm256_permute2x128_si256(b, c, 0x31));
}

AVX2 INLINE void store_planes(const __m256i channels[3], uint8_t *to, size_t stride)
{
    for (size_t c = 0; c < 3; c++)
        _mm256_storeu_si256((__m256i *)(void *)(to + c * stride), channels[c]);
}

/* Stores the last n < 32 pixels of a row without writing past its end. */
AVX2 INLINE void store_rest(const __m256i channels[3], uint8_t *to, size_t n, bool planes, size_t stride)
{
    uint8_t pixels[3 * AT_ONCE];
    if (!planes) {
        store_interleaved(channels, pixels);
        memcpy(to, pixels, 3 * n);
        return;
    }
    store_planes(channels, pixels, AT_ONCE);
    for (size_t c = 0; c < 3; c++)
        memcpy(to + c * stride, pixels + c * AT_ONCE, n);
}

/* Stores the first n pixels, at most 32. planes: the channels are `stride` bytes apart, not interleaved. */
AVX2 INLINE void store_pixels(const __m256i channels[3], uint8_t *to, size_t n, bool planes, size_t stride)
{
    if (n < AT_ONCE)
        store_rest(channels, to, n, planes, stride);
    else if (planes)
        store_planes(channels, to, stride);
    else
        store_interleaved(channels, to);
}

#endif
