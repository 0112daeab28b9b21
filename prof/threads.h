/* threads.h: the threads of the library and how they sleep. */
#ifndef WEIR_PROF_THREADS_H
#define WEIR_PROF_THREADS_H

#include <pthread.h>
#include <stdint.h>

/* Starts a thread that gets no signals: they belong to the program's own. 0 or -errno. */
int weir_thread_start(pthread_t *thread, void *(*main)(void *), void *user);

/* A condition whose timed waits count CLOCK_MONOTONIC. */
void weir_cond_init(pthread_cond_t *cond);
/* Waits on such a condition for at most so long; 0, or ETIMEDOUT. */
int weir_cond_wait_ns(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t ns);

#endif
