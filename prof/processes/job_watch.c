#include "prof/processes/job_watch.h"
#include "base/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Ready threads are counted in one of READY_EVERY samples, if other threads than the watched one run. */
enum { READY_EVERY = 5, MAIN_THREADS = 64 };
static const double OTHERS_LEAST = 0.03; /* CPU time of these threads per second */

/* Memory and files are read every SLOW_S seconds, or less often if that would take more than SLOW_SHARE of the time. */
static const double SLOW_S = 10, SLOW_SHARE = 0.003;

struct process_watch {
    struct weir_task_watch task;
    char thread[WEIR_TASK_NAME]; /* the name of a worker that is a thread; "" for a process */
    bool own_reads;              /* reads are those of the watched thread */
    uint64_t begun_ns;           /* 0: it existed before the watch */
    uint64_t storage_bytes, asked_bytes;
    uint64_t cpu_ns; /* at the end of the last interval */
    bool counts_ready;
    unsigned n_counts, n_ready; /* in this interval; n_ready: sum over the counts */
    uint64_t slow_due_ns;
    double pss_bytes;
    int n_files;
    char files[WEIR_PROCESS_FILES][WEIR_PROCESS_FILE];
};

struct thread_times {
    pid_t tid;
    uint64_t run_ns;
};

struct weir_job_watch {
    const char *root;
    pid_t pid;
    bool torch, weir;
    unsigned n_samples;
    struct process_watch main;
    pid_t pin_thread;
    struct weir_task_watch pin;
    int n_threads; /* threads of the main process whose times are compared */
    struct thread_times threads[MAIN_THREADS];
    int n_begun, n_ended;
    int n_workers;
    struct process_watch workers[WEIR_JOB_WORKERS];
};

/* ---- files ---- */

bool weir_is_dataset_file(const char *path)
{
    static const char *const ends[] = {
        ".hdf5",  ".h5",   ".he5", ".nc",  ".tfrecord", ".tar",  ".mdb", ".lmdb",  ".parquet", ".arrow", ".mp4", ".mkv",
        ".avi",   ".webm", ".npy", ".npz", ".zarr",     ".zip",  ".jpg", ".jpeg",  ".png",     ".webp",  ".bin", ".mds",
        ".beton", ".rec",  ".pt",  ".pkl", ".bag",      ".mcap", ".csv", ".jsonl", ".wav",     ".flac"};
    size_t length = strlen(path);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t n = strlen(ends[i]);
        if (length > n && strcasecmp(path + length - n, ends[i]) == 0)
            return true;
    }
    return strstr(path, ".tfrecord-") != NULL;
}

static bool add_file(void *user, const char *path)
{
    struct process_watch *process = user;
    if (!weir_is_dataset_file(path))
        return true;
    if (process->n_files < WEIR_PROCESS_FILES) {
        const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
        size_t n = strlen(name), most = WEIR_PROCESS_FILE - 1;
        memcpy(process->files[process->n_files], n > most ? name + n - most : name, (n > most ? most : n) + 1);
        weir_text_printable(process->files[process->n_files]);
    }
    process->n_files++;
    return true;
}

/* ---- threads of the main process ---- */

static bool add_thread(void *user, pid_t tid)
{
    struct weir_job_watch *watch = user;
    struct weir_task_times times;
    if (watch->n_threads < MAIN_THREADS && weir_task_times_read(&times, watch->root, watch->pid, tid))
        watch->threads[watch->n_threads++] = (struct thread_times){tid, times.run_ns};
    return watch->n_threads < MAIN_THREADS;
}

static void list_threads(struct weir_job_watch *watch)
{
    watch->n_threads = 0;
    weir_threads_each(watch->root, watch->pid, add_thread, watch);
}

/* Threads of torch, CUDA and Weir run no Python code. */
static bool may_run_python(const struct weir_job_watch *watch, pid_t tid)
{
    static const char *const prefixes[] = {"pt_", "cuda", "nccl", "weir", NULL};
    struct weir_task_stat stat;
    if (!weir_task_stat_read(&stat, watch->root, watch->pid, tid))
        return false;
    for (const char *const *prefix = prefixes; *prefix; prefix++)
        if (strncmp(stat.name, *prefix, strlen(*prefix)) == 0)
            return false;
    return true;
}

/* Returns the thread that was on a core for the longest time, apart from the main thread; 0: none ran. *run_ns: for how
 * long. */
static pid_t busiest_other(const struct weir_job_watch *watch, uint64_t *run_ns)
{
    pid_t busiest = 0;
    *run_ns = 0;
    for (int i = 0; i < watch->n_threads; i++) {
        struct weir_task_times now;
        const struct thread_times *then = &watch->threads[i];
        if (then->tid != watch->main.task.tid && weir_task_times_read(&now, watch->root, watch->pid, then->tid) &&
            now.run_ns > then->run_ns && now.run_ns - then->run_ns > *run_ns && may_run_python(watch, then->tid)) {
            busiest = then->tid;
            *run_ns = now.run_ns - then->run_ns;
        }
    }
    return busiest;
}

/* Returns whether the training loop runs on the other thread: the watched one waits for it, in Thread.join. */
static bool has_moved(const struct weir_task_shares *shares, double other)
{
    static const double joined = 0.005, at_work = 0.05;
    return shares->seconds > 0 && shares->of[WEIR_TASK_ON_CORE] < joined &&
           shares->of[WEIR_TASK_LOCK] > 1 - 2 * joined && other > at_work;
}

/* ---- processes ---- */

static uint64_t cpu_ns_of(const struct process_watch *process)
{
    struct weir_task_stat stat;
    return weir_task_stat_read(&stat, process->task.root, process->task.pid, 0) ? stat.cpu_ns : 0;
}

static uint64_t storage_bytes_of(const struct process_watch *process, uint64_t *asked)
{
    const struct weir_task_watch *task = &process->task;
    return weir_task_storage_bytes(task->root, task->pid, process->own_reads ? task->tid : 0, asked);
}

/* tid: of a worker that is a thread; 0 = a process. */
static void begin(struct process_watch *process, const char *root, pid_t pid, pid_t tid, uint64_t begun_ns)
{
    struct weir_task_stat stat = {.name = "thread"};
    memset(process, 0, sizeof *process);
    weir_task_watch_begin(&process->task, root, pid, tid ? tid : pid);
    weir_task_watch_keep_open(&process->task);
    process->begun_ns = begun_ns;
    if (tid) {
        process->task.lock_is_queue = process->own_reads = true;
        weir_task_stat_read(&stat, root, pid, tid);
        memcpy(process->thread, stat.name, sizeof process->thread);
        process->slow_due_ns = UINT64_MAX;
    } else {
        process->counts_ready = true;
        process->cpu_ns = cpu_ns_of(process);
    }
    process->storage_bytes = storage_bytes_of(process, &process->asked_bytes);
    process->pss_bytes = process->n_files = -1;
}

struct ready_threads {
    const char *root;
    pid_t pid;
    unsigned n;
};

static bool count_ready(void *user, pid_t tid)
{
    struct ready_threads *ready = user;
    struct weir_task_stat stat;
    if (weir_task_stat_read(&stat, ready->root, ready->pid, tid) && stat.state == 'R')
        ready->n++;
    return true;
}

static bool sample(struct process_watch *process, bool count)
{
    if (process->task.ended || !weir_task_watch_sample(&process->task))
        return false;
    if (count && process->counts_ready) {
        struct ready_threads ready = {.root = process->task.root, .pid = process->task.pid};
        weir_threads_each(ready.root, ready.pid, count_ready, &ready);
        process->n_counts++;
        process->n_ready += ready.n;
    }
    return true;
}

static double rate(uint64_t now, uint64_t then, double seconds)
{
    return now == UINT64_MAX || then == UINT64_MAX || now < then || seconds <= 0 ? -1 : (double)(now - then) / seconds;
}

static void take_reads(struct process_watch *process, struct weir_process_figures *figures)
{
    uint64_t asked, storage = storage_bytes_of(process, &asked);
    double seconds = figures->shares.seconds, asked_per_s = rate(asked, process->asked_bytes, seconds);
    figures->storage_bytes_per_s = rate(storage, process->storage_bytes, seconds);
    figures->cached_bytes_per_s = -1;
    if (asked_per_s >= 0 && figures->storage_bytes_per_s >= 0)
        figures->cached_bytes_per_s =
            asked_per_s > figures->storage_bytes_per_s ? asked_per_s - figures->storage_bytes_per_s : 0;
    process->storage_bytes = storage;
    process->asked_bytes = asked;
}

static void read_slow_figures(struct process_watch *process, int n_processes)
{
    uint64_t begun_ns = weir_clock_monotonic_ns(),
             bytes = weir_process_pss_bytes(process->task.root, process->task.pid);
    process->pss_bytes = bytes ? (double)bytes : -1;
    process->n_files = 0;
    if (!weir_process_files(process->task.root, process->task.pid, add_file, process))
        process->n_files = -1;
    uint64_t now_ns = weir_clock_monotonic_ns();
    double took_s = (double)(now_ns - begun_ns) / 1e9 * n_processes;
    double wait_s = took_s / SLOW_SHARE > SLOW_S ? took_s / SLOW_SHARE : SLOW_S;
    process->slow_due_ns = begun_ns + (uint64_t)(wait_s * 1e9);
}

/* Sets the ready threads: counted ones, or the watched thread alone if no other one runs. Returns the CPU time; that of
 * a thread is part of its process's. */
static uint64_t take_threads(struct process_watch *process, struct weir_process_figures *figures)
{
    struct weir_task_stat stat;
    const struct weir_task_shares *shares = &figures->shares;
    figures->n_threads = -1;
    figures->other_cores = -1;
    figures->ready_threads = process->n_counts > 0 ? (double)process->n_ready / process->n_counts
                             : shares->seconds > 0 ? shares->of[WEIR_TASK_ON_CORE] + shares->of[WEIR_TASK_CORE_WAIT]
                                                   : -1;
    process->n_counts = process->n_ready = 0;
    if (process->thread[0] || !weir_task_stat_read(&stat, process->task.root, process->task.pid, 0))
        return 0;
    uint64_t cpu_ns = stat.cpu_ns > process->cpu_ns ? stat.cpu_ns - process->cpu_ns : 0;
    double own = shares->of[WEIR_TASK_ON_CORE] * shares->seconds, all = (double)cpu_ns / 1e9;
    figures->n_threads = stat.n_threads;
    if (shares->seconds > 0)
        figures->other_cores = stat.n_threads > 1 && all > own ? (all - own) / shares->seconds : 0;
    process->counts_ready = figures->other_cores > OTHERS_LEAST;
    process->cpu_ns = stat.cpu_ns;
    return cpu_ns;
}

/* Returns the CPU time of the process in the interval. */
static uint64_t take(struct process_watch *process, struct weir_process_figures *figures, int n_processes)
{
    uint64_t now_ns = weir_clock_monotonic_ns();
    *figures = (struct weir_process_figures){.pid = process->thread[0] ? process->task.tid : process->task.pid,
                                             .ended = process->task.ended};
    memcpy(figures->name, process->thread, sizeof figures->name);
    figures->age_s = process->begun_ns ? (double)(now_ns - process->begun_ns) / 1e9 : -1;
    weir_task_watch_take(&process->task, &figures->shares);
    take_reads(process, figures);
    uint64_t cpu_ns = take_threads(process, figures);
    if (now_ns >= process->slow_due_ns && !process->task.ended)
        read_slow_figures(process, n_processes);
    figures->pss_bytes = process->pss_bytes;
    figures->n_files = process->n_files;
    memcpy(figures->files, process->files, sizeof figures->files);
    return cpu_ns;
}

/* ---- the job ---- */

static void set_pin(struct weir_job_watch *watch, pid_t tid)
{
    if (tid == watch->pin_thread)
        return;
    if (watch->pin_thread)
        weir_task_watch_end(&watch->pin);
    watch->pin_thread = tid;
    if (!tid)
        return;
    weir_task_watch_begin(&watch->pin, watch->root, watch->pid, tid);
    weir_task_watch_keep_open(&watch->pin);
}

static void begin_worker(struct weir_job_watch *watch, pid_t id, uint64_t begun_ns)
{
    begin(&watch->workers[watch->n_workers++], watch->root, watch->weir ? watch->pid : id, watch->weir ? id : 0,
          begun_ns);
}

/* The loop waits for Weir's loader on a lock; in a process with torch also for other things. */
static void set_kind(struct weir_job_watch *watch, const struct weir_job *job)
{
    watch->torch = job->torch;
    watch->weir = watch->main.own_reads = job->weir;
    watch->main.task.lock_is_queue = job->weir && !job->torch;
    watch->main.storage_bytes = storage_bytes_of(&watch->main, &watch->main.asked_bytes);
}

int weir_job_watch_open(struct weir_job_watch **out, const struct weir_job *job, const char *root, struct weir_err *err)
{
    struct weir_job_watch *watch = calloc(1, sizeof *watch);
    if (!watch)
        return weir_err_set(err, -ENOMEM, "out of memory for watching process %d", (int)job->pid);
    watch->root = root;
    watch->pid = job->pid;
    begin(&watch->main, root, job->pid, 0, 0);
    set_kind(watch, job);
    set_pin(watch, job->pin_thread);
    while (watch->n_workers < job->n_workers)
        begin_worker(watch, job->workers[watch->n_workers], 0);
    list_threads(watch);
    *out = watch;
    return 0;
}

void weir_job_watch_close(struct weir_job_watch *watch)
{
    if (!watch)
        return;
    set_pin(watch, 0);
    weir_task_watch_end(&watch->main.task);
    for (int i = 0; i < watch->n_workers; i++)
        weir_task_watch_end(&watch->workers[i].task);
    free(watch);
}

bool weir_job_watch_sample(struct weir_job_watch *watch)
{
    bool count = watch->n_samples++ % READY_EVERY == 0;
    for (int i = 0; i < watch->n_workers; i++)
        sample(&watch->workers[i], count);
    if (watch->pin_thread)
        weir_task_watch_sample(&watch->pin);
    return sample(&watch->main, count);
}

static void take_other_thread(struct weir_job_watch *watch, struct weir_job_figures *figures)
{
    uint64_t run_ns;
    pid_t other = busiest_other(watch, &run_ns);
    figures->other_thread = figures->seconds > 0 ? (double)run_ns / 1e9 / figures->seconds : 0;
    if (figures->other_thread > 1)
        figures->other_thread = 1;
    if (other && has_moved(&figures->main.shares, figures->other_thread)) {
        weir_task_watch_end(&watch->main.task);
        weir_task_watch_begin(&watch->main.task, watch->root, watch->pid, other);
        weir_task_watch_keep_open(&watch->main.task);
    }
    list_threads(watch);
}

void weir_job_watch_take(struct weir_job_watch *watch, struct weir_job_figures *figures)
{
    int n_processes = watch->n_workers + 1;
    memset(figures, 0, sizeof *figures);
    uint64_t cpu_ns = take(&watch->main, &figures->main, n_processes);
    figures->seconds = figures->main.shares.seconds;
    figures->torch = watch->torch;
    figures->weir = watch->weir;
    figures->has_pin = watch->pin_thread != 0;
    if (figures->has_pin)
        weir_task_watch_take(&watch->pin, &figures->pin);
    figures->n_workers = watch->n_workers;
    for (int i = 0; i < figures->n_workers; i++)
        cpu_ns += take(&watch->workers[i], &figures->workers[i], n_processes);
    figures->cores = figures->seconds > 0 ? (double)cpu_ns / 1e9 / figures->seconds : -1;
    figures->workers_begun = watch->n_begun;
    figures->workers_ended = watch->n_ended;
    take_other_thread(watch, figures);
    watch->n_begun = watch->n_ended = 0;
}

/* ---- longer times ---- */

/* Mean of two figures over their times; the other one if one is unknown. */
static double mean(double a, double a_s, double b, double b_s)
{
    if (a < 0 || a_s <= 0)
        return b;
    if (b < 0 || b_s <= 0)
        return a;
    return (a * a_s + b * b_s) / (a_s + b_s);
}

void weir_process_figures_add(struct weir_process_figures *total, const struct weir_process_figures *more)
{
    struct weir_process_figures sum = *more;
    double then_s = total->shares.seconds, more_s = more->shares.seconds;
    sum.shares = total->shares;
    weir_task_shares_add(&sum.shares, &more->shares);
    sum.ready_threads = mean(total->ready_threads, then_s, more->ready_threads, more_s);
    sum.other_cores = mean(total->other_cores, then_s, more->other_cores, more_s);
    sum.storage_bytes_per_s = mean(total->storage_bytes_per_s, then_s, more->storage_bytes_per_s, more_s);
    sum.cached_bytes_per_s = mean(total->cached_bytes_per_s, then_s, more->cached_bytes_per_s, more_s);
    *total = sum;
}

void weir_job_figures_add(struct weir_job_figures *total, const struct weir_job_figures *interval)
{
    double then_s = total->seconds, more_s = interval->seconds;
    struct weir_process_figures before;
    int n = 0;
    if (more_s <= 0)
        return;
    total->cores = mean(total->cores, then_s, interval->cores, more_s);
    total->other_thread = mean(total->other_thread, then_s, interval->other_thread, more_s);
    weir_process_figures_add(&total->main, &interval->main);
    total->torch = interval->torch;
    total->weir = interval->weir;
    total->has_pin = total->has_pin || interval->has_pin;
    weir_task_shares_add(&total->pin, &interval->pin);
    total->workers_begun += interval->workers_begun;
    total->workers_ended += interval->workers_ended;
    for (int i = 0; i < interval->n_workers; i++) {
        const struct weir_process_figures *worker = &interval->workers[i];
        if (worker->ended)
            continue;
        memset(&before, 0, sizeof before);
        for (int then = n; then < total->n_workers; then++)
            if (total->workers[then].pid == worker->pid) {
                before = total->workers[then];
                total->workers[then] = total->workers[n];
            }
        weir_process_figures_add(&before, worker);
        total->workers[n++] = before;
    }
    total->n_workers = n;
    total->seconds += more_s;
}

/* ---- changes ---- */

/* id: a PID, or the TID of a thread. */
static bool is_watched(const struct weir_job_watch *watch, pid_t id)
{
    for (int i = 0; i < watch->n_workers; i++)
        if (watch->workers[i].task.tid == id && !watch->workers[i].task.ended)
            return true;
    return false;
}

static bool has_worker(const struct weir_job *job, const struct process_watch *worker)
{
    bool is_thread = worker->thread[0] != '\0';
    for (int i = 0; i < job->n_workers && is_thread == job->weir; i++)
        if (job->workers[i] == worker->task.tid)
            return true;
    return false;
}

void weir_job_watch_update(struct weir_job_watch *watch, const struct weir_job *job)
{
    int n = 0;
    if (watch->weir != job->weir || watch->torch != job->torch)
        set_kind(watch, job);
    set_pin(watch, job->pin_thread);
    for (int i = 0; i < watch->n_workers; i++) {
        if (watch->workers[i].task.ended || !has_worker(job, &watch->workers[i])) {
            weir_task_watch_end(&watch->workers[i].task);
            watch->n_ended++;
        } else if (n++ != i)
            watch->workers[n - 1] = watch->workers[i];
    }
    watch->n_workers = n;
    for (int i = 0; i < job->n_workers && watch->n_workers < WEIR_JOB_WORKERS; i++) {
        if (is_watched(watch, job->workers[i]))
            continue;
        begin_worker(watch, job->workers[i], weir_clock_monotonic_ns());
        watch->n_begun++;
    }
}
