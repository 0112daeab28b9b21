/* clock.h: the clock of all timings. Raw rdtsc where the CPU says its TSC is invariant, calibrated against
 * CLOCK_MONOTONIC; clock_gettime(CLOCK_MONOTONIC) elsewhere. Ticks are turned into ns by one multiplication. */
#ifndef WEIR_BASE_CLOCK_H
#define WEIR_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

struct weir_clock {
    bool tsc;                /* ticks are TSC cycles, else ns */
    uint64_t ns_per_tick_32; /* ns per tick as a 32.32 fixed-point number */
    double error_ppm;        /* spread of the calibration's repetitions, parts per million */
};

extern struct weir_clock weir_clock;

/* Calibrates once per process (about 20 ms); safe to call from any thread, any number of times. */
void weir_clock_init(void);

static inline uint64_t weir_clock_monotonic_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t weir_clock_slow_ticks_(void) __attribute__((cold)); /* out of line, so that it costs nothing elsewhere */

/* Where weir_clock.tsc is true. */
static inline uint64_t weir_clock_tsc(void)
{
#if defined(__x86_64__)
    return __rdtsc();
#else
    return 0;
#endif
}

static inline uint64_t weir_clock_ticks(void)
{
#if defined(__x86_64__)
    if (__builtin_expect(weir_clock.tsc, 1))
        return __rdtsc();
#endif
    return weir_clock_slow_ticks_();
}

static inline double weir_clock_ns_per_tick(void)
{
    return (double)weir_clock.ns_per_tick_32 / 4294967296.0;
}

static inline uint64_t weir_clock_to_ns(uint64_t ticks)
{
    return (uint64_t)(((unsigned __int128)ticks * weir_clock.ns_per_tick_32) >> 32);
}

#ifdef __cplusplus
}
#endif

#endif
