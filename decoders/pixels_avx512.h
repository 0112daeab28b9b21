/* pixels_avx512.h: as pixels_x86.h, with AVX-512 and 64 pixels at a time. A file includes one of them. */
#ifndef WEIR_DECODERS_PIXELS_AVX512_H
#define WEIR_DECODERS_PIXELS_AVX512_H

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TARGET  __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi")))
#define INLINE  static inline __attribute__((always_inline))
#define V(name) _mm512_##name
typedef __m512i vec;

enum { AT_ONCE = 64 };

/* 64 columns as 16-bit values: the even columns 0, 2 .. and the odd columns 1, 3 .. */
struct halves {
    vec even, odd;
};

TARGET INLINE vec load(const void *from)
{
    return _mm512_loadu_si512(from);
}

TARGET INLINE void store(void *to, vec v)
{
    _mm512_storeu_si512(to, v);
}

TARGET INLINE vec widen(const uint8_t *from)
{
    return _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)from));
}

TARGET INLINE struct halves split(vec bytes)
{
    return (struct halves){_mm512_and_si512(bytes, _mm512_set1_epi16(255)), _mm512_srli_epi16(bytes, 8)};
}

/* Adds luma to the even and odd columns of a channel, and returns them as bytes. */
TARGET INLINE vec join(struct halves luma, vec even, vec odd)
{
    const vec in_turn = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15));
    even = _mm512_add_epi16(luma.even, even);
    odd = _mm512_add_epi16(luma.odd, odd);
    return _mm512_shuffle_epi8(_mm512_packus_epi16(even, odd), in_turn);
}

/* Byte j of interleaved pixels is channel j % 3 of pixel j / 3. Vector k of three begins at byte 64 k = 3 * 21 k + k,
 * so its table of pixels begins at entry k of this one, 21 k pixels later. 64 is added for channel 1, the second
 * operand of the permutation. */
#define P(n) n, 64 + n, n
static const uint8_t pixel_of[66] = {P(0),  P(1),  P(2),  P(3),  P(4),  P(5),  P(6),  P(7),  P(8),  P(9),  P(10),
                                     P(11), P(12), P(13), P(14), P(15), P(16), P(17), P(18), P(19), P(20), P(21)};
#undef P
/* The bytes of vector k that are channel 2. */
static const uint64_t third[3] = {0x4924924924924924, 0x2492492492492492, 0x9249249249249249};

TARGET INLINE vec interleaved(const vec channels[3], int k)
{
    const vec pixels = _mm512_add_epi8(load(pixel_of + k), _mm512_set1_epi8((char)(21 * k)));
    vec two = _mm512_permutex2var_epi8(channels[0], pixels, channels[1]);
    return _mm512_mask_permutexvar_epi8(two, third[k], pixels, channels[2]);
}

/* Stores the first n bytes, or all 64. */
TARGET INLINE void store_bytes(uint8_t *to, vec v, size_t n)
{
    if (n >= AT_ONCE)
        store(to, v);
    else
        _mm512_mask_storeu_epi8(to, ((uint64_t)1 << n) - 1, v);
}

/* Stores the first n pixels, at most 64. planes: the channels are `stride` bytes apart, not interleaved. */
TARGET INLINE void store_pixels(const vec channels[3], uint8_t *to, size_t n, bool planes, size_t stride)
{
    for (size_t k = 0; k < 3; k++) {
        if (planes)
            store_bytes(to + k * stride, channels[k], n);
        else if (3 * n > AT_ONCE * k)
            store_bytes(to + AT_ONCE * k, interleaved(channels, (int)k), 3 * n - AT_ONCE * k);
    }
}

#endif
