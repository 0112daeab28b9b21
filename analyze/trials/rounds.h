/* rounds.h: runs trials of candidates in rounds until their medians have converged. */
#ifndef WEIR_ANALYZE_TRIALS_ROUNDS_H
#define WEIR_ANALYZE_TRIALS_ROUNDS_H

#include "analyze/trials/candidate.h"
#include "weir/base.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct weir_rounds_config {
    const char *program; /* path of the program that runs every candidate's argv, such as "/proc/self/exe" */
    int rounds_min;      /* min number of rounds, if there is enough time */
    int rounds_max;
    double close;    /* stop if the interval of every median is within this fraction of the median */
    double trial_s;  /* time limit of a trial */
    uint64_t end_ns; /* time on weir_clock_monotonic_ns after which no trial begins */
    const volatile sig_atomic_t *interrupted; /* can be NULL */
    /* Called before each trial; can be NULL. If it does not return 0, the candidate fails with the reason in err. */
    int (*prepare)(void *user, const struct weir_candidate *candidate, struct weir_err *err);
    /* Called after each trial; can be NULL. If the trial failed, candidate->why is set. round counts from 0. */
    void (*done)(void *user, const struct weir_candidate *candidate, int round, int trial, int trials);
    void *user;
};

enum weir_rounds_end { WEIR_ROUNDS_CONVERGED, WEIR_ROUNDS_ROUNDS, WEIR_ROUNDS_TIME, WEIR_ROUNDS_INTERRUPTED };

struct weir_rounds_result {
    enum weir_rounds_end end;
    int rounds;        /* number of complete rounds */
    int not_converged; /* number of candidates whose interval is too wide or that have too few trials */
};

/* Runs the rounds. Round r begins with candidate r modulo n, so that no candidate is always first. Failed candidates
 * get no further trials. The output of an interrupted trial is discarded. Returns 0 or -ENOMEM. */
int weir_rounds_run(struct weir_candidate *candidates, int n, const struct weir_rounds_config *config,
                    struct weir_rounds_result *result);

#endif
