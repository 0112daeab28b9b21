#include "base/threads.h"
#include "io/ahead_priv.h"
#include "io/file_set_priv.h"
#include "weir/recorder.h"

#include <errno.h>
#include <fcntl.h>

enum {
    HINT_BYTES = 128 << 10,    /* length of one hint; the kernel may limit a hint to its read-ahead size */
    PAUSE_MIN_NS = 250 * 1000, /* shortest pause before the thread checks again for returned entries */
    PAUSE_MAX_NS = 20 * 1000 * 1000,
    WAIT_NS = 1000 * 1000 * 1000,
};

static uint64_t taken(const struct weir_ahead *a)
{
    return atomic_load_explicit(a->config.taken, memory_order_relaxed); /* may be stale; the bucket is authoritative */
}

static void set_state(struct weir_ahead_buffer *b, enum weir_ahead_state state)
{
    /* Release: a thread that sees the state WEIR_AHEAD_DONE also sees the bytes. */
    atomic_store_explicit(&b->state, state, memory_order_release);
}

static bool is_in_state(const struct weir_ahead_buffer *b, enum weir_ahead_state state)
{
    return atomic_load_explicit(&b->state, memory_order_acquire) == (int)state;
}

/* ---- planning (read-ahead thread only) ---- */

static void forget_plan(struct weir_ahead *a, int buffer)
{
    int i = 0;
    while (a->plans[i] != buffer)
        i++;
    a->plans[i] = a->plans[--a->planned];
}

static void free_unused(struct weir_ahead *a, struct weir_ahead_buffer *b)
{
    int buffer = (int)(b - a->buffers);
    if (b->refs > 0 || is_in_state(b, WEIR_AHEAD_FLYING))
        return;
    if (is_in_state(b, WEIR_AHEAD_PLANNED))
        forget_plan(a, buffer);
    set_state(b, WEIR_AHEAD_FREE);
    b->next = a->free_buffer;
    a->free_buffer = buffer;
    a->n_busy--;
}

static void free_entry(struct weir_ahead *a, int i)
{
    struct weir_ahead_entry *e = &a->entries[i];
    e->next = a->free_entry;
    a->free_entry = i;
    a->n_used--;
    a->buffers[e->buffer].refs--;
    free_unused(a, &a->buffers[e->buffer]);
}

/* Frees the entries that takers have returned. */
static void take_back(struct weir_ahead *a)
{
    int i = atomic_exchange_explicit(&a->returned, WEIR_AHEAD_NONE, memory_order_acquire);
    while (i != WEIR_AHEAD_NONE) {
        int next = a->entries[i].next;
        free_entry(a, i);
        a->came_back++;
        i = next;
    }
}

static uint64_t down(const struct weir_ahead *a, uint64_t at)
{
    return at & ~(uint64_t)(a->align - 1);
}

static uint64_t up(const struct weir_ahead *a, uint64_t at)
{
    return down(a, at + a->align - 1);
}

/* Extends a planned read, which must not have started yet, so that it also covers the extent. Returns false if this is
 * impossible. */
static bool merge(const struct weir_ahead *a, struct weir_ahead_buffer *b, const struct weir_extent *x)
{
    uint64_t begin = down(a, x->offset), end = up(a, x->offset + x->length);
    size_t gap = atomic_load_explicit(&a->gap_bytes, memory_order_relaxed);
    if (b->is_near || b->file != x->file || begin > b->end + gap || b->begin > end + gap)
        return false;
    begin = begin < b->begin ? begin : b->begin;
    end = end > b->end ? end : b->end;
    if (end - begin > a->buffer_bytes)
        return false;
    b->begin = begin;
    b->end = end;
    return true;
}

/* Returns whether another read may be planned. While the number in flight may grow, the number of buffers with bytes
 * that no taker wants yet is limited by it, too. */
static bool may_plan(const struct weir_ahead *a)
{
    int limit = atomic_load_explicit(&a->limit, memory_order_relaxed);
    return a->free_buffer != WEIR_AHEAD_NONE && a->planned + a->flying < limit &&
           (!a->is_adaptive || a->n_busy < 2 * limit + a->config.takers);
}

static int find_buffer(struct weir_ahead *a, const struct weir_extent *x)
{
    const struct weir_ring_ops *ring = a->ops->ring;
    if (a->planned == 0 && a->flying >= a->config.depth)
        return WEIR_AHEAD_NONE; /* without a look at the disk */
    bool is_near = ring && ring->is_near && ring->is_near(a->ring, x->file, x->offset, x->length);
    for (int i = 0; i < a->planned && !is_near; i++)
        if (merge(a, &a->buffers[a->plans[i]], x))
            return a->plans[i];
    if (!may_plan(a))
        return WEIR_AHEAD_NONE;
    int free_one = a->free_buffer;
    struct weir_ahead_buffer *b = &a->buffers[free_one];
    b->is_near = is_near;
    a->free_buffer = b->next;
    a->n_busy++;
    b->file = x->file;
    b->begin = down(a, x->offset);
    b->end = up(a, x->offset + x->length);
    b->wanted_end = 0;
    b->done = 0;
    b->result = 0;
    atomic_store_explicit(&b->was_taken, false, memory_order_relaxed);
    set_state(b, WEIR_AHEAD_PLANNED);
    a->plans[a->planned++] = free_one;
    return free_one;
}

static bool same_extent(const struct weir_extent *x, const struct weir_extent *y)
{
    return x->file == y->file && x->offset == y->offset && x->length == y->length;
}

/* Adds the pending extent to its task's chain, unless a taker has taken the task in the meantime. */
static void publish(struct weir_ahead *a, _Atomic uint64_t *bucket, uint64_t seen, int entry, int buffer)
{
    const struct weir_extent *x = &a->pending;
    struct weir_ahead_buffer *b = &a->buffers[buffer];
    bool same = weir_ahead_task_of(seen) == a->pending_task;
    a->free_entry = a->entries[entry].next;
    a->entries[entry] = (struct weir_ahead_entry){*x, buffer, same ? weir_ahead_head_of(seen) : WEIR_AHEAD_NONE};
    a->n_used++;
    b->refs++;
    b->wanted_end = x->offset + x->length > b->wanted_end ? x->offset + x->length : b->wanted_end;
    /* Release: the taker of the task sees the entry. */
    if (!atomic_compare_exchange_strong_explicit(bucket, &seen, weir_ahead_word(a->pending_task, entry),
                                                 memory_order_release, memory_order_relaxed)) {
        free_entry(a, entry);
        return;
    }
    weir_counter_add(&a->extents, 1);
    a->last = *x;
    a->last_task = a->pending_task;
}

/* Plans or drops the pending extent. Returns false if no entry, buffer or bucket is free; the extent then stays
 * pending. */
static bool plan_pending(struct weir_ahead *a)
{
    const struct weir_extent *x = &a->pending;
    if (a->pending_task < taken(a) || x->length == 0 || x->length > a->config.extent_max ||
        x->offset > INT64_MAX - x->length - a->align)
        return true;
    if (a->last_task == a->pending_task && same_extent(&a->last, x))
        return true; /* a history that starts before the episode repeats the first frame */
    _Atomic uint64_t *bucket = weir_ahead_bucket(a, a->pending_task);
    uint64_t seen = atomic_load_explicit(bucket, memory_order_acquire);
    bool same = weir_ahead_task_of(seen) == a->pending_task, closed = weir_ahead_head_of(seen) == WEIR_AHEAD_NONE;
    if (same && closed)
        return true;
    if (!same && !closed)
        return false; /* the bucket holds an earlier task that has not been taken yet */
    int entry = a->free_entry, buffer = entry == WEIR_AHEAD_NONE ? WEIR_AHEAD_NONE : find_buffer(a, x);
    if (buffer == WEIR_AHEAD_NONE)
        return false;
    publish(a, bucket, seen, entry, buffer);
    return true;
}

/* Plans extents until none is available or no entry or buffer is free. Returns false if there will be no more. */
static bool plan(struct weir_ahead *a)
{
    for (;;) {
        if (!a->has_pending) {
            int rc = a->config.next(a->config.user, taken(a), &a->pending_task, &a->pending);
            if (rc <= 0)
                return rc == 0;
            a->has_pending = true;
        }
        if (!plan_pending(a))
            return true;
        a->has_pending = false;
    }
}

/* ---- reading (read-ahead thread only) ---- */

static void complete(struct weir_ahead *a, struct weir_ahead_buffer *b, int result)
{
    b->result = result;
    a->flying--;
    set_state(b, WEIR_AHEAD_DONE);
    weir_eventcount_notify(&b->arrived);
    free_unused(a, b);
}

static void hint(const struct weir_ahead_buffer *b, int fd)
{
    for (uint64_t at = b->begin; at < b->end; at += HINT_BYTES)
        posix_fadvise(fd, (off_t)at, (off_t)(b->end - at < HINT_BYTES ? b->end - at : HINT_BYTES), POSIX_FADV_WILLNEED);
}

/* Queues the rest of a read. The file must be pinned. */
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
    } else if (a->ops->ring && !b->is_near) {
        queue(a, b, fd);
    } else {
        if (!b->is_near)
            hint(b, fd);
        weir_file_release(a->config.set, b->file);
        complete(a, b, 0);
    }
}

static void start_planned(struct weir_ahead *a)
{
    int n = a->planned;
    a->planned = 0;
    for (int i = 0; i < n; i++) {
        struct weir_ahead_buffer *b = &a->buffers[a->plans[i]];
        set_state(b, WEIR_AHEAD_FLYING);
        a->flying++;
        weir_counter_add(&a->reads, 1);
        start(a, b);
    }
}

/* Handles a completion: the read is finished, has failed, or was short and is continued. */
static void reap(struct weir_ahead *a, struct weir_ahead_buffer *b, int result)
{
    bool again = result == -EAGAIN || result == -EINTR;
    b->done += result > 0 ? (size_t)result : 0;
    bool whole = b->begin + b->done >= b->wanted_end || (b->done & (a->align - 1)) != 0;
    if (again || (result > 0 && !whole)) {
        int fd;
        int rc = weir_file_acquire(a->config.set, b->file, &fd); /* the file is now pinned twice */
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

/* Sleeps until takers are likely to need more planned reads, estimated from the number of entries returned since the
 * last pause. Takers do not wake this thread, because on a busy machine that could cost them their core for a time
 * slice. */
static void doze(struct weir_ahead *a)
{
    uint32_t key = weir_eventcount_prepare(&a->wake);
    if (2 * a->came_back > a->n_used)
        a->pause_ns = a->pause_ns / 2 > PAUSE_MIN_NS ? a->pause_ns / 2 : PAUSE_MIN_NS;
    else if (4 * a->came_back <= a->n_used)
        a->pause_ns = 2 * a->pause_ns < PAUSE_MAX_NS ? 2 * a->pause_ns : PAUSE_MAX_NS;
    a->came_back = 0;
    if (!atomic_load(&a->stop))
        weir_eventcount_wait(&a->wake, key, a->pause_ns);
}

static void set_pace(struct weir_ahead *a)
{
    size_t gap_bytes;
    if (!a->is_adaptive)
        return;
    atomic_store_explicit(&a->limit, a->ops->ring->pace(a->ring, &gap_bytes), memory_order_relaxed);
    atomic_store_explicit(&a->gap_bytes, gap_bytes, memory_order_relaxed);
}

static void reap_some(struct weir_ahead *a)
{
    uint32_t tags[64];
    int results[64];
    int n = a->ops->ring->wait(a->ring, tags, results, 64);
    if (n < 0 && n != -EINTR)
        doze(a); /* the kernel temporarily lacks a resource */
    for (int i = 0; i < n; i++)
        reap(a, &a->buffers[tags[i]], results[i]);
    set_pace(a);
}

static int open_ring(struct weir_ahead *a)
{
    int rc = 0;
    if (a->ops->ring)
        rc = a->ops->ring->open(&a->ring, a->config.set, a->config.depth, a->is_fixed, a->pool, a->pool_bytes,
                                a->features, sizeof a->features, &a->open_err);
    if (rc == 0)
        set_pace(a);
    pthread_mutex_lock(&a->lock);
    a->is_open = true;
    a->open_rc = rc;
    pthread_cond_signal(&a->opened);
    pthread_mutex_unlock(&a->lock);
    return rc;
}

/* Only this thread opens, uses and closes the ring. */
void *weir_ahead_main(void *user)
{
    struct weir_ahead *a = user;
    pthread_setname_np(pthread_self(), "weir-ahead");
    if (open_ring(a) < 0)
        return NULL;
    if (a->config.recorder && a->ops->is_remote)
        weir_thread_attach(a->config.recorder, "weir-ahead", WEIR_ROLE_OTHER);
    bool more = true;
    a->pause_ns = PAUSE_MIN_NS;
    while (!atomic_load_explicit(&a->stop, memory_order_relaxed)) {
        take_back(a);
        more = more && plan(a);
        start_planned(a);
        if (a->flying > 0)
            reap_some(a);
        else
            doze(a);
    }
    if (a->ops->ring && a->ops->ring->cancel)
        a->ops->ring->cancel(a->ring);
    while (a->flying > 0)
        reap_some(a);
    if (a->ops->ring)
        a->ops->ring->close(a->ring);
    weir_thread_detach();
    return NULL;
}

/* ---- takers: take no locks, and wait only for reads in flight ---- */

/* Returns a linked chain of entries to the thread. */
static void give_back(struct weir_ahead *a, int first, int last)
{
    int head = atomic_load_explicit(&a->returned, memory_order_relaxed);
    do
        a->entries[last].next = head;
    while (
        !atomic_compare_exchange_weak_explicit(&a->returned, &head, first, memory_order_release, memory_order_relaxed));
}

static void give_back_chain(struct weir_ahead *a, int *chain)
{
    int last = *chain;
    if (last == WEIR_AHEAD_NONE)
        return;
    while (a->entries[last].next != WEIR_AHEAD_NONE)
        last = a->entries[last].next;
    give_back(a, *chain, last);
    *chain = WEIR_AHEAD_NONE;
}

static void give_back_given(struct weir_ahead *a, struct weir_ahead_taken *taken)
{
    if (taken->given != WEIR_AHEAD_NONE)
        give_back(a, taken->given, taken->given);
    taken->given = WEIR_AHEAD_NONE;
}

void weir_ahead_take(struct weir_ahead *a, uint64_t task_id, struct weir_ahead_taken *taken)
{
    *taken = (struct weir_ahead_taken){WEIR_AHEAD_NONE, WEIR_AHEAD_NONE};
    /* Acquire: makes the entries planned for the task visible. The exchange also closes the bucket to further entries.
     */
    uint64_t seen = atomic_exchange_explicit(weir_ahead_bucket(a, task_id), weir_ahead_word(task_id, WEIR_AHEAD_NONE),
                                             memory_order_acquire);
    int chain = weir_ahead_head_of(seen);
    if (weir_ahead_task_of(seen) == task_id)
        taken->chain = chain;
    else
        give_back_chain(a, &chain); /* entries of a different task in the same bucket, which will be read on demand */
    if (!a->ops->ring)
        give_back_chain(a, &taken->chain); /* for hints, the kernel keeps the data */
}

int weir_ahead_find(struct weir_ahead *a, struct weir_ahead_taken *taken, const struct weir_extent *extent,
                    size_t *length)
{
    give_back_given(a, taken);
    for (int *link = &taken->chain; *link != WEIR_AHEAD_NONE;) {
        int i = *link;
        struct weir_ahead_entry *e = &a->entries[i];
        if (e->extent.file != extent->file || e->extent.offset != extent->offset) {
            link = &e->next;
            continue;
        }
        *link = e->next;
        taken->given = i;
        *length = e->extent.length < extent->length ? e->extent.length : extent->length;
        const struct weir_ahead_buffer *b = &a->buffers[e->buffer];
        if (!b->is_near && !is_in_state(b, WEIR_AHEAD_PLANNED))
            return i;
        give_back_given(a, taken); /* it is near, or the read has not started: read it now instead of waiting */
    }
    return WEIR_AHEAD_NONE;
}

int weir_ahead_wait(struct weir_ahead *a, int entry, const uint8_t **data)
{
    const struct weir_ahead_entry *e = &a->entries[entry];
    struct weir_ahead_buffer *b = &a->buffers[e->buffer];
    for (;;) {
        uint32_t key = weir_eventcount_prepare(&b->arrived);
        if (is_in_state(b, WEIR_AHEAD_DONE))
            break;
        weir_eventcount_wait(&b->arrived, key, WAIT_NS);
    }
    if (a->ops->ring->taken && b->done > 0 && !atomic_exchange_explicit(&b->was_taken, true, memory_order_relaxed))
        a->ops->ring->taken(a->ring, b->file, b->begin, b->bytes, b->done);
    uint64_t end = e->extent.offset + e->extent.length;
    *data = b->bytes + (e->extent.offset - b->begin);
    return b->begin + b->done >= end ? 0 : b->result < 0 ? b->result : -ENODATA;
}

void weir_ahead_end(struct weir_ahead *a, struct weir_ahead_taken *taken)
{
    give_back_given(a, taken);
    give_back_chain(a, &taken->chain);
}
