/* weir_yuv_row_fn with AVX2, 32 pixels at a time. Even and odd columns are kept in separate vectors, because both need
 * the same chroma samples. */
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
AVX2 INLINE void convert(const struct factors *f, const uint8_t *luma, const uint8_t *cb, const uint8_t *cr,
                         __m256i rgb[3])
{
    struct halves y = split(load(luma));
    struct tint tint = tint_of(f, widen(cb), widen(cr));
    y = (struct halves){luma_of(f, y.even), luma_of(f, y.odd)};
    for (int c = 0; c < 3; c++)
        rgb[c] = join(y, tint.rgb[c], tint.rgb[c]);
}

/* The last n < 32 pixels of a row, copied to where 32 can be read. */
struct rest {
    uint8_t luma[AT_ONCE], cb[AT_ONCE / 2], cr[AT_ONCE / 2];
};

INLINE void copy_rest(struct rest *rest, const uint8_t *luma, const uint8_t *cb, const uint8_t *cr, size_t n)
{
    *rest = (struct rest){0};
    memcpy(rest->luma, luma, n);
    memcpy(rest->cb, cb, (n + 1) / 2);
    memcpy(rest->cr, cr, (n + 1) / 2);
}

AVX2 INLINE void put_row(const struct weir_yuv *yuv, const struct weir_yuv_row *row, bool planes)
{
    const size_t step = planes ? 1 : 3;
    const struct factors f = factors_of(yuv);
    struct rest rest;
    for (size_t x = 0; x < row->width; x += AT_ONCE) {
        __m256i rgb[3], channels[3];
        size_t n = row->width - x;
        const uint8_t *luma = row->luma + x, *cb = row->cb + x / 2, *cr = row->cr + x / 2;
        if (n < AT_ONCE) {
            copy_rest(&rest, luma, cb, cr, n);
            luma = rest.luma;
            cb = rest.cb;
            cr = rest.cr;
        }
        convert(&f, luma, cb, cr, rgb);
        for (int c = 0; c < 3; c++)
            channels[c] = rgb[row->bgr ? 2 - c : c];
        store_pixels(channels, row->to + step * x, n, planes, row->width);
    }
}

AVX2 static void row_avx2(const struct weir_yuv *yuv, const struct weir_yuv_row *row)
{
    if (row->planes)
        put_row(yuv, row, true);
    else
        put_row(yuv, row, false);
}

const struct weir_yuv_engine weir_yuv_avx2 = {.name = "AVX2", .usable = usable, .row = row_avx2};

#endif
