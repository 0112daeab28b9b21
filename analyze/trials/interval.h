/* interval.h: the median of a few measurements, and an interval for it that supposes nothing about their distribution.
 *
 * Of n independent measurements, sorted, the true median lies between number k from below and number k from above with
 * a probability that is binomial: 1 - 2 P(at most k - 1 of n fair coins show heads). The interval is the one with the
 * largest k whose probability is at least 92.5 %: with 5 measurements the least and the largest (93.8 %), with 9 the
 * second from each end (96.1 %). */
#ifndef WEIR_ANALYZE_TRIALS_INTERVAL_H
#define WEIR_ANALYZE_TRIALS_INTERVAL_H

#include <stdbool.h>

/* Fewer give no such interval; [low, high] is then the least and the largest. */
enum { WEIR_INTERVAL_LEAST = 5, WEIR_INTERVAL_MAX = 1024 };

struct weir_interval {
    int n;              /* finite measurements; 0: the rest is 0 */
    double median;      /* of an even number the mean of the two in the middle */
    double low, high;   /* the interval */
    double least, most; /* of all */
    double probability; /* that the interval holds the median */
};

/* values that are not finite are left out, and what is beyond the first WEIR_INTERVAL_MAX. */
void weir_interval_of(const double *values, int n, struct weir_interval *interval);
/* The interval's ends are within this fraction of the median, and there are enough measurements for one. */
bool weir_interval_converged(const struct weir_interval *interval, double fraction);

#endif
