#include "analyze/jobs/outside.h"
#include "analyze/causes/thresholds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double known(double figure)
{
    return figure > 0 ? figure : 0;
}

struct weir_outside_interval *weir_outside_next(struct weir_outside_window *window)
{
    return &window->intervals[window->next];
}

void weir_outside_add(struct weir_outside_window *window)
{
    if (window->intervals[window->next].job.seconds <= 0)
        return;
    window->next = (window->next + 1) % WEIR_OUTSIDE_INTERVALS;
    window->n += window->n < WEIR_OUTSIDE_INTERVALS;
}

/* ---- workers over all intervals ---- */

struct workers {
    int n;
    struct weir_process_figures rows[WEIR_DATALOADER_WORKERS]; /* further ones are added to the last row */
};

static void sum_workers(struct workers *workers, const struct weir_job_figures *job)
{
    for (int w = 0; w < job->n_workers; w++) {
        int i = 0;
        while (i < workers->n && workers->rows[i].pid != job->workers[w].pid)
            i++;
        if (job->workers[w].shares.seconds <= 0)
            continue;
        i -= i == WEIR_DATALOADER_WORKERS;
        workers->n = i < workers->n ? workers->n : i + 1;
        weir_process_figures_add(&workers->rows[i], &job->workers[w]);
    }
}

static bool is_parked(const struct weir_process_figures *worker)
{
    const double *of = worker->shares.of;
    return of[WEIR_TASK_ON_CORE] + of[WEIR_TASK_CORE_WAIT] < WEIR_OUTSIDE_PARKED && of[WEIR_TASK_IDLE] > 0.9;
}

/* Removes parked workers if others are at work. Returns their number. */
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

static struct weir_thread_figures thread_figures(pid_t id, const struct weir_task_shares *shares)
{
    double seconds = shares->seconds, idle_s = shares->of[WEIR_TASK_IDLE] * seconds;
    return (struct weir_thread_figures){.id = id,
                                        .wall_s = seconds,
                                        .busy_s = seconds - idle_s,
                                        .wait_s = idle_s,
                                        .batches = -1,
                                        .items = -1,
                                        .cpu_s = shares->of[WEIR_TASK_ON_CORE] * seconds,
                                        .delay_s = shares->of[WEIR_TASK_CORE_WAIT] * seconds,
                                        .shares = *shares};
}

static void fill_workers(struct weir_dataloader_figures *to, const struct workers *workers)
{
    double seconds = 0, ready_s = 0, others_s = 0, cpu_s = 0, threads = 0;
    bool ready_known = workers->n > 0;
    for (int i = 0; i < workers->n; i++) {
        const struct weir_process_figures *worker = &workers->rows[i];
        double worker_s = worker->shares.seconds;
        to->workers[i] = thread_figures(worker->pid, &worker->shares);
        seconds += worker_s;
        cpu_s += to->workers[i].cpu_s;
        others_s += known(worker->other_cores) * worker_s;
        threads += known(worker->n_threads) / workers->n;
        ready_known = ready_known && worker->ready_threads >= 0;
        ready_s += worker->ready_threads * worker_s;
        to->outside.storage_bytes_per_s += known(worker->storage_bytes_per_s) * worker_s / to->loop_s;
    }
    to->n_workers = workers->n;
    /* Workers of several epochs follow each other, so their number is their mean number at one time. */
    to->settings.num_workers = ceil(seconds / to->loop_s - 0.1);
    to->n_threads = threads > 0 ? threads : -1;
    to->others_in_worker = cpu_s > 0 ? others_s / cpu_s : -1;
    to->outside.worker_ready = ready_known ? ready_s / seconds : -1;
}

/* ---- means ---- */

/* The fraction of the interval in which workers were missing or had just begun. Between the workers of one epoch and
 * those of the next there are none. */
static double young(const struct weir_job_figures *job)
{
    double n = 0;
    for (int i = 0; i < job->n_workers; i++)
        n += job->workers[i].age_s >= 0 && job->workers[i].age_s < WEIR_OUTSIDE_YOUNG_S;
    return job->n_workers > 0 ? n / job->n_workers : job->workers_ended > 0;
}

/* Sums of figures that are unknown in some intervals, and the time in which they are known. */
struct known_sum {
    double sum, seconds;
};

static void add_known(struct known_sum *to, double figure, double seconds)
{
    to->sum += known(figure) * seconds;
    to->seconds += figure >= 0 ? seconds : 0;
}

static double mean(const struct known_sum *of)
{
    return of->seconds > 0 ? of->sum / of->seconds : -1;
}

static void add_machine(struct weir_report_machine *to, const struct weir_report_machine *from, double seconds)
{
    struct weir_report_machine sum = *from;
    sum.periods = to->periods + (from->throttling ? from->periods : 0);
    sum.throttled = to->throttled + (from->throttling ? from->throttled : 0);
    sum.throttled_s = to->throttled_s + (from->throttling ? from->throttled_s : 0);
    sum.throttling = to->throttling || from->throttling;
    sum.others_cores = to->others_cores + known(from->others_cores) * seconds;
    sum.steal_cores = to->steal_cores + known(from->steal_cores) * seconds;
    *to = sum;
}

/* Adds an interval. What is a mean in the end is multiplied by its time. */
static void add_interval(struct weir_dataloader_figures *to, const struct weir_outside_interval *from)
{
    const struct weir_job_figures *job = &from->job;
    struct weir_dataloader_outside *outside = &to->outside;
    double seconds = job->seconds;
    to->loop_s += seconds;
    weir_task_shares_add(&to->loop.shares, &job->main.shares);
    if (job->has_pin)
        weir_task_shares_add(&outside->pin, &job->pin);
    add_machine(&to->machine, &from->machine, seconds);
    outside->torch = job->torch;
    outside->weir = job->weir;
    outside->has_pin |= job->has_pin;
    outside->other_thread += job->other_thread * seconds;
    outside->ready_threads += known(job->main.ready_threads) * seconds;
    outside->young += young(job) * seconds;
    outside->workers_begun += job->workers_begun;
    outside->other_jobs_cores += known(from->other_jobs_cores) * seconds;
    to->cpu_s += known(job->cores) * seconds;
    to->settings.world_size = from->world_size;
}

static void divide(struct weir_dataloader_figures *figures)
{
    struct weir_dataloader_outside *outside = &figures->outside;
    double *const means[] = {&outside->other_thread,     &outside->ready_threads,        &outside->young,
                             &outside->other_jobs_cores, &figures->machine.others_cores, &figures->machine.steal_cores};
    for (size_t i = 0; i < sizeof means / sizeof *means; i++)
        *means[i] /= figures->loop_s;
}

void weir_outside_figures(const struct weir_outside_window *window, struct weir_dataloader_figures *to)
{
    struct workers *workers = calloc(1, sizeof *workers);
    struct known_sum gpu_busy = {0}, to_gpu = {0};
    memset(to, 0, sizeof *to);
    to->outside.known = true;
    to->outside.worker_ready = -1;
    to->settings = (struct weir_watch_settings){.prefetch_factor = -1, .in_order = -1};
    for (int k = 0; k < window->n; k++) { /* the latest last */
        int oldest = window->n < WEIR_OUTSIDE_INTERVALS ? 0 : window->next;
        const struct weir_outside_interval *from = &window->intervals[(oldest + k) % WEIR_OUTSIDE_INTERVALS];
        add_interval(to, from);
        add_known(&gpu_busy, from->gpu_busy, from->job.seconds);
        add_known(&to_gpu, from->to_gpu_bytes_per_s, from->job.seconds);
        if (workers)
            sum_workers(workers, &from->job);
    }
    to->outside.gpu_busy = mean(&gpu_busy);
    to->outside.to_gpu_bytes_per_s = mean(&to_gpu);
    to->wall_s = to->loop_s;
    to->loop = thread_figures(0, &to->loop.shares);
    bool on_lock = to->outside.has_pin || (to->outside.weir && to->outside.torch);
    to->wait_s = on_lock ? -1 : to->loop.wait_s; /* a lock is that of a batch, the GIL or autograd */
    if (workers && to->loop_s > 0) {
        divide(to);
        to->outside.n_parked = remove_parked(workers);
        fill_workers(to, workers);
    }
    to->outside.ready_threads = to->outside.worker_ready < 0
                                    ? -1
                                    : to->outside.ready_threads + to->outside.worker_ready * to->settings.num_workers;
    free(workers);
}
