/* Conversion of rows: every engine that this CPU supports must match the plain one bit for bit, and the plain one must
 * match the definition of each format. */
#include "decoders/convert_priv.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH_MAX = 200, ROWS = 3, STRIDE = WIDTH_MAX * 3 + 5 };

static const struct weir_pixel_format imagenet = {
    .dtype = WEIR_DTYPE_F32,
    .mean = {0.485f, 0.456f, 0.406f},
    .std = {0.229f, 0.224f, 0.225f},
};

static const struct weir_convert_ops *plain(void)
{
    const struct weir_convert_ops *last = NULL;
    for (int i = 0; weir_convert_engine(i); i++)
        last = weir_convert_engine(i);
    return last;
}

static struct weir_pixel_format format_of(int i)
{
    struct weir_pixel_format format = {0};
    if (i & 1)
        format = imagenet;
    format.color = (enum weir_color)(i >> 1 & 1);
    format.dtype = (enum weir_dtype)(i >> 2 & 1);
    format.layout = (enum weir_image_layout)(i >> 3 & 1);
    return format;
}

/* Converts rows 1 and 2 of a three-row image, into memory that starts `off` bytes after a cache line boundary. */
static void convert(const struct weir_convert_ops *ops, int f, const uint8_t *pixels, bool planes, int width,
                    size_t off, uint8_t *to)
{
    size_t bytes = STRIDE + 3 * (size_t)width; /* ends with the last pixel, so that reads past it are detected */
    uint8_t *src = malloc(bytes);
    memcpy(src, pixels, bytes);
    for (size_t i = 0; planes && i < 2 * 3 * (size_t)width; i++) { /* planar copy of the same pixels */
        size_t x = i % (size_t)width, c = i / (size_t)width % 3, row = i / (size_t)width / 3;
        src[row * STRIDE + c * (size_t)width + x] = pixels[row * STRIDE + 3 * x + c];
    }
    struct weir_pixel_format format = format_of(f);
    struct weir_converter converter;
    weir_converter_init(&converter, &format, ops);
    memset(to, 0xA5, weir_image_bytes(&format, width, ROWS) + 192);
    weir_convert_rows(&converter, src, STRIDE, planes ? (size_t)width : 0, 1, 2, width, ROWS, to + off);
    weir_convert_finish(&converter);
    free(src);
}

Test(convert, engines_agree_bit_by_bit)
{
    static uint8_t src[ROWS * STRIDE];
    srand(1);
    for (size_t i = 0; i < sizeof src; i++)
        src[i] = (uint8_t)rand();
    size_t most = WIDTH_MAX * ROWS * 3 * sizeof(float) + 256;
    uint8_t *want = aligned_alloc(64, (most + 63) / 64 * 64), *got = aligned_alloc(64, (most + 63) / 64 * 64);
    int engines = 0;
    for (int e = 0; weir_convert_engine(e); e++) {
        const struct weir_convert_ops *ops = weir_convert_engine(e);
        if (!ops->usable())
            continue;
        engines += ops != plain();
        for (int f = 0; f < 16; f++)
            for (int width = 1; width <= WIDTH_MAX; width += width < 70 ? 1 : 13)
                for (size_t off = 0; off <= 64; off += off < 16 ? 4 : 16) {
                    struct weir_pixel_format format = format_of(f);
                    size_t bytes = weir_image_bytes(&format, width, ROWS) + 192;
                    convert(plain(), f, src, false, width, off, want);
                    for (int planes = 0; planes <= (format.layout == WEIR_LAYOUT_NCHW); planes++) {
                        convert(ops, f, src, planes, width, off, got);
                        cr_assert_eq(memcmp(want, got, bytes), 0, "%s, format %d, width %d, at %zu, planes %d",
                                     ops->name, f, width, off, planes);
                    }
                }
    }
    if (engines == 0)
        cr_log_warn("this CPU has no other engine than plain C");
    free(want);
    free(got);
}

Test(convert, plain_f32_is_value_by_255)
{
    struct weir_pixel_format format = {.dtype = WEIR_DTYPE_F32};
    struct weir_converter converter;
    uint8_t src[256 * 3];
    float to[256 * 3];
    for (int i = 0; i < 256 * 3; i++)
        src[i] = (uint8_t)(i / 3);
    weir_converter_init(&converter, &format, plain());
    weir_convert_rows(&converter, src, 0, 0, 0, 1, 256, 1, to);
    for (int i = 0; i < 256 * 3; i++)
        cr_assert_eq(to[i], (float)(i / 3) / 255.0f);
}

/* Torch computes in three rounded steps. A single rounding is closer to the exact value. */
Test(convert, normalised_is_near_the_exact_value)
{
    for (int color = 0; color < 2; color++) {
        struct weir_pixel_format format = imagenet;
        struct weir_converter converter;
        format.color = (enum weir_color)color;
        weir_converter_init(&converter, &format, plain());
        for (int c = 0; c < 3; c++)
            for (int v = 0; v < 256; v++) {
                int rgb = color == WEIR_COLOR_BGR ? 2 - c : c;
                double want = (v / 255.0 - (double)format.mean[rgb]) / (double)format.std[rgb];
                cr_assert_float_eq((double)converter.table[c][v], want, 5e-7, "channel %d, value %d", c, v);
            }
    }
}
