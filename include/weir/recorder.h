/* recorder.h: the functions with which a program times itself. Stages and zones are always counted. Ranges, counters
 * and memory events are recorded only while a window is open (profiler.h).
 *
 * A thread attaches to a session, then opens and closes zones. Zones nest, and a zone's self time is its duration minus
 * that of the zones inside it. Each thread writes only its own cells, with relaxed stores and without locks, and a
 * reader may take a snapshot at any time. For a work stage, one call in 16 also reads the thread's CPU clock (fewer for
 * short stages, none for stages under 2 us). On a thread that is not attached, a zone costs one thread-local load. */
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
 * stages at compile time registers a constant table (weir_stages_register; weir/stages.h is the loader's table). A
 * program obtains numbers for names (weir_stage_register). */

enum weir_stage_kind {
    WEIR_KIND_WORK,      /* work of the CPU or a device; included in shares */
    WEIR_KIND_INCLUSIVE, /* a zone around other zones; its self time is counted as unattributed */
    WEIR_KIND_SPAN, /* from the first start to the last end across threads; without self time, not included in shares */
    WEIR_KIND_WAIT, /* blocked on another thread or the system */
    WEIR_KIND_LOOP, /* the outermost zone of a thread, not printed; its self time is counted as unattributed */
};

/* Stages with small numbers (from 0) come from the registered table. Larger numbers are assigned to names. Tables are
 * printed in the order of the numbers. */
enum { WEIR_STAGE_TABLE_MAX = 40, WEIR_STAGE_MAX = 72 };

struct weir_stage_info {
    const char *name;
    enum weir_stage_kind kind;
    bool consumer;  /* runs on the consumer's thread, so it is not included in the workers' shares */
    bool data_wait; /* the consumer's wait for data; traces show it as DataLoader time */
};

/* Returns the description of a stage, valid for the life of the process, or NULL if the number is not registered. Zones
 * with unregistered numbers are counted all the same. */
const struct weir_stage_info *weir_stage_info(int stage);

/* Returns the largest registered number plus one. */
int weir_stage_count(void);

/* Registers table[i] as stage i, for each i < n whose entry has a name. The table must exist for the life of the
 * process; registering it again has no effect. Returns 0, -E2BIG if n exceeds WEIR_STAGE_TABLE_MAX, or -EEXIST if
 * another table uses one of the numbers. Thread-safe. */
int weir_stages_register(const struct weir_stage_info *table, int n);

/* Returns the number of the stage with this name, registering the stage if it is new. name must exist for the life of
 * the process. Returns -ENOSPC if no number is left. Thread-safe. */
int weir_stage_register(const char *name, enum weir_stage_kind kind, bool consumer);

/* ---- names ----
 *
 * Small numbers that represent the names of ranges, counters and instants. Numbers below WEIR_STAGE_MAX are stages. A
 * process can have up to 65,463 other names, which are never freed. These functions are thread-safe. */

typedef uint16_t weir_name;

/* Returns the number of a name in a category, registering the name (copied) if it is new. WEIR_CAT_CPU_OP is an
 * operator, WEIR_CAT_USER_ANNOTATION a part of the program. If there are too many names or memory is exhausted, returns
 * the number of "(too many names)". Takes a lock, so callers should store the number. */
weir_name weir_name_intern(const char *text, enum weir_cat cat);

/* Returns the name, valid for the life of the process; "" for an unknown number. */
const char *weir_name_text(weir_name name);
enum weir_cat weir_name_cat(weir_name name);

/* Returns a number for the shapes and types of a range's inputs. Tensor i has ranks[i] sizes, concatenated in sizes,
 * and the type types[i], such as "unsigned char" or "float". Equal shapes have equal numbers. 0 = none; it is also
 * returned when there are 65,535 different shapes. Takes a lock, so callers should store the number. */
uint32_t weir_shapes_intern(int n, const int *ranks, const int64_t *sizes, const char *const *types);

/* Return "Input Dims" and "Input type" as JSON, valid for the life of the process; "" for 0. */
const char *weir_shapes_dims(uint32_t shapes);
const char *weir_shapes_types(uint32_t shapes);

/* ---- recording ----
 *
 * Ranges, counters, instants and memory events are recorded individually while a window records. At other times they
 * cost one relaxed load. They may be used on any thread at any time. Each thread writes to its own ring without locks;
 * when the ring is full, events are dropped and counted. The zones of attached threads are also recorded, under the
 * names of their stages. */

/* State of the recording: 0 = off, otherwise flags in the low bits and the recording's number above them. */
enum {
    WEIR_RECORDING_ON = 1,
    WEIR_RECORDING_SHAPES = 2, /* record_shapes */
    WEIR_RECORDING_STACKS = 4, /* with_stack */
    WEIR_RECORDING_MEMORY = 8, /* profile_memory */
    WEIR_RECORDING_NVTX = 16,  /* ranges are shown in Nsight; if this is the only flag, nothing is recorded */
    WEIR_RECORDING_NEXT = 256, /* increment of the recording's number */
};
extern uint32_t weir_recording_state;

static inline uint32_t weir_recording(void)
{
    return __atomic_load_n(&weir_recording_state, __ATOMIC_RELAXED);
}

/* The item (frame or batch) that the calling thread is working on, 0 = none. The thread's records carry its number, as
 * do those of the consumer that waits for it. __thread is the only spelling that both C and C++ accept. */
extern __thread uint64_t weir_item_self __attribute__((tls_model("initial-exec")));

/* For interpreters: number of the stack (weir_stack_text) to record under with_stack instead of the stack of C
 * functions. 0 = the stack of C functions. */
extern __thread uint32_t weir_stack_self __attribute__((tls_model("initial-exec")));
/* Returns the number of a stack. frames (copied) consists of "FILE(LINE): FUNCTION" entries, innermost first, separated
 * by ";". Equal stacks have equal numbers. Returns 0 if memory is exhausted or there are too many stacks (65,535,
 * including those of C functions). Takes a lock, so callers should store the number. Thread-safe. */
uint32_t weir_stack_text(const char *frames);

/* ---- ranges of one thread ---- */

/* An open range, located on the stack of the thread that opened it. */
struct weir_range {
    uint64_t start;
    uint32_t state; /* state of the recording when it was opened; 0 = not recorded */
    uint32_t shapes;
    weir_name name;
    uint16_t depth;
    uint16_t nvtx_depth; /* depth among the thread's ranges in Nsight */
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

/* Sets the shapes of the range's inputs (weir_shapes_intern), which are recorded under record_shapes. */
static inline void weir_range_shapes(struct weir_range *range, uint32_t shapes)
{
    range->shapes = shapes;
}

static inline struct weir_range weir_range_site_(weir_name *site, const char *text, enum weir_cat cat)
{
    struct weir_range none = {0, 0, 0, 0, 0, 0};
    return weir_recording() ? weir_range_begin(weir_site_name_(site, text, cat)) : none;
}

/* WEIR_RANGE("forward"); records a range from this statement to the end of the enclosing block. The text must be a
 * string constant, which is interned when the statement is first recorded. WEIR_OPERATOR does the same for an operator.
 */
#define WEIR_RANGE_JOIN_(a, line)  a##line
#define WEIR_RANGE_JOIN2_(a, line) WEIR_RANGE_JOIN_(a, line)
#define WEIR_RANGE_CAT_(text, cat)                                                                                     \
    static weir_name WEIR_RANGE_JOIN2_(weir_site_, __LINE__);                                                          \
    __attribute__((cleanup(weir_range_end), unused)) struct weir_range WEIR_RANGE_JOIN2_(weir_range_, __LINE__) =      \
        weir_range_site_(&WEIR_RANGE_JOIN2_(weir_site_, __LINE__), text, cat)
#define WEIR_RANGE(text)    WEIR_RANGE_CAT_(text, WEIR_CAT_USER_ANNOTATION)
#define WEIR_OPERATOR(text) WEIR_RANGE_CAT_(text, WEIR_CAT_CPU_OP)

/* ---- ranges that cross threads ---- */

/* A range that begins on one thread and can end on another. It is passed by value along with the work. */
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
/* item links the range with other ranges of the same item; 0 = none. */
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

/* Report that bytes at address were allocated or freed on a device: WEIR_MEMORY_CPU or a GPU number. Running totals are
 * always kept. The event itself is recorded under profile_memory. */
void weir_memory_allocated(const void *address, uint64_t bytes, int device);
void weir_memory_freed(const void *address, uint64_t bytes, int device);
/* Reports that the memory pools from which allocations are made grew by bytes (or shrank, if negative). Records no
 * event. */
void weir_memory_reserved(int64_t bytes, int device);
void weir_memory_totals(int device, int64_t *allocated, int64_t *reserved);

struct weir_recorder; /* a session, which owns the cells of all its threads */
struct weir_thread;   /* the cells of one thread */

enum weir_thread_role { WEIR_ROLE_WORKER, WEIR_ROLE_CONSUMER, WEIR_ROLE_OTHER };

int weir_recorder_open(struct weir_recorder **out);
/* Frees everything. All threads must have been detached. Accepts NULL. */
void weir_recorder_close(struct weir_recorder **recorder);

/* Attaches the calling thread to the session. name is copied, up to 15 characters. Returns 0, -EBUSY if the thread is
 * already attached, -ENOSPC if 1024 threads are attached, or -ENOMEM.
 *
 * Cells belong to the session and outlive the thread. A new thread reuses the cells of an ended thread with the same
 * name and role (once there are 1024 threads, of any ended thread with the same role). Counts and times continue from
 * there, without the time between the two threads. */
int weir_thread_attach(struct weir_recorder *recorder, const char *name, enum weir_thread_role role);
/* Detaches the calling thread. Zones that are still open end at this point and are counted. */
void weir_thread_detach(void);
/* Moves the start of the calling thread's time, and of its only open zone, back by ticks. Use it for a thread that
 * began to work before it was attached. */
void weir_thread_backdate(uint64_t ticks);

/* The calling thread's cells; NULL if it is not attached. __thread is the only spelling that both C and C++ accept. */
extern __thread struct weir_thread *weir_thread_self __attribute__((tls_model("initial-exec")));

void weir_zone_begin_(struct weir_thread *thread, int stage);
void weir_zone_end_(struct weir_thread *thread);
void weir_zone_carve_(struct weir_thread *thread, int stage, uint64_t ticks);
void weir_span_(struct weir_thread *thread, int stage, uint64_t start, uint64_t end);
void weir_zone_shapes_(struct weir_thread *thread, uint32_t shapes);

/* weir_zone_begin opens a zone on the calling thread, and weir_zone_end closes the innermost one, if there is any.
 * Zones with unregistered numbers are counted too, but zones with numbers out of range are not. Zones nested deeper
 * than WEIR_ZONES_DEEP are dropped and counted as dropped; their time belongs to the innermost zone that was kept. */
enum { WEIR_ZONES_DEEP = 32 }; /* including the zone around a thread's loop */
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

/* Transfers ticks from the innermost open zone to another stage, as one call of it. Use it for work that alternates
 * with the zone's own work band by band, such as decoding and conversion. A zone can have at most one such stage. */
static inline void weir_zone_carve(int stage, uint64_t ticks)
{
    if (weir_thread_self)
        weir_zone_carve_(weir_thread_self, stage, ticks);
}

/* Records a span that began on any thread at start and ended on this one at end, both in weir_clock_ticks(). The time
 * is not subtracted from open zones. */
static inline void weir_span(int stage, uint64_t start, uint64_t end)
{
    if (weir_thread_self)
        weir_span_(weir_thread_self, stage, start, end);
}

/* Returns the self time of the calling thread's completed calls of a stage since it was attached, in ticks; 0 if it is
 * not attached. The difference between two results is the stage's part of the work in between, obtained without reading
 * the clock. */
uint64_t weir_stage_ticks_here(int stage);

/* The calling thread's innermost open zone. stage is -1 if no zone is open, the thread is not attached, or the zone is
 * nested too deep. */
struct weir_zone_now {
    int stage;
    uint64_t start; /* in ticks */
};
struct weir_zone_now weir_zone_now(void);
/* Returns the self time of the innermost open zone so far, in ticks; 0 if no zone is open. */
uint64_t weir_zone_own(void);

/* Records a call of a stage that was timed elsewhere and lasted ticks. own is its self time, which is subtracted from
 * the calling thread's innermost open zone. The rest counts as nested. */
void weir_zone_logged(int stage, uint64_t ticks, uint64_t own);

/* Sets the shapes of the innermost open zone's inputs (weir_shapes_intern), which are recorded under record_shapes. */
static inline void weir_zone_shapes(uint32_t shapes)
{
    if ((weir_recording() & WEIR_RECORDING_SHAPES) && weir_thread_self)
        weir_zone_shapes_(weir_thread_self, shapes);
}

/* A timer for stages that follow each other without a gap, which reads the clock only once per stage. */
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

/* Records the time since weir_lap_begin or the previous weir_lap, on the same thread, as one call of stage. The time is
 * subtracted from the zone that is open around it. Zones opened since then must be closed. */
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

/* WEIR_ZONE(stage); times the code from this statement to the end of the enclosing block. */
#define WEIR_ZONE_NAME_(line)  weir_zone_at_##line
#define WEIR_ZONE_NAME2_(line) WEIR_ZONE_NAME_(line)
#define WEIR_ZONE(stage)                                                                                               \
    __attribute__((cleanup(weir_zone_close_), unused)) struct weir_thread *const WEIR_ZONE_NAME2_(__LINE__) =          \
        weir_zone_open_(stage)

struct weir_stage_stats {
    uint64_t count;
    uint64_t total_ns; /* sum of durations */
    uint64_t self_ns;  /* total minus nested zones; 0 for spans */
    uint64_t min_ns, max_ns;
    uint64_t measured;             /* number of calls on threads whose context switches are known */
    uint64_t off_ns, preempted_ns; /* the measured calls' self time off the CPU, and the part of it spent preempted */
    uint64_t measured_ns;          /* self time of the measured calls */
    uint64_t sampled, sampled_cpu_ns; /* calls on other threads with a CPU clock reading, and their CPU time */
    double hist_ns;                   /* ns per unit of hist; 0 means 1 */
    uint32_t hist[WEIR_HIST_BUCKETS];
};

/* Returns the CPU time of the stage's self time in ns, measured or extrapolated from at least 30 samples. -1 = unknown,
 * because there are too few samples or the stage is of a kind that is not sampled. Includes time stolen by a
 * hypervisor. */
double weir_stage_cpu_ns(const struct weir_stage_stats *stats);

/* Returns quantile q (0..1) of the durations in ns, accurate to the width of a bucket (6.25 %). */
double weir_stage_quantile_ns(const struct weir_stage_stats *stats, double q);

/* Adds a call that was timed elsewhere, for example by a GPU's clock. Only one thread may write to stats. */
void weir_stage_stats_add(struct weir_stage_stats *stats, uint64_t ns);
/* Subtracts an earlier state, leaving the calls made since. min and max are computed from the difference of the
 * histograms. */
void weir_stage_stats_subtract(struct weir_stage_stats *stats, const struct weir_stage_stats *then);

struct weir_thread_stats {
    char name[16];
    enum weir_thread_role role;
    uint64_t wall_ns;         /* time attached, by CLOCK_MONOTONIC, independent of zones */
    uint64_t cpu_ns;          /* CPU time while attached */
    uint64_t work_ns;         /* self time of work stages, including open zones */
    uint64_t wait_ns;         /* self time of wait stages, including open zones */
    uint64_t unattributed_ns; /* self time of inclusive, loop and span zones, including open ones */
    bool cpu_known; /* context switches are known; the next three members are then valid and add up to cpu_ns */
    uint64_t work_cpu_ns, wait_cpu_ns, unattributed_cpu_ns;
    bool delay_known;
    uint64_t delay_ns;                /* time runnable without a core, including throttling by its cgroup */
    uint64_t zones;                   /* number of zones recorded */
    uint64_t too_deep;                /* number of zones dropped because they were nested deeper than WEIR_ZONES_DEEP */
    int open_stage;                   /* stage of the innermost open zone; -1 = none */
    uint64_t open_ns;                 /* time since the innermost zone was opened */
    bool is_caller;                   /* this thread took the snapshot */
    uint64_t self_ns[WEIR_STAGE_MAX]; /* self time of each stage, including open zones */
};

struct weir_snapshot {
    uint64_t at_ns; /* time of the snapshot (CLOCK_MONOTONIC) */
    int n_stages;
    struct weir_stage_stats stages[WEIR_STAGE_MAX]; /* sums over all threads, except for the calls in others */
    struct weir_stage_stats others[WEIR_STAGE_MAX]; /* work and waits of worker stages on threads of WEIR_ROLE_OTHER */
    int switches_error;    /* -errno that explains why some threads' context switches are unknown; 0 = all are known */
    uint64_t throttled_ns; /* time for which run queues of the process's cgroups were stopped, summed over CPUs */
    uint64_t machine_busy, machine_steal; /* time of the machine's CPUs in clock ticks; busy includes steal */
    int n_threads;
    struct weir_thread_stats *threads;
};

/* Takes a snapshot, which the caller frees. Thread-safe. */
int weir_snapshot_take(struct weir_recorder *recorder, struct weir_snapshot **out);
/* Like weir_snapshot_take, but includes only those workers whose names begin with the given string, to select one of
 * several loaders in a session. NULL = all workers. */
int weir_snapshot_take_workers(struct weir_recorder *recorder, const char *workers, struct weir_snapshot **out);
/* Returns everything between then and now as a new snapshot. Counts, times and histograms are subtracted; min and max
 * are computed from the difference of the histograms. Threads that attached later are included completely. If then is
 * NULL, the difference starts with the session. */
int weir_snapshot_diff(const struct weir_snapshot *now, const struct weir_snapshot *then, struct weir_snapshot **out);
void weir_snapshot_free(struct weir_snapshot **snapshot);

/* Returns the cost of one zone on this machine in ns, without context switches. It is measured once per process, which
 * takes a few ms. If the CPU clock is sampled, the result is an upper bound: it includes a reading in one call of 16,
 * which only long stages make. */
double weir_zone_cost_ns(void);

#ifdef __cplusplus
}
#endif

#endif
