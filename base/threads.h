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

/* What some threads wait for and others bring about: a condition without a lock, for which nobody pays while nobody
 * waits. All zeros to begin with. The waiter, in a loop: turn; what it waits for is there: leave; else wait.
 * The other side: make it true (by an atomic store, at least release); ring. */
struct weir_bell {
    _Atomic uint32_t turns, sleepers;
};
static inline uint32_t weir_bell_turn(struct weir_bell *bell)
{
    return atomic_load_explicit(&bell->turns, memory_order_acquire);
}
/* Sleeps for at most so long, but not past a ring after turn was read; may return early. */
void weir_bell_wait(struct weir_bell *bell, uint32_t turn, uint64_t ns);
/* Wakes all who wait. */
void weir_bell_ring(struct weir_bell *bell);

#endif
