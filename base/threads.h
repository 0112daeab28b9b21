/* threads.h: threads, condition variables, eventcounts, counters, and locks that remain usable across fork(). */
#ifndef WEIR_BASE_THREADS_H
#define WEIR_BASE_THREADS_H

#include "weir/base.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

/* Starts a thread that blocks all signals, so that the program's own threads receive them. Returns 0 or -errno. */
int weir_thread_start(pthread_t *thread, void *(*main)(void *), void *user);

/* Calls job(user, i) for every i less than n, on at most `threads` threads, of which the caller's is one. Returns when
 * all calls have returned. */
void weir_run_jobs(int threads, int n, void (*job)(void *user, int i), void *user);

/* Blocks SIGPIPE for the calling thread, so that a library that writes to a closed socket does not end the program.
 * restore takes such a signal if one is pending, and restores the mask. */
void weir_pipe_signal_block(sigset_t *before);
void weir_pipe_signal_restore(const sigset_t *before);

/* Returns the calling thread's ID in the kernel, as gettid of glibc 2.30 and later does. */
pid_t weir_thread_id(void);

/* Initialises a condition variable for timed waits with CLOCK_MONOTONIC. */
void weir_cond_init(pthread_cond_t *cond);
/* Waits on a condition initialised by weir_cond_init for at most ns. Returns 0 or ETIMEDOUT. */
int weir_cond_wait_ns(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t ns);

/* An eventcount: a condition without a lock, which costs the notifier almost nothing while no thread waits. Initialise
 * it with zeros. The waiter loops: it calls prepare, stops if the awaited state holds, and otherwise calls wait with
 * the key that prepare returned. The notifier changes the state with an atomic store (release or stronger), then calls
 * notify. */
struct weir_eventcount {
    _Atomic uint32_t epoch, sleepers;
};
static inline uint32_t weir_eventcount_prepare(struct weir_eventcount *eventcount)
{
    return atomic_load_explicit(&eventcount->epoch, memory_order_acquire);
}
/* Sleeps for at most ns, or until notify is called after prepare. May return early. */
void weir_eventcount_wait(struct weir_eventcount *eventcount, uint32_t key, uint64_t ns);
/* Wakes all waiters. */
void weir_eventcount_notify(struct weir_eventcount *eventcount);

/* Adds to a counter that only one thread writes. Any thread may read it. */
static inline void weir_counter_add(_Atomic uint64_t *counter, uint64_t more)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + more, memory_order_relaxed);
}

/* Makes fork() hold the lock, so that a child does not inherit it locked by a thread that does not exist in the child.
 * Intended for constructors. Calls must not overlap. While a thread holds the lock, it must not take another lock or
 * call fork(). */
void weir_fork_lock(pthread_mutex_t *lock);

/* ---- ordered.c: processes units of work on several threads, and delivers the results in order on the calling thread.
 * At most `window` units are being processed or waiting for delivery, each in its own slot. */

struct weir_ordered {
    uint64_t n;          /* number of units */
    int workers, window; /* at least 1 */
    /* Processes a unit on thread `worker`, which owns the slot until the unit is delivered. A negative result ends the
     * run. */
    int (*work)(void *user, int worker, uint64_t unit, int slot, struct weir_err *err);
    /* Delivers a unit, on the calling thread. A negative result ends the run. */
    int (*deliver)(void *user, uint64_t unit, int slot, struct weir_err *err);
    /* Called on the calling thread after each delivery and about every 100 ms while it waits; may be NULL. */
    void (*tick)(void *user);
    void *user;
};

/* Returns 0 or the first error. Uses fewer threads if not all of them can be started. */
int weir_ordered_run(const struct weir_ordered *run, struct weir_err *err);

#endif
