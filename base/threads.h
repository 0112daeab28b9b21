/* threads.h: starting threads, conditions, counters, and locks that survive fork(). */
#ifndef WEIR_BASE_THREADS_H
#define WEIR_BASE_THREADS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

/* Starts a thread that blocks all signals, which are left to the program's own. 0 or -errno. */
int weir_thread_start(pthread_t *thread, void *(*main)(void *), void *user);

/* Initialises a condition whose timed waits use CLOCK_MONOTONIC. */
void weir_cond_init(pthread_cond_t *cond);
/* Waits on such a condition for at most ns. 0 or ETIMEDOUT. */
int weir_cond_wait_ns(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t ns);

/* An eventcount: a condition without a lock, which costs notifiers nothing while nobody waits. Initialised with zeros.
 * The waiter loops: prepare; if the awaited state holds, leave; else wait with the key. The notifier changes the state
 * by an atomic store (release or stronger), then notifies. */
struct weir_eventcount {
    _Atomic uint32_t epoch, sleepers;
};
static inline uint32_t weir_eventcount_prepare(struct weir_eventcount *eventcount)
{
    return atomic_load_explicit(&eventcount->epoch, memory_order_acquire);
}
/* Sleeps for at most ns, or until a notify after prepare; may return early. */
void weir_eventcount_wait(struct weir_eventcount *eventcount, uint32_t key, uint64_t ns);
/* Wakes all waiters. */
void weir_eventcount_notify(struct weir_eventcount *eventcount);

/* Adds to a counter that one thread writes and any may read. */
static inline void weir_counter_add(_Atomic uint64_t *counter, uint64_t more)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + more, memory_order_relaxed);
}

/* Makes fork() hold the lock, so that no child inherits it locked by a thread that does not exist there. For
 * constructors: calls for the same lock must not overlap. Holders of the lock take no other lock and do not fork. */
void weir_fork_lock(pthread_mutex_t *lock);

#endif
