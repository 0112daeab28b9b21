#include "analyze/trials/interval.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double LEVEL = 0.925;

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Returns the largest k for which the interval from the k-th smallest to the k-th largest value has a probability of at
 * least LEVEL, or 1 if none exists. */
static int rank_of(int n, double *probability)
{
    double tail = 0, term = exp2(-n); /* P(exactly i heads), for i = 0 at first; underflows to 0 only for n > 1074 */
    int k = 1;
    *probability = 1 - 2 * term;
    for (int i = 0; i < n / 2; i++) {
        tail += term;
        if (1 - 2 * tail < LEVEL)
            break;
        k = i + 1;
        *probability = 1 - 2 * tail;
        term *= (double)(n - i) / (i + 1);
    }
    return k;
}

void weir_interval_of(const double *values, int n, struct weir_interval *interval)
{
    double sorted[WEIR_INTERVAL_MAX];
    int count = 0;
    memset(interval, 0, sizeof *interval);
    for (int i = 0; i < n && count < WEIR_INTERVAL_MAX; i++)
        if (isfinite(values[i]))
            sorted[count++] = values[i];
    if (count == 0)
        return;
    qsort(sorted, (size_t)count, sizeof *sorted, by_value);
    int k = rank_of(count, &interval->probability);
    interval->n = count;
    interval->median = count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
    interval->low = sorted[k - 1];
    interval->high = sorted[count - k];
    interval->least = sorted[0];
    interval->most = sorted[count - 1];
}

bool weir_interval_converged(const struct weir_interval *interval, double fraction)
{
    double room = fraction * fabs(interval->median);
    return interval->n >= WEIR_INTERVAL_LEAST && interval->high - interval->median <= room &&
           interval->median - interval->low <= room;
}
