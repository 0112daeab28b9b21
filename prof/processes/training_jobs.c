#include "prof/processes/training_jobs.h"
#include "base/grow.h"
#include "base/numbers.h"
#include "base/ranks.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char worker_name[] = "pt_data_worker", pin_name[] = "pt_data_pin", store_name[] = "pt_tcpstore",
                  watchdog_name[] = "weir-watchdog";

/* A process can exec, map libtorch, or open a loader some time after it was created. Young ones are looked at in each
 * search, others in one of LOOK_EVERY. */
enum { LOOK_EVERY = 12 };
static const double YOUNG_S = 60;

/* A new process has no worker's name before it has imported torch and the program; a forked one has done so. */
static const double STARTING_S = 20, FORKED_S = 2;

struct process {
    pid_t pid;
    struct weir_task_stat stat;
    char command[1024];
    bool helper; /* started by multiprocessing or torch for itself: a fork server, a compiler */
    bool torch;  /* has libtorch mapped */
    bool loader; /* has threads of Weir's loader */
    bool names;  /* its torch names workers */
    bool starting;
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

/* ---- threads ---- */

/* The threads of a process that tell what it is. */
struct thread_search {
    const char *root;
    pid_t pid, pin;
    bool store, loader, more_workers;
    int n_workers; /* of Weir's loader */
    pid_t workers[WEIR_JOB_WORKERS];
};

/* Whether it is a name such as "weir-w0", or "weir1-w0" of a second loader. */
static bool is_loader_worker(const char *name)
{
    static const char program[] = "weir";
    size_t at = strlen(program);
    if (strncmp(name, program, at) != 0)
        return false;
    at += strspn(name + at, "0123456789");
    return strncmp(name + at, "-w", 2) == 0 && isdigit((unsigned char)name[at + 2]);
}

static bool look_at_thread(void *user, pid_t tid)
{
    struct thread_search *search = user;
    struct weir_task_stat stat;
    if (!weir_task_stat_read(&stat, search->root, search->pid, tid))
        return true;
    bool worker = is_loader_worker(stat.name);
    if (strcmp(stat.name, pin_name) == 0)
        search->pin = tid;
    if (strncmp(stat.name, store_name, strlen(store_name)) == 0)
        search->store = true;
    search->loader = search->loader || worker || strcmp(stat.name, watchdog_name) == 0;
    search->more_workers = search->more_workers || (worker && search->n_workers == WEIR_JOB_WORKERS);
    if (worker && !search->more_workers)
        search->workers[search->n_workers++] = tid;
    return true;
}

static void look_at_threads(struct thread_search *found, const char *root, pid_t pid)
{
    memset(found, 0, sizeof *found);
    found->root = root;
    found->pid = pid;
    weir_threads_each(root, pid, look_at_thread, found);
    qsort(found->workers, (size_t)found->n_workers, sizeof *found->workers, weir_compare_int);
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

static double age_s(const struct weir_job_search *search, const struct process *process)
{
    return search->uptime_s - (double)weir_ticks_to_ns(process->stat.start_ticks) / 1e9;
}

/* Reads the beginning of a file that another user may have made: no other kind of file is opened. */
static void read_beginning(char *text, size_t size, const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    ssize_t n = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? read(fd, text, size - 1) : 0;
    text[n > 0 ? n : 0] = '\0';
    if (fd >= 0)
        close(fd);
}

/* Whether its torch is 2.6 or later, by torch/version.py beside torch/lib. Older and unknown ones name no workers. */
static bool names_workers(const char *root, pid_t pid)
{
    static const char folder[] = "/lib", key[] = "__version__ = '";
    char library[WEIR_PROC_PATH - 32], name[WEIR_PROC_PATH], path[WEIR_PROC_PATH], text[1024];
    int major = 0, minor = 0;
    if (!weir_process_library(root, pid, "libtorch_cpu", library, sizeof library))
        return false;
    const char *end = strrchr(library, '/') - strlen(folder);
    if (end < library || strncmp(end, folder, strlen(folder)) != 0)
        return false;
    snprintf(name, sizeof name, "root%.*s/version.py", (int)(end - library), library);
    if (!weir_proc_path(path, root, pid, 0, name))
        return false;
    read_beginning(text, sizeof text, path);
    const char *version = strstr(text, key);
    return version && sscanf(version + strlen(key), "%4d.%4d", &major, &minor) == 2 &&
           (major > 2 || (major == 2 && minor >= 6));
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
    bool due = !known || age_s(search, &process) < YOUNG_S || search->n % LOOK_EVERY == 0;
    if (known) {
        memcpy(process.command, before->command, sizeof process.command);
        process.helper = before->helper;
        process.torch = before->torch;
        process.names = before->names;
    }
    if (!process.torch && due) {
        char path[WEIR_PROC_PATH];
        weir_process_command(search->root, pid, process.command, sizeof process.command);
        process.helper = is_helper(process.command);
        process.torch = weir_process_library(search->root, pid, "libtorch", path, sizeof path);
    }
    if (process.torch && !process.names &&
        (!known || age_s(search, &process) < YOUNG_S)) /* libraries are mapped in turn */
        process.names = names_workers(search->root, pid);
    if (process.stat.n_threads > 1 && (due || (known && before->loader))) {
        struct thread_search threads;
        look_at_threads(&threads, search->root, pid);
        process.loader = threads.loader;
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

/* Whether a fork server has forked it; it has the server's command. */
static bool is_served(const struct processes *all, const struct process *process)
{
    const struct process *parent = find(all, process->stat.parent);
    return process->helper && parent && parent->helper && strcmp(process->command, parent->command) == 0;
}

/* The parent, or the grandparent if the parent is a fork server. */
static struct process *owner_of(const struct processes *all, const struct process *process)
{
    struct process *parent = find(all, process->stat.parent);
    return parent && parent->helper && !is_served(all, parent) ? find(all, parent->stat.parent) : parent;
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

/* A process that torch or multiprocessing has started for itself. */
static bool is_aside(const struct processes *all, const struct process *process)
{
    return process->helper && !is_served(all, process);
}

static bool has_torch_child(const struct processes *all, const struct process *owner)
{
    for (size_t i = 0; i < all->n; i++) {
        const struct process *child = &all->list[i];
        if (child->torch && !is_aside(all, child) && (!child->starting || child->main) && owner_of(all, child) == owner)
            return true;
    }
    return false;
}

static bool is_forked(const struct processes *all, const struct process *process, const struct process *owner)
{
    return !is_served(all, process) && strcmp(process->command, owner->command) == 0;
}

/* Whether a process with torch has started it by multiprocessing: a worker, or a process that trains. By fork it has
 * the parent's command, otherwise multiprocessing's. */
static bool is_child(const struct processes *all, const struct process *process)
{
    const struct process *owner = owner_of(all, process);
    if (!process->torch || is_aside(all, process) || !owner || !owner->torch)
        return false;
    return is_served(all, process) || is_forked(all, process, owner) ||
           strstr(process->command, "multiprocessing.spawn import");
}

/* Before torch 2.6 workers have no name of their own: they are children without children. */
static bool is_unnamed_worker(const struct processes *all, const struct process *process)
{
    return !process->names && is_child(all, process) && !has_named_workers(all, owner_of(all, process)) &&
           !has_torch_child(all, process);
}

/* Whether it can still become a worker with a name. */
static bool is_starting(const struct weir_job_search *search, const struct process *process)
{
    const struct processes *all = &search->now;
    if (!process->names || is_named_worker(process) || !is_child(all, process))
        return false;
    return age_s(search, process) < (is_forked(all, process, owner_of(all, process)) ? FORKED_S : STARTING_S);
}

static void see_starting(struct weir_job_search *search)
{
    struct processes *all = &search->now;
    for (size_t i = 0; i < all->n; i++)
        all->list[i].starting = is_starting(search, &all->list[i]);
    for (size_t i = 0; i < all->n; i++) {
        struct thread_search threads;
        if (!all->list[i].starting)
            continue;
        look_at_threads(&threads, search->root, all->list[i].pid);
        if (!threads.store)
            continue;
        const struct process *owner = owner_of(all, &all->list[i]); /* of ranks, not of workers */
        for (size_t k = 0; k < all->n; k++)
            all->list[k].starting = all->list[k].starting && owner_of(all, &all->list[k]) != owner;
    }
}

static void classify(struct weir_job_search *search)
{
    struct processes *all = &search->now;
    see_starting(search);
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
        bool trains = process->torch && !process->starting && !is_aside(all, process) && !has_torch_child(all, process);
        if ((trains || process->loader) && !process->worker)
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

static void fill_job(struct weir_job *job, const struct weir_job_search *search, const struct process *process)
{
    const struct processes *all = &search->now;
    *job = (struct weir_job){.pid = process->pid,
                             .start_ticks = process->stat.start_ticks,
                             .torch = process->torch,
                             .foreign = search->user != getuid() && geteuid() != 0};
    struct weir_launched launched;
    weir_ranks_launched(&launched, read_variable, &(struct variables){search->root, job->pid});
    job->rank = launched.rank;
    job->world_size = launched.world_size;
    job->local_rank = launched.local_rank;
    job->starter = is_child(all, process) ? owner_of(all, process)->pid : 0;
    weir_process_command(search->root, job->starter ? job->starter : job->pid, job->command, sizeof job->command);
    for (size_t i = 0; i < all->n && !job->more_workers; i++) {
        if (!all->list[i].worker || owner_of(all, &all->list[i]) != process)
            continue;
        job->more_workers = job->n_workers == WEIR_JOB_WORKERS;
        if (!job->more_workers)
            job->workers[job->n_workers++] = all->list[i].pid;
    }
    struct thread_search threads;
    look_at_threads(&threads, search->root, job->pid);
    job->pin_thread = threads.pin;
    job->serves_store = threads.store;
    job->weir = threads.loader && job->n_workers == 0;
    if (!job->weir)
        return;
    job->n_workers = threads.n_workers;
    job->more_workers = threads.more_workers;
    memcpy(job->workers, threads.workers, sizeof job->workers);
}

static int by_start(const void *a, const void *b)
{
    const struct weir_job *x = a, *y = b;
    return x->start_ticks != y->start_ticks ? (x->start_ticks > y->start_ticks) - (x->start_ticks < y->start_ticks)
                                            : (x->pid > y->pid) - (x->pid < y->pid);
}

/* Processes of torch.multiprocessing.spawn get their ranks as arguments, which cannot be seen. Rank 0 is the one that
 * serves torch.distributed's store, here the first of n jobs in the order of their start; those that the same process
 * has started after it follow. */
static void number_ranks(struct weir_job *jobs, int n)
{
    pid_t starter = jobs[0].rank < 0 ? jobs[0].starter : 0;
    int world_size = 0;
    for (int i = 0; i < n; i++)
        world_size += starter && jobs[i].starter == starter && jobs[i].rank < 0;
    for (int i = 0, rank = 0; i < n && world_size > 1; i++) {
        if (jobs[i].starter != starter || jobs[i].rank >= 0)
            continue;
        jobs[i].rank = jobs[i].local_rank = rank++;
        jobs[i].world_size = world_size;
    }
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
    classify(search);
    for (size_t i = 0; i < all->n && n < WEIR_JOBS; i++)
        if (all->list[i].main && is_wanted(search, &all->list[i], wanted))
            fill_job(&jobs[n++], search, &all->list[i]);
    qsort(jobs, (size_t)n, sizeof *jobs, by_start);
    for (int i = 0; i < n; i++)
        if (jobs[i].serves_store)
            number_ranks(&jobs[i], n - i);
    qsort(jobs, (size_t)n, sizeof *jobs, by_rank);
    return n;
}
