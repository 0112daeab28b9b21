/* weir_resampler_mix_avx2: without FMA, so that products are rounded as in plain C. Source pixels with the weight 0 do
 * not change a sum. */
#include "decoders/view_priv.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define AVX2   __attribute__((target("avx2")))
#define INLINE static inline __attribute__((always_inline))

enum { GROUP = WEIR_RESAMPLE_GROUP, VECTOR = 8, ROWS_MAX = 3 };

/* Adds n rows, or sets the sums to those of the first n rows. */
AVX2 INLINE void add_rows(float *sums, size_t values, const uint8_t *const rows[ROWS_MAX], const float *weights, int n,
                          bool first)
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
AVX2 static void add_all_rows(struct weir_resampler *resampler, const struct weir_tap *tap, const float *weights)
{
    float *sums = resampler->sums;
    size_t values = resampler->values;
    for (int k = 0; k < tap->n; k += ROWS_MAX) {
        const uint8_t *rows[ROWS_MAX];
        int n = tap->n - k < ROWS_MAX ? tap->n - k : ROWS_MAX;
        for (int i = 0; i < n; i++)
            rows[i] = weir_resampler_ring(resampler, tap->first + k + i);
        if (k > 0)
            add_rows(sums, values, rows, weights + k, n, false);
        else if (n == 1)
            add_rows(sums, values, rows, weights, 1, true);
        else if (n == 2)
            add_rows(sums, values, rows, weights, 2, true);
        else
            add_rows(sums, values, rows, weights, 3, true);
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

AVX2 INLINE void add_columns(struct weir_resampler *resampler, int most)
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

AVX2 void weir_resampler_mix_avx2(struct weir_resampler *resampler, const struct weir_tap *tap, const float *weights)
{
    add_all_rows(resampler, tap, weights);
    switch (resampler->pairs.most) { /* constants, so that the inner loop is unrolled */
    case 2:
        add_columns(resampler, 2);
        break;
    case 3:
        add_columns(resampler, 3);
        break;
    case 4:
        add_columns(resampler, 4);
        break;
    default:
        add_columns(resampler, resampler->pairs.most);
    }
}

#endif
