/* trial.h: whether a helper makes all of them faster, found by having it work and rest in turns. No clocks: the caller
 * says what time it is. All zeros to begin with; one thread at a time. */
#ifndef WEIR_PIPELINE_TRIAL_H
#define WEIR_PIPELINE_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

enum { WEIR_TRIAL_WINDOWS = 4 }; /* without, with, with, without: a steady rise or fall favours neither */

struct weir_trial {
    uint64_t since_ns, rest_ns; /* since when the window, or the rest between two trials; how long that takes */
    int window;                 /* the one at hand */
    bool trying, counting;
    uint64_t from_ns, from_count;
    double rates[WEIR_TRIAL_WINDOWS]; /* of all, per second */
    bool helps;                       /* as the last trial has it */
    double gain;                      /* what it added to all then: 0.05 = 5 %; may be negative */
    int n_trials;                     /* that had an answer */
};

/* count: what all of them have done so far. Whether the helper is to work from now on: as the last trial has it, and
 * before the first one, which begins after 0.3 s and takes 2.4, it is. The next one is half a minute later, or 2 s
 * where the two halves of one did not agree: something else was the matter. */
bool weir_trial_step(struct weir_trial *trial, uint64_t now_ns, uint64_t count);

#endif
