#include "base/fork_lock.h"

#include <assert.h>

enum { LOCKS_MAX = 16 };

static pthread_mutex_t *locks[LOCKS_MAX];
static int n_locks;

static void lock_all(void)
{
    for (int i = 0; i < n_locks; i++)
        pthread_mutex_lock(locks[i]);
}

static void unlock_all(void)
{
    for (int i = 0; i < n_locks; i++)
        pthread_mutex_unlock(locks[i]);
}

void weir_fork_lock(pthread_mutex_t *lock)
{
    assert(n_locks < LOCKS_MAX);
    if (n_locks == 0)
        pthread_atfork(lock_all, unlock_all, unlock_all);
    locks[n_locks++] = lock;
}
