#include "io/ahead.h"
#include "io/file_set_priv.h"
#include "io/io_ops.h"
#include "prof/memory.h"
#include "prof/threads.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    POOL_MAX_BYTES = 256 << 20,
    BUFFER_MIN_BYTES = 256 << 10, /* room for neighbours */
    GAP_MAX_BYTES = 16 << 10,     /* between neighbours: reading it costs less than another read */
    HINT_BYTES = 128 << 10,       /* the kernel may cut a hint to its own read-ahead */
    BUCKETS = 256,
    SLEEP_NS = 20 * 1000 * 1000, /* when nobody gives anything back */
    NONE = -1,
};

enum state { FREE, PLANNED, FLYING, DONE };

/* A read. Planned and free ones are changed under the lock only; one that flies is the thread's. */
struct buffer {
    enum state state;
    int refs; /* entries in it */
    int file;
    uint64_t begin, end; /* in the file; whole blocks when direct */
    uint64_t wanted_end; /* of the last entry */
    size_t done;         /* bytes read */
    int result;          /* 0, or -errno */
    bool awaited;
    pthread_cond_t cond;
    uint8_t *bytes;
};

/* An extent of a ticket. */
struct entry {
    uint64_t ticket;
    struct weir_extent extent;
    int buffer;
    int next;   /* in its bucket, or among the free ones */
    bool given; /* its taker has it */
};

struct weir_ahead {
    struct weir_ahead_config config;
    const struct weir_io_ops *ops;
    size_t align, buffer_bytes, pool_bytes;
    uint8_t *pool;
    int n_buffers, n_entries;
    struct buffer *buffers;
    struct entry *entries;
    pthread_t thread;
    bool started;
    pthread_mutex_t lock; /* all below, and the above where it says so */
    pthread_cond_t wake;  /* the thread: something was given back */
    bool asleep, stop;
    int bucket[BUCKETS], free_entry;
    int planned, flying;
    uint64_t reads, extents;
    /* the thread's own */
    void *ring;
    bool has_pending;
    uint64_t pending_ticket, last_ticket;
    struct weir_extent pending, last;
    /* how opening the ring went */
    pthread_cond_t opened;
    bool is_open;
    int open_rc;
    struct weir_err open_err;
    char features[160];
};

bool weir_ahead_can(const char *engine)
{
    const struct weir_io_ops *ops = weir_io_find(engine);
    return ops && !ops->why_not && (ops->ring || ops->hints);
}

static uint64_t taken(const struct weir_ahead *a)
{
    /* Relaxed: a taker counts its ticket before it takes the lock. Whoever plans under the lock either sees that, or is
     * before it, and then the taker sees what was planned. */
    return atomic_load_explicit(a->config.taken, memory_order_relaxed);
}

/* ---- under the lock ---- */

static void give_back(struct weir_ahead *a, struct buffer *b)
{
    if (b->refs > 0 || b->state == FLYING)
        return;
    a->planned -= b->state == PLANNED;
    b->state = FREE;
}

/* Removes *link's entry from its bucket. */
static void drop_entry(struct weir_ahead *a, int *link)
{
    int i = *link;
    struct entry *e = &a->entries[i];
    *link = e->next;
    e->next = a->free_entry;
    a->free_entry = i;
    a->buffers[e->buffer].refs--;
    give_back(a, &a->buffers[e->buffer]);
    if (a->asleep)
        pthread_cond_signal(&a->wake);
}

static uint64_t down(const struct weir_ahead *a, uint64_t at)
{
    return at & ~(uint64_t)(a->align - 1);
}

static uint64_t up(const struct weir_ahead *a, uint64_t at)
{
    return down(a, at + a->align - 1);
}

/* A read that is not under way yet and can have the extent as well. */
static bool merge(const struct weir_ahead *a, struct buffer *b, const struct weir_extent *x)
{
    uint64_t begin = down(a, x->offset), end = up(a, x->offset + x->length);
    if (b->state != PLANNED || b->file != x->file || begin > b->end + GAP_MAX_BYTES || b->begin > end + GAP_MAX_BYTES)
        return false;
    begin = begin < b->begin ? begin : b->begin;
    end = end > b->end ? end : b->end;
    if (end - begin > a->buffer_bytes)
        return false;
    b->begin = begin;
    b->end = end;
    return true;
}

static int find_buffer(struct weir_ahead *a, const struct weir_extent *x)
{
    int free_one = NONE;
    for (int i = 0; i < a->n_buffers; i++) {
        if (merge(a, &a->buffers[i], x))
            return i;
        if (a->buffers[i].state == FREE && free_one == NONE)
            free_one = i;
    }
    if (free_one == NONE || a->planned + a->flying >= a->config.depth)
        return NONE;
    struct buffer *b = &a->buffers[free_one];
    b->state = PLANNED;
    b->file = x->file;
    b->begin = down(a, x->offset);
    b->end = up(a, x->offset + x->length);
    b->wanted_end = 0;
    b->done = 0;
    b->result = 0;
    a->planned++;
    return free_one;
}

static bool same_extent(const struct weir_extent *x, const struct weir_extent *y)
{
    return x->file == y->file && x->offset == y->offset && x->length == y->length;
}

/* False when there is no room for it. */
static bool place(struct weir_ahead *a)
{
    const struct weir_extent *x = &a->pending;
    if (a->pending_ticket < taken(a) || x->length == 0 || x->length > a->config.extent_max ||
        x->offset > INT64_MAX - x->length - a->align)
        return true;
    if (a->extents > 0 && a->last_ticket == a->pending_ticket && same_extent(&a->last, x))
        return true; /* the first frame of a history, again and again */
    int i = a->free_entry, buffer = i == NONE ? NONE : find_buffer(a, x);
    if (buffer == NONE)
        return false;
    struct buffer *b = &a->buffers[buffer];
    int *bucket = &a->bucket[a->pending_ticket % BUCKETS];
    a->free_entry = a->entries[i].next;
    a->entries[i] = (struct entry){a->pending_ticket, *x, buffer, *bucket, false};
    *bucket = i;
    b->refs++;
    b->wanted_end = x->offset + x->length > b->wanted_end ? x->offset + x->length : b->wanted_end;
    a->extents++;
    a->last = *x;
    a->last_ticket = a->pending_ticket;
    return true;
}

/* ---- the thread ---- */

/* Plans as far as there is room. False when there will be nothing more. */
static bool plan(struct weir_ahead *a)
{
    for (;;) {
        if (!a->has_pending) {
            int rc = a->config.next(a->config.user, taken(a), &a->pending_ticket, &a->pending);
            if (rc <= 0)
                return rc == 0;
            a->has_pending = true;
        }
        pthread_mutex_lock(&a->lock);
        bool placed = place(a);
        pthread_mutex_unlock(&a->lock);
        if (!placed)
            return true;
        a->has_pending = false;
    }
}

static void complete(struct weir_ahead *a, struct buffer *b, int result)
{
    pthread_mutex_lock(&a->lock);
    b->result = result;
    b->state = DONE;
    a->flying--;
    if (b->awaited)
        pthread_cond_broadcast(&b->cond);
    b->awaited = false;
    give_back(a, b);
    pthread_mutex_unlock(&a->lock);
}

static void hint(const struct buffer *b, int fd)
{
    for (uint64_t at = b->begin; at < b->end; at += HINT_BYTES)
        posix_fadvise(fd, (off_t)at, (off_t)(b->end - at < HINT_BYTES ? b->end - at : HINT_BYTES), POSIX_FADV_WILLNEED);
}

/* Queues what is left of a read; the file is pinned. */
static void queue(struct weir_ahead *a, struct buffer *b, int fd)
{
    int rc = a->ops->ring->queue(a->ring, b->file, fd, b->begin + b->done, (size_t)(b->end - b->begin) - b->done,
                                 b->bytes + b->done, (uint32_t)(b - a->buffers));
    if (rc < 0) {
        weir_file_release(a->config.set, b->file);
        complete(a, b, rc);
    }
}

static void start(struct weir_ahead *a, struct buffer *b)
{
    int fd, rc = weir_file_acquire(a->config.set, b->file, &fd);
    if (rc < 0) {
        complete(a, b, rc);
    } else if (a->ops->ring) {
        queue(a, b, fd);
    } else {
        hint(b, fd);
        weir_file_release(a->config.set, b->file);
        complete(a, b, 0);
    }
}

static void start_planned(struct weir_ahead *a)
{
    for (int i = 0; i < a->n_buffers; i++) {
        struct buffer *b = &a->buffers[i];
        pthread_mutex_lock(&a->lock);
        bool go = b->state == PLANNED;
        if (go) {
            b->state = FLYING;
            a->planned--;
            a->flying++;
            a->reads++;
        }
        pthread_mutex_unlock(&a->lock);
        if (go)
            start(a, b);
    }
}

/* A read came back: done, in error, or short and to go on. */
static void reap(struct weir_ahead *a, struct buffer *b, int result)
{
    bool again = result == -EAGAIN || result == -EINTR;
    b->done += result > 0 ? (size_t)result : 0;
    bool whole = b->begin + b->done >= b->wanted_end || (b->done & (a->align - 1)) != 0;
    if (again || (result > 0 && !whole)) {
        int fd;
        int rc = weir_file_acquire(a->config.set, b->file, &fd); /* pinned twice for a moment */
        weir_file_release(a->config.set, b->file);
        if (rc == 0)
            queue(a, b, fd);
        else
            complete(a, b, rc);
        return;
    }
    weir_file_release(a->config.set, b->file);
    complete(a, b, result < 0 ? result : 0);
}

/* Until something is given back, or for a while. */
static void doze(struct weir_ahead *a)
{
    pthread_mutex_lock(&a->lock);
    a->asleep = true;
    if (!a->stop)
        weir_cond_wait_ns(&a->wake, &a->lock, SLEEP_NS);
    a->asleep = false;
    pthread_mutex_unlock(&a->lock);
}

static void reap_some(struct weir_ahead *a)
{
    uint32_t tags[64];
    int results[64];
    int n = a->ops->ring->wait(a->ring, tags, results, 64);
    if (n < 0 && n != -EINTR)
        doze(a); /* the kernel is short of something: it passes */
    for (int i = 0; i < n; i++)
        reap(a, &a->buffers[tags[i]], results[i]);
}

static bool stopped(struct weir_ahead *a)
{
    pthread_mutex_lock(&a->lock);
    bool stop = a->stop;
    pthread_mutex_unlock(&a->lock);
    return stop;
}

static int open_ring(struct weir_ahead *a)
{
    int rc = 0;
    if (a->ops->ring)
        rc = a->ops->ring->open(&a->ring, a->config.set, a->config.depth, a->pool, a->pool_bytes, a->features,
                                sizeof a->features, &a->open_err);
    pthread_mutex_lock(&a->lock);
    a->is_open = true;
    a->open_rc = rc;
    pthread_cond_signal(&a->opened);
    pthread_mutex_unlock(&a->lock);
    return rc;
}

/* The ring is opened, used and closed by this thread alone. */
static void *thread_main(void *user)
{
    struct weir_ahead *a = user;
    pthread_setname_np(pthread_self(), "weir-ahead");
    if (open_ring(a) < 0)
        return NULL;
    bool more = true;
    while (!stopped(a)) {
        more = more && plan(a);
        start_planned(a);
        if (a->flying > 0)
            reap_some(a);
        else
            doze(a);
    }
    while (a->flying > 0)
        reap_some(a);
    if (a->ops->ring)
        a->ops->ring->close(a->ring);
    return NULL;
}

/* ---- opening ---- */

/* Fewer buffers when they would be too large, but two at least: one flies while one is being used. */
static int size_pool(struct weir_ahead *a, struct weir_err *err)
{
    struct weir_ahead_config *c = &a->config;
    size_t page = a->align > 4096 ? a->align : 4096, bytes;
    c->depth = c->depth > 0 ? c->depth : WEIR_IO_DEPTH;
    c->depth = c->depth < WEIR_IO_DEPTH_MAX ? c->depth : WEIR_IO_DEPTH_MAX;
    if (__builtin_add_overflow(c->extent_max, 2 * page, &bytes))
        return weir_err_set(err, -EOVERFLOW, "an extent of %zu bytes makes no sense", c->extent_max);
    bytes = (bytes > BUFFER_MIN_BYTES ? bytes : BUFFER_MIN_BYTES) / page * page;
    int n = c->depth + (c->takers > 0 ? c->takers : 1);
    if (a->ops->ring && (uint64_t)n * bytes > POOL_MAX_BYTES)
        n = (int)(POOL_MAX_BYTES / bytes);
    n = n > 2 ? n : 2;
    c->depth = c->depth < n ? c->depth : n;
    a->buffer_bytes = bytes;
    a->n_buffers = n;
    a->n_entries = 4 * n;
    a->pool_bytes = a->ops->ring ? (size_t)n * bytes : 0;
    return 0;
}

static int make_pool(struct weir_ahead *a, struct weir_err *err)
{
    int rc = size_pool(a, err);
    if (rc < 0)
        return rc;
    a->buffers = calloc((size_t)a->n_buffers, sizeof *a->buffers);
    a->entries = calloc((size_t)a->n_entries, sizeof *a->entries);
    uint64_t available = weir_memory_available_bytes();
    if (a->pool_bytes && (!available || a->pool_bytes < available)) {
        void *pool = mmap(NULL, a->pool_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        a->pool = pool == MAP_FAILED ? NULL : pool;
    }
    if (!a->buffers || !a->entries || (a->pool_bytes && !a->pool)) {
        a->n_buffers = 0;
        return weir_err_set(err, -ENOMEM, "no memory for %.1f MB of read-ahead; use a smaller --io-depth or --io pread",
                            (double)a->pool_bytes / 1e6);
    }
    if (a->pool) {
        madvise(a->pool, a->pool_bytes, MADV_HUGEPAGE);
        memset(a->pool, 0, a->pool_bytes); /* page faults here, not in a stage */
    }
    for (int i = 0; i < a->n_buffers; i++) {
        weir_cond_init(&a->buffers[i].cond);
        a->buffers[i].bytes = a->pool ? a->pool + (size_t)i * a->buffer_bytes : NULL;
    }
    for (int i = 0; i < BUCKETS; i++)
        a->bucket[i] = NONE;
    for (int i = 0; i < a->n_entries; i++)
        a->entries[i].next = i + 1 < a->n_entries ? i + 1 : NONE;
    return 0;
}

static int start_thread(struct weir_ahead *a, struct weir_err *err)
{
    if (weir_thread_start(&a->thread, thread_main, a) < 0)
        return weir_err_set(err, -EAGAIN, "the thread of read-ahead cannot be started");
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
    struct weir_ahead *a = calloc(1, sizeof *a);
    if (!a)
        return weir_err_set(err, -ENOMEM, "out of memory");
    a->config = *config;
    a->ops = weir_io_find(config->engine);
    a->align = weir_file_set_align(config->set);
    a->open_err = WEIR_ERR_NONE;
    pthread_mutex_init(&a->lock, NULL);
    weir_cond_init(&a->wake);
    weir_cond_init(&a->opened);
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
        pthread_mutex_lock(&a->lock);
        a->stop = true;
        pthread_cond_signal(&a->wake);
        pthread_mutex_unlock(&a->lock);
        pthread_join(a->thread, NULL);
    }
    for (int i = 0; i < a->n_buffers; i++)
        pthread_cond_destroy(&a->buffers[i].cond);
    if (a->pool)
        munmap(a->pool, a->pool_bytes);
    free(a->buffers);
    free(a->entries);
    pthread_cond_destroy(&a->wake);
    pthread_cond_destroy(&a->opened);
    pthread_mutex_destroy(&a->lock);
    free(a);
    *ahead = NULL;
}

void weir_ahead_facts(struct weir_ahead *ahead, struct weir_ahead_facts *facts)
{
    pthread_mutex_lock(&ahead->lock);
    *facts = (struct weir_ahead_facts){
        .depth = ahead->config.depth,
        .pool_bytes = ahead->pool_bytes,
        .reads = ahead->reads,
        .extents = ahead->extents,
        .features = ahead->features,
    };
    pthread_mutex_unlock(&ahead->lock);
}

/* ---- who takes tickets ---- */

int weir_ahead_find(struct weir_ahead *a, uint64_t ticket, const struct weir_extent *extent)
{
    int found = NONE;
    if (!a->ops->ring)
        return NONE; /* the kernel has it */
    pthread_mutex_lock(&a->lock);
    for (int *link = &a->bucket[ticket % BUCKETS]; *link != NONE;) {
        struct entry *e = &a->entries[*link];
        if (e->ticket == ticket && found == NONE && same_extent(&e->extent, extent)) {
            e->given = true;
            found = *link;
        } else if (e->ticket == ticket && e->given) {
            drop_entry(a, link);
            continue;
        }
        link = &e->next;
    }
    pthread_mutex_unlock(&a->lock);
    return found;
}

int weir_ahead_wait(struct weir_ahead *a, int entry, const uint8_t **data)
{
    pthread_mutex_lock(&a->lock);
    const struct entry *e = &a->entries[entry];
    struct buffer *b = &a->buffers[e->buffer];
    while (b->state != DONE) {
        b->awaited = true;
        pthread_cond_wait(&b->cond, &a->lock);
    }
    uint64_t end = e->extent.offset + e->extent.length;
    int rc = b->begin + b->done >= end ? 0 : b->result < 0 ? b->result : -ENODATA;
    *data = b->bytes + (e->extent.offset - b->begin);
    pthread_mutex_unlock(&a->lock);
    return rc;
}

void weir_ahead_end(struct weir_ahead *a, uint64_t ticket)
{
    pthread_mutex_lock(&a->lock);
    for (int *link = &a->bucket[ticket % BUCKETS]; *link != NONE;)
        if (a->entries[*link].ticket == ticket)
            drop_entry(a, link);
        else
            link = &a->entries[*link].next;
    pthread_mutex_unlock(&a->lock);
}
