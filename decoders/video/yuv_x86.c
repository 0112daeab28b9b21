/* weir_yuv_row_fn with AVX2, 32 pixels at a time. Even and odd columns are kept in separate vectors, because with half
 * as many chroma samples both need the same ones. */
#include "decoders/video/yuv_priv.h"

#if defined(__x86_64__)

#include "decoders/pixels_x86.h"

struct factors {
    __m256i luma_offset, luma, v_to_r, u_to_g, v_to_g, u_to_b;
};

/* What chroma adds to red, green and blue. */
struct tint {
    __m256i rgb[3];
};

static bool usable(void)
{
    return __builtin_cpu_supports("avx2");
}

AVX2 INLINE struct factors factors_of(const struct weir_yuv *yuv)
{
    return (struct factors){_mm256_set1_epi16(yuv->luma_offset), _mm256_set1_epi16(yuv->luma),
                            _mm256_set1_epi16(yuv->v_to_r),      _mm256_set1_epi16(yuv->u_to_g),
                            _mm256_set1_epi16(yuv->v_to_g),      _mm256_set1_epi16(yuv->u_to_b)};
}

AVX2 INLINE __m256i luma_of(const struct factors *f, __m256i values)
{
    return _mm256_mulhi_epi16(_mm256_sub_epi16(_mm256_slli_epi16(values, 3), f->luma_offset), f->luma);
}

AVX2 INLINE struct tint tint_of(const struct factors *f, __m256i cb, __m256i cr)
{
    __m256i u = _mm256_slli_epi16(_mm256_sub_epi16(cb, _mm256_set1_epi16(128)), 3);
    __m256i v = _mm256_slli_epi16(_mm256_sub_epi16(cr, _mm256_set1_epi16(128)), 3);
    return (struct tint){{_mm256_mulhi_epi16(v, f->v_to_r),
                          _mm256_add_epi16(_mm256_mulhi_epi16(u, f->u_to_g), _mm256_mulhi_epi16(v, f->v_to_g)),
                          _mm256_mulhi_epi16(u, f->u_to_b)}};
}

/* Converts the 32 pixels whose samples start at luma, cb and cr. */
AVX2 INLINE void convert(const struct factors *f, const uint8_t *luma, const uint8_t *cb, const uint8_t *cr, bool half,
                         __m256i rgb[3])
{
    struct halves y = split(load(luma));
    struct tint even, odd;
    y = (struct halves){luma_of(f, y.even), luma_of(f, y.odd)};
    if (half) {
        even = odd = tint_of(f, widen(cb), widen(cr));
    } else {
        struct halves u = split(load(cb)), v = split(load(cr));
        even = tint_of(f, u.even, v.even);
        odd = tint_of(f, u.odd, v.odd);
    }
    for (int c = 0; c < 3; c++)
        rgb[c] = join(y, even.rgb[c], odd.rgb[c]);
}

/* The last n < 32 pixels of a row, copied to where 32 can be read. */
struct rest {
    uint8_t luma[AT_ONCE], cb[AT_ONCE], cr[AT_ONCE];
};

INLINE void copy_rest(struct rest *rest, const uint8_t *luma, const uint8_t *cb, const uint8_t *cr, size_t n, bool half)
{
    size_t samples = half ? (n + 1) / 2 : n;
    *rest = (struct rest){0};
    memcpy(rest->luma, luma, n);
    memcpy(rest->cb, cb, samples);
    memcpy(rest->cr, cr, samples);
}

AVX2 INLINE void put_row(const struct weir_yuv *yuv, const struct weir_yuv_row *row, bool half, bool planes)
{
    const size_t step = planes ? 1 : 3;
    const struct factors f = factors_of(yuv);
    struct rest rest;
    for (size_t x = 0; x < row->width; x += AT_ONCE) {
        __m256i rgb[3], channels[3];
        size_t n = row->width - x, at = half ? x / 2 : x;
        const uint8_t *luma = row->luma + x, *cb = row->cb + at, *cr = row->cr + at;
        if (n < AT_ONCE) {
            copy_rest(&rest, luma, cb, cr, n, half);
            luma = rest.luma;
            cb = rest.cb;
            cr = rest.cr;
        }
        convert(&f, luma, cb, cr, half, rgb);
        for (int c = 0; c < 3; c++)
            channels[c] = rgb[row->bgr ? 2 - c : c];
        store_pixels(channels, row->to + step * x, n, planes, row->width);
    }
}

AVX2 static void row_avx2(const struct weir_yuv *yuv, const struct weir_yuv_row *row)
{
    if (!row->cb || row->bit_depth != 8)
        weir_yuv_plain_row(yuv, row);
    else if (row->is_half && row->planes)
        put_row(yuv, row, true, true);
    else if (row->is_half)
        put_row(yuv, row, true, false);
    else if (row->planes)
        put_row(yuv, row, false, true);
    else
        put_row(yuv, row, false, false);
}

const struct weir_yuv_engine weir_yuv_avx2 = {.name = "AVX2", .usable = usable, .row = row_avx2};

#endif
