/* intervals.h: the union of time intervals that arrive nearly in order. */
#ifndef WEIR_PIPELINE_GPU_INTERVALS_H
#define WEIR_PIPELINE_GPU_INTERVALS_H

#include <stdint.h>

enum { WEIR_INTERVALS_MAX = 16 }; /* max disjoint intervals kept; the oldest are dropped */

struct weir_intervals {
    int n;
    struct weir_interval {
        int64_t begin_ns, end_ns;
    } at[WEIR_INTERVALS_MAX]; /* disjoint intervals, sorted by time */
};

/* Adds an interval and returns the length of its part that was not covered before. An interval that ends before it
 * begins is empty. */
int64_t weir_intervals_add(struct weir_intervals *set, int64_t begin_ns, int64_t end_ns);
/* Returns the length of the interval's covered part. */
int64_t weir_intervals_overlap(const struct weir_intervals *set, int64_t begin_ns, int64_t end_ns);

#endif
