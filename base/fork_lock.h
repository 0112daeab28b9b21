/* fork_lock.h: locks that fork() never leaves locked in the child, whose other threads are gone. */
#ifndef WEIR_BASE_FORK_LOCK_H
#define WEIR_BASE_FORK_LOCK_H

#include <pthread.h>

/* From now on fork() takes the lock before and gives it back on both sides. For constructors: it must not run twice at
 * the same time. The lock's holders take no other lock and do not fork. */
void weir_fork_lock(pthread_mutex_t *lock);

#endif
