/* jpeg_color_rows.h: rows of YCbCr samples as rows of pixels, with AVX2 or, if WEIR_PIXELS_AVX512 is defined, with
 * AVX-512. Even and odd columns are kept in separate vectors until they are packed to bytes, because their chroma is
 * interpolated with different neighbours. */
#ifndef WEIR_DECODERS_JPEG_COLOR_ROWS_H
#define WEIR_DECODERS_JPEG_COLOR_ROWS_H

#include "decoders/jpeg_fast_priv.h"

#ifdef WEIR_PIXELS_AVX512
#include "decoders/pixels_avx512.h"
#else
#include "decoders/pixels_x86.h"
#endif

TARGET INLINE vec times_3(vec v)
{
    return V(add_epi16)(v, V(add_epi16)(v, v));
}

/* ---- chroma ---- */

/* Computes the values that are then interpolated along the row: the chroma samples themselves for 4:2:2, or 3 x near +
 * far for 4:2:0. Duplicates the first and last value outside the row. */
TARGET INLINE void sum(const struct weir_jpeg_row *row, int c)
{
    uint16_t *sums = row->sums[c];
    for (size_t x = 0; x < row->chroma_width; x += AT_ONCE / 2) {
        vec v = widen(row->near[c] + x);
        if (row->chroma == WEIR_JPEG_420)
            v = V(add_epi16)(times_3(v), widen(row->far[c] + x));
        store(sums + x, v);
    }
    sums[-1] = sums[0];
    sums[row->chroma_width] = sums[row->chroma_width - 1];
}

/* Returns the chroma of AT_ONCE pixels from column x on, minus 128. */
TARGET INLINE struct halves chroma(const struct weir_jpeg_row *row, enum weir_jpeg_chroma kind, int c, size_t x)
{
    const vec center = V(set1_epi16)(128);
    struct halves v;
    if (kind == WEIR_JPEG_444) {
        v = split(load(row->near[c] + x));
    } else {
        const int shift = kind == WEIR_JPEG_420 ? 4 : 2;
        const uint16_t *sums = row->sums[c] + x / 2;
        vec near = times_3(load(sums));
        v.even = V(add_epi16)(near, V(add_epi16)(load(sums - 1), V(set1_epi16)(kind == WEIR_JPEG_420 ? 8 : 1)));
        v.odd = V(add_epi16)(near, V(add_epi16)(load(sums + 1), V(set1_epi16)(kind == WEIR_JPEG_420 ? 7 : 2)));
        v = (struct halves){V(srli_epi16)(v.even, shift), V(srli_epi16)(v.odd, shift)};
    }
    return (struct halves){V(sub_epi16)(v.even, center), V(sub_epi16)(v.odd, center)};
}

/* ---- colours ---- */

/* Returns v x factor / 65536, rounded to nearest with ties upward. */
TARGET INLINE vec scale(vec v, int factor)
{
    vec twice = V(mulhi_epi16)(V(add_epi16)(v, v), V(set1_epi16)((short)factor));
    return V(srai_epi16)(V(add_epi16)(twice, V(set1_epi16)(1)), 1);
}

/* Returns the contribution of Cb and Cr to green: -0.34414 Cb - 0.71414 Cr, rounded once. */
TARGET INLINE vec green(vec cb, vec cr)
{
    /* -0.34414 Cb + 0.28586 Cr; Cr is subtracted below */
    const vec factors = V(set1_epi32)((int)((18734u << 16) | (uint16_t)-22554));
    const vec half = V(set1_epi32)(1 << 15);
    vec low = V(madd_epi16)(V(unpacklo_epi16)(cb, cr), factors);
    vec high = V(madd_epi16)(V(unpackhi_epi16)(cb, cr), factors);
    low = V(srai_epi32)(V(add_epi32)(low, half), 16);
    high = V(srai_epi32)(V(add_epi32)(high, half), 16);
    return V(sub_epi16)(V(packs_epi32)(low, high), cr);
}

/* Computes red, green and blue of AT_ONCE pixels. */
TARGET INLINE void convert(const struct weir_jpeg_row *row, enum weir_jpeg_chroma kind, size_t x, vec rgb[3])
{
    struct halves luma = split(load(row->luma + x));
    struct halves cb = chroma(row, kind, 0, x), cr = chroma(row, kind, 1, x);
    /* 1.402 = 1 + 0.402; 1.772 = 2 - 0.228 */
    rgb[0] = join(luma, V(add_epi16)(cr.even, scale(cr.even, 26345)), V(add_epi16)(cr.odd, scale(cr.odd, 26345)));
    rgb[1] = join(luma, green(cb.even, cr.even), green(cb.odd, cr.odd));
    rgb[2] = join(luma, V(add_epi16)(V(add_epi16)(cb.even, cb.even), scale(cb.even, -14942)),
                  V(add_epi16)(V(add_epi16)(cb.odd, cb.odd), scale(cb.odd, -14942)));
}

/* ---- rows ---- */

TARGET INLINE void put_row(const struct weir_jpeg_row *row, enum weir_jpeg_chroma kind, bool planes)
{
    const size_t step = planes ? 1 : 3;
    for (size_t x = 0; x < row->width; x += AT_ONCE) {
        vec rgb[3], channels[3];
        convert(row, kind, x, rgb);
        for (int c = 0; c < 3; c++)
            channels[c] = rgb[row->bgr ? 2 - c : c];
        store_pixels(channels, row->to + step * x, row->width - x, planes, row->width);
    }
}

TARGET INLINE void put(const struct weir_jpeg_row *row, enum weir_jpeg_chroma kind)
{
    if (row->planes)
        put_row(row, kind, true);
    else
        put_row(row, kind, false);
}

TARGET INLINE void color_row(const struct weir_jpeg_row *row)
{
    for (int c = 0; c < 2 && row->chroma != WEIR_JPEG_444; c++)
        sum(row, c);
    if (row->chroma == WEIR_JPEG_444)
        put(row, WEIR_JPEG_444);
    else if (row->chroma == WEIR_JPEG_422)
        put(row, WEIR_JPEG_422);
    else
        put(row, WEIR_JPEG_420);
}

#endif
