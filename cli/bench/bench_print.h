/* bench_print.h: the results of weir bench, as a document or CSV lines. */
#ifndef WEIR_CLI_BENCH_BENCH_PRINT_H
#define WEIR_CLI_BENCH_BENCH_PRINT_H

#include "analyze/trials/grid.h"
#include "base/document.h"
#include "cli/bench/bench_setup.h"
#include "cli/options.h"

#include <stdio.h>

enum bench_end { BENCH_CONVERGED, BENCH_ROUNDS, BENCH_TIME, BENCH_INTERRUPTED };

/* The rounds of the warm or cold candidates. */
struct bench_rounds {
    enum bench_end end;
    int rounds;        /* number of complete rounds */
    int not_converged; /* number of candidates whose interval is too wide or that have too few trials */
};

struct bench_results {
    const struct bench_setup *setup;
    const struct weir_grid *grid;
    struct bench_rounds warm, cold;
    struct weir_grid_advice advice;
    double took_s;
};

/* Returns the candidate that the others are compared with: the best candidate of as-is or, if as-is was not measured,
 * of the first format. Returns NULL if none exists. */
const struct weir_candidate *bench_reference(const struct weir_grid *grid, bool cold);

/* Returns the state of the page cache in a candidate's trials: "warm", "cold" or "from memory". */
const char *bench_state(const struct weir_candidate *candidate);

void bench_describe(struct weir_document *document, const struct bench_results *results,
                    const struct weir_command *command);
void bench_print_csv(const struct bench_results *results, FILE *out);

#endif
