#include "weir/base.h"

#include <pthread.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

struct weir_clock weir_clock = {.tsc = false, .ns_per_tick_32 = 1ull << 32, .error_ppm = 0};

#if defined(__x86_64__)
enum { CALIBRATION_ROUNDS = 4, CALIBRATION_NS = 5 * 1000 * 1000 };

static bool tsc_is_invariant(void)
{
    unsigned a, b, c, d;
    if (!__get_cpuid(0x80000000u, &a, &b, &c, &d) || a < 0x80000007u)
        return false;
    __get_cpuid(0x80000007u, &a, &b, &c, &d);
    return (d >> 8) & 1;
}

/* Reads both clocks at nearly the same time. Uses the shortest of several attempts, to exclude interrupts between the
 * readings. */
static void read_both(uint64_t *ticks, uint64_t *ns)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 16; i++) {
        uint64_t t0 = __builtin_ia32_rdtsc();
        uint64_t at = weir_clock_monotonic_ns();
        uint64_t t1 = __builtin_ia32_rdtsc();
        if (t1 - t0 >= best)
            continue;
        best = t1 - t0;
        *ticks = t0 + best / 2;
        *ns = at;
    }
}

static void calibrate(void)
{
    if (!tsc_is_invariant())
        return;
    uint64_t t0 = 0, n0 = 0, t1 = 0, n1 = 0;
    double low = 0, high = 0;
    read_both(&t0, &n0);
    for (int round = 0; round < CALIBRATION_ROUNDS; round++) {
        do
            read_both(&t1, &n1);
        while (n1 - n0 < (uint64_t)(round + 1) * CALIBRATION_NS);
        double ratio = (double)(n1 - n0) / (double)(t1 - t0);
        low = round == 0 || ratio < low ? ratio : low;
        high = round == 0 || ratio > high ? ratio : high;
    }
    double ratio = (double)(n1 - n0) / (double)(t1 - t0);
    weir_clock.ns_per_tick_32 = (uint64_t)(ratio * 4294967296.0 + 0.5);
    weir_clock.error_ppm = (high - low) / ratio * 1e6;
    weir_clock.tsc = true;
}
#else
static void calibrate(void)
{
}
#endif

uint64_t weir_clock_slow_ticks_(void)
{
    return weir_clock_monotonic_ns();
}

void weir_clock_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, calibrate);
}
