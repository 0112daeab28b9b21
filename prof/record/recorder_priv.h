/* recorder_priv.h: a session's state, shared by its writing side (recorder.c) and its reading side (recorder_read.c).
 */
#ifndef WEIR_PROF_RECORD_RECORDER_PRIV_H
#define WEIR_PROF_RECORD_RECORDER_PRIV_H

#include "base/kernel_stats.h"
#include "base/resources.h"
#include "prof/record/switches.h"
#include "weir/recorder.h"

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <sys/types.h>

enum { WEIR_DEPTH_MAX = WEIR_ZONES_DEEP, WEIR_THREADS_MAX = 1024 };

/* Times are in ticks; readers convert. rdtsc waits for earlier instructions, so besides its two clock reads a zone
 * costs the longest dependency chain from a clock read to the last store; one multiplication would be a quarter of it.
 * Each field has one writer, the thread itself. Readers see whole values and rely only on min <= max. */
struct weir_cell {
    _Atomic uint64_t count, total, nested; /* nested: time of inner zones; self time is the rest */
    _Atomic uint64_t min, spread;          /* max is min + spread: one comparison shows that neither changes */
    int stage;
    uint32_t until_sample; /* calls until the next CPU clock sample */
    bool work;             /* kind work: only these sample CPU time */
    bool loop;             /* kind loop: not shown by NVTX */
    bool seen_short;       /* its first calls were short */
    _Atomic uint64_t off,
        preempted; /* part of its self time off a core, and the runnable part of that; valid where exact is set */
    _Atomic uint64_t logged, logged_self; /* calls timed by the program: their CPU time is unknown */
    _Atomic uint64_t sampled,
        sampled_cpu_ns; /* calls with a CPU clock reading, and their CPU time; used where exact is not set */
    _Atomic uint32_t hist[WEIR_HIST_BUCKETS];
};

struct weir_open_zone {
    alignas(64) _Atomic uint64_t start; /* ticks */
    _Atomic uint64_t child;             /* time of closed inner zones, ticks */
    struct weir_cell *_Atomic cell;
    struct {
        uint32_t state;   /* as in struct weir_range */
        uint32_t special; /* carved and cpu_start are in use */
    } flags;              /* all zero in most zones, so one comparison selects the fast path */
    uint32_t shapes;
    int carved_stage;
    uint64_t carved;                  /* ticks moved to another stage */
    uint64_t cpu_start_ns, cpu_start; /* CPU time and ticks at its reading; 0 = this call is not sampled */
    _Atomic uint64_t off, preempted;  /* of its own time, as in a cell; 0 in unused entries */
};

struct weir_thread {
    /* Odd while a zone ends: the reader's retry counter. A new zone is written before top points to it. */
    alignas(64) _Atomic uint32_t version;
    struct weir_open_zone *_Atomic top; /* the innermost open zone; &open[0], which is no zone, when none is open */
    struct weir_switches switches;
    bool exact; /* the thread's context switches have been recorded for as long as these cells exist */
    struct weir_recorder *recorder;
    char name[16];
    enum weir_thread_role role;
    clockid_t cpu_clock;
    uint64_t attached_ns, cpu_attached_ns; /* moved back by the time of earlier threads with these cells */
    _Atomic uint64_t detached_ns;          /* 0 while attached */
    uint64_t cpu_detached_ns;              /* valid once detached_ns is set */
    pid_t tid;
    bool delay_known;
    uint64_t delay_attached_ns, delay_detached_ns; /* likewise; may be negative and wraps around */
    _Atomic uint64_t too_deep;                     /* zones dropped because WEIR_DEPTH_MAX were open */
    uint32_t too_deep_open; /* currently open ones; the last entry of open stands for all of them */
    struct weir_cell *_Atomic cells[WEIR_STAGE_MAX];
    struct weir_open_zone open[1 + WEIR_DEPTH_MAX + 1];
};

struct weir_recorder {
    pthread_mutex_t lock; /* for attach and snapshot; zones never take it */
    int n_threads;
    struct weir_throttling throttling_opened; /* when the session was opened */
    struct weir_machine_time machine_opened;
    int switches_error; /* why a thread's context switches are unknown, -errno; 0 = known for all */
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

/* One call in this many reads the CPU clock. */
enum { WEIR_CPU_SAMPLE_EVERY = 16 };
extern uint64_t weir_cpu_read_ticks; /* minimum cost of reading a thread's CPU clock, measured by the first session */
extern struct weir_cell weir_cell_nobody; /* stands in for cells that could not be allocated; many writers, no reader */

#ifdef WEIR_BRACKET_CPU
void weir_bracket_print(struct weir_recorder *recorder); /* bracket_priv.h */
#else
static inline void weir_bracket_print(struct weir_recorder *recorder)
{
    (void)recorder;
}
#endif

/* Open sessions. */
extern pthread_mutex_t weir_recorders_lock;
extern struct weir_recorder *weir_recorders;

#endif
