/* Opens many files on several threads through their formats, except for files that the index file describes. Results
 * are used in file order, so that the dataset and its first error do not depend on the threads. */
#include "base/resources.h"
#include "base/shortage.h"
#include "base/threads.h"
#include "datasets/format_ops.h"
#include "origin/origin.h"
#include "origin/remote.h"
#include "weir/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { ASK_EVERY_NS = 100 * 1000 * 1000 };
enum { THREADS_MAX = 64, AHEAD = 128, FILES_PER_THREAD = 4, REMOTE_THREADS = 16 };

struct opener {
    const struct weir_dataset_config *config;
    struct weir_dataset *dataset;        /* receives the files */
    struct weir_origin *origin;          /* NULL = files of this machine */
    const struct weir_index_file *index; /* NULL = none */
    char **paths;
    int n;
    uint64_t ask_ns; /* when to call interrupted() again */
    bool is_interrupted;
    _Atomic bool has_begun;                    /* a thread has started */
    uint64_t available;                        /* bytes of memory */
    struct weir_file_result *results;          /* AHEAD of them */
    struct weir_opening openings[THREADS_MAX]; /* one per thread */
};

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

static int open_file(void *user, int worker, uint64_t number, int slot, struct weir_err *err)
{
    struct opener *o = user;
    struct weir_file_result *result = &o->results[slot];
    const char *path = o->paths[number];
    (void)err; /* errors are in the result */
    *result = (struct weir_file_result){0};
    o->has_begun = true;
    if (!o->index || !weir_index_file_find(o->index, o->origin, path, result))
        weir_file_open(result, path, format_of(o, path), &o->openings[worker]);
    return 0;
}

/* Calls the callback only occasionally, because it may have to wait for a lock. */
static void ask(void *user)
{
    struct opener *o = user;
    uint64_t now_ns = weir_clock_monotonic_ns();
    if (o->is_interrupted || !o->config->interrupted || now_ns < o->ask_ns)
        return;
    o->ask_ns = now_ns + ASK_EVERY_NS;
    o->is_interrupted = o->config->interrupted(o->config->user);
    if (o->is_interrupted && o->origin)
        o->origin->ops->cancel(o->origin); /* ends the waits of the threads */
}

static int take(struct opener *o, struct weir_file_result *r, struct weir_err *err)
{
    if (r->rc == 0) {
        o->dataset->n_from_index += r->file.from_index;
        return weir_take_file(o->dataset, o->config, &r->file, err);
    }
    if (!o->config->tolerant || weir_is_shortage(r->rc) || r->rc == -EINVAL)
        return weir_err_set(err, r->rc, "%s", r->err.text);
    return weir_leave_out(o->dataset, r->err.text) < 0 ? weir_no_memory(err) : 0;
}

static int take_file(void *user, uint64_t number, int slot, struct weir_err *err)
{
    struct opener *o = user;
    int i = (int)number;
    int rc = o->is_interrupted ? weir_err_set(err, -EINTR, "interrupted while opening file %d of %d", i + 1, o->n)
                               : take(o, &o->results[slot], err);
    if (rc == 0 && o->available && o->dataset->index_bytes > o->available)
        rc = weir_err_set(err, -ENOMEM,
                          "%s: state, actions and index of %d of its %d files fill the memory; use fewer files",
                          o->config->path, i + 1, o->n);
    if (rc == 0 && o->config->progress)
        o->config->progress(o->config->user, i + 1, o->n);
    if (rc < 0 && o->origin)
        o->origin->ops->cancel(o->origin);
    return rc;
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

/* If no thread is started, the caller's opens the files. For files of a server, it remains free to end waits. */
static int open_all(struct opener *o, struct weir_err *err)
{
    struct weir_err why = WEIR_ERR_NONE;
    const struct weir_ordered run = {(uint64_t)o->n, thread_count(o), AHEAD, open_file, take_file, ask, o};
    int rc = run.workers > 1 || o->origin ? weir_ordered_run(&run, &why) : 0;
    if (o->has_begun)
        return rc < 0 ? weir_err_set(err, rc, "%s", why.text) : 0;
    rc = 0;
    for (int i = 0; i < o->n && rc == 0; i++) {
        open_file(o, 0, (uint64_t)i, 0, err);
        ask(o);
        rc = take_file(o, (uint64_t)i, 0, err);
    }
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
    struct opener o = {.config = config,
                       .dataset = dataset,
                       .origin = dataset->origin,
                       .paths = paths,
                       .n = n,
                       .available = weir_memory_available_bytes()};
    int rc = config->index ? weir_index_file_load(&index, config, err) : 0;
    if (rc < 0)
        return rc;
    o.index = index;
    for (int i = 0; i < THREADS_MAX; i++)
        o.openings[i] = (struct weir_opening){.config = config,
                                              .origin = dataset->origin,
                                              .root = dataset->root,
                                              .allow_external = config->allow_external};
    o.results = calloc(AHEAD, sizeof *o.results);
    if (o.origin && !is_folder(paths[0]))
        weir_remote_identify_all(o.origin, paths, n);
    rc = o.results ? open_all(&o, err) : weir_no_memory(err);
    for (int i = 0; i < AHEAD && o.results; i++)
        weir_file_index_close(&o.results[i].file);
    for (int i = 0; i < THREADS_MAX; i++)
        weir_opening_end(&o.openings[i]);
    free(o.results);
    bool complete = rc == 0 && dataset->n_from_index == n && weir_index_file_count(index) == n;
    if (rc == 0 && config->index && !complete)
        rc = weir_index_file_save(dataset, config, err);
    dataset->lent = weir_index_file_release(&index);
    return rc;
}
