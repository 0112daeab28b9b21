/* Finds the jobs, samples them, and judges them at the end of each interval. */
#include "base/numbers.h"
#include "base/shortage.h"
#include "cli/top/top.h"
#include "weir/base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t SEARCH_NS = 5000000000u; /* earlier if workers have ended */
enum { GPU_TRIES = 30 };                       /* a job can create its CUDA context long after it begins */

int top_open(struct top *top, struct weir_err *err)
{
    *top = (struct top){.interval_s = 1, .begun_ns = weir_clock_monotonic_ns()};
    top->search = weir_job_search_open("");
    if (!top->search)
        return weir_no_memory(err);
    top->gpus = top_gpus_open();
    return 0;
}

void top_close(struct top *top)
{
    for (int i = 0; i < top->n_jobs; i++) {
        weir_job_watch_close(top->jobs[i]->watch);
        free(top->jobs[i]);
    }
    weir_job_search_close(top->search);
    top_gpus_close(top->gpus);
}

/* ---- finding ---- */

static struct top_job *job_of(const struct top *top, const struct weir_job *found)
{
    for (int i = 0; i < top->n_jobs; i++)
        if (top->jobs[i]->job.pid == found->pid && top->jobs[i]->job.start_ticks == found->start_ticks)
            return top->jobs[i];
    return NULL;
}

static void look_for_gpu(struct top *top, struct top_job *job)
{
    if (job->gpu < 0 && top->n_intervals < GPU_TRIES)
        job->gpu = top_gpus_of(top->gpus, job->job.pid, job->job.local_rank);
}

static int add_job(struct top *top, const struct weir_job *found, struct weir_err *err)
{
    struct top_job *job = top->n_jobs < WEIR_JOBS ? calloc(1, sizeof *job) : NULL;
    if (!job)
        return top->n_jobs < WEIR_JOBS ? weir_no_memory(err) : 0;
    job->job = *found;
    job->gpu = -1;
    int rc = weir_job_watch_open(&job->watch, found, "", err);
    if (rc < 0) {
        free(job);
        return rc;
    }
    weir_machine_begin_of(&job->machine, "", (int)found->pid);
    job->machine.load_average = -1; /* of no use beside the cores of others */
    weir_machine_read_of(&job->machine_then, "", (int)found->pid, 0);
    top->jobs[top->n_jobs++] = job;
    look_for_gpu(top, job);
    return 0;
}

static void update_job(struct top *top, struct top_job *job, const struct weir_job *found)
{
    struct weir_job before = job->job;
    job->job = *found;
    if (before.world_size > found->world_size) { /* counted, and some have ended: the others keep their ranks */
        job->job.rank = before.rank;
        job->job.world_size = before.world_size;
        job->job.local_rank = before.local_rank;
    }
    weir_job_watch_update(job->watch, &job->job);
    look_for_gpu(top, job);
}

static int by_rank(const void *a, const void *b)
{
    const struct weir_job *x = &(*(struct top_job *const *)a)->job, *y = &(*(struct top_job *const *)b)->job;
    return x->rank != y->rank ? (x->rank > y->rank) - (x->rank < y->rank) : (x->pid > y->pid) - (x->pid < y->pid);
}

static void remove_jobs(struct top *top, bool (*gone)(const struct top *top, const struct top_job *job))
{
    int n = 0;
    for (int i = 0; i < top->n_jobs; i++) {
        struct top_job *job = top->jobs[i];
        if (!gone(top, job)) {
            top->jobs[n++] = job;
            continue;
        }
        weir_job_watch_close(job->watch);
        free(job);
    }
    top->n_jobs = n;
}

static bool has_ended(const struct top *top, const struct top_job *job)
{
    (void)top;
    return job->ended;
}

/* Whether a process has started a job. Such a process is no job itself while it has no workers. */
static bool is_starter(const struct top *top, pid_t pid)
{
    for (int i = 0; i < top->n_jobs; i++)
        if (top->jobs[i]->job.starter == pid)
            return true;
    for (int i = 0; i < top->n_found; i++)
        if (top->found[i].starter == pid)
            return true;
    return false;
}

static bool is_launcher(const struct top *top, const struct top_job *job)
{
    return job->job.n_workers == 0 && job->total.workers_begun == 0 && is_starter(top, job->job.pid);
}

/* Removes jobs that have ended if others run, so that a list of all jobs does not grow. */
static void remove_ended(struct top *top)
{
    if (!top->wanted && top_is_running(top))
        remove_jobs(top, has_ended);
}

int top_find(struct top *top, struct weir_err *err)
{
    int running = 0, n = weir_jobs_find(top->search, top->found, top->wanted, err);
    if (n < 0)
        return n;
    top->n_found = n;
    top->search_ns = weir_clock_monotonic_ns();
    remove_jobs(top, is_launcher);
    for (int i = 0; i < n; i++) {
        struct top_job *job = job_of(top, &top->found[i]);
        bool is_new = !job && (top->found[i].n_workers > 0 || !is_starter(top, top->found[i].pid));
        int rc = is_new ? add_job(top, &top->found[i], err) : 0;
        if (rc < 0)
            return rc;
        if (job)
            update_job(top, job, &top->found[i]);
    }
    if (top->n_jobs > 1)
        qsort(top->jobs, (size_t)top->n_jobs, sizeof *top->jobs, by_rank);
    for (int i = 0; i < top->n_jobs; i++)
        running += !top->jobs[i]->ended;
    return running;
}

bool top_is_running(const struct top *top)
{
    for (int i = 0; i < top->n_jobs; i++)
        if (!top->jobs[i]->ended)
            return true;
    return false;
}

/* ---- intervals ---- */

static void read_machine(struct top_job *job)
{
    struct weir_machine_now now;
    if (job->last.cores > 0)
        job->own_ns += (uint64_t)(job->last.cores * job->last.seconds * 1e9);
    weir_machine_read_of(&now, "", (int)job->job.pid, job->own_ns);
    job->machine.others_cores = job->machine.steal_cores = -1;
    weir_machine_between(&job->machine, &job->machine_then, &now);
    job->machine_then = now;
}

static void take_interval(struct top_job *job)
{
    weir_job_watch_take(job->watch, &job->last);
    read_machine(job);
    weir_job_figures_add(&job->total, &job->last);
}

void top_judge(struct top_job *job, double other_jobs_cores)
{
    *weir_outside_next(&job->window) = (struct weir_outside_interval){
        .job = job->last,
        .machine = job->machine,
        .gpu_busy = job->has_gpu ? job->gpu_now.busy : -1,
        .to_gpu_bytes_per_s = job->has_gpu ? job->gpu_now.to_gpu_bytes_per_s : -1,
        .other_jobs_cores = other_jobs_cores,
        .world_size = job->job.world_size,
    };
    weir_outside_add(&job->window);
    weir_outside_figures(&job->window, &job->figures);
    weir_job_judge(&job->verdict, &job->figures);
}

static void judge(const struct top *top, struct top_job *job)
{
    double others = 0;
    for (int i = 0; i < top->n_jobs; i++)
        if (top->jobs[i] != job && !top->jobs[i]->ended && top->jobs[i]->last.cores > 0)
            others += top->jobs[i]->last.cores;
    job->has_gpu = top_gpus_read(top->gpus, job->gpu, &job->gpu_now);
    top_judge(job, others < job->machine.others_cores ? others : job->machine.others_cores);
}

static void end_interval(struct top *top)
{
    for (int i = 0; i < top->n_jobs; i++)
        if (!top->jobs[i]->ended)
            take_interval(top->jobs[i]);
    for (int i = 0; i < top->n_jobs; i++)
        if (!top->jobs[i]->ended)
            judge(top, top->jobs[i]);
    top->n_intervals++;
}

void top_finish(struct top *top)
{
    static const double least = 0.5;
    double seconds = (double)(weir_clock_monotonic_ns() - top->interval_ns) / 1e9;
    if (top->interval_ns > 0 && seconds >= least * top->interval_s)
        end_interval(top);
}

static bool lost_workers(const struct top *top)
{
    for (int i = 0; i < top->n_jobs; i++)
        for (int w = 0; !top->jobs[i]->ended && w < top->jobs[i]->last.n_workers; w++)
            if (top->jobs[i]->last.workers[w].ended)
                return true;
    return false;
}

int top_sample(struct top *top, struct weir_err *err)
{
    uint64_t now_ns = weir_clock_monotonic_ns();
    if (top->interval_ns == 0)
        top->interval_ns = now_ns;
    for (int i = 0; i < top->n_jobs; i++)
        if (!top->jobs[i]->ended && !weir_job_watch_sample(top->jobs[i]->watch))
            top->jobs[i]->ended = true;
    bool ended = now_ns - top->interval_ns >= (uint64_t)(top->interval_s * 1e9);
    if (ended) {
        end_interval(top);
        top->interval_ns = now_ns;
    }
    bool due = ended && (now_ns - top->search_ns >= SEARCH_NS || lost_workers(top));
    if (!top_is_running(top))
        due = now_ns - top->search_ns >= SEARCH_NS / 10;
    int rc = due ? top_find(top, err) : 0;
    if (rc < 0)
        return rc;
    if (ended)
        remove_ended(top);
    return ended;
}

/* ---- ranks ---- */

/* A rank that is slower than the others makes them wait in collective calls, and itself waits least. With a pin thread,
 * the wait for batches looks the same, and is left in. */
int top_slowest_rank(const struct top *top, double *least, double *median)
{
    static const double spread = 0.15;
    double waits[WEIR_JOBS];
    int n = 0, slowest = -1;
    for (int i = 0; i < top->n_jobs; i++) {
        const struct top_job *job = top->jobs[i];
        if (job->job.rank < 0 || job->job.world_size < 2 || !job->verdict.ready)
            continue;
        waits[n] = job->figures.loop.shares.of[WEIR_TASK_LOCK] + job->figures.loop.shares.of[WEIR_TASK_OTHER];
        if (n == 0 || waits[n] < *least) {
            *least = waits[n];
            slowest = i;
        }
        n++;
    }
    if (n < 2)
        return -1;
    qsort(waits, (size_t)n, sizeof *waits, weir_compare_double);
    *median = waits[n / 2];
    return *median - *least >= spread ? slowest : -1;
}
