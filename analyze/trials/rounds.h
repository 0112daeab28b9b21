/* rounds.h: the loop of all trials, which measures candidates in interleaved rounds; and the median of a few
 * measurements, with a confidence interval that assumes no distribution.
 *
 * The true median of n independent measurements lies between the k-th smallest and the k-th largest with probability
 * 1 - 2 P(at most k - 1 of n fair coins show heads). The interval uses the largest k with a probability of at least
 * 92.5 %. With 5 measurements, it extends from the min to the max (93.8 %); with 9, from the second smallest to the
 * second largest (96.1 %). */
#ifndef WEIR_ANALYZE_TRIALS_ROUNDS_H
#define WEIR_ANALYZE_TRIALS_ROUNDS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- rounds ---- */

struct weir_rounds_config {
    int n; /* number of candidates */
    int rounds_max;
    uint64_t end_ns; /* time on weir_clock_monotonic_ns after which no trial begins; 0 = no limit */
    const volatile sig_atomic_t *interrupted; /* can be NULL */
    /* Runs one trial. round counts from 1, position counts the candidates of a round from 0. Keeps the result, or the
     * reason why the candidate gets no further trials. Any return value other than 0 ends the rounds. */
    int (*trial)(void *user, int candidate, int round, int position);
    /* Returns whether the candidate gets another trial. NULL = always. */
    bool (*takes_part)(const void *user, int candidate);
    /* Called after each complete round; can be NULL. Returns whether the results are certain enough. */
    bool (*is_decided)(void *user, int round);
    void *user;
};

/* Runs the rounds. Each begins with another of the candidates that take part, so that no candidate is always first.
 * Returns 0, -EINTR if interrupted, -ETIME at the time limit, or what a trial returned. */
int weir_rounds_run(const struct weir_rounds_config *config);

/* ---- intervals ---- */

/* With fewer than WEIR_INTERVAL_LEAST measurements, the interval is from the min to the max, with a lower probability.
 */
enum { WEIR_INTERVAL_LEAST = 5, WEIR_INTERVAL_MAX = 1024 };

struct weir_interval {
    int n;              /* number of finite measurements; if 0, all other members are 0 */
    double median;      /* if n is even, the mean of the middle two */
    double low, high;   /* ends of the interval */
    double least, most; /* min and max of all measurements */
    double probability; /* probability that the interval contains the true median */
    double error;       /* standard error of the median, estimated from the median absolute deviation */
};

/* Computes the interval. Ignores values that are not finite, and finite values beyond the first WEIR_INTERVAL_MAX. */
void weir_interval_of(const double *values, int n, struct weir_interval *interval);
/* Returns whether there are enough measurements and both ends are within this fraction of the median. */
bool weir_interval_converged(const struct weir_interval *interval, double fraction);

#endif
