/* Sums of the last intervals of a job, and their means. */
#include "analyze/jobs/outside.h"
#include "base/numbers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- one interval ---- */

static void scale(double uses[WEIR_TASK_USES], const struct weir_task_shares *shares)
{
    for (int use = 0; use < WEIR_TASK_USES; use++)
        uses[use] = shares->of[use] * shares->seconds;
}

static double known(double figure)
{
    return figure > 0 ? figure : 0;
}

static bool is_young(const struct weir_process_figures *worker)
{
    return worker->age_s >= 0 && worker->age_s < WEIR_OUTSIDE_YOUNG_S;
}

static void add_workers(struct weir_outside_sums *sums, const struct weir_job_figures *job)
{
    double young = 0;
    sums->n_workers = job->n_workers;
    for (int i = 0; i < job->n_workers; i++) {
        const struct weir_process_figures *worker = &job->workers[i];
        struct weir_outside_worker *row = &sums->workers[i];
        row->pid = worker->pid;
        row->seconds = worker->shares.seconds;
        row->ready = worker->ready_threads < 0 ? -1 : worker->ready_threads * row->seconds;
        row->other_cores = known(worker->other_cores) * row->seconds;
        scale(row->uses, &worker->shares);
        sums->storage_bytes += known(worker->storage_bytes_per_s) * row->seconds;
        young += is_young(worker) ? 1.0 / job->n_workers : 0;
    }
    /* Between the workers of one epoch and those of the next there are none. */
    bool missing = job->n_workers == 0 && job->workers_ended > 0;
    sums->young = missing ? sums->seconds : young * sums->seconds;
}

void weir_outside_add(struct weir_outside_window *window, const struct weir_outside_interval *interval)
{
    const struct weir_job_figures *job = interval->job;
    const struct weir_report_machine *machine = interval->machine;
    struct weir_outside_sums *sums = &window->intervals[window->next];
    if (job->seconds <= 0)
        return;
    memset(sums, 0, sizeof *sums);
    sums->seconds = job->seconds;
    scale(sums->main, &job->main.shares);
    sums->has_pin = job->has_pin;
    scale(sums->pin, &job->pin);
    sums->other_thread = job->other_thread * job->seconds;
    sums->main_ready = known(job->main.ready_threads) * job->seconds;
    sums->job_cores = known(job->cores) * job->seconds;
    sums->others_cores = known(machine->others_cores) * job->seconds;
    sums->other_jobs_cores = known(interval->other_jobs_cores) * job->seconds;
    sums->steal_cores = known(machine->steal_cores) * job->seconds;
    sums->periods = machine->throttling ? machine->periods : 0;
    sums->throttled = machine->throttling ? machine->throttled : 0;
    sums->gpu_seconds = interval->gpu_busy < 0 ? 0 : job->seconds;
    sums->gpu_busy = known(interval->gpu_busy) * job->seconds;
    sums->to_gpu_seconds = interval->to_gpu_bytes_per_s < 0 ? 0 : job->seconds;
    sums->to_gpu_bytes = known(interval->to_gpu_bytes_per_s) * job->seconds;
    sums->workers_begun = job->workers_begun;
    add_workers(sums, job);
    window->cores = machine->cores;
    window->online = machine->online;
    window->quota_cores = machine->quota_cores;
    window->torch = job->torch;
    window->weir = job->weir;
    window->next = (window->next + 1) % WEIR_OUTSIDE_INTERVALS;
    window->n += window->n < WEIR_OUTSIDE_INTERVALS;
}

/* ---- workers over all intervals ---- */

struct workers {
    int n;
    struct weir_outside_worker rows[2 * WEIR_JOB_WORKERS];
};

static struct weir_outside_worker *row_of(struct workers *workers, pid_t pid)
{
    for (int i = 0; i < workers->n; i++)
        if (workers->rows[i].pid == pid)
            return &workers->rows[i];
    if (workers->n == 2 * WEIR_JOB_WORKERS)
        return NULL;
    workers->rows[workers->n] = (struct weir_outside_worker){.pid = pid};
    return &workers->rows[workers->n++];
}

static void sum_workers(struct workers *workers, const struct weir_outside_window *window)
{
    for (int i = 0; i < window->n; i++)
        for (int w = 0; w < window->intervals[i].n_workers; w++) {
            const struct weir_outside_worker *from = &window->intervals[i].workers[w];
            struct weir_outside_worker *row = row_of(workers, from->pid);
            if (!row || from->seconds <= 0)
                continue;
            row->seconds += from->seconds;
            row->other_cores += from->other_cores;
            row->ready = row->ready < 0 || from->ready < 0 ? -1 : row->ready + from->ready;
            for (int use = 0; use < WEIR_TASK_USES; use++)
                row->uses[use] += from->uses[use];
        }
}

static bool is_parked(const struct weir_outside_worker *worker)
{
    return worker->uses[WEIR_TASK_ON_CORE] + worker->uses[WEIR_TASK_CORE_WAIT] <
               WEIR_OUTSIDE_PARKED * worker->seconds &&
           worker->uses[WEIR_TASK_IDLE] > 0.9 * worker->seconds;
}

/* Removes parked workers if others are at work, and those that have ended if others live. Returns their number. */
static int remove_parked(struct workers *workers)
{
    int n = 0, parked = 0;
    for (int i = 0; i < workers->n; i++)
        parked += is_parked(&workers->rows[i]);
    if (parked == workers->n)
        return 0;
    for (int i = 0; i < workers->n; i++)
        if (!is_parked(&workers->rows[i]))
            workers->rows[n++] = workers->rows[i];
    workers->n = n;
    return parked;
}

/* Compares the workers' time at work. Waiting for a core counts, since it only makes the difference smaller. */
static void compare_workers(struct weir_outside_figures *figures, const struct workers *workers)
{
    double busy[2 * WEIR_JOB_WORKERS];
    int n = 0;
    for (int i = 0; i < workers->n; i++) {
        const struct weir_outside_worker *worker = &workers->rows[i];
        if (worker->seconds < figures->seconds / 2)
            continue;
        busy[n] = 1 - worker->uses[WEIR_TASK_IDLE] / worker->seconds;
        if (n == 0 || busy[n] > figures->busiest) {
            figures->busiest = busy[n];
            figures->busiest_pid = worker->pid;
        }
        n++;
    }
    if (n < 2)
        return;
    qsort(busy, (size_t)n, sizeof *busy, weir_compare_double);
    figures->rest = busy[n - 2 - (n - 2) / 2];
}

static void mean_of_workers(struct weir_outside_figures *figures, const struct weir_outside_window *window)
{
    struct workers *workers = calloc(1, sizeof *workers);
    double seconds = 0, ready = 0;
    bool ready_known = true;
    if (!workers)
        return;
    sum_workers(workers, window);
    figures->n_parked = remove_parked(workers);
    for (int i = 0; i < workers->n; i++) {
        const struct weir_outside_worker *worker = &workers->rows[i];
        seconds += worker->seconds;
        ready_known = ready_known && worker->ready >= 0;
        ready += worker->ready;
        figures->other_cores += worker->other_cores;
        for (int use = 0; use < WEIR_TASK_USES; use++)
            figures->workers[use] += worker->uses[use];
    }
    for (int use = 0; use < WEIR_TASK_USES; use++)
        figures->workers[use] = seconds > 0 ? figures->workers[use] / seconds : 0;
    figures->other_cores = seconds > 0 ? figures->other_cores / seconds : 0;
    figures->ready_threads = ready_known && seconds > 0 ? ready / seconds : -1;
    /* Workers of several epochs follow each other, so their number is their mean number at one time. */
    figures->n_workers = figures->seconds > 0 ? (int)ceil(seconds / figures->seconds - 0.1) : 0;
    compare_workers(figures, workers);
    free(workers);
}

/* ---- means ---- */

void weir_outside_figures(const struct weir_outside_window *window, struct weir_outside_figures *figures)
{
    double pin_seconds = 0, gpu_seconds = 0, gpu_busy = 0, storage_bytes = 0;
    double to_gpu_seconds = 0, to_gpu_bytes = 0;
    uint64_t periods = 0, throttled = 0;
    struct weir_outside_figures sum = {.torch = window->torch,
                                       .weir = window->weir,
                                       .cores = window->cores,
                                       .online = window->online,
                                       .quota_cores = window->quota_cores,
                                       .ready_threads = -1};
    for (int i = 0; i < window->n; i++) {
        const struct weir_outside_sums *sums = &window->intervals[i];
        sum.seconds += sums->seconds;
        pin_seconds += sums->has_pin ? sums->seconds : 0;
        for (int use = 0; use < WEIR_TASK_USES; use++) {
            sum.main[use] += sums->main[use];
            sum.pin[use] += sums->pin[use];
        }
        sum.other_thread += sums->other_thread;
        sum.main_ready_threads += sums->main_ready;
        sum.young += sums->young;
        sum.workers_begun += sums->workers_begun;
        sum.job_cores += sums->job_cores;
        sum.others_cores += sums->others_cores;
        sum.other_jobs_cores += sums->other_jobs_cores;
        sum.steal_cores += sums->steal_cores;
        storage_bytes += sums->storage_bytes;
        gpu_seconds += sums->gpu_seconds;
        gpu_busy += sums->gpu_busy;
        to_gpu_seconds += sums->to_gpu_seconds;
        to_gpu_bytes += sums->to_gpu_bytes;
        periods += sums->periods;
        throttled += sums->throttled;
    }
    double seconds = sum.seconds > 0 ? sum.seconds : 1;
    double *const means[] = {&sum.other_thread, &sum.main_ready_threads, &sum.young,           &sum.job_cores,
                             &sum.others_cores, &sum.steal_cores,        &sum.other_jobs_cores};
    for (size_t i = 0; i < sizeof means / sizeof *means; i++)
        *means[i] /= seconds;
    for (int use = 0; use < WEIR_TASK_USES; use++) {
        sum.main[use] /= seconds;
        sum.pin[use] = pin_seconds > 0 ? sum.pin[use] / pin_seconds : 0;
    }
    sum.has_pin = pin_seconds > 0;
    sum.storage_bytes_per_s = storage_bytes / seconds;
    sum.gpu_busy = gpu_seconds > 0 ? gpu_busy / gpu_seconds : -1;
    sum.to_gpu_bytes_per_s = to_gpu_seconds > 0 ? to_gpu_bytes / to_gpu_seconds : -1;
    sum.throttled = periods > 0 ? (double)throttled / (double)periods : 0;
    mean_of_workers(&sum, window);
    *figures = sum;
}
