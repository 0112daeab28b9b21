/* threads.h: the threads of the library and how they sleep. */
#ifndef WEIR_BASE_THREADS_H
#define WEIR_BASE_THREADS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

/* Starts a thread that gets no signals: they belong to the program's own. 0 or -errno. */
int weir_thread_start(pthread_t *thread, void *(*main)(void *), void *user);

/* A condition whose timed waits count CLOCK_MONOTONIC. */
void weir_cond_init(pthread_cond_t *cond);
/* Waits on such a condition for at most so long; 0, or ETIMEDOUT. */
int weir_cond_wait_ns(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t ns);

/* An eventcount: a condition without a lock, for which nobody pays while nobody waits. All zeros to begin with. The
 * waiter, in a loop: prepare; what it waits for is there: leave; else wait with the key. The other side: make it true
 * (by an atomic store, at least release); notify. */
struct weir_eventcount {
    _Atomic uint32_t epoch, sleepers;
};
static inline uint32_t weir_eventcount_prepare(struct weir_eventcount *eventcount)
{
    return atomic_load_explicit(&eventcount->epoch, memory_order_acquire);
}
/* Sleeps for at most so long, but not past a notify after the key was read; may return early. */
void weir_eventcount_wait(struct weir_eventcount *eventcount, uint32_t key, uint64_t ns);
/* Wakes all who wait. */
void weir_eventcount_notify(struct weir_eventcount *eventcount);

#endif
