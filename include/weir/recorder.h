/* recorder.h: the always-on plane of the profiler: per thread and stage, how often, how long, how spread.
 *
 * A thread attaches to a session and then opens and closes zones; zones nest, and a zone's self time is its duration
 * less that of the zones inside it. Each thread writes only its own cells (relaxed stores, no locks); a reader may take
 * a snapshot at any time. One call in 16 of a work stage also reads the
 * thread's CPU clock (fewer of short stages, none of those under 2 us). A thread that is not attached
 * pays one thread-local load per zone. */
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

/* What zones are zones of. A stage has a number, which zones carry, and a name, by which tables show it.
 *
 * The profiler has no stages of its own: whoever times something registers what it times, before its first zone. A
 * library that knows its stages when it is compiled has constants for them and registers them at once, as a table
 * (weir_stages_register; libweir's is weir/stages.h); a program asks for numbers by name
 * (weir_stage_register). */

enum weir_stage_kind {
    WEIR_KIND_WORK,      /* the CPU (or a device) does something; counted in shares */
    WEIR_KIND_INCLUSIVE, /* a zone around other zones; its self time is unattributed */
    WEIR_KIND_SPAN,      /* first start to last end over several threads; no self time, never in shares */
    WEIR_KIND_WAIT,      /* blocked on somebody else */
    WEIR_KIND_LOOP,      /* the frame around a thread's loop, not shown; its self time is unattributed */
};

/* Numbers from 0 on are those of the process's table, those behind them are given out by name. Tables of stages are in
 * the order of the numbers. */
enum { WEIR_STAGE_TABLE_MAX = 40, WEIR_STAGE_MAX = 72 };

struct weir_stage_info {
    const char *name;
    enum weir_stage_kind kind;
    bool consumer;  /* belongs to the consumer's thread: never in the workers' shares */
    bool data_wait; /* the consumer's wait for data, which traces show as the time of the DataLoader */
};

/* NULL for a number that nobody registered; its zones are counted all the same. Lent for the life of the process. */
const struct weir_stage_info *weir_stage_info(int stage);

/* No stage that is registered has this number or a greater one. */
int weir_stage_count(void);

/* Registers table[i] as stage i, for each i below n that has a name. The table is borrowed for the life of the process;
 * registering it again changes nothing. 0; -E2BIG: n is more than WEIR_STAGE_TABLE_MAX; -EEXIST: a number is another
 * table's. Any thread. */
int weir_stages_register(const struct weir_stage_info *table, int n);

/* Number of the stage with this name, made if new (name is borrowed for the life of the process); -ENOSPC when full.
 * Any thread. */
int weir_stage_register(const char *name, enum weir_stage_kind kind, bool consumer);

/* Names of ranges, counters and instants as small numbers, which records carry.
 *
 * Ids below WEIR_STAGE_MAX are those of stages; the others are given out here, at most 65,463 in a process,
 * and live as long as it does. Any thread. */

typedef uint16_t weir_name;

/* The id of a name in a category (WEIR_CAT_CPU_OP: an operator; WEIR_CAT_USER_ANNOTATION: a part of the program), made
 * if new: text is copied. When there are too many, or no memory, that of "(too many names)". Takes a lock: keep the id.
 */
weir_name weir_name_intern(const char *text, enum weir_cat cat);

/* Lent for the life of the process; "" for an id that nobody was given. */
const char *weir_name_text(weir_name name);
enum weir_cat weir_name_cat(weir_name name);

/* Shapes and types of what a range works on, as records carry them: 0 = none. dims: n tensors, rank numbers each, one
 * after another in sizes; types: "unsigned char", "float", ... for each. The same shapes have the same id; at most
 * 65,535 different ones, 0 beyond. Takes a lock: keep the id. */
uint32_t weir_shapes_intern(int n, const int *ranks, const int64_t *sizes, const char *const *types);

/* "Input Dims" and "Input type" of shapes as JSON text, lent for the life of the process; "" for 0. */
const char *weir_shapes_dims(uint32_t shapes);
const char *weir_shapes_types(uint32_t shapes);

/* The second plane of the profiler: what is written down, call by call, while a window records.
 *
 * Everything here may be called at any time on any thread and costs one relaxed load while nothing records. Names are
 * interned once. Each thread writes to a ring of its own, without locks; a full ring drops and counts.
 * Zones of attached threads are recorded as well, under their stage's name. */

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

struct weir_recorder; /* a session: owns the cells of all its threads */
struct weir_thread;   /* one thread's cells */

enum weir_thread_role { WEIR_ROLE_WORKER, WEIR_ROLE_CONSUMER, WEIR_ROLE_OTHER };

int weir_recorder_open(struct weir_recorder **out);
/* Frees everything; every thread has detached before. Accepts NULL. */
void weir_recorder_close(struct weir_recorder **recorder);

/* Joins the calling thread to the session (at most 1024 threads at once, -ENOSPC beyond; -EBUSY when it is attached).
 * name is copied, 15 characters. The cells outlive the thread: they belong to the session. A thread goes on with the
 * cells of one that ended and had its name and role (once there are 1024, its role): their figures add up, and their
 * times, without the gap between. */
int weir_thread_attach(struct weir_recorder *recorder, const char *name, enum weir_thread_role role);
/* Leaves the session. Zones that are still open end here, and are counted. */
void weir_thread_detach(void);
/* Moves the beginning of the calling thread's time, and of its only open zone, to ticks earlier: for a thread that
 * attached after its first work. */
void weir_thread_backdate(uint64_t ticks);

/* The calling thread's cells, NULL when not attached. __thread is the one spelling that C and C++ share. */
extern __thread struct weir_thread *weir_thread_self __attribute__((tls_model("initial-exec")));

void weir_zone_begin_(struct weir_thread *thread, int stage);
void weir_zone_end_(struct weir_thread *thread);
void weir_zone_carve_(struct weir_thread *thread, int stage, uint64_t ticks);
void weir_span_(struct weir_thread *thread, int stage, uint64_t start, uint64_t end);
void weir_zone_shapes_(struct weir_thread *thread, uint32_t shapes);

/* Opens a zone on the calling thread; the innermost zone open is closed by weir_zone_end, which does nothing when none
 * is. A number that is no stage's opens a zone that is not counted. Of zones nested deeper than this the inner ones are
 * dropped and counted: their time is that of the innermost zone kept. */
enum { WEIR_ZONES_DEEP = 17 }; /* one of them around a thread's loop */
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

/* Takes ticks out of the innermost open zone and records them as one call of another stage: for work that alternates
 * band by band with the zone's own (decode and convert). At most one other stage per zone. */
static inline void weir_zone_carve(int stage, uint64_t ticks)
{
    if (weir_thread_self)
        weir_zone_carve_(weir_thread_self, stage, ticks);
}

/* Records a span that began on some thread and ends on this one, both as weir_clock_ticks() had it there. It takes no
 * time from open zones. */
static inline void weir_span(int stage, uint64_t start, uint64_t end)
{
    if (weir_thread_self)
        weir_span_(weir_thread_self, stage, start, end);
}

/* What the calling thread's calls of a stage that have ended took of their own, ticks since it attached; 0 when it is
 * not attached. The difference around a piece of work is the stage's part of it, without a look at the clock. */
uint64_t weir_stage_ticks_here(int stage);

/* The calling thread's innermost open zone: stage -1 when none is open, the thread is not attached, or the zone is one
 * of those nested too deep. */
struct weir_zone_now {
    int stage;
    uint64_t start; /* ticks */
};
struct weir_zone_now weir_zone_now(void);
/* Ticks of that zone so far without those of the zones inside it; 0 when none is open. */
uint64_t weir_zone_own(void);

/* Records a call of a stage that was timed elsewhere and took ticks, of which own are taken out of the calling thread's
 * innermost open zone: the stage's own time. The rest counts as nested in it. */
void weir_zone_logged(int stage, uint64_t ticks, uint64_t own);

/* The shapes of what the innermost open zone works on (weir_shapes_intern); recorded under record_shapes. */
static inline void weir_zone_shapes(uint32_t shapes)
{
    if ((weir_recording() & WEIR_RECORDING_SHAPES) && weir_thread_self)
        weir_zone_shapes_(weir_thread_self, shapes);
}

/* A chained timer: one clock read a stage, for stages that follow each other without a gap. */
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

/* Records the time since the begin, or the last lap, as one call of stage; on the thread that began. The time is taken
 * out of the zone that is open around it. Nothing else may open and stay open in between. */
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
    uint64_t self_ns;  /* less what nested zones took; 0 for spans */
    uint64_t min_ns, max_ns;
    uint64_t measured;                /* calls of threads whose context switches are known, and of their self time: */
    uint64_t off_ns, preempted_ns;    /* not on a core; of that, after being preempted, ready to run */
    uint64_t measured_ns;             /* all of it */
    uint64_t sampled, sampled_cpu_ns; /* of other threads: calls whose CPU clock was read, and their CPU time */
    double hist_ns;                   /* ns in a unit of hist; 0 = 1 */
    uint32_t hist[WEIR_HIST_BUCKETS];
};

/* CPU time of the stage's self time, ns: measured, and where it was sampled the mean of at least 30 readings times the
 * calls. -1 = not known: too few readings, or a kind of stage that is not sampled. A hypervisor's steal is in it. */
double weir_stage_cpu_ns(const struct weir_stage_stats *stats);

/* The duration, ns, below which the fraction q (0..1) of the calls lie: within a bucket's width (6.25 %). */
double weir_stage_quantile_ns(const struct weir_stage_stats *stats, double q);

/* For durations that come from elsewhere (a GPU's clock), in cells that one thread writes: adds one call. */
void weir_stage_stats_add(struct weir_stage_stats *stats, uint64_t ns);
/* Takes off what was there then: the calls since, min and max by the difference of the histograms. */
void weir_stage_stats_subtract(struct weir_stage_stats *stats, const struct weir_stage_stats *then);

struct weir_thread_stats {
    char name[16];
    enum weir_thread_role role;
    uint64_t wall_ns;         /* from attach to now (or detach), by CLOCK_MONOTONIC: independent of the zones */
    uint64_t cpu_ns;          /* the thread's CPU time from attach to now (or detach) */
    uint64_t work_ns;         /* self time of work stages, zones still open included */
    uint64_t wait_ns;         /* self time of wait stages, likewise */
    uint64_t unattributed_ns; /* self time of inclusive and loop zones, and of zones of span stages, likewise */
    bool cpu_known;           /* context switches are known; then CPU time by zones, which adds up to cpu_ns: */
    uint64_t work_cpu_ns, wait_cpu_ns, unattributed_cpu_ns;
    bool delay_known;
    uint64_t delay_ns;                /* ready to run without a core, throttling by its cgroup included */
    uint64_t zones;                   /* zones recorded */
    uint64_t too_deep;                /* zones dropped: nested deeper than WEIR_ZONES_DEEP */
    int open_stage;                   /* innermost zone open right now, -1 for none */
    uint64_t open_ns;                 /* for how long */
    bool is_caller;                   /* the thread that took the snapshot */
    uint64_t self_ns[WEIR_STAGE_MAX]; /* self time by stage, zones still open included */
};

struct weir_snapshot {
    uint64_t at_ns; /* CLOCK_MONOTONIC */
    int n_stages;
    struct weir_stage_stats stages[WEIR_STAGE_MAX]; /* merged over threads, but for: */
    struct weir_stage_stats others[WEIR_STAGE_MAX]; /* workers' work and waits, by threads of WEIR_ROLE_OTHER */
    int switches_error;    /* why the context switches of some threads are not known, -errno; 0 = they all are */
    uint64_t throttled_ns; /* run queues of the process's cgroups were held back, summed over CPUs */
    uint64_t machine_busy, machine_steal; /* of the machine's CPUs, in units of its own; busy includes steal */
    int n_threads;
    struct weir_thread_stats *threads;
};

/* Takes a snapshot (any thread). *out is owned by the caller. */
int weir_snapshot_take(struct weir_recorder *recorder, struct weir_snapshot **out);
/* The same without the workers whose names do not begin with this: of several loaders in a session, one. NULL = all. */
int weir_snapshot_take_workers(struct weir_recorder *recorder, const char *workers, struct weir_snapshot **out);
/* Everything from then to now as a new snapshot: counts, times and histograms are subtracted, min and max come from the
 * difference of the histograms. Threads that joined after then are taken whole. then may be NULL (since the start). */
int weir_snapshot_diff(const struct weir_snapshot *now, const struct weir_snapshot *then, struct weir_snapshot **out);
void weir_snapshot_free(struct weir_snapshot **snapshot);

/* Measured cost of one zone on this machine, ns; where the CPU clock is sampled, with it read as often as it can be
 * (one call in 16), which only long stages have: an upper bound. What a context switch costs is not in it. Measured
 * once per process, a few ms. */
double weir_zone_cost_ns(void);

#ifdef __cplusplus
}
#endif

#endif
