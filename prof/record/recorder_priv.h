/* recorder_priv.h: a session's state, shared by recorder.c, which writes it, and recorder_read.c, which reads it. */
#ifndef WEIR_PROF_RECORD_RECORDER_PRIV_H
#define WEIR_PROF_RECORD_RECORDER_PRIV_H

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
    uint64_t carved;                  /* ticks charged to carved_stage instead */
    uint64_t cpu_start_ns, cpu_start; /* CPU clock and ticks when sampling began; 0 = not sampled */
    _Atomic uint64_t off, preempted;  /* same as in struct weir_cell, for this zone; 0 in unused entries */
};

struct weir_thread {
    /* Odd while a zone ends, so that readers retry. A new zone is written before top points to it. */
    alignas(64) _Atomic uint32_t version;
    struct weir_open_zone *_Atomic top; /* innermost open zone, or the dummy &open[0] if none is open */
    struct weir_switches switches;
    bool exact; /* the context switches of all threads that used these cells were recorded */
    struct weir_recorder *recorder;
    char name[16];
    enum weir_thread_role role;
    clockid_t cpu_clock;
    uint64_t attached_ns, cpu_attached_ns; /* start times, less the time of earlier threads that used these cells */
    _Atomic uint64_t detached_ns;          /* 0 while attached */
    uint64_t cpu_detached_ns;              /* valid once detached_ns is set */
    pid_t tid;
    bool delay_known;
    uint64_t delay_attached_ns, delay_detached_ns; /* run delay, reduced in the same way; wraps around below 0 */
    _Atomic uint64_t too_deep;                     /* zones dropped because WEIR_DEPTH_MAX zones were already open */
    uint32_t too_deep_open; /* dropped zones that are still open; the last entry of `open` stands for all of them */
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

static inline uint64_t clock_ns(clockid_t clock)
{
    struct timespec ts;
    return clock_gettime(clock, &ts) == 0 ? (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec : 0;
}

/* The CPU clock is read in one of this many calls. */
enum { WEIR_CPU_SAMPLE_EVERY = 16 };
extern uint64_t weir_cpu_read_ticks;      /* min cost of reading a thread's CPU clock, from the first session */
extern struct weir_cell weir_cell_nobody; /* stands in for cells that cannot be allocated; shared by all threads */

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
