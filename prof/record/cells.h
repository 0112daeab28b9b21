/* cells.h: the figures of threads and their stages, which recorder.c writes and recorder_read.c reads. They lie in the
 * heap, or in memory shared with other processes, which can be killed at any time or write nonsense. */
#ifndef WEIR_PROF_RECORD_CELLS_H
#define WEIR_PROF_RECORD_CELLS_H

#include "base/proc.h"
#include "base/resources.h"
#include "prof/record/switches.h"
#include "weir/recorder.h"

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <sys/types.h>

enum { WEIR_DEPTH_MAX = WEIR_ZONES_DEEP, WEIR_THREADS_MAX = 1024 };

/* Times are stored in ticks and converted by readers. rdtsc waits for earlier instructions, so a zone costs its two
 * clock readings plus the longest dependency chain from a clock reading to the last store; a multiplication would add
 * about a quarter to that chain. Only the thread itself writes a cell. Readers see whole values, but different fields
 * can be out of step; only min <= max always holds. */
struct weir_cell {
    _Atomic uint64_t count, total, nested; /* nested: time of inner zones; self time is total - nested */
    _Atomic uint64_t min, spread;          /* spread is max - min, so one comparison shows that neither changes */
    int stage;
    uint32_t until_sample;           /* calls until the next CPU clock sample */
    bool work;                       /* kind is work; CPU time is sampled only for this kind */
    bool loop;                       /* kind is loop; not shown by NVTX */
    bool seen_short;                 /* the stage was short when a sample was last due */
    _Atomic uint64_t off, preempted; /* self time off a core, and its runnable part; valid if the thread is exact */
    _Atomic uint64_t logged, logged_self; /* calls timed by the program itself, whose CPU time is unknown */
    _Atomic uint64_t sampled,
        sampled_cpu_ns; /* number of calls with a CPU clock reading, and their CPU time; used if exact is not set */
    _Atomic uint32_t hist[WEIR_HIST_BUCKETS];
};

struct weir_open_zone {
    alignas(64) _Atomic uint64_t start; /* ticks */
    _Atomic uint64_t child;             /* time of closed inner zones, ticks */
    struct weir_cell *_Atomic cell;
    struct {
        uint32_t state;   /* same as state in struct weir_range */
        uint32_t special; /* carved and cpu_start are in use */
    } flags;              /* 0 in most zones, so one comparison selects the fast path */
    uint32_t shapes;
    int carved_stage;
    uint64_t carved;                        /* ticks charged to carved_stage instead */
    uint64_t cpu_start_ns, cpu_start;       /* CPU clock and ticks when sampling began; 0 = not sampled */
    uint64_t child_cpu_ns, child_cpu_ticks; /* CPU time of sampled inner zones, and their duration */
    _Atomic uint64_t off, preempted;        /* same as in struct weir_cell, for this zone; 0 in unused entries */
    void *owner;                            /* these two are left to the code that opened the zone */
    int64_t item;
};

/* Totals of a thread, and of the threads that used the same cells before, without the time between them. */
struct weir_thread_totals {
    _Atomic uint64_t start_ns, seen_ns; /* the totals cover this time, by any clock */
    _Atomic uint64_t cpu_ns, delay_ns;  /* delay: time runnable without a core */
    _Atomic uint64_t too_deep;          /* zones dropped because WEIR_DEPTH_MAX zones were already open */
    _Atomic uint32_t delay_unknown, ended;
};

struct weir_thread {
    /* Odd while a zone ends, so that readers retry. A new zone is written before top points to it. */
    alignas(64) _Atomic uint32_t version;
    struct weir_open_zone *_Atomic top; /* innermost open zone, or the dummy &open[0] if none is open */
    struct weir_switches switches;
    bool exact;                     /* the context switches of all threads that used these cells were recorded */
    bool by_batch;                  /* weir_thread_sample decides which calls read the CPU clock */
    bool sample_all;                /* then: all calls from now on, or none */
    struct weir_recorder *recorder; /* NULL = the thread belongs to no session */
    char name[16];
    enum weir_thread_role role;
    pid_t tid;
    clockid_t cpu_clock;
    struct weir_thread_totals *totals, own_totals;
    uint64_t cpu_at_ns, delay_at_ns; /* the kernel's figures when they were last added to totals */
    uint32_t too_deep_open;  /* dropped zones that are still open; the last entry of `open` stands for all of them */
    struct weir_cell *block; /* WEIR_STAGE_MAX shared cells; NULL = cells are allocated one by one */
    int n_stages;            /* largest number of a stage with a cell plus 1 */
    struct weir_cell *_Atomic cells[WEIR_STAGE_MAX];
    struct weir_open_zone open[1 + WEIR_DEPTH_MAX + 1];
};

struct weir_recorder {
    pthread_mutex_t lock; /* held by attach and snapshot; zones never acquire it */
    int n_threads;
    struct weir_throttling throttling_opened; /* throttling when the session was opened */
    struct weir_machine_time machine_opened;
    int switches_error; /* -errno if a thread's context switches could not be recorded; 0 = all are recorded */
    struct weir_thread *threads[WEIR_THREADS_MAX];
    struct weir_recorder *next;
};

static inline uint64_t get(const _Atomic uint64_t *value)
{
    return atomic_load_explicit(value, memory_order_relaxed);
}

static inline void put(_Atomic uint64_t *to, uint64_t value)
{
    atomic_store_explicit(to, value, memory_order_relaxed);
}

/* Only one thread writes, so no atomic read-modify-write is needed. */
static inline void add(_Atomic uint64_t *to, uint64_t value)
{
    put(to, get(to) + value);
}

/* Numbers that another process may have written, clamped so that sums of them stay in range: 115 days. */
#define WEIR_NS_MOST 1e16
static inline uint64_t weir_ns_of(uint64_t ticks)
{
    double ns = (double)ticks * weir_clock_ns_per_tick();
    return ns < WEIR_NS_MOST ? weir_clock_to_ns(ticks) : (uint64_t)WEIR_NS_MOST;
}

static inline uint64_t weir_count_of(uint64_t count)
{
    return count < 1ull << 50 ? count : 1ull << 50;
}

/* The CPU clock is read in one of this many calls. */
enum { WEIR_CPU_SAMPLE_EVERY = 16 };
extern uint64_t weir_cpu_read_ticks;      /* min cost of reading a thread's CPU clock, measured once */
extern struct weir_cell weir_cell_nobody; /* stands in for cells that cannot be allocated; shared by all threads */

/* ---- threads ---- */

/* Allocates a thread without a session, to be freed with free(). Returns NULL if memory is short. */
struct weir_thread *weir_thread_new(void);
/* Makes the calling thread write shared totals and cells from now on. No zone of it is closed. */
void weir_thread_use(struct weir_thread *thread, struct weir_thread_totals *totals, struct weir_cell *cells);
/* Continues the totals, without the time since seen_ns. */
void weir_totals_resume(struct weir_thread_totals *totals, uint64_t now_ns);
/* Starts counting the calling thread's CPU time and delay (NULL = unknown). */
void weir_thread_resume(struct weir_thread *thread, const uint64_t *delay_ns);
/* Brings the totals up to now. delay_ns: run delay of the thread, or NULL. */
void weir_thread_account(struct weir_thread *thread, uint64_t now_ns, const uint64_t *delay_ns);
/* Makes the calls from now on read the CPU clock, all of them or none, instead of one call in WEIR_CPU_SAMPLE_EVERY. */
void weir_thread_sample(struct weir_thread *thread, bool all);

/* ---- zones of a thread without context switches, at given times ---- */

void weir_zone_begin_at(struct weir_thread *thread, int stage, uint64_t now);
void weir_zone_end_at(struct weir_thread *thread, uint64_t now);
/* Ends a zone that need not be the innermost one. The zones in it stay open, and their time until now is not its own.
 * Returns its duration. */
uint64_t weir_zone_end_below(struct weir_thread *thread, struct weir_open_zone *zone, uint64_t now);
/* Forgets a zone instead. */
void weir_zone_drop(struct weir_thread *thread, struct weir_open_zone *zone);

/* Returns the innermost zone that was not dropped, or &open[0]. */
static inline struct weir_open_zone *weir_zone_top(struct weir_thread *thread)
{
    struct weir_open_zone *top = atomic_load_explicit(&thread->top, memory_order_relaxed);
    return top - (top > thread->open + WEIR_DEPTH_MAX);
}

static inline int weir_zone_stage(const struct weir_open_zone *zone)
{
    const struct weir_cell *cell = atomic_load_explicit(&zone->cell, memory_order_relaxed);
    return cell ? cell->stage : -1;
}

/* ---- reading ---- */

/* Returns a snapshot without figures, or NULL if memory is short. */
struct weir_snapshot *weir_snapshot_new(int n_threads);
void weir_totals_read(struct weir_thread_stats *stats, const struct weir_thread_totals *totals);
/* Adds a cell to a stage. exact: same as in struct weir_thread. Returns the cell's self time in ns. */
uint64_t weir_cell_read(struct weir_stage_stats *stats, const struct weir_cell *cell, bool exact);
/* Adds a stage's self time to the thread's totals. off_ns is the part of self_ns spent off a core. */
void weir_stage_split(struct weir_thread_stats *stats, int stage, uint64_t self_ns, uint64_t off_ns);

#ifdef WEIR_BRACKET_CPU
void weir_bracket_print(struct weir_recorder *recorder); /* defined in bracket_priv.h */
#else
static inline void weir_bracket_print(struct weir_recorder *recorder)
{
    (void)recorder;
}
#endif

/* List of open sessions. */
extern pthread_mutex_t weir_recorders_lock;
extern struct weir_recorder *weir_recorders;

#endif
