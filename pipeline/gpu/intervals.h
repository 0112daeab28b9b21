/* intervals.h: the union of intervals of time that come in nearly in order: what has been covered so far. */
#ifndef WEIR_PIPELINE_GPU_INTERVALS_H
#define WEIR_PIPELINE_GPU_INTERVALS_H

#include <stdint.h>

enum { WEIR_INTERVALS_MAX = 16 }; /* kept apart; older ones are forgotten */

struct weir_intervals {
    int n;
    struct weir_interval {
        int64_t begin_ns, end_ns;
    } at[WEIR_INTERVALS_MAX]; /* disjoint, in order */
};

/* Adds an interval; how much of it was not covered before. One that ends before it begins is empty. */
int64_t weir_intervals_add(struct weir_intervals *set, int64_t begin_ns, int64_t end_ns);
/* How much of the interval is covered. */
int64_t weir_intervals_overlap(const struct weir_intervals *set, int64_t begin_ns, int64_t end_ns);

#endif
