/* recording.h: the second plane of the profiler: what is written down, call by call, while a window records.
 *
 * Everything here may be called at any time on any thread and costs one relaxed load while nothing records. Names are
 * interned once (names.h). Each thread writes to a ring of its own, without locks; a full ring drops and counts.
 * Zones of attached threads (recorder.h) are recorded as well, under their stage's name. */
#ifndef WEIR_PROF_RECORD_RECORDING_H
#define WEIR_PROF_RECORD_RECORDING_H

#include "base/clock.h"
#include "prof/record/names.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is going on: 0 = nothing records, else bits of what and, above them, which recording. */
enum {
    WEIR_RECORDING_ON = 1,
    WEIR_RECORDING_SHAPES = 2, /* record_shapes */
    WEIR_RECORDING_STACKS = 4, /* with_stack */
    WEIR_RECORDING_MEMORY = 8, /* profile_memory */
    WEIR_RECORDING_NVTX = 16,  /* ranges are shown to Nsight; alone: nothing is recorded, the other bits are 0 */
    WEIR_RECORDING_NEXT = 256, /* one more recording */
};
extern uint32_t weir_recording_state;

static inline uint32_t weir_recording(void)
{
    return __atomic_load_n(&weir_recording_state, __ATOMIC_RELAXED);
}

/* What the calling thread works on: every record it writes carries it, 0 = nothing. The consumer of an item is found by
 * the same number. __thread is the one spelling that C and C++ share. */
extern __thread uint64_t weir_item_self __attribute__((tls_model("initial-exec")));

/* For interpreters: the stack that the calling thread's records carry under with_stack, in place of that of the C
 * functions; 0 = that one. A number of weir_stack_text. */
extern __thread uint32_t weir_stack_self __attribute__((tls_model("initial-exec")));
/* frames: FILE(LINE): FUNCTION, innermost first, joined by ; (copied). The same frames have the same number; 0 when
 * there are too many (65,535 with those of C functions), or no memory. Takes a lock: keep the number. Any thread. */
uint32_t weir_stack_text(const char *frames);

/* ---- ranges of one thread ---- */

/* A range that is open; by value, on the stack of whoever opened it. */
struct weir_range {
    uint64_t start;
    uint32_t state; /* of the recording it was opened in; 0 = it is not recorded */
    uint32_t shapes;
    weir_name name;
    uint16_t depth;
    uint16_t nvtx_depth; /* of the thread's ranges in Nsight */
};

void weir_range_begin_(struct weir_range *range);
void weir_range_end_(struct weir_range *range);
weir_name weir_site_name_(weir_name *site, const char *text, enum weir_cat cat);

static inline struct weir_range weir_range_begin(weir_name name)
{
    struct weir_range range = {0, weir_recording(), 0, name, 0, 0};
    if (range.state)
        weir_range_begin_(&range);
    return range;
}

/* Ends the range, and those opened in it on this thread that are still open. */
static inline void weir_range_end(struct weir_range *range)
{
    if (range->state)
        weir_range_end_(range);
}

/* The shapes of what the range works on (weir_shapes_intern); recorded under record_shapes. */
static inline void weir_range_shapes(struct weir_range *range, uint32_t shapes)
{
    range->shapes = shapes;
}

static inline struct weir_range weir_range_site_(weir_name *site, const char *text, enum weir_cat cat)
{
    struct weir_range none = {0, 0, 0, 0, 0, 0};
    return weir_recording() ? weir_range_begin(weir_site_name_(site, text, cat)) : none;
}

/* WEIR_RANGE("forward"); times from here to the end of the enclosing block. The text is a constant of the program: it
 * is interned at the first recorded call. WEIR_OPERATOR does the same for what should be listed as an operator. */
#define WEIR_RANGE_JOIN_(a, line)  a##line
#define WEIR_RANGE_JOIN2_(a, line) WEIR_RANGE_JOIN_(a, line)
#define WEIR_RANGE_CAT_(text, cat)                                                                                     \
    static weir_name WEIR_RANGE_JOIN2_(weir_site_, __LINE__);                                                          \
    __attribute__((cleanup(weir_range_end), unused)) struct weir_range WEIR_RANGE_JOIN2_(weir_range_, __LINE__) =      \
        weir_range_site_(&WEIR_RANGE_JOIN2_(weir_site_, __LINE__), text, cat)
#define WEIR_RANGE(text)    WEIR_RANGE_CAT_(text, WEIR_CAT_USER_ANNOTATION)
#define WEIR_OPERATOR(text) WEIR_RANGE_CAT_(text, WEIR_CAT_CPU_OP)

/* ---- ranges that cross threads ---- */

/* Begun on one thread, ended on any; travels by value with the work. */
struct weir_async {
    uint64_t start;
    uint32_t state;
    weir_name name;
};

static inline struct weir_async weir_async_begin(weir_name name)
{
    struct weir_async async = {0, weir_recording(), name};
    if (async.state)
        async.start = weir_clock_ticks();
    return async;
}

void weir_async_record_(weir_name name, uint64_t start, uint64_t end, uint64_t item);
/* item links it with other ranges of the same item; 0 = it stands alone. */
static inline void weir_async_end(const struct weir_async *async, uint64_t item)
{
    if (async->state && async->state == weir_recording())
        weir_async_record_(async->name, async->start, weir_clock_ticks(), item);
}

/* ---- points ---- */

void weir_counter_(weir_name name, double value);
void weir_instant_(weir_name name);

static inline void weir_counter(weir_name name, double value)
{
    if (weir_recording())
        weir_counter_(name, value);
}

static inline void weir_instant(weir_name name)
{
    if (weir_recording())
        weir_instant_(name);
}

/* ---- memory ---- */

enum { WEIR_MEMORY_CPU = -1, WEIR_MEMORY_DEVICES = 16 };

/* Says that bytes at address were taken into use (or given back) on a device: WEIR_MEMORY_CPU, or a GPU's number. The
 * running totals are kept at all times, the event is recorded under profile_memory. */
void weir_memory_allocated(const void *address, uint64_t bytes, int device);
void weir_memory_freed(const void *address, uint64_t bytes, int device);
/* The pools that allocations are served from grew by so many bytes (or shrank); no event. */
void weir_memory_reserved(int64_t bytes, int device);
void weir_memory_totals(int device, int64_t *allocated, int64_t *reserved);

#ifdef __cplusplus
}
#endif

#endif
