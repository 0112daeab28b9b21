#include "extras/scenario/cpu_units.h"
#include "weir/base.h"

#include <pthread.h>

enum { UNIT_NS = 50, TRIALS = 20, TRIAL_ROUNDS = 50000 };

static uint64_t rounds_per_1024_units; /* set once, by calibrate */

/* Each round needs the result of the one before, so that no compiler and no processor shortens them. */
static uint64_t compute(uint64_t rounds, uint64_t state)
{
    for (uint64_t i = 0; i < rounds; i++)
        state = (state ^ (state >> 29)) * 0xbf58476d1ce4e5b9u + i;
    return state;
}

/* The least of several trials: what disturbs one makes it longer, never shorter. */
static void calibrate(void)
{
    uint64_t least_ns = UINT64_MAX, state = 1;
    for (int i = 0; i < TRIALS; i++) {
        uint64_t start_ns = weir_clock_monotonic_ns();
        state = compute(TRIAL_ROUNDS, state);
        uint64_t ns = weir_clock_monotonic_ns() - start_ns + (state == 0); /* the result is used */
        least_ns = ns < least_ns ? ns : least_ns;
    }
    uint64_t rounds = (uint64_t)UNIT_NS * 1024 * TRIAL_ROUNDS / (least_ns ? least_ns : 1);
    rounds_per_1024_units = rounds ? rounds : 1;
}

uint64_t weir_cpu_units(uint64_t units)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, calibrate);
    return compute(units * rounds_per_1024_units / 1024, units + 1);
}
