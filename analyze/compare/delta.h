/* delta.h: the change between two series of measurements, tested without assuming a distribution.
 *
 * The test is Mann-Whitney's U test, two-sided, at WEIR_DELTA_P: exact up to 50 measurements together, by the normal
 * distribution beyond. The interval inverts the test: its ends are order statistics of the changes of all pairs, and it
 * contains "no change" exactly if the test finds none. */
#ifndef WEIR_ANALYZE_COMPARE_DELTA_H
#define WEIR_ANALYZE_COMPARE_DELTA_H

#include "analyze/trials/rounds.h"

#include <stdbool.h>
#include <stddef.h>

#define WEIR_DELTA_P          0.01
#define WEIR_DELTA_RATIO      0.01 /* smaller changes are not called changes: of ratios */
#define WEIR_DELTA_P_OF_ANY   0.05
#define WEIR_DELTA_ERRORS     5
#define WEIR_DELTA_DIFFERENCE 0.005 /* of fractions, such as the data wait */

/* With fewer measurements on one side, nothing can be said. Of more than WEIR_DELTA_MAX, neighbours are averaged. */
enum { WEIR_DELTA_LEAST = WEIR_INTERVAL_LEAST, WEIR_DELTA_MAX = 256 };

/* Measurements in order of time. Zero-initialise; owned. */
struct weir_series {
    size_t n;
    double *values;
};
/* Appends a value; ignores values that are not finite. Returns 0 or -ENOMEM. */
int weir_series_add(struct weir_series *series, double value);
/* Returns the median, or NAN without values. */
double weir_series_median(const struct weir_series *series);
void weir_series_free(struct weir_series *series);

enum weir_delta_kind {
    WEIR_DELTA_UNKNOWN, /* too few measurements, or none above 0 */
    WEIR_DELTA_NOISE,   /* no change beyond the noise of the measurements */
    WEIR_DELTA_LOWER,
    WEIR_DELTA_HIGHER,
};

struct weir_delta {
    enum weir_delta_kind kind;
    int n_before, n_after;
    double before, after; /* medians; NAN = no measurement */
    double change;        /* median over all pairs of after / before - 1, or of after - before; NAN = unknown */
    double low, high;     /* its interval; NAN = unknown */
    double probability;   /* of the interval; at least 1 - WEIR_DELTA_P */
    double p;             /* of the test; NAN = unknown */
    double errors;        /* difference of the means over its standard error; NAN = unknown */
};

/* difference: the values are fractions, so their difference is tested; otherwise, their ratio. Returns 0 or -ENOMEM. */
int weir_delta_of(struct weir_delta *change, const struct weir_series *before, const struct weir_series *after,
                  bool difference);

/* Of several rows, some differ by chance. Turns a change into noise unless it is also clear among this many rows: p *
 * rows is below WEIR_DELTA_P_OF_ANY, or the means are WEIR_DELTA_ERRORS standard errors apart, because p cannot be that
 * small with few measurements. */
void weir_delta_confirm(struct weir_delta *delta, int rows);

#endif
