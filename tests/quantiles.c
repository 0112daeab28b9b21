/* Reads durations (whole ns, one a line) and prints the quantiles of Weir's histogram: for tests/check_quantiles.py. */
#include "prof/histogram.h"

#include <inttypes.h>
#include <stdio.h>

int main(void)
{
    static const double fractions[] = {0.5, 0.9, 0.99, 0.999};
    uint32_t hist[WEIR_HIST_BUCKETS] = {0};
    uint64_t value, min = UINT64_MAX, max = 0;
    while (scanf("%" SCNu64, &value) == 1) {
        hist[weir_hist_bucket(value)]++;
        min = value < min ? value : min;
        max = value > max ? value : max;
    }
    for (int i = 0; i < 4; i++)
        printf("%.17g\n", weir_hist_quantile(hist, fractions[i], min, max));
    return 0;
}
