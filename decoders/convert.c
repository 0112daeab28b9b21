/* Interleaved u8 rows to the other output formats. Plain loops that compilers vectorise; value / 255 as PyTorch users
 * write it, exact to the last bit.
 *
 * On x86-64 the loops are compiled twice: taking three channels apart needs byte shuffles, which the baseline
 * instruction set does not have. Both give the same bits. */
#include "decoders/decoder_ops.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

INLINE void u8_planar(const uint8_t *restrict src, uint8_t *restrict c0, uint8_t *restrict c1, uint8_t *restrict c2,
                      size_t width)
{
    for (size_t x = 0; x < width; x++) {
        c0[x] = src[3 * x];
        c1[x] = src[3 * x + 1];
        c2[x] = src[3 * x + 2];
    }
}

INLINE void f32_planar(const uint8_t *restrict src, float *restrict c0, float *restrict c1, float *restrict c2,
                       size_t width)
{
    for (size_t x = 0; x < width; x++) {
        c0[x] = (float)src[3 * x] / 255.0f;
        c1[x] = (float)src[3 * x + 1] / 255.0f;
        c2[x] = (float)src[3 * x + 2] / 255.0f;
    }
}

INLINE void f32_interleaved(const uint8_t *restrict src, float *restrict dst, size_t values)
{
    for (size_t i = 0; i < values; i++)
        dst[i] = (float)src[i] / 255.0f;
}

INLINE void convert_planar(const struct weir_rows *rows, int y, int n)
{
    size_t width = (size_t)rows->width, plane = width * (size_t)rows->height;
    for (int row = 0; row < n; row++) {
        const uint8_t *src = rows->band + (size_t)row * rows->stride;
        size_t at = (size_t)(y + row) * width;
        if (rows->format->dtype == WEIR_DTYPE_U8) {
            uint8_t *to = (uint8_t *)rows->target + at;
            u8_planar(src, to, to + plane, to + 2 * plane, width);
        } else {
            float *to = (float *)rows->target + at;
            f32_planar(src, to, to + plane, to + 2 * plane, width);
        }
    }
}

INLINE void convert(const struct weir_rows *rows, int y, int n)
{
    if (rows->format->layout == WEIR_LAYOUT_NCHW) {
        convert_planar(rows, y, n);
        return;
    }
    size_t values = (size_t)rows->width * 3;
    for (int row = 0; row < n; row++) {
        const uint8_t *src = rows->band + (size_t)row * rows->stride;
        size_t at = (size_t)(y + row) * values;
        if (rows->format->dtype == WEIR_DTYPE_U8)
            memcpy((uint8_t *)rows->target + at, src, values);
        else
            f32_interleaved(src, (float *)rows->target + at, values);
    }
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void convert_avx2(const struct weir_rows *rows, int y, int n)
{
    convert(rows, y, n);
}

void weir_convert_rows(const struct weir_rows *rows, int y, int n)
{
    if (__builtin_cpu_supports("avx2"))
        convert_avx2(rows, y, n);
    else
        convert(rows, y, n);
}
#else
void weir_convert_rows(const struct weir_rows *rows, int y, int n)
{
    convert(rows, y, n);
}
#endif
