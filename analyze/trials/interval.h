/* interval.h: the median of a few measurements, with a confidence interval that assumes no distribution.
 *
 * The true median of n independent measurements lies between the k-th smallest and the k-th largest with probability
 * 1 - 2 P(at most k - 1 of n fair coins show heads). The interval has the largest k whose probability is at least 92.5
 * %: with 5 measurements the min and the max (93.8 %), with 9 the second from each end (96.1 %). */
#ifndef WEIR_ANALYZE_TRIALS_INTERVAL_H
#define WEIR_ANALYZE_TRIALS_INTERVAL_H

#include <stdbool.h>

/* With fewer measurements [low, high] is only their min and max. */
enum { WEIR_INTERVAL_LEAST = 5, WEIR_INTERVAL_MAX = 1024 };

struct weir_interval {
    int n;              /* finite measurements; 0: the other members are 0 */
    double median;      /* for an even number the mean of the middle two */
    double low, high;   /* the interval */
    double least, most; /* of all */
    double probability; /* that the interval contains the median */
};

/* Ignores values that are not finite, and all after WEIR_INTERVAL_MAX. */
void weir_interval_of(const double *values, int n, struct weir_interval *interval);
/* Whether both ends are within this fraction of the median, from enough measurements. */
bool weir_interval_converged(const struct weir_interval *interval, double fraction);

#endif
