/* rounds.h: gives cells their turns, one after the other, round by round, until their medians are known well enough.
 */
#ifndef WEIR_ANALYZE_TRIALS_ROUNDS_H
#define WEIR_ANALYZE_TRIALS_ROUNDS_H

#include "analyze/trials/candidate.h"
#include "weir/base.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct weir_rounds_config {
    const char *program; /* that every cell's argv is for: "/proc/self/exe" */
    int rounds_min;      /* so many for every cell, if the time allows */
    int rounds_max;
    double close;    /* over once the interval of every cell's median is within this fraction of it */
    double trial_s;  /* a turn that takes longer fails */
    uint64_t end_ns; /* weir_clock_monotonic_ns: no turn begins after it */
    const volatile sig_atomic_t *interrupted; /* may be NULL */
    /* Before each turn of a cell; not 0: the cell fails with err. May be NULL. */
    int (*prepare)(void *user, const struct weir_candidate *candidate, struct weir_err *err);
    /* A turn is over, cell->why says how; round counts from 0. May be NULL. */
    void (*done)(void *user, const struct weir_candidate *candidate, int round, int trial, int trials);
    void *user;
};

enum weir_rounds_end { WEIR_ROUNDS_CONVERGED, WEIR_ROUNDS_ROUNDS, WEIR_ROUNDS_TIME, WEIR_ROUNDS_INTERRUPTED };

struct weir_rounds_result {
    enum weir_rounds_end end;
    int rounds;        /* complete ones */
    int not_converged; /* cells whose interval is wider, or who had too few turns */
};

/* Round r begins with cell r modulo n, so that none is always the first, or always behind the same one. Cells that fail
 * have no further turns. What a cell prints while it is not yet its turn's end is thrown away when it is interrupted.
 * 0, or -ENOMEM. */
int weir_rounds_run(struct weir_candidate *candidates, int n, const struct weir_rounds_config *config,
                    struct weir_rounds_result *result);

#endif
