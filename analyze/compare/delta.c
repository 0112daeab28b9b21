#include "analyze/compare/delta.h"

#include "base/grow.h"
#include "base/numbers.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { EXACT_MOST = 50, EXACT_U = EXACT_MOST * EXACT_MOST / 4 + 1 };

int weir_series_add(struct weir_series *series, double value)
{
    if (!isfinite(value))
        return 0;
    if (!weir_grow(&series->values, series->n, sizeof *series->values))
        return -ENOMEM;
    series->values[series->n++] = value;
    return 0;
}

void weir_series_free(struct weir_series *series)
{
    free(series->values);
    *series = (struct weir_series){0};
}

/* ---- the distribution of U without a change ---- */

/* P(U <= u), for u = 0 to n * m. */
struct distribution {
    int n, m;
    double exact[EXACT_U]; /* cumulative probabilities, if n + m is at most EXACT_MOST */
};

/* The numbers of orders with each U are the coefficients of the Gaussian binomial (n + m over n), in whole numbers
 * below 2^53. */
static void make_distribution(struct distribution *d, int n, int m)
{
    int top = n * m;
    double sum = 0, total = 0;
    *d = (struct distribution){.n = n, .m = m};
    if (n + m > EXACT_MOST)
        return;
    d->exact[0] = 1;
    for (int i = 1; i <= n; i++) {
        for (int u = top; u >= m + i; u--)
            d->exact[u] -= d->exact[u - (m + i)];
        for (int u = i; u <= top; u++)
            d->exact[u] += d->exact[u - i];
    }
    for (int u = 0; u <= top; u++)
        total += d->exact[u];
    for (int u = 0; u <= top; u++) {
        sum += d->exact[u];
        d->exact[u] = sum / total;
    }
}

static double at_most(const struct distribution *d, int u)
{
    double n = d->n, m = d->m;
    if (u < 0)
        return 0;
    if (d->n + d->m <= EXACT_MOST)
        return d->exact[u];
    return 0.5 * erfc((n * m / 2 - u - 0.5) / sqrt(n * m * (n + m + 1) / 6));
}

/* Returns the largest number of pairs that the interval may leave out at each end, or -1 if even the interval of all
 * pairs is not certain enough. */
static int left_out(const struct distribution *d)
{
    int k = -1;
    while (2 * at_most(d, k + 1) <= WEIR_DELTA_P)
        k++;
    return k;
}

/* ---- pairs ---- */

/* Copies at most WEIR_DELTA_MAX values; of more, means of neighbours. Returns their number. */
static int condense(double *to, const struct weir_series *series)
{
    size_t group = (series->n + WEIR_DELTA_MAX - 1) / WEIR_DELTA_MAX;
    int n = 0;
    for (size_t i = 0; i < series->n; i += group) {
        size_t end = i + group < series->n ? i + group : series->n;
        double sum = 0;
        for (size_t j = i; j < end; j++)
            sum += series->values[j];
        to[n++] = sum / (double)(end - i);
    }
    return n;
}

double weir_series_median(const struct weir_series *series)
{
    double sorted[WEIR_DELTA_MAX];
    size_t n = (size_t)condense(sorted, series);
    return n > 0 ? weir_median(sorted, n) : NAN;
}

static double change_of(double before, double after, bool difference)
{
    if (difference)
        return after - before;
    return before > 0 ? after / before - 1 : after > 0 ? INFINITY : 0;
}

/* Returns the square of the standard error of the mean, and the mean. */
static double error_of(const double *values, int n, double *mean)
{
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++)
        sum += values[i];
    *mean = sum / n;
    for (int i = 0; i < n; i++)
        squares += (values[i] - *mean) * (values[i] - *mean);
    return squares / (n - 1) / n;
}

static double errors_apart(const double *from, int n, const double *to, int m)
{
    double before, after, error = error_of(from, n, &before);
    error += error_of(to, m, &after);
    return before == after ? 0 : fabs(after - before) / sqrt(error);
}

/* Tests the sorted changes of all pairs. */
static void test(struct weir_delta *change, const double *pairs, int n_pairs, bool difference)
{
    struct distribution d;
    double above = 0;
    make_distribution(&d, change->n_before, change->n_after);
    for (int i = 0; i < n_pairs; i++)
        above += pairs[i] > 0 ? 1 : pairs[i] == 0 ? 0.5 : 0;
    change->p = fmin(1, 2 * at_most(&d, (int)ceil(fmin(above, n_pairs - above))));
    int k = left_out(&d);
    if (k < 0)
        return;
    change->low = pairs[k];
    change->high = pairs[n_pairs - 1 - k];
    change->probability = 1 - 2 * at_most(&d, k);
    double least = difference ? WEIR_DELTA_DIFFERENCE : WEIR_DELTA_RATIO;
    change->kind = change->low > 0 && change->change >= least     ? WEIR_DELTA_HIGHER
                   : change->high < 0 && change->change <= -least ? WEIR_DELTA_LOWER
                                                                  : WEIR_DELTA_NOISE;
}

int weir_delta_of(struct weir_delta *change, const struct weir_series *before, const struct weir_series *after,
                  bool difference)
{
    double from[WEIR_DELTA_MAX], to[WEIR_DELTA_MAX];
    int n = condense(from, before), m = condense(to, after);
    *change = (struct weir_delta){.n_before = n,
                                  .n_after = m,
                                  .change = NAN,
                                  .low = NAN,
                                  .high = NAN,
                                  .p = NAN,
                                  .before = NAN,
                                  .after = NAN,
                                  .errors = NAN};
    change->before = n > 0 ? weir_median(from, (size_t)n) : NAN;
    change->after = m > 0 ? weir_median(to, (size_t)m) : NAN;
    if (n == 0 || m == 0 || (!difference && !(change->before > 0)))
        return 0;
    double *pairs = malloc((size_t)n * (size_t)m * sizeof *pairs);
    if (!pairs)
        return -ENOMEM;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++)
            pairs[i * m + j] = change_of(from[i], to[j], difference);
    change->change = weir_median(pairs, (size_t)n * (size_t)m);
    if (n >= WEIR_DELTA_LEAST && m >= WEIR_DELTA_LEAST) {
        change->errors = errors_apart(from, n, to, m);
        test(change, pairs, n * m, difference);
    }
    free(pairs);
    return 0;
}

void weir_delta_confirm(struct weir_delta *delta, int rows)
{
    bool clear = delta->p * rows < WEIR_DELTA_P_OF_ANY || delta->errors >= WEIR_DELTA_ERRORS;
    if (delta->kind != WEIR_DELTA_UNKNOWN && !clear)
        delta->kind = WEIR_DELTA_NOISE;
}
