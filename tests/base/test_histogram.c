#include "base/numbers.h"
#include "weir/base.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

enum { N = 20000 };

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

Test(histogram, every_bucket_begins_where_its_low_says)
{
    for (unsigned bucket = 0; bucket < WEIR_HIST_BUCKETS; bucket++) {
        uint64_t low = weir_hist_low(bucket), next = weir_hist_low(bucket + 1);
        cr_assert_eq(weir_hist_bucket(low), bucket);
        cr_assert_eq(weir_hist_bucket(next - 1), bucket);
        cr_assert_lt(low, next);
        cr_assert(low < 16 || (double)(next - low) / (double)low <= 0.0625, "bucket %u is too wide", bucket);
    }
    cr_assert_eq(weir_hist_low(WEIR_HIST_BUCKETS), UINT64_C(1) << 37);
}

Test(histogram, longer_values_land_in_the_last_bucket)
{
    cr_assert_eq(weir_hist_bucket(UINT64_C(1) << 37), WEIR_HIST_BUCKETS - 1);
    cr_assert_eq(weir_hist_bucket(UINT64_MAX), WEIR_HIST_BUCKETS - 1);
}

/* Returns a random duration from one of several distributions: uniform, heavy-tailed over six decades, two peaks, or
 * constant. */
static uint64_t draw(int shape, uint64_t *state)
{
    double u = (double)(next_random(state) >> 11) / 9007199254740992.0;
    if (shape == 0)
        return 1000 + (uint64_t)(u * 1e6);
    if (shape == 1)
        return (uint64_t)(20 * pow(10, 6 * u));
    if (shape == 2)
        return u < 0.9 ? 14000 + (uint64_t)(u * 500) : 30000000 + (uint64_t)(u * 1e6);
    return 123456;
}

Test(histogram, quantiles_agree_with_sorted_values_within_a_bucket)
{
    static const double fractions[] = {0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.89, 0.9, 0.95, 0.99, 0.999};
    for (int shape = 0; shape < 4; shape++) {
        uint64_t *values = calloc(N, sizeof *values), state = 88172645463325252u + (uint64_t)shape;
        uint32_t hist[WEIR_HIST_BUCKETS] = {0};
        for (int i = 0; i < N; i++) {
            values[i] = draw(shape, &state);
            hist[weir_hist_bucket(values[i])]++;
        }
        qsort(values, N, sizeof *values, weir_compare_uint64);
        for (size_t i = 0; i < sizeof fractions / sizeof fractions[0]; i++) {
            double exact = (double)values[(size_t)ceil(fractions[i] * N) - 1];
            double got = weir_hist_quantile(hist, fractions[i], values[0], values[N - 1]);
            cr_assert(fabs(got - exact) <= 0.0625 * exact + 1, "shape %d q %g: %g, exact %g", shape, fractions[i], got,
                      exact);
        }
        cr_assert_eq((uint64_t)weir_hist_quantile(hist, 0, values[0], values[N - 1]), values[0]);
        cr_assert_eq((uint64_t)weir_hist_quantile(hist, 1, values[0], values[N - 1]), values[N - 1]);
        free(values);
    }
}

Test(histogram, quantiles_never_fall_as_the_fraction_grows)
{
    uint32_t hist[WEIR_HIST_BUCKETS] = {0};
    uint64_t state = 1, min = UINT64_MAX, max = 0;
    for (int i = 0; i < 1000; i++) {
        uint64_t value = draw(1, &state);
        hist[weir_hist_bucket(value)]++;
        min = value < min ? value : min;
        max = value > max ? value : max;
    }
    double before = 0;
    for (double q = 0; q <= 1; q += 0.001) {
        double now = weir_hist_quantile(hist, q, min, max);
        cr_assert_geq(now, before);
        before = now;
    }
}

Test(histogram, edges)
{
    uint32_t hist[WEIR_HIST_BUCKETS] = {0};
    cr_assert_eq(weir_hist_quantile(hist, 0.5, 0, 0), 0);
    hist[weir_hist_bucket(1000)] = 1;
    cr_assert_eq(weir_hist_quantile(hist, 0.01, 1000, 1000), 1000);
    cr_assert_eq(weir_hist_quantile(hist, 0.99, 1000, 1000), 1000);
    cr_assert_eq(weir_hist_quantile(hist, NAN, 1000, 1000), 1000);
    uint32_t full[WEIR_HIST_BUCKETS] = {0};
    full[3] = full[7] = UINT32_MAX; /* the sum exceeds 32 bits */
    cr_assert_lt(weir_hist_quantile(full, 0.49, 3, 7), 4.1);
    cr_assert_gt(weir_hist_quantile(full, 0.51, 3, 7), 6.9);
}

Test(histogram, the_last_bucket_reaches_up_to_the_longest_value)
{
    uint32_t hist[WEIR_HIST_BUCKETS] = {0};
    uint64_t hour = UINT64_C(3600) * 1000000000u;
    hist[WEIR_HIST_BUCKETS - 1] = 100;
    double median = weir_hist_quantile(hist, 0.5, UINT64_C(40) * 1000000000u, hour);
    cr_assert(median > 1e12 && median < (double)hour, "%g", median);
}
