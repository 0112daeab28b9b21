#include "prof/processes/training_jobs.h"
#include "base/grow.h"
#include "base/ranks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char worker_name[] = "pt_data_worker", pin_name[] = "pt_data_pin";

/* A process can exec, or map libtorch, some time after it was created. Young ones are looked at in each search, others
 * in one of LOOK_EVERY. */
enum { LOOK_EVERY = 12 };
static const double YOUNG_S = 60;

struct process {
    pid_t pid;
    struct weir_task_stat stat;
    char command[1024];
    bool helper; /* started by multiprocessing or torch for itself: a fork server, a compiler */
    bool torch;  /* has libtorch mapped */
    bool worker;
    bool main;
};

struct processes {
    struct process *list; /* ascending by PID */
    size_t n;
};

struct weir_job_search {
    const char *root;
    uid_t user;
    unsigned n; /* number of searches */
    double uptime_s;
    struct processes now, before; /* before: of the previous search */
    bool failed;                  /* out of memory */
};

struct weir_job_search *weir_job_search_open(const char *root)
{
    struct weir_job_search *search = calloc(1, sizeof *search);
    if (search)
        search->root = root;
    return search;
}

void weir_job_search_close(struct weir_job_search *search)
{
    if (!search)
        return;
    free(search->now.list);
    free(search->before.list);
    free(search);
}

/* ---- all processes of the user ---- */

static bool is_helper(const char *command)
{
    static const char *const parts[] = {"multiprocessing.forkserver import", "multiprocessing.resource_tracker import",
                                        "_inductor/compile_worker", NULL};
    for (const char *const *part = parts; *part; part++)
        if (strstr(command, *part))
            return true;
    return false;
}

static struct process *find(const struct processes *all, pid_t pid);

static bool is_young(const struct weir_job_search *search, const struct process *process)
{
    return search->uptime_s - (double)weir_ticks_to_ns(process->stat.start_ticks) / 1e9 < YOUNG_S;
}

static bool add_process(void *user, pid_t pid)
{
    struct weir_job_search *search = user;
    struct process process = {.pid = pid};
    if (weir_process_user(search->root, pid) != search->user ||
        !weir_task_stat_read(&process.stat, search->root, pid, 0) || process.stat.state == 'Z')
        return true;
    if (!weir_grow(&search->now.list, search->now.n, sizeof *search->now.list)) {
        search->failed = true;
        return false;
    }
    const struct process *before = find(&search->before, pid);
    bool known = before && before->stat.start_ticks == process.stat.start_ticks;
    if (known) {
        memcpy(process.command, before->command, sizeof process.command);
        process.helper = before->helper;
        process.torch = before->torch;
    }
    if (!process.torch && (!known || is_young(search, &process) || search->n % LOOK_EVERY == 0)) {
        weir_process_command(search->root, pid, process.command, sizeof process.command);
        process.helper = is_helper(process.command);
        process.torch = weir_process_has_library(search->root, pid, "libtorch");
    }
    search->now.list[search->now.n++] = process;
    return true;
}

static int by_pid(const void *a, const void *b)
{
    pid_t x = ((const struct process *)a)->pid, y = ((const struct process *)b)->pid;
    return (x > y) - (x < y);
}

static struct process *find(const struct processes *all, pid_t pid)
{
    struct process key = {.pid = pid};
    return all->n ? bsearch(&key, all->list, all->n, sizeof key, by_pid) : NULL;
}

/* The parent, or the grandparent if the parent is a fork server. */
static struct process *owner_of(const struct processes *all, const struct process *process)
{
    struct process *parent = find(all, process->stat.parent);
    return parent && parent->helper ? find(all, parent->stat.parent) : parent;
}

/* ---- workers and main processes ---- */

static bool is_named_worker(const struct process *process)
{
    return strcmp(process->stat.name, worker_name) == 0;
}

static bool has_named_workers(const struct processes *all, const struct process *owner)
{
    for (size_t i = 0; i < all->n; i++)
        if (is_named_worker(&all->list[i]) && owner_of(all, &all->list[i]) == owner)
            return true;
    return false;
}

static bool has_torch_child(const struct processes *all, const struct process *owner)
{
    for (size_t i = 0; i < all->n; i++)
        if (all->list[i].torch && !all->list[i].helper && owner_of(all, &all->list[i]) == owner)
            return true;
    return false;
}

/* Whether a fork server has forked it; it has the server's command. */
static bool is_served(const struct processes *all, const struct process *process)
{
    const struct process *parent = find(all, process->stat.parent);
    return process->helper && parent && parent->helper;
}

/* Before torch 2.6 workers have no name of their own: they are Python's children without children, by fork with the
 * parent's command, otherwise with multiprocessing's. */
static bool is_unnamed_worker(const struct processes *all, const struct process *process)
{
    const struct process *owner = owner_of(all, process);
    bool served = is_served(all, process);
    if (!process->torch || (process->helper && !served) || !owner || !owner->torch || has_named_workers(all, owner))
        return false;
    return (served || strcmp(process->command, owner->command) == 0 ||
            strstr(process->command, "multiprocessing.spawn import")) &&
           !has_torch_child(all, process);
}

static void classify(struct processes *all)
{
    for (size_t i = 0; i < all->n; i++)
        all->list[i].worker = is_named_worker(&all->list[i]) || is_unnamed_worker(all, &all->list[i]);
    for (size_t i = 0; i < all->n; i++) {
        struct process *owner = all->list[i].worker ? owner_of(all, &all->list[i]) : NULL;
        /* Workers whose main process was killed are init's children for a while. */
        if (owner && (owner->pid != 1 || owner->torch))
            owner->main = true;
    }
    for (size_t i = 0; i < all->n; i++) {
        struct process *process = &all->list[i];
        if (process->torch && !process->worker && !process->helper && !has_torch_child(all, process))
            process->main = true;
    }
}

/* ---- jobs ---- */

static pid_t parent_of(const struct weir_job_search *search, pid_t pid)
{
    struct weir_task_stat stat;
    const struct process *process = find(&search->now, pid);
    if (process)
        return process->stat.parent;
    return weir_task_stat_read(&stat, search->root, pid, 0) ? stat.parent : 0;
}

static bool is_below(const struct weir_job_search *search, pid_t pid, pid_t wanted)
{
    enum { GENERATIONS = 64 };
    for (int i = 0; pid > 0 && i < GENERATIONS; i++, pid = parent_of(search, pid))
        if (pid == wanted)
            return true;
    return false;
}

static bool is_wanted(const struct weir_job_search *search, const struct process *process, pid_t wanted)
{
    if (wanted == 0 || is_below(search, process->pid, wanted))
        return true;
    const struct process *worker = find(&search->now, wanted);
    return worker && worker->worker && owner_of(&search->now, worker) == process;
}

struct variables {
    const char *root;
    pid_t pid;
};

static bool read_variable(void *user, const char *name, char *value, size_t size)
{
    const struct variables *of = user;
    return weir_process_variable(of->root, of->pid, name, value, size);
}

struct pin_search {
    const char *root;
    struct weir_job *job;
};

static bool look_for_pin(void *user, pid_t tid)
{
    struct pin_search *search = user;
    struct weir_task_stat stat;
    if (weir_task_stat_read(&stat, search->root, search->job->pid, tid) && strcmp(stat.name, pin_name) == 0)
        search->job->pin_thread = tid;
    return search->job->pin_thread == 0;
}

static void fill_job(struct weir_job *job, const struct weir_job_search *search, const struct process *process)
{
    const struct processes *all = &search->now;
    *job = (struct weir_job){.pid = process->pid,
                             .start_ticks = process->stat.start_ticks,
                             .foreign = search->user != getuid() && geteuid() != 0};
    struct weir_launched launched;
    weir_ranks_launched(&launched, read_variable, &(struct variables){search->root, job->pid});
    job->rank = launched.rank;
    job->world_size = launched.world_size;
    job->local_rank = launched.local_rank;
    weir_process_command(search->root, job->pid, job->command, sizeof job->command);
    for (size_t i = 0; i < all->n && !job->more_workers; i++) {
        if (!all->list[i].worker || owner_of(all, &all->list[i]) != process)
            continue;
        job->more_workers = job->n_workers == WEIR_JOB_WORKERS;
        if (!job->more_workers)
            job->workers[job->n_workers++] = all->list[i].pid;
    }
    weir_threads_each(search->root, job->pid, look_for_pin, &(struct pin_search){search->root, job});
}

static int by_rank(const void *a, const void *b)
{
    const struct weir_job *x = a, *y = b;
    return x->rank != y->rank ? (x->rank > y->rank) - (x->rank < y->rank) : (x->pid > y->pid) - (x->pid < y->pid);
}

int weir_jobs_find(struct weir_job_search *search, struct weir_job jobs[WEIR_JOBS], pid_t wanted, struct weir_err *err)
{
    int n = 0;
    free(search->before.list);
    search->before = search->now;
    search->now = (struct processes){0};
    search->user = wanted ? weir_process_user(search->root, wanted) : getuid();
    search->failed = false;
    search->n++;
    search->uptime_s = weir_uptime_s(search->root);
    weir_processes_each(search->root, add_process, search);
    if (search->failed)
        return weir_err_set(err, -ENOMEM, "out of memory for the list of processes");
    struct processes *all = &search->now;
    if (all->n)
        qsort(all->list, all->n, sizeof *all->list, by_pid);
    classify(all);
    for (size_t i = 0; i < all->n && n < WEIR_JOBS; i++)
        if (all->list[i].main && is_wanted(search, &all->list[i], wanted))
            fill_job(&jobs[n++], search, &all->list[i]);
    qsort(jobs, (size_t)n, sizeof *jobs, by_rank);
    return n;
}
