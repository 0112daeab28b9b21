/* weir_jpeg_color_row with AVX2, 32 pixels at a time. Even and odd columns are kept in separate vectors until they are
 * packed to bytes, because their chroma is interpolated with different neighbours. */
#include "decoders/jpeg_fast_priv.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#define AVX2   __attribute__((target("avx2")))
#define INLINE static inline __attribute__((always_inline))

enum { AT_ONCE = 32 };

/* 32 columns as 16-bit values: the even columns 0, 2 .. and the odd columns 1, 3 .. */
struct halves {
    __m256i even, odd;
};

AVX2 INLINE __m256i load(const void *from)
{
    return _mm256_loadu_si256((const __m256i *)from);
}

AVX2 INLINE __m256i widen(const uint8_t *from)
{
    return _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(const void *)from));
}

AVX2 INLINE struct halves split(__m256i bytes)
{
    return (struct halves){_mm256_and_si256(bytes, _mm256_set1_epi16(255)), _mm256_srli_epi16(bytes, 8)};
}

AVX2 INLINE __m256i times_3(__m256i v)
{
    return _mm256_add_epi16(v, _mm256_add_epi16(v, v));
}

/* ---- chroma ---- */

/* Computes the values that are then interpolated along the row: the chroma samples themselves for 4:2:2, or 3 x near +
 * far for 4:2:0. Duplicates the first and last value outside the row. */
AVX2 INLINE void sum(const struct weir_jpeg_row *row, int c)
{
    uint16_t *sums = row->sums[c];
    for (size_t x = 0; x < row->chroma_width; x += AT_ONCE / 2) {
        __m256i v = widen(row->near[c] + x);
        if (row->chroma == WEIR_JPEG_420)
            v = _mm256_add_epi16(times_3(v), widen(row->far[c] + x));
        _mm256_storeu_si256((__m256i *)(void *)(sums + x), v);
    }
    sums[-1] = sums[0];
    sums[row->chroma_width] = sums[row->chroma_width - 1];
}

/* Returns the chroma of the 32 pixels from column x on, minus 128. */
AVX2 INLINE struct halves chroma(const struct weir_jpeg_row *row, enum weir_jpeg_chroma kind, int c, size_t x)
{
    const __m256i center = _mm256_set1_epi16(128);
    struct halves v;
    if (kind == WEIR_JPEG_444) {
        v = split(load(row->near[c] + x));
    } else {
        const int shift = kind == WEIR_JPEG_420 ? 4 : 2;
        const uint16_t *sums = row->sums[c] + x / 2;
        __m256i near = times_3(load(sums));
        v.even =
            _mm256_add_epi16(near, _mm256_add_epi16(load(sums - 1), _mm256_set1_epi16(kind == WEIR_JPEG_420 ? 8 : 1)));
        v.odd =
            _mm256_add_epi16(near, _mm256_add_epi16(load(sums + 1), _mm256_set1_epi16(kind == WEIR_JPEG_420 ? 7 : 2)));
        v = (struct halves){_mm256_srli_epi16(v.even, shift), _mm256_srli_epi16(v.odd, shift)};
    }
    return (struct halves){_mm256_sub_epi16(v.even, center), _mm256_sub_epi16(v.odd, center)};
}

/* ---- colours ---- */

/* Returns v x factor / 65536, rounded to nearest with ties upward. */
AVX2 INLINE __m256i scale(__m256i v, int factor)
{
    __m256i twice = _mm256_mulhi_epi16(_mm256_add_epi16(v, v), _mm256_set1_epi16((short)factor));
    return _mm256_srai_epi16(_mm256_add_epi16(twice, _mm256_set1_epi16(1)), 1);
}

/* Returns the contribution of Cb and Cr to green: -0.34414 Cb - 0.71414 Cr, rounded once. */
AVX2 INLINE __m256i green(__m256i cb, __m256i cr)
{
    /* -0.34414 Cb + 0.28586 Cr; Cr is subtracted below */
    const __m256i factors = _mm256_set1_epi32((int)((18734u << 16) | (uint16_t)-22554));
    const __m256i half = _mm256_set1_epi32(1 << 15);
    __m256i low = _mm256_madd_epi16(_mm256_unpacklo_epi16(cb, cr), factors);
    __m256i high = _mm256_madd_epi16(_mm256_unpackhi_epi16(cb, cr), factors);
    low = _mm256_srai_epi32(_mm256_add_epi32(low, half), 16);
    high = _mm256_srai_epi32(_mm256_add_epi32(high, half), 16);
    return _mm256_sub_epi16(_mm256_packs_epi32(low, high), cr);
}

AVX2 INLINE __m256i join(struct halves luma, __m256i even, __m256i odd)
{
    const __m256i in_turn =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15));
    even = _mm256_add_epi16(luma.even, even);
    odd = _mm256_add_epi16(luma.odd, odd);
    return _mm256_shuffle_epi8(_mm256_packus_epi16(even, odd), in_turn);
}

/* Computes red, green and blue of 32 pixels. */
AVX2 INLINE void convert(const struct weir_jpeg_row *row, enum weir_jpeg_chroma kind, size_t x, __m256i rgb[3])
{
    struct halves luma = split(load(row->luma + x));
    struct halves cb = chroma(row, kind, 0, x), cr = chroma(row, kind, 1, x);
    /* 1.402 = 1 + 0.402; 1.772 = 2 - 0.228 */
    rgb[0] =
        join(luma, _mm256_add_epi16(cr.even, scale(cr.even, 26345)), _mm256_add_epi16(cr.odd, scale(cr.odd, 26345)));
    rgb[1] = join(luma, green(cb.even, cr.even), green(cb.odd, cr.odd));
    rgb[2] = join(luma, _mm256_add_epi16(_mm256_add_epi16(cb.even, cb.even), scale(cb.even, -14942)),
                  _mm256_add_epi16(_mm256_add_epi16(cb.odd, cb.odd), scale(cb.odd, -14942)));
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

AVX2 INLINE void put_row(const struct weir_jpeg_row *row, enum weir_jpeg_chroma kind, bool planes)
{
    const size_t step = planes ? 1 : 3;
    for (size_t x = 0; x < row->width; x += AT_ONCE) {
        __m256i rgb[3], channels[3];
        convert(row, kind, x, rgb);
        for (int c = 0; c < 3; c++)
            channels[c] = rgb[row->bgr ? 2 - c : c];
        if (row->width - x < AT_ONCE)
            store_rest(channels, row->to + step * x, row->width - x, planes, row->width);
        else if (planes)
            store_planes(channels, row->to + x, row->width);
        else
            store_interleaved(channels, row->to + 3 * x);
    }
}

AVX2 static void put_444(const struct weir_jpeg_row *row)
{
    if (row->planes)
        put_row(row, WEIR_JPEG_444, true);
    else
        put_row(row, WEIR_JPEG_444, false);
}

AVX2 static void put_422(const struct weir_jpeg_row *row)
{
    if (row->planes)
        put_row(row, WEIR_JPEG_422, true);
    else
        put_row(row, WEIR_JPEG_422, false);
}

AVX2 static void put_420(const struct weir_jpeg_row *row)
{
    if (row->planes)
        put_row(row, WEIR_JPEG_420, true);
    else
        put_row(row, WEIR_JPEG_420, false);
}

AVX2 void weir_jpeg_color_row(const struct weir_jpeg_row *row)
{
    for (int c = 0; c < 2 && row->chroma != WEIR_JPEG_444; c++)
        sum(row, c);
    if (row->chroma == WEIR_JPEG_444)
        put_444(row);
    else if (row->chroma == WEIR_JPEG_422)
        put_422(row);
    else
        put_420(row);
}

#endif
