/* recorder.h: what a program calls to be timed: stages and zones, which are always counted, and ranges, counters and
 * memory events, which are recorded while a window is open (profiler.h).
 *
 * A thread attaches to a session, then opens and closes zones. Zones nest; a zone's self time is its duration minus
 * that of the zones inside it. Each thread writes only its own cells (relaxed stores, no locks), and a reader may take
 * a snapshot at any time. One call in 16 of a work stage also reads the thread's CPU clock (fewer for short stages,
 * none under 2 us). A zone on a thread that is not attached costs one thread-local load. */
#ifndef WEIR_RECORDER_H
#define WEIR_RECORDER_H

#include "weir/base.h"
#include "weir/trace.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- stages ----
 *
 * A stage has a number, which zones carry, and a name, which tables show.
 *
 * The profiler has no stages of its own: programs register theirs before their first zone. A library that knows its
 * stages at compile time registers a table of constants (weir_stages_register; the loader's is weir/stages.h); a
 * program gets numbers by name (weir_stage_register). */

enum weir_stage_kind {
    WEIR_KIND_WORK,      /* work of the CPU or a device; counted in shares */
    WEIR_KIND_INCLUSIVE, /* a zone around other zones; its self time is unattributed */
    WEIR_KIND_SPAN,      /* first start to last end across threads; no self time, not in shares */
    WEIR_KIND_WAIT,      /* blocked on another thread or the system */
    WEIR_KIND_LOOP,      /* the outermost zone of a thread, not shown; its self time is unattributed */
};

/* Numbers from 0 belong to the process's table, larger ones are assigned by name. Tables are in the order of numbers.
 */
enum { WEIR_STAGE_TABLE_MAX = 40, WEIR_STAGE_MAX = 72 };

struct weir_stage_info {
    const char *name;
    enum weir_stage_kind kind;
    bool consumer;  /* on the consumer's thread: not in the workers' shares */
    bool data_wait; /* the consumer's wait for data; traces show it as DataLoader time */
};

/* NULL for an unregistered number; its zones are counted all the same. Lent for the life of the process. */
const struct weir_stage_info *weir_stage_info(int stage);

/* One more than the largest registered number. */
int weir_stage_count(void);

/* Registers table[i] as stage i, for each i below n with a name. The table is borrowed for the life of the process;
 * registering it again has no effect. 0; -E2BIG: n exceeds WEIR_STAGE_TABLE_MAX; -EEXIST: another table uses a number.
 * Any thread. */
int weir_stages_register(const struct weir_stage_info *table, int n);

/* Returns the number of the stage with this name, registering it if new. name is borrowed for the life of the process.
 * -ENOSPC when full. Any thread. */
int weir_stage_register(const char *name, enum weir_stage_kind kind, bool consumer);

/* ---- names ----
 *
 * Names of ranges, counters and instants as small numbers. Numbers below WEIR_STAGE_MAX are stages; at most 65,463
 * others exist in a process, and they are never freed. Any thread. */

typedef uint16_t weir_name;

/* Returns the number of a name in a category (WEIR_CAT_CPU_OP: an operator; WEIR_CAT_USER_ANNOTATION: a part of the
 * program), registering it if new. text is copied. With too many names, or without memory, returns that of "(too many
 * names)". Takes a lock: keep the number. */
weir_name weir_name_intern(const char *text, enum weir_cat cat);

/* Lent for the life of the process; "" for an unknown number. */
const char *weir_name_text(weir_name name);
enum weir_cat weir_name_cat(weir_name name);

/* Shapes and types of a range's inputs, as one number. n tensors have ranks[i] sizes each, concatenated in sizes;
 * types[i] is "unsigned char", "float", ... Equal shapes have equal numbers. 0 = none; also returned beyond 65,535
 * different shapes. Takes a lock: keep the number. */
uint32_t weir_shapes_intern(int n, const int *ranks, const int64_t *sizes, const char *const *types);

/* "Input Dims" and "Input type" as JSON text, lent for the life of the process; "" for 0. */
const char *weir_shapes_dims(uint32_t shapes);
const char *weir_shapes_types(uint32_t shapes);

/* ---- recording ----
 *
 * Ranges, counters, instants and memory events are recorded one by one while a window records; otherwise they cost one
 * relaxed load. Any thread, any time. Each thread writes to its own ring without locks; a full ring drops and counts.
 * Zones of attached threads are recorded as well, under their stage's name. */

/* State of the recording: 0 = off, else flags and, above them, the recording's number. */
enum {
    WEIR_RECORDING_ON = 1,
    WEIR_RECORDING_SHAPES = 2, /* record_shapes */
    WEIR_RECORDING_STACKS = 4, /* with_stack */
    WEIR_RECORDING_MEMORY = 8, /* profile_memory */
    WEIR_RECORDING_NVTX = 16,  /* ranges are shown in Nsight; alone: nothing is recorded */
    WEIR_RECORDING_NEXT = 256, /* step from one recording to the next */
};
extern uint32_t weir_recording_state;

static inline uint32_t weir_recording(void)
{
    return __atomic_load_n(&weir_recording_state, __ATOMIC_RELAXED);
}

/* The item that the calling thread works on: each of its records carries it, and so does its consumer's; 0 = none.
 * __thread is the only spelling that C and C++ share. */
extern __thread uint64_t weir_item_self __attribute__((tls_model("initial-exec")));

/* For interpreters: the stack of the calling thread's records under with_stack, instead of that of C functions; from
 * weir_stack_text, 0 = C functions. */
extern __thread uint32_t weir_stack_self __attribute__((tls_model("initial-exec")));
/* Returns the number of a stack: frames FILE(LINE): FUNCTION, innermost first, joined by ; (copied). Equal stacks have
 * equal numbers. 0: too many stacks (65,535 with those of C functions), or no memory. Takes a lock: keep the number.
 * Any thread. */
uint32_t weir_stack_text(const char *frames);

/* ---- ranges of one thread ---- */

/* An open range; lives on the opener's stack. */
struct weir_range {
    uint64_t start;
    uint32_t state; /* recording that it was opened in; 0 = not recorded */
    uint32_t shapes;
    weir_name name;
    uint16_t depth;
    uint16_t nvtx_depth; /* depth of the thread's ranges in Nsight */
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

/* Ends the range, and any ranges inside it that are still open on this thread. */
static inline void weir_range_end(struct weir_range *range)
{
    if (range->state)
        weir_range_end_(range);
}

/* Shapes of the range's inputs (weir_shapes_intern), recorded under record_shapes. */
static inline void weir_range_shapes(struct weir_range *range, uint32_t shapes)
{
    range->shapes = shapes;
}

static inline struct weir_range weir_range_site_(weir_name *site, const char *text, enum weir_cat cat)
{
    struct weir_range none = {0, 0, 0, 0, 0, 0};
    return weir_recording() ? weir_range_begin(weir_site_name_(site, text, cat)) : none;
}

/* WEIR_RANGE("forward"); records from here to the end of the enclosing block. The text must be a constant: it is
 * interned at the first recorded call. WEIR_OPERATOR does the same for an operator. */
#define WEIR_RANGE_JOIN_(a, line)  a##line
#define WEIR_RANGE_JOIN2_(a, line) WEIR_RANGE_JOIN_(a, line)
#define WEIR_RANGE_CAT_(text, cat)                                                                                     \
    static weir_name WEIR_RANGE_JOIN2_(weir_site_, __LINE__);                                                          \
    __attribute__((cleanup(weir_range_end), unused)) struct weir_range WEIR_RANGE_JOIN2_(weir_range_, __LINE__) =      \
        weir_range_site_(&WEIR_RANGE_JOIN2_(weir_site_, __LINE__), text, cat)
#define WEIR_RANGE(text)    WEIR_RANGE_CAT_(text, WEIR_CAT_USER_ANNOTATION)
#define WEIR_OPERATOR(text) WEIR_RANGE_CAT_(text, WEIR_CAT_CPU_OP)

/* ---- ranges that cross threads ---- */

/* Begun on one thread and ended on any; passed by value along with the work. */
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
/* item links it with other ranges of the same item; 0 = none. */
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

/* Reports bytes at address as allocated (or freed) on a device: WEIR_MEMORY_CPU, or a GPU's number. Running totals are
 * always kept; the event is recorded under profile_memory. */
void weir_memory_allocated(const void *address, uint64_t bytes, int device);
void weir_memory_freed(const void *address, uint64_t bytes, int device);
/* Reports that the pools behind allocations grew (or shrank, if negative) by bytes; no event. */
void weir_memory_reserved(int64_t bytes, int device);
void weir_memory_totals(int device, int64_t *allocated, int64_t *reserved);

struct weir_recorder; /* a session; owns the cells of all its threads */
struct weir_thread;   /* one thread's cells */

enum weir_thread_role { WEIR_ROLE_WORKER, WEIR_ROLE_CONSUMER, WEIR_ROLE_OTHER };

int weir_recorder_open(struct weir_recorder **out);
/* Frees everything. All threads must have detached. Accepts NULL. */
void weir_recorder_close(struct weir_recorder **recorder);

/* Attaches the calling thread to the session: at most 1024 threads at a time, else -ENOSPC; -EBUSY if it is attached.
 * name is copied, 15 characters. Cells belong to the session and outlive the thread. A new thread reuses the cells of
 * one that ended with the same name and role (of the same role, once there are 1024): counts and times add up, without
 * the gap between them. */
int weir_thread_attach(struct weir_recorder *recorder, const char *name, enum weir_thread_role role);
/* Leaves the session. Zones still open end here and are counted. */
void weir_thread_detach(void);
/* Moves the start of the calling thread's time, and of its only open zone, back by ticks: for a thread that attached
 * after its first work. */
void weir_thread_backdate(uint64_t ticks);

/* The calling thread's cells; NULL when not attached. __thread is the only spelling that C and C++ share. */
extern __thread struct weir_thread *weir_thread_self __attribute__((tls_model("initial-exec")));

void weir_zone_begin_(struct weir_thread *thread, int stage);
void weir_zone_end_(struct weir_thread *thread);
void weir_zone_carve_(struct weir_thread *thread, int stage, uint64_t ticks);
void weir_span_(struct weir_thread *thread, int stage, uint64_t start, uint64_t end);
void weir_zone_shapes_(struct weir_thread *thread, uint32_t shapes);

/* weir_zone_begin opens a zone on the calling thread, and weir_zone_end closes the innermost one, if any. Zones of
 * unregistered numbers are counted as well; numbers out of range are not. Zones nested deeper than WEIR_ZONES_DEEP are
 * dropped and counted; their time belongs to the innermost zone kept. */
enum { WEIR_ZONES_DEEP = 17 }; /* including the one around a thread's loop */
static inline void weir_zone_begin(int stage)
{
    if (weir_thread_self)
        weir_zone_begin_(weir_thread_self, stage);
}

static inline void weir_zone_end(void)
{
    if (weir_thread_self)
        weir_zone_end_(weir_thread_self);
}

/* Moves ticks from the innermost open zone to one call of another stage: for work that alternates with the zone's own,
 * band by band (decode and convert). At most one other stage per zone. */
static inline void weir_zone_carve(int stage, uint64_t ticks)
{
    if (weir_thread_self)
        weir_zone_carve_(weir_thread_self, stage, ticks);
}

/* Records a span that began on any thread and ends on this one, in weir_clock_ticks(). Takes no time from open zones.
 */
static inline void weir_span(int stage, uint64_t start, uint64_t end)
{
    if (weir_thread_self)
        weir_span_(weir_thread_self, stage, start, end);
}

/* Self time of the calling thread's finished calls of a stage, in ticks since it attached; 0 when not attached. The
 * difference around a piece of work is the stage's part of it, without reading the clock. */
uint64_t weir_stage_ticks_here(int stage);

/* The calling thread's innermost open zone. stage is -1 when none is open, the thread is not attached, or the zone is
 * nested too deep. */
struct weir_zone_now {
    int stage;
    uint64_t start; /* ticks */
};
struct weir_zone_now weir_zone_now(void);
/* Self time of that zone so far, in ticks; 0 when none is open. */
uint64_t weir_zone_own(void);

/* Records a call of a stage that was timed elsewhere: ticks long, of which own are its self time, taken from the
 * calling thread's innermost open zone. The rest counts as nested. */
void weir_zone_logged(int stage, uint64_t ticks, uint64_t own);

/* Shapes of the innermost open zone's inputs (weir_shapes_intern), recorded under record_shapes. */
static inline void weir_zone_shapes(uint32_t shapes)
{
    if ((weir_recording() & WEIR_RECORDING_SHAPES) && weir_thread_self)
        weir_zone_shapes_(weir_thread_self, shapes);
}

/* A chained timer: one clock read per stage, for stages that follow each other without a gap. */
struct weir_lap {
    uint64_t at;
    uint32_t state;
};
void weir_lap_(struct weir_thread *thread, struct weir_lap *lap, int stage);

static inline struct weir_lap weir_lap_begin(void)
{
    struct weir_lap lap = {0, 0};
    if (weir_thread_self) {
        lap.at = weir_clock_ticks();
        lap.state = weir_recording();
    }
    return lap;
}

/* Records the time since weir_lap_begin or the last lap as one call of stage, on the same thread. The time is taken
 * from the open zone around it. Zones opened in between must be closed. */
static inline void weir_lap(struct weir_lap *lap, int stage)
{
    if (weir_thread_self)
        weir_lap_(weir_thread_self, lap, stage);
}

static inline struct weir_thread *weir_zone_open_(int stage)
{
    struct weir_thread *thread = weir_thread_self;
    if (thread)
        weir_zone_begin_(thread, stage);
    return thread;
}

static inline void weir_zone_close_(struct weir_thread *const *thread)
{
    if (*thread)
        weir_zone_end_(*thread);
}

/* WEIR_ZONE(stage); times from here to the end of the enclosing block. */
#define WEIR_ZONE_NAME_(line)  weir_zone_at_##line
#define WEIR_ZONE_NAME2_(line) WEIR_ZONE_NAME_(line)
#define WEIR_ZONE(stage)                                                                                               \
    __attribute__((cleanup(weir_zone_close_), unused)) struct weir_thread *const WEIR_ZONE_NAME2_(__LINE__) =          \
        weir_zone_open_(stage)

struct weir_stage_stats {
    uint64_t count;
    uint64_t total_ns; /* sum of durations */
    uint64_t self_ns;  /* minus nested zones; 0 for spans */
    uint64_t min_ns, max_ns;
    uint64_t measured;                /* calls on threads with known context switches, and of their self time: */
    uint64_t off_ns, preempted_ns;    /* off the CPU; of that, preempted and runnable */
    uint64_t measured_ns;             /* total */
    uint64_t sampled, sampled_cpu_ns; /* on other threads: calls with a CPU clock reading, and their CPU time */
    double hist_ns;                   /* ns per unit of hist; 0 = 1 */
    uint32_t hist[WEIR_HIST_BUCKETS];
};

/* CPU time of the stage's self time, ns: measured, or extrapolated from at least 30 samples. -1 = unknown: too few
 * samples, or a kind of stage that is not sampled. Includes time stolen by a hypervisor. */
double weir_stage_cpu_ns(const struct weir_stage_stats *stats);

/* Quantile q (0..1) of the durations, ns, to within a bucket's width (6.25 %). */
double weir_stage_quantile_ns(const struct weir_stage_stats *stats, double q);

/* Adds one call timed elsewhere (by a GPU's clock), in cells that one thread writes. */
void weir_stage_stats_add(struct weir_stage_stats *stats, uint64_t ns);
/* Subtracts an earlier state: leaves the calls since, with min and max from the difference of the histograms. */
void weir_stage_stats_subtract(struct weir_stage_stats *stats, const struct weir_stage_stats *then);

struct weir_thread_stats {
    char name[16];
    enum weir_thread_role role;
    uint64_t wall_ns; /* from attach to now (or detach), by CLOCK_MONOTONIC, independent of zones */
    uint64_t cpu_ns;  /* CPU time from attach to now (or detach) */
    uint64_t work_ns; /* self time of work stages, open zones included */
    uint64_t wait_ns; /* self time of wait stages, open zones included */
    uint64_t
        unattributed_ns; /* self time of inclusive and loop zones, and of zones of span stages, open zones included */
    bool cpu_known;      /* context switches are known; then CPU times of zones follow, which add up to cpu_ns */
    uint64_t work_cpu_ns, wait_cpu_ns, unattributed_cpu_ns;
    bool delay_known;
    uint64_t delay_ns;                /* runnable without a core, including throttling by its cgroup */
    uint64_t zones;                   /* zones recorded */
    uint64_t too_deep;                /* zones dropped: nested deeper than WEIR_ZONES_DEEP */
    int open_stage;                   /* innermost open zone, -1 for none */
    uint64_t open_ns;                 /* for how long it has been open */
    bool is_caller;                   /* the thread that took the snapshot */
    uint64_t self_ns[WEIR_STAGE_MAX]; /* self time by stage, open zones included */
};

struct weir_snapshot {
    uint64_t at_ns; /* CLOCK_MONOTONIC */
    int n_stages;
    struct weir_stage_stats stages[WEIR_STAGE_MAX]; /* merged over threads, except */
    struct weir_stage_stats others[WEIR_STAGE_MAX]; /* work and waits of worker stages on threads of WEIR_ROLE_OTHER */
    int switches_error;    /* why some threads' context switches are unknown, -errno; 0 = all are known */
    uint64_t throttled_ns; /* time that run queues of the process's cgroups were stopped, summed over CPUs */
    uint64_t machine_busy, machine_steal; /* of the machine's CPUs, in clock ticks; busy includes steal */
    int n_threads;
    struct weir_thread_stats *threads;
};

/* Takes a snapshot. *out is owned by the caller. Any thread. */
int weir_snapshot_take(struct weir_recorder *recorder, struct weir_snapshot **out);
/* Includes only workers whose names begin with this: one of several loaders in a session. NULL = all. */
int weir_snapshot_take_workers(struct weir_recorder *recorder, const char *workers, struct weir_snapshot **out);
/* Returns everything between then and now as a new snapshot: counts, times and histograms are subtracted, min and max
 * come from the difference of the histograms. Threads that joined after then are included whole. then may be NULL
 * (since the start). */
int weir_snapshot_diff(const struct weir_snapshot *now, const struct weir_snapshot *then, struct weir_snapshot **out);
void weir_snapshot_free(struct weir_snapshot **snapshot);

/* Measured cost of one zone on this machine, ns. Where the CPU clock is sampled this is an upper bound, with one
 * reading in 16 calls, as only long stages have. Context switches are not included. Measured once per process, a few
 * ms. */
double weir_zone_cost_ns(void);

#ifdef __cplusplus
}
#endif

#endif
