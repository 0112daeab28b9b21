/* base.h: errors, the clock, histograms of durations, and a JSON writer. */
#ifndef WEIR_BASE_H
#define WEIR_BASE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- errors ----
 *
 * Functions return 0 or a positive count on success and -errno on failure. Functions with several ways to fail also
 * take a struct weir_err, which receives a one-line message: what failed, where, and what to do. Only the first error
 * is kept. A weir_err belongs to one thread. */

struct weir_err {
    int code; /* 0 = none, else -errno: EBADMSG (corrupt data), ENODATA (short file), ENOTSUP (not built in), ... */
    char text[1024]; /* one line without a newline */
};

#ifdef __cplusplus
#define WEIR_ERR_NONE (weir_err())
#else
#define WEIR_ERR_NONE ((struct weir_err){0})
#endif

/* Sets the error if none is set yet (err may be NULL) and returns code. Control characters in the message are replaced
 * with '?', so that a malicious file name cannot break the line. */
int weir_err_set(struct weir_err *err, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Prepends "prefix: " to the message. No effect if no error is set. */
void weir_err_prefix(struct weir_err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- clock ----
 *
 * All timings use this clock: the raw TSC (rdtsc), calibrated against CLOCK_MONOTONIC, if the CPU reports an invariant
 * TSC, otherwise clock_gettime(CLOCK_MONOTONIC). One multiplication converts ticks to ns. */

struct weir_clock {
    bool tsc;                /* true: a tick is a TSC cycle; false: a tick is 1 ns */
    uint64_t ns_per_tick_32; /* ns per tick as a 32.32 fixed-point number */
    double error_ppm;        /* spread between calibration rounds, in parts per million */
};

extern struct weir_clock weir_clock;

/* Calibrates the clock on the first call (about 20 ms). May be called repeatedly and from any thread. */
void weir_clock_init(void);

static inline uint64_t weir_clock_monotonic_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t weir_clock_slow_ticks_(void) __attribute__((cold)); /* out of line to keep callers small */

/* Valid only if weir_clock.tsc is true. */
static inline uint64_t weir_clock_tsc(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return 0;
#endif
}

static inline uint64_t weir_clock_ticks(void)
{
#if defined(__x86_64__)
    if (__builtin_expect(weir_clock.tsc, 1))
        return __builtin_ia32_rdtsc();
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

/* ---- histograms ----
 *
 * A log-linear histogram of durations: one bucket per value below 32, then 16 buckets per octave, so that a bucket is
 * at most 6.25 % wide. The 544 buckets reach 2^37, and longer durations are counted in the last bucket. The writer
 * chooses the unit: ns, or clock ticks (2^37 ticks of a 3 GHz TSC are 46 s). Writers own the array, and readers copy
 * it. The layout follows HdrHistogram's sub-bucket scheme with 4 significant bits. */

enum { WEIR_HIST_BITS = 37, WEIR_HIST_BUCKETS = (WEIR_HIST_BITS - 3) * 16 };

/* Returns the bucket of a value below 2^WEIR_HIST_BITS, which follows from the position of the value's highest bit and
 * the four bits below it. Each value below 32 has its own bucket. The expression keeps the dependency chain short. */
static inline uint64_t weir_hist_bucket_short(uint64_t value)
{
    uint64_t octave = 63u ^ (unsigned)__builtin_clzll(value | 16);
    return (octave << 4) + ((value << 4) >> octave) - 64;
}

static inline unsigned weir_hist_bucket(uint64_t value)
{
    return value >> WEIR_HIST_BITS ? WEIR_HIST_BUCKETS - 1 : (unsigned)weir_hist_bucket_short(value);
}

/* Returns the lowest value of a bucket. weir_hist_low(WEIR_HIST_BUCKETS) is the upper end of the last bucket. */
uint64_t weir_hist_low(unsigned bucket);

/* Returns quantile q (0..1) of the recorded values, interpolated within its bucket and clamped to [min, max], or 0 if
 * the histogram is empty. */
double weir_hist_quantile(const uint32_t hist[WEIR_HIST_BUCKETS], double q, uint64_t min, uint64_t max);

/* ---- JSON ----
 *
 * Writes JSON (RFC 8259) to a FILE, piece by piece. Strings are escaped. Bytes that are not valid UTF-8 become U+FFFD,
 * and non-finite numbers become null. Inside arrays, key is NULL. Write errors stay in the FILE (ferror). */

struct weir_json {
    FILE *out;
    bool pretty; /* true: one member per line, indented by two spaces per level; false: all on one line */
    int depth;
    bool first; /* nothing has been written at this depth yet */
};

void weir_json_open(struct weir_json *json, FILE *out, bool pretty);
/* Ends the document with a newline. */
void weir_json_close(struct weir_json *json);
void weir_json_object(struct weir_json *json, const char *key);
void weir_json_array(struct weir_json *json, const char *key);
/* Closes the innermost object ('}') or array (']'). */
void weir_json_end(struct weir_json *json, char bracket);
void weir_json_text(struct weir_json *json, const char *key, const char *value); /* a NULL value becomes null */
void weir_json_int(struct weir_json *json, const char *key, int64_t value);
void weir_json_uint(struct weir_json *json, const char *key, uint64_t value);
/* Writes the number with 6, 9 or 17 digits, the fewest that represent it exactly. */
void weir_json_double(struct weir_json *json, const char *key, double value);
void weir_json_bool(struct weir_json *json, const char *key, bool value);
void weir_json_null(struct weir_json *json, const char *key);
/* Writes a number, or null if the value is negative (unknown or not applicable). */
void weir_json_known(struct weir_json *json, const char *key, double value);

#ifdef __cplusplus
}
#endif

#endif
