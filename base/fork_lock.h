/* fork_lock.h: a file's lock that no fork() leaves locked in the child, whose other threads are gone. */
#ifndef WEIR_BASE_FORK_LOCK_H
#define WEIR_BASE_FORK_LOCK_H

#include <pthread.h>

/* Once in a file, after the mutex: fork() takes it before and gives it back on both sides. Its holder takes no other
 * lock, and calls nothing that forks. */
#define WEIR_FORK_LOCK(mutex)                                                                                          \
    static void lock_before_fork(void)                                                                                 \
    {                                                                                                                  \
        pthread_mutex_lock(&(mutex));                                                                                  \
    }                                                                                                                  \
    static void unlock_after_fork(void)                                                                                \
    {                                                                                                                  \
        pthread_mutex_unlock(&(mutex));                                                                                \
    }                                                                                                                  \
    __attribute__((constructor)) static void watch_forks_(void)                                                        \
    {                                                                                                                  \
        pthread_atfork(lock_before_fork, unlock_after_fork, unlock_after_fork);                                        \
    }                                                                                                                  \
    struct weir_fork_lock_end /* takes the semicolon */

#endif
