/* Opens many files on several threads. Results are taken in the order of the files, so that a dataset, and the error it
 * fails with, do not depend on the threads. */
#include "datasets/index_file_priv.h"
#include "prof/cores.h"
#include "prof/memory.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS_MAX = 64, AHEAD_PER_THREAD = 64 };

struct result {
    struct weir_file_index file;
    struct weir_err err;
    int rc;
    bool done, from_index;
};

struct opener {
    const struct weir_dataset_config *config;
    const struct weir_index_file *index; /* NULL = none */
    char **paths;
    int n;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct result *results;
    int next, taken; /* files given to threads; files that the consumer is done with */
    int ahead;
    bool stop;
};

static void open_one(struct opener *o, int i)
{
    struct result *r = &o->results[i];
    r->from_index = o->index && weir_index_file_find(o->index, o->paths[i], &r->file);
    if (!r->from_index)
        r->rc = weir_file_index_open(&r->file, o->paths[i], o->config, &r->err);
}

static void *open_some(void *user)
{
    struct opener *o = user;
    pthread_mutex_lock(&o->lock);
    for (;;) {
        while (!o->stop && o->next < o->n && o->next >= o->taken + o->ahead)
            pthread_cond_wait(&o->changed, &o->lock);
        if (o->stop || o->next >= o->n)
            break;
        int i = o->next++;
        pthread_mutex_unlock(&o->lock);
        open_one(o, i);
        pthread_mutex_lock(&o->lock);
        o->results[i].done = true;
        pthread_cond_broadcast(&o->changed);
    }
    pthread_mutex_unlock(&o->lock);
    return NULL;
}

/* Waits for the result of file i; with no threads, opens it here. */
static struct result *await(struct opener *o, int threads, int i)
{
    if (threads == 0) {
        open_one(o, i);
        return &o->results[i];
    }
    pthread_mutex_lock(&o->lock);
    while (!o->results[i].done)
        pthread_cond_wait(&o->changed, &o->lock);
    o->taken = i + 1;
    pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
    return &o->results[i];
}

static int take(struct weir_dataset *dataset, struct opener *o, struct result *r, struct weir_err *err)
{
    const struct weir_dataset_config *config = o->config;
    if (r->rc == 0) {
        dataset->n_from_index += r->from_index;
        return weir_take_file(dataset, config, &r->file, err);
    }
    if (!config->tolerant || r->rc == -ENOMEM || r->rc == -EINVAL)
        return weir_err_set(err, r->rc, "%s", r->err.text);
    return weir_leave_out(dataset, r->err.text) < 0 ? weir_err_set(err, -ENOMEM, "out of memory") : 0;
}

static int take_all(struct weir_dataset *dataset, struct opener *o, int threads, struct weir_err *err)
{
    uint64_t available = weir_memory_available_bytes();
    for (int i = 0; i < o->n; i++) {
        int rc = take(dataset, o, await(o, threads, i), err);
        if (rc == 0 && available && dataset->index_bytes > available)
            rc = weir_err_set(err, -ENOMEM,
                              "%s: state, actions and index of %d of its %d files fill the memory; use fewer",
                              o->config->path, i + 1, o->n);
        if (rc < 0)
            return rc;
        if (o->config->progress)
            o->config->progress(o->config->user, i + 1, o->n);
    }
    return 0;
}

static int thread_count(const struct weir_dataset_config *config, int files)
{
    int threads = config->threads > 0 ? config->threads : weir_cores_usable();
    threads = threads < THREADS_MAX ? threads : THREADS_MAX;
    return threads < files ? threads : files;
}

static int open_on_threads(struct weir_dataset *dataset, struct opener *o, struct weir_err *err)
{
    pthread_t threads[THREADS_MAX];
    int wanted = thread_count(o->config, o->n), started = 0;
    o->ahead = wanted * AHEAD_PER_THREAD;
    while (wanted > 1 && started < wanted && pthread_create(&threads[started], NULL, open_some, o) == 0)
        started++;
    int rc = take_all(dataset, o, started, err);
    pthread_mutex_lock(&o->lock);
    o->stop = true;
    pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < o->n; i++)
        weir_file_index_close(&o->results[i].file);
    return rc;
}

int weir_open_files(struct weir_dataset *dataset, const struct weir_dataset_config *config, char **paths, int n,
                    struct weir_err *err)
{
    struct weir_index_file *index = NULL;
    struct opener o = {.config = config, .paths = paths, .n = n};
    int rc = config->index ? weir_index_file_load(&index, config, err) : 0;
    if (rc < 0)
        return rc;
    o.index = index;
    o.results = calloc((size_t)n, sizeof *o.results);
    pthread_mutex_init(&o.lock, NULL);
    pthread_cond_init(&o.changed, NULL);
    rc = o.results ? open_on_threads(dataset, &o, err) : weir_err_set(err, -ENOMEM, "out of memory");
    pthread_cond_destroy(&o.changed);
    pthread_mutex_destroy(&o.lock);
    free(o.results);
    bool complete = rc == 0 && dataset->n_from_index == n && weir_index_file_count(index) == n;
    if (rc == 0 && config->index && !complete)
        rc = weir_index_file_save(dataset, config, err);
    dataset->lent = weir_index_file_release(&index);
    return rc;
}
