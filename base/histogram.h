/* histogram.h: log-linear histogram of durations: one bucket per value below 32, then 16 per octave, so that a bucket
 * is at most 6.25 % wide; 544 buckets reach 2^37, longer ones land in the last. The unit is the writer's: ns, or ticks
 * of the clock (2^37 of a TSC of 3 GHz are 46 s). Writers own the array; readers copy it. The layout follows
 * HdrHistogram's sub-bucket scheme with 4 significant bits. */
#ifndef WEIR_BASE_HISTOGRAM_H
#define WEIR_BASE_HISTOGRAM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { WEIR_HIST_BITS = 37, WEIR_HIST_BUCKETS = (WEIR_HIST_BITS - 3) * 16 };

/* Of a value below 2^WEIR_HIST_BITS. The value's four bits below its highest one, and which that is: below 32 the value
 * itself. Written so that as few instructions as can be depend on each other. */
static inline uint64_t weir_hist_bucket_short(uint64_t value)
{
    uint64_t octave = 63u ^ (unsigned)__builtin_clzll(value | 16);
    return (octave << 4) + ((value << 4) >> octave) - 64;
}

static inline unsigned weir_hist_bucket(uint64_t value)
{
    return value >> WEIR_HIST_BITS ? WEIR_HIST_BUCKETS - 1 : (unsigned)weir_hist_bucket_short(value);
}

/* Lowest value of a bucket; weir_hist_low(WEIR_HIST_BUCKETS) is the end of the last one. */
uint64_t weir_hist_low(unsigned bucket);

/* The value below which the fraction q (0..1) of the recorded values lie, interpolated inside its bucket and kept
 * within [min, max]; 0 when nothing was recorded. */
double weir_hist_quantile(const uint32_t hist[WEIR_HIST_BUCKETS], double q, uint64_t min, uint64_t max);

#ifdef __cplusplus
}
#endif

#endif
