/* trial.h: whether a helper makes all of them faster, found by having it work and rest in turns. No clocks: the caller
 * says what time it is. All zeros to begin with; one thread at a time. */
#ifndef WEIR_PIPELINE_GPU_TRIAL_H
#define WEIR_PIPELINE_GPU_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

/* Done so far. */
struct weir_trial_counts {
    uint64_t all, helper; /* by all of them, the helper included */
};

enum { WEIR_TRIAL_WINDOWS = 4 }; /* without, with, with, without: a steady rise or fall favours neither */

struct weir_trial {
    uint64_t since_ns, rest_ns; /* since when the window, or the rest between two trials; how long that takes */
    int window;                 /* the one at hand */
    bool trying, counting;
    uint64_t from_ns;
    struct weir_trial_counts from;    /* all: of the window; helper: of the trial */
    double rates[WEIR_TRIAL_WINDOWS]; /* of all, per second */
    bool helps;                       /* as the last trial has it */
    double gain;  /* what it added to all then, by the half that was nearer to the verdict's limit: 0.05 = 5 % */
    int n_trials; /* that had an answer */
};

/* Whether the helper is to work from now on: as the last trial has it, and before the first one, which begins after
 * 0.3 s and takes 2.4, it is. The next one is half a minute later, or 2 s where there was no answer: the two halves did
 * not agree, so something else was the matter, or the helper was given nothing to do. */
bool weir_trial_step(struct weir_trial *trial, uint64_t now_ns, struct weir_trial_counts counts);

#endif
