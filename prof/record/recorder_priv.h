/* recorder_priv.h: what a session keeps, shared by the side that writes (recorder.c) and the one that reads
 * (recorder_read.c). */
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

/* Times are in ticks: readers convert. rdtsc waits for what comes before it, so the longest chain of instructions from
 * one clock read to the last store is what a zone costs beside its two clock reads; a multiplication is a quarter of
 * it. All fields have one writer, the thread itself; readers see each value whole, and min <= max is all they rely on.
 */
struct weir_cell {
    _Atomic uint64_t count, total, nested; /* nested: what zones inside took; self is the rest */
    _Atomic uint64_t min, spread;          /* max is min + spread: one comparison tells that neither changes */
    int stage;
    uint32_t until_sample;           /* calls until the CPU clock is considered again */
    bool work;                       /* of kind work: only these are asked for CPU time */
    bool loop;                       /* of kind loop: not shown by NVTX */
    bool seen_short;                 /* its first calls were short */
    _Atomic uint64_t off, preempted; /* of its self time, not on a core; of that, ready to run. Where exact is set */
    _Atomic uint64_t logged, logged_self;     /* calls that the program timed itself: their CPU time is not known */
    _Atomic uint64_t sampled, sampled_cpu_ns; /* calls whose CPU clock was read, and their CPU time. Elsewhere */
    _Atomic uint32_t hist[WEIR_HIST_BUCKETS];
};

struct weir_open_zone {
    alignas(64) _Atomic uint64_t start; /* ticks */
    _Atomic uint64_t child;             /* what closed zones inside it took, ticks */
    struct weir_cell *_Atomic cell;
    struct {
        uint32_t state;   /* as in struct weir_range */
        uint32_t special; /* carved and cpu_start are in use */
    } flags;              /* all zero in most zones: one look tells that the short way will do */
    uint32_t shapes;
    int carved_stage;
    uint64_t carved;                  /* ticks moved to another stage */
    uint64_t cpu_start_ns, cpu_start; /* CPU time and ticks when it was read; 0 = this call is not sampled */
    _Atomic uint64_t off, preempted;  /* of its own time, as in a cell; 0 in entries that are not in use */
};

struct weir_thread {
    /* Odd while a zone ends: the reader's retry counter. A zone that begins is written before top says so. */
    alignas(64) _Atomic uint32_t version;
    struct weir_open_zone
        *_Atomic top; /* the innermost open zone; open itself, which is nobody's, when there is none */
    struct weir_switches switches;
    bool exact; /* the thread's context switches are known, and have been for as long as there are these cells */
    struct weir_recorder *recorder;
    char name[16];
    enum weir_thread_role role;
    clockid_t cpu_clock;
    uint64_t attached_ns, cpu_attached_ns; /* earlier by what threads took that had these cells before */
    _Atomic uint64_t detached_ns;          /* 0 while attached */
    uint64_t cpu_detached_ns;              /* valid once detached_ns is set */
    pid_t tid;
    bool delay_known;
    uint64_t delay_attached_ns, delay_detached_ns; /* likewise; may be less than 0, and wraps around */
    _Atomic uint64_t too_deep;                     /* zones dropped because WEIR_DEPTH_MAX were open */
    uint32_t too_deep_open; /* of these, those open now: the last entry of open stands for all of them */
    struct weir_cell *_Atomic cells[WEIR_STAGE_MAX];
    struct weir_open_zone open[1 + WEIR_DEPTH_MAX + 1];
};

struct weir_recorder {
    pthread_mutex_t lock; /* attach and snapshot; never taken by zones */
    int n_threads;
    struct weir_throttling throttling_opened; /* when the session was opened */
    struct weir_machine_time machine_opened;
    int switches_error; /* why context switches of a thread are not known, -errno; 0 = they all are */
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

/* The CPU clock is asked of one call in so many. */
enum { WEIR_CPU_SAMPLE_EVERY = 16 };
extern uint64_t weir_cpu_read_ticks; /* least cost of reading a thread's CPU clock; the first session measures it */
extern struct weir_cell weir_cell_nobody; /* of stages that found no memory for a cell; written by many, read by none */

#ifdef WEIR_BRACKET_CPU
void weir_bracket_print(struct weir_recorder *recorder); /* bracket_priv.h */
#else
static inline void weir_bracket_print(struct weir_recorder *recorder)
{
    (void)recorder;
}
#endif

/* The sessions that are open. */
extern pthread_mutex_t weir_recorders_lock;
extern struct weir_recorder *weir_recorders;

#endif
