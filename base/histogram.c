#include "weir/base.h"

uint64_t weir_hist_low(unsigned bucket)
{
    if (bucket < 16)
        return bucket;
    if (bucket > WEIR_HIST_BUCKETS)
        bucket = WEIR_HIST_BUCKETS;
    unsigned octave = (bucket >> 4) + 3;
    return (uint64_t)(16 + (bucket & 15)) << (octave - 4);
}

static double within(double value, uint64_t min, uint64_t max)
{
    if (value > (double)max)
        value = (double)max;
    return value < (double)min ? (double)min : value;
}

double weir_hist_quantile(const uint32_t hist[WEIR_HIST_BUCKETS], double q, uint64_t min, uint64_t max)
{
    uint64_t n = 0;
    for (unsigned bucket = 0; bucket < WEIR_HIST_BUCKETS; bucket++)
        n += hist[bucket];
    if (n == 0)
        return 0;
    if (!(q > 0))
        return (double)min;
    if (q >= 1)
        return within((double)max, min, max);
    double rank = q * (double)n, below = 0;
    for (unsigned bucket = 0; bucket < WEIR_HIST_BUCKETS; bucket++) {
        if (hist[bucket] == 0 || below + hist[bucket] < rank) {
            below += hist[bucket];
            continue;
        }
        double low = (double)weir_hist_low(bucket), high = (double)weir_hist_low(bucket + 1);
        /* The last bucket also contains all longer durations, so its upper end is the longest duration. */
        if (bucket == WEIR_HIST_BUCKETS - 1 && (double)max > high)
            high = (double)max;
        return within(low + (high - low) * (rank - below) / hist[bucket], min, max);
    }
    return within((double)max, min, max);
}
