/* Conversion with NEON, which every AArch64 CPU has. A single load instruction separates the three channels. */
#if defined(__aarch64__)

#include "decoders/convert_priv.h"

#include <arm_neon.h>

static bool always(void)
{
    return true;
}

static inline float32x4_t to_f32(uint16x4_t values, bool normalised, float scale, float bias)
{
    float32x4_t v = vcvtq_f32_u32(vmovl_u16(values));
    if (normalised)
        return vfmaq_n_f32(vdupq_n_f32(bias), v, scale);
    return vdivq_f32(v, vdupq_n_f32(255.0f));
}

static void f32_planar(const struct weir_converter *converter, const uint8_t *src, float *const planes[3], size_t width,
                       bool stream)
{
    (void)stream;
    size_t x = 0;
    for (; x + 8 <= width; x += 8) {
        uint8x8x3_t pixels = vld3_u8(src + 3 * x);
        for (int c = 0; c < 3; c++) {
            uint16x8_t values = vmovl_u8(pixels.val[c]);
            float scale = converter->scale[c], bias = converter->bias[c];
            vst1q_f32(planes[c] + x, to_f32(vget_low_u16(values), converter->normalised, scale, bias));
            vst1q_f32(planes[c] + x + 4, to_f32(vget_high_u16(values), converter->normalised, scale, bias));
        }
    }
    weir_plain_f32_planar(converter, src, planes, x, width);
}

static void f32_interleaved(const struct weir_converter *converter, const uint8_t *src, float *dst, size_t width,
                            bool stream)
{
    (void)stream;
    size_t x = 0;
    for (; x + 8 <= width; x += 8) {
        uint8x8x3_t pixels = vld3_u8(src + 3 * x);
        float32x4x3_t low, high;
        for (int c = 0; c < 3; c++) {
            uint16x8_t values = vmovl_u8(pixels.val[c]);
            float scale = converter->scale[c], bias = converter->bias[c];
            low.val[c] = to_f32(vget_low_u16(values), converter->normalised, scale, bias);
            high.val[c] = to_f32(vget_high_u16(values), converter->normalised, scale, bias);
        }
        vst3q_f32(dst + 3 * x, low);
        vst3q_f32(dst + 3 * x + 12, high);
    }
    weir_plain_f32_interleaved(converter, src, dst, x, width);
}

static void u8_planar(const uint8_t *src, uint8_t *const planes[3], size_t width, bool stream)
{
    (void)stream;
    size_t x = 0;
    for (; x + 16 <= width; x += 16) {
        uint8x16x3_t pixels = vld3q_u8(src + 3 * x);
        for (int c = 0; c < 3; c++)
            vst1q_u8(planes[c] + x, pixels.val[c]);
    }
    weir_plain_u8_planar(src, planes, x, width);
}

const struct weir_convert_ops weir_convert_neon = {
    .name = "NEON",
    .usable = always,
    .u8_planar = u8_planar,
    .f32_planar = f32_planar,
    .f32_interleaved = f32_interleaved,
    .f32_plane = weir_plain_f32_plane, /* decoders output planes only when AVX2 is available */
};

#endif
