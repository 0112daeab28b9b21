#include "analyze/trials/rounds.h"
#include "base/numbers.h"
#include "weir/base.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* ---- rounds ---- */

static bool takes_part(const struct weir_rounds_config *config, int candidate)
{
    return !config->takes_part || config->takes_part(config->user, candidate);
}

/* Returns the candidate that begins the round. */
static int first_of(const struct weir_rounds_config *config, int round)
{
    int n = 0, first = 0;
    for (int i = 0; i < config->n; i++)
        n += takes_part(config, i);
    int skipped = n > 0 ? (round - 1) % n : 0;
    while (n > 0 && (!takes_part(config, first) || skipped-- > 0))
        first++;
    return first;
}

static int run_round(const struct weir_rounds_config *config, int round)
{
    int first = first_of(config, round), rc = 0;
    for (int i = 0; i < config->n && rc == 0; i++) {
        int candidate = (first + i) % config->n;
        if (!takes_part(config, candidate))
            continue;
        if (config->interrupted && *config->interrupted)
            return -EINTR;
        if (config->end_ns > 0 && weir_clock_monotonic_ns() >= config->end_ns)
            return -ETIME;
        rc = config->trial(config->user, candidate, round, i);
    }
    return rc;
}

int weir_rounds_run(const struct weir_rounds_config *config)
{
    int rc = 0;
    for (int round = 1; config->n > 0 && round <= config->rounds_max && rc == 0; round++) {
        rc = run_round(config, round);
        if (rc == 0 && config->is_decided && config->is_decided(config->user, round))
            break;
    }
    return rc;
}

/* ---- intervals ---- */

static const double LEVEL = 0.925;

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
    interval->median = weir_median(sorted, (size_t)count);
    int k = rank_of(count, &interval->probability);
    interval->n = count;
    interval->low = sorted[k - 1];
    interval->high = sorted[count - k];
    interval->least = sorted[0];
    interval->most = sorted[count - 1];
    for (int i = 0; i < count; i++)
        sorted[i] = fabs(sorted[i] - interval->median);
    interval->error = 1.2533 * 1.4826 * weir_median(sorted, (size_t)count) / sqrt(count);
}

bool weir_interval_converged(const struct weir_interval *interval, double fraction)
{
    double room = fraction * fabs(interval->median);
    return interval->n >= WEIR_INTERVAL_LEAST && interval->high - interval->median <= room &&
           interval->median - interval->low <= room;
}
