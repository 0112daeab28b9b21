#include "decoders/view_priv.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef float pixel __attribute__((vector_size(16))); /* three channels and an unused value */

/* ---- taps ---- */

/* Weighs each source pixel by its share of the output pixel's area (from .. to). */
static void area(struct weir_tap *tap, float *weights, double from, double to)
{
    tap->first = (int)floor(from);
    tap->n = 0;
    for (int i = tap->first; i < to; i++) {
        double begin = from > i ? from : i, end = to < i + 1.0 ? to : i + 1.0;
        weights[tap->n++] = (float)((end - begin) / (to - from));
    }
}

/* Interpolates between the two pixel centres around `at`. Before the first centre and after the last one, repeats the
 * edge pixel. */
static void linear(struct weir_tap *tap, float *weights, double at, int first, int end)
{
    double low = floor(at), part = at - low;
    int i = (int)low;
    bool outside = i < first || i + 1 >= end;
    tap->first = i < first ? first : i + 1 >= end ? end - 1 : i;
    tap->n = outside || part == 0 ? 1 : 2;
    weights[0] = tap->n == 1 ? 1.0f : (float)(1 - part);
    weights[1] = (float)part;
}

int weir_taps_open(struct weir_taps *taps, double from, double to, int n)
{
    double step = (to - from) / n;
    taps->first = (int)floor(from);
    taps->end = (int)ceil(to);
    taps->most = (int)ceil(step) + 2;
    taps->taps = calloc((size_t)n, sizeof *taps->taps);
    taps->weights = calloc((size_t)n * (size_t)taps->most, sizeof *taps->weights);
    if (!taps->taps || !taps->weights)
        return -ENOMEM;
    for (int i = 0; i < n; i++) {
        float *weights = taps->weights + (size_t)i * (size_t)taps->most;
        double end = i + 1 < n ? from + (i + 1) * step : to;
        if (step >= 1)
            area(&taps->taps[i], weights, from + i * step, end);
        else
            linear(&taps->taps[i], weights, from + (i + 0.5) * step - 0.5, taps->first, taps->end);
    }
    return 0;
}

void weir_taps_close(struct weir_taps *taps)
{
    free(taps->taps);
    free(taps->weights);
    *taps = (struct weir_taps){0};
}

/* ---- rows ---- */

int weir_resampler_open(struct weir_resampler *resampler, struct weir_taps *x, int width, struct weir_taps *y,
                        int height)
{
    *resampler = (struct weir_resampler){.x = *x, .y = *y, .width = width, .height = height};
    size_t values = (size_t)(x->end - x->first) * 3;
    resampler->ring = malloc(values * (size_t)y->most);
    resampler->sums = calloc(values + 1, sizeof *resampler->sums); /* the last pixel is loaded as four values */
    resampler->row = malloc((size_t)width * 3);
    return resampler->ring && resampler->sums && resampler->row ? 0 : -ENOMEM;
}

void weir_resampler_close(struct weir_resampler *resampler)
{
    weir_taps_close(&resampler->x);
    weir_taps_close(&resampler->y);
    free(resampler->ring);
    free(resampler->sums);
    free(resampler->row);
    *resampler = (struct weir_resampler){0};
}

static size_t values_of(const struct weir_resampler *resampler)
{
    return (size_t)(resampler->x.end - resampler->x.first) * 3;
}

static uint8_t *ring_row(const struct weir_resampler *resampler, int y)
{
    return resampler->ring + (size_t)(y % resampler->y.most) * values_of(resampler);
}

void weir_resampler_put(struct weir_resampler *resampler, int y, const uint8_t *pixels)
{
    if (y == resampler->y.first)
        resampler->next = 0;
    memcpy(ring_row(resampler, y), pixels, values_of(resampler));
}

static inline __attribute__((always_inline)) void add_rows(struct weir_resampler *resampler, const struct weir_tap *tap,
                                                           const float *weights)
{
    float *restrict sums = resampler->sums;
    size_t n = values_of(resampler);
    for (int k = 0; k < tap->n; k++) {
        const uint8_t *restrict row = ring_row(resampler, tap->first + k);
        float weight = weights[k];
        if (k == 0)
            for (size_t i = 0; i < n; i++)
                sums[i] = weight * (float)row[i];
        else
            for (size_t i = 0; i < n; i++)
                sums[i] += weight * (float)row[i];
    }
}

static inline __attribute__((always_inline)) void add_columns(struct weir_resampler *resampler)
{
    const struct weir_taps *x = &resampler->x;
    for (int i = 0; i < resampler->width; i++) {
        const struct weir_tap *tap = &x->taps[i];
        const float *weights = x->weights + (size_t)i * (size_t)x->most;
        pixel sum = {0.5f, 0.5f, 0.5f, 0}, part;
        for (int k = 0; k < tap->n; k++) {
            memcpy(&part, resampler->sums + (size_t)(tap->first + k - x->first) * 3, sizeof part);
            sum += part * weights[k];
        }
        for (int c = 0; c < 3; c++)
            resampler->row[3 * i + c] = (uint8_t)(sum[c] < 255.0f ? sum[c] : 255.0f);
    }
}

static inline __attribute__((always_inline)) void make_row(struct weir_resampler *resampler, const struct weir_tap *tap,
                                                           const float *weights)
{
    add_rows(resampler, tap, weights);
    add_columns(resampler);
}

static void make_row_plain(struct weir_resampler *resampler, const struct weir_tap *tap, const float *weights)
{
    make_row(resampler, tap, weights);
}

#if defined(__x86_64__)
/* Compiled for AVX2 without FMA, so that products are rounded as in the plain version. */
__attribute__((target("avx2"))) static void make_row_avx2(struct weir_resampler *resampler, const struct weir_tap *tap,
                                                          const float *weights)
{
    make_row(resampler, tap, weights);
}
#endif

static void make_row_best(struct weir_resampler *resampler, const struct weir_tap *tap, const float *weights)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        make_row_avx2(resampler, tap, weights);
        return;
    }
#endif
    make_row_plain(resampler, tap, weights);
}

const uint8_t *weir_resampler_row(struct weir_resampler *resampler, int y, int *row)
{
    if (resampler->next == resampler->height)
        return NULL;
    const struct weir_tap *tap = &resampler->y.taps[resampler->next];
    const float *weights = resampler->y.weights + (size_t)resampler->next * (size_t)resampler->y.most;
    if (tap->first + tap->n - 1 > y)
        return NULL;
    make_row_best(resampler, tap, weights);
    *row = resampler->next++;
    return resampler->row;
}
