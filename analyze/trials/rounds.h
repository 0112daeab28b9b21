/* rounds.h: runs trials of candidates in rounds until their medians have converged. */
#ifndef WEIR_ANALYZE_TRIALS_ROUNDS_H
#define WEIR_ANALYZE_TRIALS_ROUNDS_H

#include "analyze/trials/candidate.h"
#include "weir/base.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct weir_rounds_config {
    const char *program; /* of every candidate's argv: "/proc/self/exe" */
    int rounds_min;      /* for every candidate, if time permits */
    int rounds_max;
    double close;                             /* end once the interval of every median is within this fraction of it */
    double trial_s;                           /* a longer trial fails */
    uint64_t end_ns;                          /* weir_clock_monotonic_ns: no trial begins after it */
    const volatile sig_atomic_t *interrupted; /* may be NULL */
    /* Called before each trial; not 0: the candidate fails with err. May be NULL. */
    int (*prepare)(void *user, const struct weir_candidate *candidate, struct weir_err *err);
    /* Called after each trial; a failed one has set candidate->why. round counts from 0. May be NULL. */
    void (*done)(void *user, const struct weir_candidate *candidate, int round, int trial, int trials);
    void *user;
};

enum weir_rounds_end { WEIR_ROUNDS_CONVERGED, WEIR_ROUNDS_ROUNDS, WEIR_ROUNDS_TIME, WEIR_ROUNDS_INTERRUPTED };

struct weir_rounds_result {
    enum weir_rounds_end end;
    int rounds;        /* completed */
    int not_converged; /* candidates with a wider interval, or too few trials */
};

/* Round r begins with candidate r modulo n, so that none is always first. Failed candidates have no further trials. The
 * output of an interrupted trial is discarded. 0, or -ENOMEM. */
int weir_rounds_run(struct weir_candidate *candidates, int n, const struct weir_rounds_config *config,
                    struct weir_rounds_result *result);

#endif
