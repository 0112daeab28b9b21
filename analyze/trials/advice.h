/* advice.h: two sentences on a measured grid: the format to use, and how to speed it up. */
#ifndef WEIR_ANALYZE_TRIALS_ADVICE_H
#define WEIR_ANALYZE_TRIALS_ADVICE_H

#include "analyze/trials/grid.h"

struct weir_advice {
    char format[1024]; /* the first sentence */
    char next[1024];   /* the second */
    const struct weir_candidate
        *best;      /* best candidate of the format in the first sentence; NULL = nothing was measured */
    bool cold_best; /* that candidate is a cold one */
};

/* Keeps the source unless another format is at least 1.1 times as fast in one state of the page cache (all of the
 * ratio's interval is), slower in none, and at most 1.5 times as large. Of these it names the fastest, warm before
 * cold. A faster format that breaks one of these conditions is mentioned with the reason. Relations are those of
 * weir_relation_of. Without the source among the formats, the first measured one stands for it. step_ms: as given to
 * the candidates. */
void weir_advise(const struct weir_grid *grid, double step_ms, struct weir_advice *advice);

#endif
