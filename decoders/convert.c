/* Selects the conversion engine and contains the plain C reference engine, which looks up each value in a table of 256
 * entries. */
#include "decoders/convert_priv.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- plain ---- */

void weir_plain_u8_planar(const uint8_t *src, uint8_t *const planes[3], size_t from, size_t width)
{
    for (size_t x = from; x < width; x++)
        for (size_t c = 0; c < 3; c++)
            planes[c][x] = src[3 * x + c];
}

void weir_plain_f32_planar(const struct weir_converter *converter, const uint8_t *src, float *const planes[3],
                           size_t from, size_t width)
{
    for (size_t x = from; x < width; x++)
        for (size_t c = 0; c < 3; c++)
            planes[c][x] = converter->table[c][src[3 * x + c]];
}

void weir_plain_f32_interleaved(const struct weir_converter *converter, const uint8_t *src, float *dst, size_t from,
                                size_t width)
{
    for (size_t x = from; x < width; x++)
        for (size_t c = 0; c < 3; c++)
            dst[3 * x + c] = converter->table[c][src[3 * x + c]];
}

void weir_plain_f32_plane(const struct weir_converter *converter, int c, const uint8_t *src, float *dst, size_t width)
{
    for (size_t x = 0; x < width; x++)
        dst[x] = converter->table[c][src[x]];
}

static bool always(void)
{
    return true;
}

static void u8_planar(const uint8_t *src, uint8_t *const planes[3], size_t width, bool stream)
{
    (void)stream;
    weir_plain_u8_planar(src, planes, 0, width);
}

static void f32_planar(const struct weir_converter *converter, const uint8_t *src, float *const planes[3], size_t width,
                       bool stream)
{
    (void)stream;
    weir_plain_f32_planar(converter, src, planes, 0, width);
}

static void f32_interleaved(const struct weir_converter *converter, const uint8_t *src, float *dst, size_t width,
                            bool stream)
{
    (void)stream;
    weir_plain_f32_interleaved(converter, src, dst, 0, width);
}

static const struct weir_convert_ops plain = {
    .name = "plain C",
    .usable = always,
    .u8_planar = u8_planar,
    .f32_planar = f32_planar,
    .f32_interleaved = f32_interleaved,
    .f32_plane = weir_plain_f32_plane,
};

/* ---- selection ---- */

static const struct weir_convert_ops *const engines[] = {
#if defined(__x86_64__)
    &weir_convert_avx512,
    &weir_convert_avx2,
#elif defined(__aarch64__)
    &weir_convert_neon,
#endif
    &plain,
};
enum { ENGINE_COUNT = sizeof engines / sizeof engines[0] };

const struct weir_convert_ops *weir_convert_engine(int i)
{
    return i >= 0 && i < ENGINE_COUNT ? engines[i] : NULL;
}

static const struct weir_convert_ops *best(void)
{
    int i = 0;
    while (!engines[i]->usable())
        i++;
    return engines[i];
}

const char *weir_convert_name(void)
{
    return best()->name;
}

/* ---- rows ---- */

void weir_converter_init(struct weir_converter *converter, const struct weir_pixel_format *format,
                         const struct weir_convert_ops *ops)
{
    converter->ops = ops ? ops : best();
    converter->format = *format;
    converter->normalised = format->std[0] > 0;
    for (int c = 0; c < 3; c++) {
        int rgb = format->color == WEIR_COLOR_BGR ? 2 - c : c;
        double std = converter->normalised ? (double)format->std[rgb] : 1;
        double mean = converter->normalised ? (double)format->mean[rgb] : 0;
        converter->scale[c] = (float)(1 / (255 * std));
        converter->bias[c] = (float)(-mean / std);
        for (int v = 0; v < 256; v++)
            converter->table[c][v] =
                converter->normalised ? fmaf((float)v, converter->scale[c], converter->bias[c]) : (float)v / 255.0f;
    }
}

void weir_pixel_values(const struct weir_pixel_format *format, float values[3][256])
{
    struct weir_converter converter;
    weir_converter_init(&converter, format, NULL);
    memcpy(values, converter.table, sizeof converter.table);
}

/* Streaming stores require that every row of every plane starts and ends on a cache line boundary, so that no partial
 * lines have to be merged. */
static bool may_stream(const void *image, size_t row_bytes)
{
    return ((uintptr_t)image | row_bytes) % 64 == 0;
}

static void planar_f32(const struct weir_converter *converter, const uint8_t *src, size_t plane, size_t width,
                       size_t to_plane, bool stream, float *to)
{
    if (plane == 0) {
        converter->ops->f32_planar(converter, src, (float *[]){to, to + to_plane, to + 2 * to_plane}, width, stream);
        return;
    }
    for (size_t c = 0; c < 3; c++)
        converter->ops->f32_plane(converter, (int)c, src + c * plane, to + c * to_plane, width);
}

static void planar_u8(const struct weir_converter *converter, const uint8_t *src, size_t plane, size_t width,
                      size_t to_plane, bool stream, uint8_t *to)
{
    if (plane == 0) {
        converter->ops->u8_planar(src, (uint8_t *[]){to, to + to_plane, to + 2 * to_plane}, width, stream);
        return;
    }
    for (size_t c = 0; c < 3; c++)
        memcpy(to + c * to_plane, src + c * plane, width);
}

static void interleaved(const struct weir_converter *converter, const uint8_t *src, size_t width, bool stream,
                        size_t at, void *image)
{
    if (converter->format.dtype == WEIR_DTYPE_U8)
        memcpy((uint8_t *)image + at, src, 3 * width);
    else
        converter->ops->f32_interleaved(converter, src, (float *)image + at, width, stream);
}

void weir_convert_rows(const struct weir_converter *converter, const uint8_t *src, size_t stride, size_t plane, int y,
                       int n, int width, int height, void *image)
{
    bool f32 = converter->format.dtype == WEIR_DTYPE_F32, planar = converter->format.layout == WEIR_LAYOUT_NCHW;
    size_t columns = (size_t)width, to_plane = columns * (size_t)height, values = planar ? columns : 3 * columns;
    bool stream = may_stream(image, values * (f32 ? sizeof(float) : 1));
    assert(planar || plane == 0);
    for (int row = 0; row < n; row++, src += stride) {
        size_t at = (size_t)(y + row) * values;
        if (!planar)
            interleaved(converter, src, columns, stream, at, image);
        else if (f32)
            planar_f32(converter, src, plane, columns, to_plane, stream, (float *)image + at);
        else
            planar_u8(converter, src, plane, columns, to_plane, stream, (uint8_t *)image + at);
    }
}

void weir_convert_finish(const struct weir_converter *converter)
{
    if (converter->ops->fence)
        converter->ops->fence();
}
