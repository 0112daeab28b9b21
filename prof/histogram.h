/* histogram.h: log-linear histogram of durations in ns: 16 linear buckets below 16 ns, then 16 per octave, so that a
 * bucket is at most 6.25 % wide; 512 buckets reach 2^35 ns (34 s), longer ones land in the last. Writers own the array;
 * readers copy it. The layout follows HdrHistogram's sub-bucket scheme with 4 significant bits. */
#ifndef WEIR_PROF_HISTOGRAM_H
#define WEIR_PROF_HISTOGRAM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { WEIR_HIST_BUCKETS = 512 };

static inline unsigned weir_hist_bucket(uint64_t ns)
{
    if (ns < 16)
        return (unsigned)ns;
    unsigned octave = 63u - (unsigned)__builtin_clzll(ns); /* >= 4 */
    unsigned bucket = ((octave - 3) << 4) | (unsigned)((ns >> (octave - 4)) & 15);
    return bucket < WEIR_HIST_BUCKETS ? bucket : WEIR_HIST_BUCKETS - 1;
}

/* Lowest value of a bucket, ns; weir_hist_low(WEIR_HIST_BUCKETS) is the end of the last one. */
uint64_t weir_hist_low(unsigned bucket);

/* The value below which the fraction q (0..1) of the recorded values lie, interpolated inside its bucket and kept
 * within [min_ns, max_ns]; 0 when nothing was recorded. */
double weir_hist_quantile(const uint32_t hist[WEIR_HIST_BUCKETS], double q, uint64_t min_ns, uint64_t max_ns);

#ifdef __cplusplus
}
#endif

#endif
