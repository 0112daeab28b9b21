#include "io/ahead_priv.h"
#include "io/file_set_priv.h"
#include "prof/threads.h"

#include <errno.h>
#include <fcntl.h>

enum {
    GAP_MAX_BYTES = 16 << 10,    /* between neighbours: reading it costs less than another read */
    HINT_BYTES = 128 << 10,      /* the kernel may cut a hint to its own read-ahead */
    SLEEP_NS = 20 * 1000 * 1000, /* when nobody gives anything back */
};

static uint64_t taken(const struct weir_ahead *a)
{
    /* Relaxed: a taker counts its ticket before it takes the lock. Whoever plans under the lock either sees that, or is
     * before it, and then the taker sees what was planned. */
    return atomic_load_explicit(a->config.taken, memory_order_relaxed);
}

/* ---- under the lock ---- */

static void give_back(struct weir_ahead *a, struct weir_ahead_buffer *b)
{
    if (b->refs > 0 || b->state == WEIR_AHEAD_FLYING)
        return;
    a->planned -= b->state == WEIR_AHEAD_PLANNED;
    b->state = WEIR_AHEAD_FREE;
}

/* Removes *link's entry from its bucket. */
static void drop_entry(struct weir_ahead *a, int *link)
{
    int i = *link;
    struct weir_ahead_entry *e = &a->entries[i];
    *link = e->next;
    e->next = a->free_entry;
    a->free_entry = i;
    a->buffers[e->buffer].refs--;
    give_back(a, &a->buffers[e->buffer]);
    a->given_back = true;
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
static bool merge(const struct weir_ahead *a, struct weir_ahead_buffer *b, const struct weir_extent *x)
{
    uint64_t begin = down(a, x->offset), end = up(a, x->offset + x->length);
    if (b->state != WEIR_AHEAD_PLANNED || b->file != x->file || begin > b->end + GAP_MAX_BYTES ||
        b->begin > end + GAP_MAX_BYTES)
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
    int free_one = WEIR_AHEAD_NONE;
    for (int i = 0; i < a->n_buffers; i++) {
        if (merge(a, &a->buffers[i], x))
            return i;
        if (a->buffers[i].state == WEIR_AHEAD_FREE && free_one == WEIR_AHEAD_NONE)
            free_one = i;
    }
    if (free_one == WEIR_AHEAD_NONE || a->planned + a->flying >= a->config.depth)
        return WEIR_AHEAD_NONE;
    struct weir_ahead_buffer *b = &a->buffers[free_one];
    b->state = WEIR_AHEAD_PLANNED;
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
    int i = a->free_entry, buffer = i == WEIR_AHEAD_NONE ? WEIR_AHEAD_NONE : find_buffer(a, x);
    if (buffer == WEIR_AHEAD_NONE)
        return false;
    struct weir_ahead_buffer *b = &a->buffers[buffer];
    int *bucket = &a->bucket[a->pending_ticket % WEIR_AHEAD_BUCKETS];
    a->free_entry = a->entries[i].next;
    a->entries[i] = (struct weir_ahead_entry){a->pending_ticket, *x, buffer, *bucket, false};
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

static void complete(struct weir_ahead *a, struct weir_ahead_buffer *b, int result)
{
    pthread_mutex_lock(&a->lock);
    b->result = result;
    b->state = WEIR_AHEAD_DONE;
    a->flying--;
    if (b->awaited)
        pthread_cond_broadcast(&b->cond);
    b->awaited = false;
    give_back(a, b);
    pthread_mutex_unlock(&a->lock);
}

static void hint(const struct weir_ahead_buffer *b, int fd)
{
    for (uint64_t at = b->begin; at < b->end; at += HINT_BYTES)
        posix_fadvise(fd, (off_t)at, (off_t)(b->end - at < HINT_BYTES ? b->end - at : HINT_BYTES), POSIX_FADV_WILLNEED);
}

/* Queues what is left of a read; the file is pinned. */
static void queue(struct weir_ahead *a, struct weir_ahead_buffer *b, int fd)
{
    int rc = a->ops->ring->queue(a->ring, b->file, fd, b->begin + b->done, (size_t)(b->end - b->begin) - b->done,
                                 b->bytes + b->done, (uint32_t)(b - a->buffers));
    if (rc < 0) {
        weir_file_release(a->config.set, b->file);
        complete(a, b, rc);
    }
}

static void start(struct weir_ahead *a, struct weir_ahead_buffer *b)
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
        struct weir_ahead_buffer *b = &a->buffers[i];
        pthread_mutex_lock(&a->lock);
        bool go = b->state == WEIR_AHEAD_PLANNED;
        if (go) {
            b->state = WEIR_AHEAD_FLYING;
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
static void reap(struct weir_ahead *a, struct weir_ahead_buffer *b, int result)
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
    if (!a->stop && !a->given_back)
        weir_cond_wait_ns(&a->wake, &a->lock, SLEEP_NS);
    a->asleep = a->given_back = false;
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
void *weir_ahead_main(void *user)
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

/* ---- who takes tickets ---- */

int weir_ahead_find(struct weir_ahead *a, uint64_t ticket, const struct weir_extent *extent)
{
    int found = WEIR_AHEAD_NONE;
    if (!a->ops->ring)
        return WEIR_AHEAD_NONE; /* the kernel has it */
    pthread_mutex_lock(&a->lock);
    for (int *link = &a->bucket[ticket % WEIR_AHEAD_BUCKETS]; *link != WEIR_AHEAD_NONE;) {
        struct weir_ahead_entry *e = &a->entries[*link];
        bool same = e->ticket == ticket && same_extent(&e->extent, extent);
        if (same && a->buffers[e->buffer].state == WEIR_AHEAD_PLANNED) {
            drop_entry(a, link); /* the thread has not come round to it: nobody waits for that */
            continue;
        }
        if (same && found == WEIR_AHEAD_NONE) {
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
    const struct weir_ahead_entry *e = &a->entries[entry];
    struct weir_ahead_buffer *b = &a->buffers[e->buffer];
    while (b->state != WEIR_AHEAD_DONE) {
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
    for (int *link = &a->bucket[ticket % WEIR_AHEAD_BUCKETS]; *link != WEIR_AHEAD_NONE;)
        if (a->entries[*link].ticket == ticket)
            drop_entry(a, link);
        else
            link = &a->entries[*link].next;
    pthread_mutex_unlock(&a->lock);
}
