#include "analyze/watch/watch_figures.h"
#include "base/threads.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

enum { TASKS = 192, INTERVAL_NS = 50 * 1000 * 1000, EACH_NS = 4 * 1000 * 1000, TAKE_EVERY = 20 };

/* A thread that is watched. */
struct task {
    struct weir_watch_thread_id id;
    struct weir_task_watch watch;
    uint64_t process_ns, task_ns; /* CPU times at the last reading */
    bool seen;
};

static struct {
    pthread_mutex_t lock; /* held by the functions below, but not while a sample is taken */
    pthread_cond_t stop;
    bool running, stopping;
    _Atomic(void (*)(void)) also; /* NULL = nothing */
    pthread_t thread;
    struct weir_watch *watch; /* NULL = off */
    int n_tasks;
    struct task tasks[TASKS]; /* of the thread alone */
    int n_samples;            /* those below are zero from here on */
    struct weir_watch_samples samples[WEIR_WATCH_LOADERS];
} sampler = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the thread ---- */

static bool same(const struct weir_watch_thread_id *a, const struct weir_watch_thread_id *b)
{
    return a->pid == b->pid && a->tid == b->tid && a->loader == b->loader && a->role == b->role;
}

static void add_task(const struct weir_watch_thread_id *id)
{
    for (int i = 0; i < sampler.n_tasks; i++)
        if (same(&sampler.tasks[i].id, id)) {
            sampler.tasks[i].seen = true;
            return;
        }
    if (sampler.n_tasks == TASKS)
        return;
    struct task *task = &sampler.tasks[sampler.n_tasks++];
    *task = (struct task){.id = *id, .seen = true};
    weir_task_watch_begin(&task->watch, "", id->pid, id->tid);
}

/* Follows the threads that have a slot now. */
static void update_tasks(const struct weir_watch *watch)
{
    struct weir_watch_thread_id ids[TASKS];
    int n = weir_watch_threads(watch, -1, ids, TASKS), kept = 0;
    for (int i = 0; i < sampler.n_tasks; i++)
        sampler.tasks[i].seen = false;
    for (int i = 0; i < n; i++)
        if (ids[i].role == WEIR_WATCH_LOOP || ids[i].role == WEIR_WATCH_WORKER)
            add_task(&ids[i]);
    for (int i = 0; i < sampler.n_tasks; i++)
        if (sampler.tasks[i].seen && !sampler.tasks[i].watch.ended)
            sampler.tasks[kept++] = sampler.tasks[i];
    sampler.n_tasks = kept;
}

/* CPU times of the process count in ticks of 10 ms, so they are read once per second. */
static void take_process(struct task *task, struct weir_watch_samples *to)
{
    struct weir_task_stat process;
    struct weir_task_times times;
    if (!weir_task_stat_read(&process, "", task->id.pid, 0) ||
        !weir_task_times_read(&times, "", task->id.pid, task->id.tid))
        return;
    to->threads += process.n_threads;
    to->thread_counts++;
    if (task->process_ns > 0 && process.cpu_ns >= task->process_ns && times.run_ns >= task->task_ns) {
        to->process_cpu_s += (double)(process.cpu_ns - task->process_ns) / 1e9;
        to->task_cpu_s += (double)(times.run_ns - task->task_ns) / 1e9;
    }
    task->process_ns = process.cpu_ns;
    task->task_ns = times.run_ns;
}

static void take_task(struct task *task)
{
    struct weir_task_shares shares;
    struct weir_watch_samples *to = &sampler.samples[task->id.loader];
    weir_task_watch_take(&task->watch, &shares);
    pthread_mutex_lock(&sampler.lock);
    sampler.n_samples = task->id.loader < sampler.n_samples ? sampler.n_samples : task->id.loader + 1;
    if (task->id.role == WEIR_WATCH_WORKER) {
        weir_task_shares_add(&to->workers[task->id.worker], &shares);
        take_process(task, to);
    } else {
        weir_task_shares_add(&to->loop, &shares);
    }
    pthread_mutex_unlock(&sampler.lock);
}

/* Takes fewer samples of many threads, so that sampling costs at most 0.5 % of a core. */
static uint64_t interval_ns(void)
{
    uint64_t all_ns = (uint64_t)sampler.n_tasks * EACH_NS;
    return all_ns > INTERVAL_NS ? all_ns : INTERVAL_NS;
}

static void *sample_main(void *user)
{
    const struct weir_watch *watch = user;
    prctl(PR_SET_NAME, "weir-watch");
    sampler.n_tasks = 0;
    pthread_mutex_lock(&sampler.lock);
    for (unsigned round = 0; !sampler.stopping; round++) {
        pthread_mutex_unlock(&sampler.lock);
        void (*also)(void) = atomic_load(&sampler.also);
        if (also)
            also();
        if (round % TAKE_EVERY == 0) {
            for (int i = 0; i < sampler.n_tasks && round > 0; i++)
                take_task(&sampler.tasks[i]);
            update_tasks(watch);
        }
        for (int i = 0; i < sampler.n_tasks; i++)
            weir_task_watch_sample(&sampler.tasks[i].watch);
        pthread_mutex_lock(&sampler.lock);
        if (!sampler.stopping)
            weir_cond_wait_ns(&sampler.stop, &sampler.lock, interval_ns());
    }
    pthread_mutex_unlock(&sampler.lock);
    for (int i = 0; i < sampler.n_tasks; i++)
        take_task(&sampler.tasks[i]);
    return NULL;
}

/* ---- start and stop ---- */

/* Touches no more memory than the loaders have used: each forked worker would get its own copy. */
static void clear_samples(void)
{
    memset(sampler.samples, 0, (size_t)sampler.n_samples * sizeof sampler.samples[0]);
    sampler.n_samples = 0;
}

/* These require the lock. */
static void start(void)
{
    if (sampler.running || !sampler.watch)
        return;
    weir_cond_init(&sampler.stop);
    sampler.stopping = false;
    sampler.running = weir_thread_start(&sampler.thread, sample_main, sampler.watch) == 0;
}

static void stop(void)
{
    if (!sampler.running)
        return;
    sampler.stopping = true;
    sampler.running = false;
    pthread_cond_signal(&sampler.stop);
    pthread_t thread = sampler.thread;
    pthread_mutex_unlock(&sampler.lock);
    if (!pthread_equal(thread, pthread_self())) /* the function that it calls may stop it */
        pthread_join(thread, NULL);
    pthread_mutex_lock(&sampler.lock);
}

void weir_watch_samples_also(void (*function)(void))
{
    atomic_store(&sampler.also, function);
}

static void restart(struct weir_watch *watch)
{
    weir_watch_wake(watch, NULL);
    pthread_mutex_lock(&sampler.lock);
    if (sampler.watch == watch)
        start();
    pthread_mutex_unlock(&sampler.lock);
}

/* The thread does not exist in the child, and Python warns about forks of processes with threads. */
static void before_fork(void)
{
    pthread_mutex_lock(&sampler.lock);
    bool was_running = sampler.running;
    while (sampler.running) /* stop() lets go of the lock */
        stop();
    if (was_running)
        weir_watch_wake(sampler.watch, restart);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&sampler.lock);
}

static void in_child(void)
{
    if (sampler.watch)
        weir_watch_wake(sampler.watch, NULL); /* the child's copy */
    sampler.watch = NULL;
    clear_samples();
    pthread_mutex_unlock(&sampler.lock);
}

/* When the library is loaded, and so before handlers of threads that read samples, which then let go of them first. */
__attribute__((constructor)) static void survive_forks(void)
{
    pthread_atfork(before_fork, in_parent, in_child);
}

void weir_watch_samples_run(struct weir_watch *watch, bool on)
{
    pthread_mutex_lock(&sampler.lock);
    if (!on || (sampler.watch && sampler.watch != watch))
        stop();
    if (on && sampler.watch != watch)
        clear_samples();
    if (on) {
        sampler.watch = watch;
        start();
    }
    pthread_mutex_unlock(&sampler.lock);
    weir_watch_wake(watch, NULL);
}

void weir_watch_samples_end(const struct weir_watch *watch)
{
    pthread_mutex_lock(&sampler.lock);
    if (sampler.watch == watch) {
        stop();
        sampler.watch = NULL;
    }
    pthread_mutex_unlock(&sampler.lock);
}

/* ---- the sums ---- */

void weir_watch_samples_read(int loader, struct weir_watch_samples *samples)
{
    pthread_mutex_lock(&sampler.lock);
    *samples = sampler.samples[loader >= 0 && loader < WEIR_WATCH_LOADERS ? loader : 0];
    pthread_mutex_unlock(&sampler.lock);
}

void weir_watch_samples_subtract(struct weir_watch_samples *to, const struct weir_watch_samples *then)
{
    weir_task_shares_subtract(&to->loop, &then->loop);
    for (int i = 0; i < WEIR_WATCH_WORKERS; i++)
        weir_task_shares_subtract(&to->workers[i], &then->workers[i]);
    to->threads = fmax(to->threads - then->threads, 0);
    to->thread_counts = fmax(to->thread_counts - then->thread_counts, 0);
    to->process_cpu_s = fmax(to->process_cpu_s - then->process_cpu_s, 0);
    to->task_cpu_s = fmax(to->task_cpu_s - then->task_cpu_s, 0);
}

void weir_watch_samples_fill(struct weir_dataloader_figures *figures, const struct weir_watch_samples *samples)
{
    figures->loop.shares = samples->loop;
    for (int i = 0; i < figures->n_workers; i++)
        figures->workers[i].shares = samples->workers[(int)figures->workers[i].id];
    if (samples->thread_counts > 0)
        figures->n_threads = samples->threads / samples->thread_counts;
    if (samples->task_cpu_s > 0.1)
        figures->others_in_worker = fmax(samples->process_cpu_s - samples->task_cpu_s, 0) / samples->task_cpu_s;
}
