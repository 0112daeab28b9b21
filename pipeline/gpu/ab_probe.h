/* ab_probe.h: an A/B probe: whether a helper makes all of them faster, measured by letting it work and pausing it by
 * turns. No clocks: the caller passes the time. All zeros to begin with; one thread at a time. */
#ifndef WEIR_PIPELINE_GPU_AB_PROBE_H
#define WEIR_PIPELINE_GPU_AB_PROBE_H

#include <stdbool.h>
#include <stdint.h>

/* Done so far. */
struct weir_ab_counts {
    uint64_t all, helper; /* by all of them, the helper included */
};

enum { WEIR_AB_PROBE_WINDOWS = 4 }; /* without, with, with, without: a steady rise or fall favours neither */

struct weir_ab_probe {
    uint64_t since_ns, pause_ns; /* since when the window, or the pause between two probes, lasts; how long it takes */
    int window;                  /* the one at hand */
    bool probing, counting;
    uint64_t from_ns;
    struct weir_ab_counts from;          /* all: of the window; helper: of the probe */
    double rates[WEIR_AB_PROBE_WINDOWS]; /* of all, per second */
    bool helps;                          /* as the last probe found */
    double gain;  /* what it added to all then, by the half that was nearer to the verdict's limit: 0.05 = 5 % */
    int n_probes; /* that had an answer */
};

/* Whether the helper is to work from now on: as the last probe found, and before the first one, which begins after 0.3
 * s and takes 2.4, it is. The next one is half a minute later, or 2 s where there was no answer: the two halves did not
 * agree, so something else was the matter, or the helper was given nothing to do. */
bool weir_ab_probe_step(struct weir_ab_probe *probe, uint64_t now_ns, struct weir_ab_counts counts);

#endif
