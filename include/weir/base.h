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
 * Calls return 0 or a positive count on success and -errno on failure. Calls that can fail in many ways also take a
 * struct weir_err, which gets one line: what failed, where, and what to do. The first error is kept, later ones are
 * dropped. A weir_err belongs to one thread. */

struct weir_err {
    int code;        /* 0 = none, else -errno (EBADMSG corrupt data, ENODATA short file, ENOTSUP not built, ...) */
    char text[1024]; /* one line, without a newline */
};

#ifdef __cplusplus
#define WEIR_ERR_NONE (weir_err())
#else
#define WEIR_ERR_NONE ((struct weir_err){0})
#endif

/* Sets the error if none is set yet (err may be NULL) and returns code. Control characters in the text become '?', so
 * that hostile names cannot break the line. */
int weir_err_set(struct weir_err *err, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Prepends "prefix: " to an error that is set. */
void weir_err_prefix(struct weir_err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- clock ----
 *
 * The clock of all timings: raw rdtsc where the CPU reports an invariant TSC, calibrated against CLOCK_MONOTONIC;
 * elsewhere clock_gettime(CLOCK_MONOTONIC). One multiplication converts ticks to ns. */

struct weir_clock {
    bool tsc;                /* ticks are TSC cycles, else ns */
    uint64_t ns_per_tick_32; /* ns per tick as a 32.32 fixed-point number */
    double error_ppm;        /* spread of the calibration's repetitions, parts per million */
};

extern struct weir_clock weir_clock;

/* Calibrates once per process (about 20 ms). Any thread, any number of times. */
void weir_clock_init(void);

static inline uint64_t weir_clock_monotonic_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t weir_clock_slow_ticks_(void) __attribute__((cold)); /* out of line to keep callers small */

/* Only if weir_clock.tsc is true. */
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
 * A log-linear histogram of durations: one bucket per value below 32, then 16 per octave, so that a bucket is at most
 * 6.25 % wide. 544 buckets reach 2^37; longer durations count in the last. The unit is the writer's: ns, or clock ticks
 * (2^37 ticks of a 3 GHz TSC are 46 s). Writers own the array; readers copy it. The layout follows HdrHistogram's
 * sub-bucket scheme with 4 significant bits. */

enum { WEIR_HIST_BITS = 37, WEIR_HIST_BUCKETS = (WEIR_HIST_BITS - 3) * 16 };

/* Bucket of a value below 2^WEIR_HIST_BITS: the position of its highest bit and the four bits below it; values below 32
 * are their own bucket. Written for a short dependency chain. */
static inline uint64_t weir_hist_bucket_short(uint64_t value)
{
    uint64_t octave = 63u ^ (unsigned)__builtin_clzll(value | 16);
    return (octave << 4) + ((value << 4) >> octave) - 64;
}

static inline unsigned weir_hist_bucket(uint64_t value)
{
    return value >> WEIR_HIST_BITS ? WEIR_HIST_BUCKETS - 1 : (unsigned)weir_hist_bucket_short(value);
}

/* Lowest value of a bucket; weir_hist_low(WEIR_HIST_BUCKETS) is the end of the last one. */
uint64_t weir_hist_low(unsigned bucket);

/* Quantile q (0..1) of the recorded values, interpolated inside its bucket and clamped to [min, max]; 0 for an empty
 * histogram. */
double weir_hist_quantile(const uint32_t hist[WEIR_HIST_BUCKETS], double q, uint64_t min, uint64_t max);

/* ---- JSON ----
 *
 * Writes JSON (RFC 8259) to a FILE, piece by piece. Escapes strings; bytes that are not UTF-8 become U+FFFD, and
 * non-finite numbers null. key is NULL inside arrays. Errors remain in the FILE (ferror). */

struct weir_json {
    FILE *out;
    bool pretty; /* two-space indentation and newlines; else one line */
    int depth;
    bool first; /* nothing written yet at this depth */
};

void weir_json_open(struct weir_json *json, FILE *out, bool pretty);
/* Ends the document with a newline. */
void weir_json_close(struct weir_json *json);
void weir_json_object(struct weir_json *json, const char *key);
void weir_json_array(struct weir_json *json, const char *key);
/* Closes the innermost object ('}') or array (']'). */
void weir_json_end(struct weir_json *json, char bracket);
void weir_json_text(struct weir_json *json, const char *key, const char *value); /* NULL value: null */
void weir_json_int(struct weir_json *json, const char *key, int64_t value);
void weir_json_uint(struct weir_json *json, const char *key, uint64_t value);
void weir_json_double(struct weir_json *json, const char *key, double value); /* shortest of 6, 9 or 17 digits */
void weir_json_bool(struct weir_json *json, const char *key, bool value);
void weir_json_null(struct weir_json *json, const char *key);
/* A number, or null for a negative one: unknown, or not applicable. */
void weir_json_known(struct weir_json *json, const char *key, double value);

#ifdef __cplusplus
}
#endif

#endif
