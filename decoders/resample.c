#include "decoders/view_priv.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

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

/* Weighs the pixel centres closer to `at` than step, by a triangle. Pixels outside first .. end - 1 do not count. */
static void triangle(struct weir_tap *tap, float *weights, double at, double step, int first, int end)
{
    int begin = (int)floor(at - step + 0.5), stop = (int)floor(at + step + 0.5);
    double sum = 0;
    tap->first = begin > first ? begin : first;
    tap->n = (stop < end ? stop : end) - tap->first;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < tap->n; i++) {
            double weight = fmax(0, 1 - fabs(tap->first + i + 0.5 - at) / step);
            if (pass == 0)
                sum += weight;
            else
                weights[i] = (float)(weight / sum);
        }
}

int weir_taps_open(struct weir_taps *taps, double from, double to, int n, enum weir_resize resize)
{
    double step = (to - from) / n;
    taps->first = (int)floor(from);
    taps->end = (int)ceil(to);
    int all = taps->end - taps->first > 2 ? taps->end - taps->first : 2;
    int most = (int)ceil(resize == WEIR_RESIZE_EXACT ? 2 * step : step) + 2;
    taps->most = most < all ? most : all;
    taps->taps = calloc((size_t)n, sizeof *taps->taps);
    taps->weights = calloc((size_t)n * (size_t)taps->most, sizeof *taps->weights);
    if (!taps->taps || !taps->weights)
        return -ENOMEM;
    for (int i = 0; i < n; i++) {
        float *weights = taps->weights + (size_t)i * (size_t)taps->most;
        double end = i + 1 < n ? from + (i + 1) * step : to;
        if (step > 1 && resize == WEIR_RESIZE_EXACT)
            triangle(&taps->taps[i], weights, from + (i + 0.5) * step, step, taps->first, taps->end);
        else if (step >= 1)
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

#if defined(__x86_64__)
/* Lists the output columns for AVX2. Columns past the last one, and source pixels that a column does not have, have the
 * weight 0. */
static int open_pairs(struct weir_pairs *pairs, const struct weir_taps *x, int width)
{
    size_t n = ((size_t)width + 3) / 4 * 2;
    for (int i = 0; i < width; i++)
        pairs->most = x->taps[i].n > pairs->most ? x->taps[i].n : pairs->most;
    pairs->at = calloc(n, sizeof *pairs->at);
    pairs->weights = calloc(n * (size_t)pairs->most, 8 * sizeof *pairs->weights);
    if (!pairs->at || !pairs->weights)
        return -ENOMEM;
    for (int i = 0; i < width; i++) {
        pairs->at[i / 2][i % 2] = 3 * (x->taps[i].first - x->first);
        for (int k = 0; k < x->taps[i].n; k++)
            for (int j = 0; j < 4; j++)
                pairs->weights[(i / 2 * pairs->most + k) * 8 + i % 2 * 4 + j] = x->weights[i * x->most + k];
    }
    return 0;
}
#endif

int weir_resampler_open(struct weir_resampler *resampler, struct weir_taps *x, int width, struct weir_taps *y,
                        int height)
{
    size_t values = (size_t)(x->end - x->first) * 3, group = WEIR_RESAMPLE_GROUP;
    *resampler = (struct weir_resampler){
        .x = *x,
        .y = *y,
        .width = width,
        .height = height,
        .values = values,
        .stride = (values + group - 1) / group * group,
        .mix = weir_resampler_mix,
    };
    resampler->ring = calloc(resampler->stride, (size_t)y->most);
    resampler->sums = calloc(resampler->stride + 3 * (size_t)x->most + 1, sizeof *resampler->sums);
    resampler->row = malloc(((size_t)width + 4) * 3 + 4); /* columns are stored by fours, in 16 bytes */
    int rc = resampler->ring && resampler->sums && resampler->row ? 0 : -ENOMEM;
#if defined(__x86_64__)
    if (rc == 0 && __builtin_cpu_supports("avx2")) {
        rc = open_pairs(&resampler->pairs, x, width);
        resampler->mix = weir_resampler_mix_avx2;
    }
#endif
    return rc;
}

void weir_resampler_close(struct weir_resampler *resampler)
{
    weir_taps_close(&resampler->x);
    weir_taps_close(&resampler->y);
    free(resampler->ring);
    free(resampler->sums);
    free(resampler->row);
    free(resampler->pairs.at);
    free(resampler->pairs.weights);
    *resampler = (struct weir_resampler){0};
}

void weir_resampler_put(struct weir_resampler *resampler, int y, const uint8_t *pixels)
{
    if (y == resampler->y.first)
        resampler->next = 0;
    memcpy(weir_resampler_ring(resampler, y), pixels, resampler->values);
}

static void add_rows(struct weir_resampler *resampler, const struct weir_tap *tap, const float *weights)
{
    float *restrict sums = resampler->sums;
    for (int k = 0; k < tap->n; k++) {
        const uint8_t *restrict row = weir_resampler_ring(resampler, tap->first + k);
        for (size_t i = 0; i < resampler->values; i++)
            sums[i] = k ? sums[i] + weights[k] * (float)row[i] : weights[k] * (float)row[i];
    }
}

static void add_columns(struct weir_resampler *resampler)
{
    const struct weir_taps *x = &resampler->x;
    for (int i = 0; i < resampler->width; i++) {
        const struct weir_tap *tap = &x->taps[i];
        const float *weights = x->weights + (size_t)i * (size_t)x->most;
        for (int c = 0; c < 3; c++) {
            const float *values = resampler->sums + (tap->first - x->first) * 3 + c;
            float sum = 0.5f;
            for (int k = 0; k < tap->n; k++)
                sum += weights[k] * values[3 * k];
            resampler->row[3 * i + c] = (uint8_t)(sum < 255.0f ? sum : 255.0f);
        }
    }
}

void weir_resampler_mix(struct weir_resampler *resampler, const struct weir_tap *tap, const float *weights)
{
    add_rows(resampler, tap, weights);
    add_columns(resampler);
}

const uint8_t *weir_resampler_row(struct weir_resampler *resampler, int y, int *row)
{
    if (resampler->next == resampler->height)
        return NULL;
    const struct weir_tap *tap = &resampler->y.taps[resampler->next];
    if (tap->first + tap->n - 1 > y)
        return NULL;
    resampler->mix(resampler, tap, resampler->y.weights + (size_t)resampler->next * (size_t)resampler->y.most);
    *row = resampler->next++;
    return resampler->row;
}
