/* advice.h: two sentences about a measured grid that a person can act on: which format, and what to do about what holds
 * it up. */
#ifndef WEIR_ANALYZE_TRIALS_ADVICE_H
#define WEIR_ANALYZE_TRIALS_ADVICE_H

#include "analyze/trials/grid.h"

struct weir_advice {
    char format[1024];                 /* the first sentence */
    char next[1024];                   /* the second */
    const struct weir_candidate *best; /* of the format that the first one names: the cell to take; NULL = nothing was
                                     measured */
    bool cold_best;                    /* nothing was measured warm, or it counts cold */
};

/* The rule: the source is kept unless another format is at least 1.1 times as fast in one state of the page cache (all
 * of the ratio's interval is), slower in none, and at most 1.5 times as large; of these the fastest, warm before cold,
 * is named. What is faster and breaks one of these is
 * mentioned with what speaks against it. Faster and slower are by the interval of ratios (weir_relation_of). Without
 * the source among the formats the first one that was measured is in its place. step_ms as given to the cells. */
void weir_advise(const struct weir_grid *grid, double step_ms, struct weir_advice *advice);

#endif
