/* Opens and closes read-ahead: the pool and the thread. */
#include "base/resources.h"
#include "base/text.h"
#include "base/threads.h"
#include "io/ahead_priv.h"
#include "io/file_set_priv.h"
#include "weir/recorder.h"

#include <errno.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    POOL_MAX_BYTES = 256 << 20,
    POOL_LEAST_BYTES = 32 << 20,
    POOL_PART = 8,                /* of the available memory */
    BUFFER_MIN_BYTES = 256 << 10, /* has room for several neighbouring extents */
    GAP_BYTES = 16 << 10,         /* between extents of local files */
    EXTENT_MAX_BYTES = 8 << 20,   /* larger extents are read on demand */
};

enum weir_ahead_kind weir_ahead_kind(const char *engine)
{
    const struct weir_io_ops *ops = weir_io_find(engine);
    if (!ops || ops->why_not)
        return WEIR_AHEAD_NOT;
    return ops->ring ? WEIR_AHEAD_BUFFERS : ops->hints ? WEIR_AHEAD_HINTS : WEIR_AHEAD_NOT;
}

/* Pages of a pool for a number of reads that may grow are used as it grows, so they only have to fit. */
static uint64_t pool_max_bytes(const struct weir_ahead *a)
{
    uint64_t available = weir_memory_available_bytes(), part = available / POOL_PART;
    bool may_shrink = a->is_adaptive && !a->is_fixed && available && part < POOL_MAX_BYTES;
    return may_shrink ? (part > POOL_LEAST_BYTES ? part : POOL_LEAST_BYTES) : POOL_MAX_BYTES;
}

/* Limits the number of buffers by the pool's memory, and the number of reads in flight by the number of file handles,
 * because each read keeps a handle open. */
static void size_pool(struct weir_ahead *a)
{
    struct weir_ahead_config *c = &a->config;
    size_t page = a->align > 4096 ? a->align : 4096, bytes;
    a->is_adaptive = a->ops->ring && a->ops->ring->pace;
    a->is_fixed = c->depth > 0;
    c->depth = c->depth > 0 ? c->depth : a->is_adaptive ? WEIR_IO_DEPTH_MAX : WEIR_IO_DEPTH;
    c->depth = c->depth < WEIR_IO_DEPTH_MAX ? c->depth : WEIR_IO_DEPTH_MAX;
    int handles = weir_file_set_open_max(c->set); /* for requests to a server, connections */
    if (a->ops->ring && c->depth > handles)
        c->depth = handles;
    c->extent_max = c->extent_max < EXTENT_MAX_BYTES ? c->extent_max : EXTENT_MAX_BYTES;
    bytes = c->extent_max + 2 * page;
    bytes = (bytes > BUFFER_MIN_BYTES ? bytes : BUFFER_MIN_BYTES) / page * page;
    int n = (a->is_adaptive ? 2 : 1) * c->depth + (c->takers > 0 ? c->takers : 1);
    uint64_t most = pool_max_bytes(a);
    if (a->ops->ring && (uint64_t)n * bytes > most)
        n = (int)(most / bytes);
    c->depth = c->depth < n ? c->depth : n;
    a->limit = c->depth;
    a->buffer_bytes = bytes;
    a->n_buffers = n;
    a->n_entries = 4 * n;
    a->pool_bytes = a->ops->ring ? (size_t)n * bytes : 0;
}

static int make_pool(struct weir_ahead *a, struct weir_err *err)
{
    size_pool(a);
    a->buffers = calloc((size_t)a->n_buffers, sizeof *a->buffers);
    a->entries = calloc((size_t)a->n_entries, sizeof *a->entries);
    a->plans = calloc((size_t)a->n_buffers, sizeof *a->plans);
    uint64_t available = weir_memory_available_bytes();
    if (a->pool_bytes && (!available || a->pool_bytes < available)) {
        void *pool = mmap(NULL, a->pool_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        a->pool = pool == MAP_FAILED ? NULL : pool;
    }
    if (!a->buffers || !a->entries || !a->plans || (a->pool_bytes && !a->pool)) {
        a->n_buffers = 0;
        return weir_err_set(err, -ENOMEM, "no memory for %s of read-ahead; use a smaller --io-depth or --io pread",
                            weir_size((double)a->pool_bytes).text);
    }
    if (a->pool) {
        madvise(a->pool, a->pool_bytes, MADV_HUGEPAGE);
        if (!a->is_adaptive)
            memset(a->pool, 0, a->pool_bytes); /* causes the page faults now rather than inside a stage */
        weir_memory_reserved((int64_t)a->pool_bytes, WEIR_MEMORY_CPU);
    }
    for (int i = 0; i < a->n_buffers; i++) {
        a->buffers[i].bytes = a->pool ? a->pool + (size_t)i * a->buffer_bytes : NULL;
        a->buffers[i].next = i + 1 < a->n_buffers ? i + 1 : WEIR_AHEAD_NONE;
    }
    for (int i = 0; i < a->n_entries; i++)
        a->entries[i].next = i + 1 < a->n_entries ? i + 1 : WEIR_AHEAD_NONE;
    return 0;
}

static int start_thread(struct weir_ahead *a, struct weir_err *err)
{
    if (weir_thread_start(&a->thread, weir_ahead_main, a) < 0)
        return weir_err_set(err, -EAGAIN, "cannot start the read-ahead thread");
    a->started = true;
    pthread_mutex_lock(&a->lock);
    while (!a->is_open)
        pthread_cond_wait(&a->opened, &a->lock);
    pthread_mutex_unlock(&a->lock);
    return a->open_rc < 0 ? weir_err_set(err, a->open_rc, "%s", a->open_err.text) : 0;
}

int weir_ahead_open(struct weir_ahead **out, const struct weir_ahead_config *config, struct weir_err *err)
{
    *out = NULL;
    struct weir_ahead *a = aligned_alloc(alignof(struct weir_ahead), sizeof *a);
    if (!a)
        return weir_err_set(err, -ENOMEM, "out of memory");
    memset(a, 0, sizeof *a);
    a->config = *config;
    a->ops = weir_io_find(config->engine);
    a->align =
        a->ops->ring && a->ops->ring->align ? a->ops->ring->align(config->set) : weir_file_set_align(config->set);
    a->gap_bytes = a->ops->gap_bytes ? a->ops->gap_bytes : GAP_BYTES;
    a->open_err = WEIR_ERR_NONE;
    pthread_mutex_init(&a->lock, NULL);
    weir_cond_init(&a->opened);
    a->returned = WEIR_AHEAD_NONE;
    a->last_task = UINT64_MAX;
    int rc = make_pool(a, err);
    if (rc == 0)
        rc = start_thread(a, err);
    if (rc < 0)
        weir_ahead_close(&a);
    *out = a;
    return rc;
}

void weir_ahead_close(struct weir_ahead **ahead)
{
    struct weir_ahead *a = *ahead;
    if (!a)
        return;
    if (a->started) {
        atomic_store(&a->stop, true);
        weir_eventcount_notify(&a->wake);
        pthread_join(a->thread, NULL);
    }
    if (a->pool) {
        weir_memory_unmap(a->pool, a->pool_bytes);
        weir_memory_reserved(-(int64_t)a->pool_bytes, WEIR_MEMORY_CPU);
    }
    free(a->buffers);
    free(a->entries);
    free(a->plans);
    pthread_cond_destroy(&a->opened);
    pthread_mutex_destroy(&a->lock);
    free(a);
    *ahead = NULL;
}

void weir_ahead_facts(struct weir_ahead *ahead, struct weir_ahead_facts *facts)
{
    *facts = (struct weir_ahead_facts){
        .depth = ahead->config.depth,
        .in_flight = atomic_load_explicit(&ahead->limit, memory_order_relaxed),
        .is_adaptive = ahead->is_adaptive,
        .gap_bytes = atomic_load_explicit(&ahead->gap_bytes, memory_order_relaxed),
        .pool_bytes = ahead->pool_bytes,
        .reads = atomic_load_explicit(&ahead->reads, memory_order_relaxed),
        .extents = atomic_load_explicit(&ahead->extents, memory_order_relaxed),
        .features = ahead->features,
    };
}
