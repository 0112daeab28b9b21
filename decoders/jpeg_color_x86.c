/* weir_jpeg_color_row with AVX2, 32 pixels at a time. Even and odd columns are kept in separate vectors until they are
 * packed to bytes, because their chroma is interpolated with different neighbours. */
#include "decoders/jpeg_fast_priv.h"

#if defined(__x86_64__)

#include "decoders/pixels_x86.h"

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

/* ---- rows ---- */

AVX2 INLINE void put_row(const struct weir_jpeg_row *row, enum weir_jpeg_chroma kind, bool planes)
{
    const size_t step = planes ? 1 : 3;
    for (size_t x = 0; x < row->width; x += AT_ONCE) {
        __m256i rgb[3], channels[3];
        convert(row, kind, x, rgb);
        for (int c = 0; c < 3; c++)
            channels[c] = rgb[row->bgr ? 2 - c : c];
        store_pixels(channels, row->to + step * x, row->width - x, planes, row->width);
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
