/* libjpeg-turbo's jdsample.c and jdcolor.c, and decoders/resample.c, once more in the plainest form. */
#include "tests/prepare_reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int prepare_chroma_width(uint32_t kind, int width)
{
    return kind == WEIR_GPU_YUV422 || kind == WEIR_GPU_YUV420 ? (width + 1) / 2 : width;
}

int prepare_chroma_height(uint32_t kind, int height)
{
    return kind == WEIR_GPU_YUV440 || kind == WEIR_GPU_YUV420 ? (height + 1) / 2 : height;
}

/* ---- chroma ---- */

struct plane {
    const uint8_t *samples;
    size_t pitch;
    int width, height;
};

/* Beyond the edges lies what is on them. */
static int sample(const struct plane *plane, int x, int y)
{
    x = x < 0 ? 0 : x < plane->width ? x : plane->width - 1;
    y = y < 0 ? 0 : y < plane->height ? y : plane->height - 1;
    return plane->samples[(size_t)y * plane->pitch + (size_t)x];
}

/* The sample that a pixel lies in counts three times, the one that it is next to once. */
static int near_other(int at)
{
    return at % 2 == 0 ? at / 2 - 1 : at / 2 + 1;
}

static int upsample_422(const struct plane *plane, int x, int y)
{
    int near = sample(plane, x / 2, y), far = sample(plane, near_other(x), y);
    return (3 * near + far + (x % 2 == 0 ? 1 : 2)) >> 2;
}

static int upsample_440(const struct plane *plane, int x, int y)
{
    int near = sample(plane, x, y / 2), far = sample(plane, x, near_other(y));
    return (3 * near + far + (y % 2 == 0 ? 1 : 2)) >> 2;
}

static int upsample_420(const struct plane *plane, int x, int y)
{
    int near = 3 * sample(plane, x / 2, y / 2) + sample(plane, x / 2, near_other(y));
    int far = 3 * sample(plane, near_other(x), y / 2) + sample(plane, near_other(x), near_other(y));
    return (3 * near + far + (x % 2 == 0 ? 8 : 7)) >> 4;
}

/* libjpeg has no triangle filter for planes of one or two columns that are to be twice as wide. */
static int chroma_at(uint32_t kind, const struct plane *plane, int x, int y)
{
    bool plain = plane->width <= 2;
    if (kind == WEIR_GPU_YUV422)
        return plain ? sample(plane, x / 2, y) : upsample_422(plane, x, y);
    if (kind == WEIR_GPU_YUV420)
        return plain ? sample(plane, x / 2, y / 2) : upsample_420(plane, x, y);
    return kind == WEIR_GPU_YUV440 ? upsample_440(plane, x, y) : sample(plane, x, y);
}

/* ---- colour ---- */

static int fixed(double value)
{
    return (int)(value * 65536 + 0.5);
}

static uint8_t limit(int value)
{
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

static void to_rgb(int y, int cb, int cr, uint8_t *rgb)
{
    cb -= 128;
    cr -= 128;
    rgb[0] = limit(y + ((fixed(1.40200) * cr + 32768) >> 16));
    rgb[1] = limit(y + ((-fixed(0.34414) * cb + 32768 - fixed(0.71414) * cr) >> 16));
    rgb[2] = limit(y + ((fixed(1.77200) * cb + 32768) >> 16));
}

static void pixel_of(const struct weir_gpu_source *source, const struct plane chroma[2], int x, int y, uint8_t *rgb)
{
    const uint8_t *row = source->plane[0] + (size_t)y * source->pitch[0];
    if (source->kind == WEIR_GPU_RGB)
        memcpy(rgb, row + 3 * x, 3);
    else if (source->kind == WEIR_GPU_GRAY)
        memset(rgb, row[x], 3);
    else
        to_rgb(row[x], chroma_at(source->kind, &chroma[0], x, y), chroma_at(source->kind, &chroma[1], x, y), rgb);
}

void prepare_reference_rgb(const struct weir_gpu_source *source, int width, int height, uint8_t *rgb)
{
    struct plane chroma[2];
    for (int c = 0; c < 2; c++)
        chroma[c] =
            (struct plane){source->plane[c + 1], source->pitch[c + 1], prepare_chroma_width(source->kind, width),
                           prepare_chroma_height(source->kind, height)};
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++, rgb += 3)
            pixel_of(source, chroma, x, y, rgb);
}

/* ---- another size ---- */

/* The part of one pixel of the result that column x of the source has. */
static float column_sum(const struct weir_gpu_prepare *p, const uint8_t *rgb, int row, int x, int c)
{
    const struct weir_gpu_taps *taps = p->rows;
    const float *weights = taps->weights + (size_t)row * (size_t)taps->most;
    float sum = 0;
    for (int k = 0; k < taps->n[row]; k++) {
        size_t y = (size_t)(taps->first[row] + k);
        float product = weights[k] * (float)rgb[(y * (size_t)p->width + (size_t)x) * 3 + (size_t)c];
        sum = k == 0 ? product : sum + product;
    }
    return sum;
}

static uint8_t resampled(const struct weir_gpu_prepare *p, const uint8_t *rgb, int x, int y, int c)
{
    const struct weir_gpu_taps *taps = p->columns;
    const float *weights = taps->weights + (size_t)x * (size_t)taps->most;
    float sum = 0.5f;
    for (int k = 0; k < taps->n[x]; k++) {
        float product = column_sum(p, rgb, y, taps->first[x] + k, c) * weights[k];
        sum = sum + product;
    }
    return (uint8_t)(sum < 255.0f ? sum : 255.0f);
}

/* ---- values ---- */

uint16_t prepare_reference_f16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    if (magnitude >= 0x47800000) /* 65536 and more, infinity, no number */
        return (uint16_t)(magnitude > 0x7f800000 ? 0x7fff : sign | 0x7c00);
    if (magnitude < 0x38800000) /* in steps of the least there is */
        return (uint16_t)(sign | (uint32_t)rintf(fabsf(value) * 0x1p24f));
    magnitude += 0xfff + (magnitude >> 13 & 1);
    return (uint16_t)(sign | (magnitude - 0x38000000) >> 13);
}

uint16_t prepare_reference_bf16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return 0x7fff;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

size_t prepare_value_bytes(enum weir_gpu_dtype dtype)
{
    return dtype == WEIR_GPU_U8 ? 1 : dtype == WEIR_GPU_F32 ? 4 : 2;
}

static void put_value(const struct weir_gpu_prepare *p, size_t at, int channel, uint8_t value)
{
    float f = p->dtype == WEIR_GPU_U8 ? 0 : p->values[channel * 256 + value];
    if (p->dtype == WEIR_GPU_U8)
        ((uint8_t *)p->tensor)[at] = value;
    else if (p->dtype == WEIR_GPU_F32)
        ((float *)p->tensor)[at] = f;
    else
        ((uint16_t *)p->tensor)[at] = p->dtype == WEIR_GPU_F16 ? prepare_reference_f16(f) : prepare_reference_bf16(f);
}

static void put_pixel(const struct weir_gpu_prepare *p, int image, int x, int y, const uint8_t *rgb)
{
    size_t width = (size_t)p->out_width, pixels = width * (size_t)p->out_height;
    if (p->run > 0)
        image = image / p->run * p->stride + p->first + image % p->run;
    size_t first = (size_t)image * 3 * pixels, pixel = (size_t)y * width + (size_t)x;
    for (int c = 0; c < 3; c++) {
        size_t at = p->planar ? first + (size_t)c * pixels + pixel : first + 3 * pixel + (size_t)c;
        put_value(p, at, c, rgb[p->bgr ? 2 - c : c]);
    }
}

void prepare_reference(const struct weir_gpu_prepare *prepare)
{
    const struct weir_gpu_prepare *p = prepare;
    uint8_t *rgb = malloc((size_t)p->width * (size_t)p->height * 3), out[3];
    for (int i = 0; i < p->n; i++) {
        prepare_reference_rgb(&p->sources[i], p->width, p->height, rgb);
        for (int y = 0; y < p->out_height; y++)
            for (int x = 0; x < p->out_width; x++) {
                const uint8_t *from = rgb + ((size_t)(p->y + y) * (size_t)p->width + (size_t)(p->x + x)) * 3;
                for (int c = 0; c < 3; c++)
                    out[c] = p->columns ? resampled(p, rgb, x, y, c) : from[c];
                put_pixel(p, i, x, y, out);
            }
    }
    free(rgb);
}
