#include "decoders/view_priv.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

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

/* ---- mixing: plain C, and AVX2 with the same bits ---- */

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

#if defined(__x86_64__)
/* Without FMA, so that products are rounded as in plain C. Source pixels with the weight 0 do not change a sum. */
#define AVX2   __attribute__((target("avx2")))
#define INLINE static inline __attribute__((always_inline))

enum { GROUP = WEIR_RESAMPLE_GROUP, VECTOR = 8, ROWS_MAX = 3 };

/* Adds n rows, or sets the sums to those of the first n rows. */
AVX2 INLINE void add_some_rows(float *sums, size_t values, const uint8_t *const rows[ROWS_MAX], const float *weights,
                               int n, bool first)
{
    __m256 by[ROWS_MAX], sum[GROUP / VECTOR];
    for (int k = 0; k < n; k++)
        by[k] = _mm256_set1_ps(weights[k]);
    for (size_t i = 0; i < values; i += GROUP) {
#pragma GCC unroll 4
        for (int v = 0; v < GROUP / VECTOR; v++) {
            size_t at = i + (size_t)v * VECTOR;
            if (!first)
                sum[v] = _mm256_loadu_ps(sums + at);
            for (int k = 0; k < n; k++) {
                __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)(rows[k] + at));
                __m256 part = _mm256_mul_ps(by[k], _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)));
                sum[v] = first && k == 0 ? part : _mm256_add_ps(sum[v], part);
            }
            _mm256_storeu_ps(sums + at, sum[v]);
        }
    }
}

/* The numbers of rows are constants, so that their weights stay in registers. */
AVX2 static void add_rows_avx2(struct weir_resampler *resampler, const struct weir_tap *tap, const float *weights)
{
    float *sums = resampler->sums;
    size_t values = resampler->values;
    for (int k = 0; k < tap->n; k += ROWS_MAX) {
        const uint8_t *rows[ROWS_MAX];
        int n = tap->n - k < ROWS_MAX ? tap->n - k : ROWS_MAX;
        for (int i = 0; i < n; i++)
            rows[i] = weir_resampler_ring(resampler, tap->first + k + i);
        if (k > 0)
            add_some_rows(sums, values, rows, weights + k, n, false);
        else if (n == 1)
            add_some_rows(sums, values, rows, weights, 1, true);
        else if (n == 2)
            add_some_rows(sums, values, rows, weights, 2, true);
        else
            add_some_rows(sums, values, rows, weights, 3, true);
    }
}

/* Returns a pair of pixels, as eight values. */
AVX2 INLINE __m256i pair_at(const float *sums, const int32_t at[2], const float *weights, int most)
{
    __m256 sum = _mm256_set1_ps(0.5f);
    for (int k = 0; k < most; k++, weights += 8) {
        __m128 first = _mm_loadu_ps(sums + at[0] + 3 * k), second = _mm_loadu_ps(sums + at[1] + 3 * k);
        sum = _mm256_add_ps(sum, _mm256_mul_ps(_mm256_set_m128(second, first), _mm256_loadu_ps(weights)));
    }
    return _mm256_cvttps_epi32(_mm256_min_ps(sum, _mm256_set1_ps(255.0f)));
}

AVX2 INLINE void add_columns_avx2(struct weir_resampler *resampler, int most)
{
    const __m128i drop_fourths = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
    const int32_t(*at)[2] = (const int32_t(*)[2])resampler->pairs.at;
    const float *weights = resampler->pairs.weights, *sums = resampler->sums;
    uint8_t *to = resampler->row, *const end = to + 3 * (size_t)resampler->width;
    for (; to < end; to += 12, at += 2, weights += 16 * (size_t)most) {
        __m256i first = pair_at(sums, at[0], weights, most);
        __m256i second = pair_at(sums, at[1], weights + 8 * (size_t)most, most);
        __m256i words = _mm256_packs_epi32(first, second), bytes = _mm256_packus_epi16(words, words);
        __m128i four = _mm_unpacklo_epi32(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
        _mm_storeu_si128((__m128i *)(void *)to, _mm_shuffle_epi8(four, drop_fourths));
    }
}

AVX2 static void mix_avx2(struct weir_resampler *resampler, const struct weir_tap *tap, const float *weights)
{
    add_rows_avx2(resampler, tap, weights);
    switch (resampler->pairs.most) { /* constants, so that the inner loop is unrolled */
    case 2:
        add_columns_avx2(resampler, 2);
        break;
    case 3:
        add_columns_avx2(resampler, 3);
        break;
    case 4:
        add_columns_avx2(resampler, 4);
        break;
    default:
        add_columns_avx2(resampler, resampler->pairs.most);
    }
}

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

/* ---- the resampler ---- */

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
        resampler->mix = mix_avx2;
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
