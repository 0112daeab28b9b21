/* Opens many files on several threads through their formats, except for files that the index file describes. Results
 * are used in file order, so that the dataset and its first error do not depend on the threads. */
#include "base/resources.h"
#include "base/shortage.h"
#include "datasets/format_ops.h"
#include "origin/origin.h"
#include "origin/remote.h"
#include "weir/base.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ASK_EVERY_NS = 100 * 1000 * 1000 };
enum { THREADS_MAX = 64, AHEAD = 128, FILES_PER_THREAD = 4, REMOTE_THREADS = 16 };

struct opener {
    const struct weir_dataset_config *config;
    struct weir_origin *origin;          /* NULL = files of this machine */
    const char *root;                    /* real path of the dataset's folder */
    const struct weir_index_file *index; /* NULL = none */
    char **paths;
    int n;
    uint64_t ask_ns; /* when to call interrupted() again */
    struct weir_file_result *results;
    /* protected by the lock: */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool *done;
    int next;
    int taken; /* number of files that the consumer has finished */
    bool stop;
    struct weir_opening opening; /* used if files are opened without threads */
};

/* Returns the number of the next file. Waits until that file is close enough to the consumer. Returns n after the last
 * file or after a stop. */
static int take_number(struct opener *o)
{
    pthread_mutex_lock(&o->lock);
    int i = o->next++;
    while (!o->stop && i < o->n && i >= o->taken + AHEAD)
        pthread_cond_wait(&o->changed, &o->lock);
    i = o->stop || i >= o->n ? o->n : i;
    pthread_mutex_unlock(&o->lock);
    return i;
}

/* The contents of a folder can show its format, whatever its name is. */
static const struct weir_format_ops *format_of(const struct opener *o, const char *path)
{
    const struct weir_format_ops *format = NULL;
    int folder = o->origin ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0) {
        format = weir_format_of_folder(folder, path);
        close(folder);
    }
    if (o->origin && !weir_format_of(path))
        format = weir_format_of_url(o->origin, path);
    return format ? format : weir_format_of_named(path);
}

static void open_file(struct opener *o, int i, struct weir_opening *opening)
{
    struct weir_file_result *result = &o->results[i];
    if (o->index && weir_index_file_find(o->index, o->origin, o->paths[i], result))
        return;
    weir_file_open(result, o->paths[i], format_of(o, o->paths[i]), opening);
}

static struct weir_opening opening_of(const struct opener *o)
{
    return (struct weir_opening){
        .config = o->config, .origin = o->origin, .root = o->root, .allow_external = o->config->allow_external};
}

static void *open_some(void *user)
{
    struct opener *o = user;
    struct weir_opening opening = opening_of(o);
    for (int i; (i = take_number(o)) < o->n;) {
        open_file(o, i, &opening);
        pthread_mutex_lock(&o->lock);
        o->done[i] = true;
        pthread_cond_broadcast(&o->changed);
        pthread_mutex_unlock(&o->lock);
    }
    weir_opening_end(&opening);
    return NULL;
}

/* Calls the callback only occasionally, because it may have to wait for a lock. */
static bool is_interrupted(struct opener *o)
{
    uint64_t now_ns = weir_clock_monotonic_ns();
    if (!o->config->interrupted || now_ns < o->ask_ns)
        return false;
    o->ask_ns = now_ns + ASK_EVERY_NS;
    return o->config->interrupted(o->config->user);
}

static void wait_a_while(struct opener *o)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += ASK_EVERY_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&o->changed, &o->lock, &until);
}

/* Returns the result of file i, or NULL if interrupted. Without threads, opens the file on the calling thread. */
static struct weir_file_result *await(struct opener *o, int threads, int i)
{
    if (threads == 0) {
        open_file(o, i, &o->opening);
        return is_interrupted(o) ? NULL : &o->results[i];
    }
    pthread_mutex_lock(&o->lock);
    while (!o->done[i]) {
        wait_a_while(o);
        pthread_mutex_unlock(&o->lock);
        if (is_interrupted(o))
            return NULL;
        pthread_mutex_lock(&o->lock);
    }
    o->taken = i + 1;
    if (o->taken % (AHEAD / 4) == 0)
        pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
    return &o->results[i];
}

static int take(struct weir_dataset *dataset, struct opener *o, struct weir_file_result *r, struct weir_err *err)
{
    const struct weir_dataset_config *config = o->config;
    if (r->rc == 0) {
        dataset->n_from_index += r->file.from_index;
        return weir_take_file(dataset, config, &r->file, err);
    }
    if (!config->tolerant || weir_is_shortage(r->rc) || r->rc == -EINVAL)
        return weir_err_set(err, r->rc, "%s", r->err.text);
    return weir_leave_out(dataset, r->err.text) < 0 ? weir_no_memory(err) : 0;
}

static int take_all(struct weir_dataset *dataset, struct opener *o, int threads, struct weir_err *err)
{
    uint64_t available = weir_memory_available_bytes();
    for (int i = 0; i < o->n; i++) {
        struct weir_file_result *result = await(o, threads, i);
        int rc = result ? take(dataset, o, result, err)
                        : weir_err_set(err, -EINTR, "interrupted while opening file %d of %d", i + 1, o->n);
        if (rc == 0 && available && dataset->index_bytes > available)
            rc = weir_err_set(err, -ENOMEM,
                              "%s: state, actions and index of %d of its %d files fill the memory; use fewer files",
                              o->config->path, i + 1, o->n);
        if (rc < 0)
            return rc;
        if (o->config->progress)
            o->config->progress(o->config->user, i + 1, o->n);
    }
    return 0;
}

/* Threads that open files of a server mostly wait, so there are more of them than cores. */
static int thread_count(const struct opener *o)
{
    int threads = o->config->threads > 0 ? o->config->threads : weir_cores_usable(), files = o->n;
    threads = o->origin && threads < REMOTE_THREADS ? REMOTE_THREADS : threads;
    int useful = o->origin ? files : (files + FILES_PER_THREAD - 1) / FILES_PER_THREAD;
    threads = threads < THREADS_MAX ? threads : THREADS_MAX;
    return threads < useful ? threads : useful;
}

/* Returns the number of threads started. If none was started, the caller's thread opens the files. It remains free to
 * end waits for a server. */
static int start(struct opener *o, pthread_t *threads, int wanted)
{
    int started = 0;
    while ((wanted > 1 || o->origin) && started < wanted && pthread_create(&threads[started], NULL, open_some, o) == 0)
        started++;
    return started;
}

static void stop(struct opener *o, pthread_t *threads, int started)
{
    pthread_mutex_lock(&o->lock);
    o->stop = true;
    pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}

static int open_on_threads(struct weir_dataset *dataset, struct opener *o, struct weir_err *err)
{
    pthread_t threads[THREADS_MAX];
    int started = start(o, threads, thread_count(o));
    int rc = take_all(dataset, o, started, err);
    if (rc < 0 && o->origin)
        o->origin->ops->cancel(o->origin); /* ends the waits of the threads */
    stop(o, threads, started);
    for (int i = 0; i < o->n; i++)
        weir_file_index_close(&o->results[i].file);
    weir_opening_end(&o->opening);
    return rc;
}

/* Returns whether the path is that of a dataset's folder on a server. */
static bool is_folder(const char *path)
{
    const struct weir_format_ops *format = weir_format_of(path);
    return !format || weir_format_mark(format, path);
}

int weir_open_files(struct weir_dataset *dataset, const struct weir_dataset_config *config, char **paths, int n,
                    struct weir_err *err)
{
    struct weir_index_file *index = NULL;
    struct opener o = {.config = config, .origin = dataset->origin, .root = dataset->root, .paths = paths, .n = n};
    int rc = config->index ? weir_index_file_load(&index, config, err) : 0;
    if (rc < 0)
        return rc;
    o.index = index;
    o.opening = opening_of(&o);
    o.results = calloc((size_t)n, sizeof *o.results);
    o.done = calloc((size_t)n, sizeof *o.done);
    pthread_mutex_init(&o.lock, NULL);
    pthread_cond_init(&o.changed, NULL);
    if (o.origin && !is_folder(paths[0]))
        weir_remote_identify_all(o.origin, paths, n);
    rc = o.results && o.done ? open_on_threads(dataset, &o, err) : weir_no_memory(err);
    pthread_cond_destroy(&o.changed);
    pthread_mutex_destroy(&o.lock);
    free(o.results);
    free(o.done);
    bool complete = rc == 0 && dataset->n_from_index == n && weir_index_file_count(index) == n;
    if (rc == 0 && config->index && !complete)
        rc = weir_index_file_save(dataset, config, err);
    dataset->lent = weir_index_file_release(&index);
    return rc;
}
