/* advice.h: writes two sentences about a measured grid: the format to use, and how to make loading faster. */
#ifndef WEIR_ANALYZE_TRIALS_ADVICE_H
#define WEIR_ANALYZE_TRIALS_ADVICE_H

#include "analyze/trials/grid.h"

struct weir_advice {
    char format[1024];                 /* first sentence */
    char next[1024];                   /* second sentence */
    const struct weir_candidate *best; /* best candidate of the recommended format, or of the source if the first
                                          sentence recommends none; NULL = nothing was measured */
    bool cold_best;                    /* the best candidate is a cold one */
    double others_cores; /* cores that other processes used, if that makes comparisons unreliable; otherwise 0 */
};

/* Recommends the source's format, unless another format is at least 1.1 times as fast with a warm or a cold page cache
 * (over the whole interval of the ratio), is slower in neither, and is at most 1.5 times as large. Of several such
 * formats, recommends the fastest; warm counts before cold. A faster format that does not meet one of these conditions
 * is mentioned with the reason. Formats are compared with weir_relation_of. If the source is not among the formats, the
 * first measured format takes its place.
 *
 * Recommends none, with the reason and what to do, if formats were compared in fewer than 3 rounds, if other processes
 * used a tenth of the cores, or if the ranges of the trials of both formats overlap. step_ms is the duration of the
 * candidates' training step, cores the number of usable cores. */
void weir_advise(const struct weir_grid *grid, double step_ms, double cores, struct weir_advice *advice);

#endif
