#include "base/threads.h"

#include <assert.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int weir_thread_start(pthread_t *thread, void *(*main)(void *), void *user)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(thread, NULL, main, user);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -rc;
}

struct each {
    int n;
    void (*job)(void *user, int i);
    void *user;
    _Atomic int next;
};

static void *do_jobs(void *user)
{
    struct each *each = user;
    for (int i; (i = atomic_fetch_add(&each->next, 1)) < each->n;)
        each->job(each->user, i);
    return NULL;
}

void weir_run_jobs(int threads, int n, void (*job)(void *user, int i), void *user)
{
    enum { MOST = 64 };
    struct each each = {.n = n, .job = job, .user = user};
    pthread_t others[MOST];
    int started = 0;
    threads = threads < n ? threads : n;
    while (started < MOST && started < threads - 1 && weir_thread_start(&others[started], do_jobs, &each) == 0)
        started++;
    do_jobs(&each);
    for (int i = 0; i < started; i++)
        pthread_join(others[i], NULL);
}

void weir_pipe_signal_block(sigset_t *before)
{
    sigset_t pipe_only;
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_only, before);
}

void weir_pipe_signal_restore(const sigset_t *before)
{
    sigset_t pipe_only;
    const struct timespec none = {0, 0};
    if (sigismember(before, SIGPIPE))
        return;
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    sigtimedwait(&pipe_only, NULL, &none);
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

pid_t weir_thread_id(void)
{
    return (pid_t)syscall(SYS_gettid);
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

/* Waiter and notifier each write one counter and read the other, both with seq_cst. If the notifier sees no sleeper, it
 * incremented the epoch before the waiter incremented sleepers. FUTEX_WAIT then finds that the epoch has changed and
 * returns at once. */
void weir_eventcount_wait(struct weir_eventcount *eventcount, uint32_t key, uint64_t ns)
{
    struct timespec timeout = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    atomic_fetch_add(&eventcount->sleepers, 1);
    syscall(SYS_futex, &eventcount->epoch, FUTEX_WAIT_PRIVATE, key, &timeout, NULL, 0);
    atomic_fetch_sub(&eventcount->sleepers, 1);
}

void weir_eventcount_notify(struct weir_eventcount *eventcount)
{
    atomic_fetch_add(&eventcount->epoch, 1);
    if (atomic_load(&eventcount->sleepers) > 0)
        syscall(SYS_futex, &eventcount->epoch, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

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
