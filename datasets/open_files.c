/* Opens many files on several threads. Only one of them enters the HDF5 library, whose state would else wander from
 * core to core (10,000 files: 2.5 s with one, 3.5 s with two); the others look files up in the index and find where
 * frames lie. Results are taken in the order of the files, so that a dataset, and the error it fails with, do not
 * depend on the threads. */
#include "datasets/index_file_priv.h"
#include "prof/cores.h"
#include "prof/memory.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS_MAX = 64, AHEAD = 128 }; /* files that are open at the same time, at most */

enum state { UNSEEN, UNKNOWN, DESCRIBED, DONE }; /* UNKNOWN: not in the index file */

struct opener {
    const struct weir_dataset_config *config;
    const struct weir_index_file *index; /* NULL = none */
    char **paths;
    int n;
    struct weir_file_result *results;
    /* under the lock */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint8_t *states;
    int next_lookup, next_place;
    int taken; /* files that the consumer is done with */
    bool stop;
};

static void set_state(struct opener *o, int i, enum state state)
{
    pthread_mutex_lock(&o->lock);
    o->states[i] = state;
    pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
}

/* Waits until file i has come at least as far as state (and, ahead > 0, is not too far ahead of the consumer); false
 * when stopped. */
static bool wait_state(struct opener *o, int i, enum state state, int ahead, enum state *now)
{
    pthread_mutex_lock(&o->lock);
    while (!o->stop && (o->states[i] < state || (ahead && i >= o->taken + ahead)))
        pthread_cond_wait(&o->changed, &o->lock);
    *now = o->states[i];
    bool stop = o->stop;
    pthread_mutex_unlock(&o->lock);
    return !stop;
}

static int take_number(struct opener *o, int *next)
{
    pthread_mutex_lock(&o->lock);
    int i = o->stop ? o->n : *next;
    *next += i < o->n;
    pthread_mutex_unlock(&o->lock);
    return i;
}

static void look_up(struct opener *o, int i)
{
    bool known = o->index && weir_index_file_find(o->index, o->paths[i], &o->results[i]);
    set_state(o, i, known ? DONE : UNKNOWN);
}

static void place(struct opener *o, int i)
{
    weir_file_place(&o->results[i], o->paths[i]);
    set_state(o, i, DONE);
}

static void *describe_files(void *user)
{
    struct opener *o = user;
    enum state state;
    for (int i = 0; i < o->n && wait_state(o, i, UNKNOWN, AHEAD, &state); i++) {
        if (state != UNKNOWN)
            continue;
        weir_file_describe(&o->results[i], o->paths[i], o->config);
        set_state(o, i, DESCRIBED);
    }
    return NULL;
}

static void *place_files(void *user)
{
    struct opener *o = user;
    enum state state;
    for (int i; (i = take_number(o, &o->next_lookup)) < o->n;)
        look_up(o, i);
    for (int i; (i = take_number(o, &o->next_place)) < o->n && wait_state(o, i, DESCRIBED, 0, &state);)
        if (state == DESCRIBED)
            place(o, i);
    return NULL;
}

/* The result of file i; with no threads, it is opened here. */
static struct weir_file_result *await(struct opener *o, int threads, int i)
{
    enum state state;
    if (threads == 0) {
        look_up(o, i);
        if (o->states[i] == UNKNOWN) {
            weir_file_describe(&o->results[i], o->paths[i], o->config);
            place(o, i);
        }
        return &o->results[i];
    }
    wait_state(o, i, DONE, 0, &state);
    pthread_mutex_lock(&o->lock);
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

/* Threads started: at least one that describes and one that places, or none. */
static int start(struct opener *o, pthread_t *threads, int wanted)
{
    int started = 0;
    while (wanted > 1 && started < wanted &&
           pthread_create(&threads[started], NULL, started == 0 ? describe_files : place_files, o) == 0)
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
    int started = start(o, threads, thread_count(o->config, o->n));
    if (started == 1) { /* no thread left for the second part */
        stop(o, threads, started);
        return weir_err_set(err, -EAGAIN, "the threads that open files cannot be started");
    }
    int rc = take_all(dataset, o, started, err);
    stop(o, threads, started);
    for (int i = 0; i < o->n; i++) {
        if (o->states[i] == DESCRIBED)
            weir_file_place(&o->results[i], o->paths[i]);
        weir_file_index_close(&o->results[i].file);
    }
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
    o.states = calloc((size_t)n, sizeof *o.states);
    pthread_mutex_init(&o.lock, NULL);
    pthread_cond_init(&o.changed, NULL);
    rc = o.results && o.states ? open_on_threads(dataset, &o, err) : weir_err_set(err, -ENOMEM, "out of memory");
    pthread_cond_destroy(&o.changed);
    pthread_mutex_destroy(&o.lock);
    free(o.results);
    free(o.states);
    bool complete = rc == 0 && dataset->n_from_index == n && weir_index_file_count(index) == n;
    if (rc == 0 && config->index && !complete)
        rc = weir_index_file_save(dataset, config, err);
    dataset->lent = weir_index_file_release(&index);
    return rc;
}
