#include "prof/threads.h"

#include <signal.h>
#include <time.h>

int weir_thread_start(pthread_t *thread, void *(*main)(void *), void *user)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(thread, NULL, main, user);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -rc;
}

void weir_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

int weir_cond_wait_ns(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t ns)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    ns += (uint64_t)until.tv_nsec;
    until.tv_sec += (time_t)(ns / 1000000000u);
    until.tv_nsec = (long)(ns % 1000000000u);
    return pthread_cond_timedwait(cond, lock, &until);
}
