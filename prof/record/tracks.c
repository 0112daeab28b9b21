#include "base/threads.h"
#include "prof/record/cells.h"
#include "prof/record/fork_priv.h"
#include "prof/record/nvtx.h"
#include "prof/record/track_priv.h"

#include <stdlib.h>
#include <string.h>

__thread struct weir_ring *weir_track_self __attribute__((tls_model("initial-exec")));

static pthread_mutex_t lock =
    PTHREAD_MUTEX_INITIALIZER; /* protects the list; not needed to write to an existing track */
static struct weir_ring *tracks;
static uint64_t dropped_gone, dropped_seen; /* records dropped by freed tracks; drops already reported */
static void (*_Atomic on_half)(void);
static pthread_key_t at_exit;
static bool collecting, has_key;
static size_t rest_bytes; /* size of `rest` in all tracks */

/* ---- start and end of threads ---- */

static void unlink_and_free(struct weir_ring *track)
{
    struct weir_ring **link = &tracks;
    while (*link != track)
        link = &(*link)->next;
    *link = track->next;
    rest_bytes -= track->n_rest * sizeof *track->rest;
    dropped_gone += atomic_load_explicit(&track->dropped, memory_order_relaxed);
    free(track->rest);
    free(track->slots);
    free(track->stacks);
    free(track);
}

/* Returns the unread records, in two pieces if the ring wraps around. */
static struct weir_run unread(const struct weir_ring *track)
{
    uint64_t head = atomic_load_explicit(&track->head, memory_order_acquire);
    uint64_t tail = atomic_load_explicit(&track->tail, memory_order_relaxed);
    size_t at = (size_t)(tail & (WEIR_RING_SLOTS - 1)), n = (size_t)(head - tail);
    if (!track->slots)
        return (struct weir_run){{track->rest, track->rest}, {n, 0}};
    size_t first = at + n > WEIR_RING_SLOTS ? WEIR_RING_SLOTS - at : n;
    return (struct weir_run){{track->slots + at, track->slots}, {first, n - first}};
}

static void drop(struct weir_ring *track, const struct weir_run *run)
{
    atomic_fetch_add_explicit(&track->dropped, weir_run_records(run), memory_order_relaxed);
    atomic_fetch_add_explicit(&track->tail, run->n[0] + run->n[1], memory_order_relaxed);
}

/* Keeps only the unread records and frees the ring. Otherwise short-lived threads could fill the memory while the
 * collector gets no CPU time. */
static void shrink(struct weir_ring *track)
{
    if (atomic_exchange_explicit(&track->held, true, memory_order_acquire))
        return; /* the collector is reading it and frees it later */
    struct weir_run run = unread(track);
    size_t n = run.n[0] + run.n[1], bytes = n * sizeof *track->rest;
    struct weir_slot2 *rest = n && rest_bytes + bytes <= WEIR_REST_MAX_BYTES ? malloc(bytes) : NULL;
    if (rest) {
        memcpy(rest, run.slots[0], run.n[0] * sizeof *rest);
        memcpy(rest + run.n[0], run.slots[1], run.n[1] * sizeof *rest);
        track->rest = rest;
        track->n_rest = n;
        rest_bytes += bytes;
    } else {
        drop(track, &run);
    }
    free(track->slots);
    track->slots = NULL;
    atomic_store_explicit(&track->held, false, memory_order_release);
}

static void track_exit(void *user)
{
    struct weir_ring *track = user;
    weir_track_self = NULL;
    pthread_mutex_lock(&lock);
    if (collecting) {
        shrink(track);
        atomic_store_explicit(&track->dead, true, memory_order_release);
    } else {
        unlink_and_free(track);
    }
    pthread_mutex_unlock(&lock);
}

void weir_tracks_collect(bool now_collecting)
{
    pthread_mutex_lock(&lock);
    collecting = now_collecting;
    pthread_mutex_unlock(&lock);
}

static void on_fork(enum weir_fork when)
{
    if (when == WEIR_FORK_PREPARE) {
        pthread_mutex_lock(&lock);
        return;
    }
    if (when == WEIR_FORK_CHILD) {
        /* The child has only this thread, and the parent writes the existing records. This thread needs a new track,
         * because its old one has the thread id of the parent. */
        weir_recording_state = 0;
        while (tracks)
            unlink_and_free(tracks);
        dropped_gone = dropped_seen = 0;
        collecting = false;
        weir_track_self = NULL;
        if (has_key)
            pthread_setspecific(at_exit, NULL);
    }
    pthread_mutex_unlock(&lock);
}

static void begin_process(void)
{
    has_key = pthread_key_create(&at_exit, track_exit) == 0;
    weir_fork_safe(WEIR_FORK_TRACKS, on_fork);
}

struct weir_ring *weir_track_make(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, begin_process);
    struct weir_ring *track = aligned_alloc(alignof(struct weir_ring), sizeof *track);
    struct weir_slot2 *slots = malloc(WEIR_RING_SLOTS * sizeof *slots);
    if (!track || !slots) {
        free(track);
        free(slots);
        return NULL;
    }
    memset(track, 0, sizeof *track);
    memset(slots, 0, WEIR_RING_SLOTS * sizeof *slots); /* causes the page faults now instead of during a range */
    track->slots = slots;
    track->limit = WEIR_RING_SLOTS / 2;
    track->tid = weir_thread_id();
    pthread_getname_np(pthread_self(), track->name, sizeof track->name);
    pthread_mutex_lock(&lock);
    track->next = tracks;
    tracks = track;
    pthread_mutex_unlock(&lock);
    if (has_key)
        pthread_setspecific(at_exit, track);
    weir_track_self = track;
    return track;
}

/* ---- writing ---- */

void weir_tracks_on_half(void (*call)(void))
{
    atomic_store_explicit(&on_half, call, memory_order_release);
}

/* Sets limit to half of the ring at first and, once head is past it, to the whole ring. Reaching half of the ring wakes
 * the collector early enough. */
bool weir_track_room(struct weir_ring *track, unsigned n)
{
    uint64_t tail = atomic_load_explicit(&track->tail, memory_order_acquire);
    uint64_t head = atomic_load_explicit(&track->head, memory_order_relaxed);
    uint64_t half = tail + WEIR_RING_SLOTS / 2, whole = tail + WEIR_RING_SLOTS;
    if (head + n <= half) {
        track->limit = half;
        return true;
    }
    bool told = track->limit == whole;
    track->limit = whole;
    void (*call)(void) = atomic_load_explicit(&on_half, memory_order_acquire);
    if (!told && call)
        call();
    if (head + n <= whole)
        return true;
    atomic_store_explicit(&track->dropped, atomic_load_explicit(&track->dropped, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    return false;
}

void weir_track_range_full(struct weir_ring *track, enum weir_record_type type, weir_name name, uint64_t start,
                           uint64_t ticks, uint64_t item, uint32_t shapes, uint32_t stack)
{
    struct weir_writing writing;
    bool tagged = item || shapes || stack, is_long = ticks > UINT32_MAX;
    unsigned follows = (tagged ? WEIR_RECORD_TAGS : 0) | (is_long ? WEIR_RECORD_LONG : 0);
    if (!weir_track_begin(track, 1u + tagged + is_long, &writing))
        return;
    weir_track_put(&writing, start, weir_record_word(is_long ? 0 : (uint32_t)ticks, name, type, follows));
    if (tagged)
        weir_track_put(&writing, item, shapes | (uint64_t)stack << 32);
    if (is_long)
        weir_track_put(&writing, ticks, 0);
    weir_track_end(&writing);
}

void weir_track_range_slow(weir_name name, uint64_t start, uint64_t end, uint32_t state, uint32_t shapes)
{
    if (state != weir_recording())
        return; /* the window has ended and shows this range as unfinished */
    struct weir_ring *track = weir_track_mine();
    if (!track)
        return;
    shapes = state & WEIR_RECORDING_SHAPES ? shapes : 0;
    uint32_t stack = state & WEIR_RECORDING_STACKS ? weir_stack_self : 0;
    if ((state & WEIR_RECORDING_STACKS) && stack == 0)
        stack = weir_stack_capture(&track->stacks, name);
    weir_track_range_full(track, WEIR_RECORD_RANGE, name, start, end - start, weir_item_self, shapes, stack);
}

void weir_track_step(int64_t number, uint64_t start, uint64_t end)
{
    struct weir_writing writing;
    struct weir_ring *track = weir_track_mine();
    uint64_t ticks = end - start;
    bool is_long = ticks > UINT32_MAX;
    if (!track || !weir_track_begin(track, 2u + is_long, &writing))
        return;
    weir_track_put(
        &writing, start,
        weir_record_word(is_long ? 0 : (uint32_t)ticks, 0, WEIR_RECORD_STEP, is_long ? WEIR_RECORD_LONG : 0));
    if (is_long)
        weir_track_put(&writing, ticks, 0);
    weir_track_put(&writing, (uint64_t)number, 0);
    weir_track_end(&writing);
}

/* Returns NULL if no window records. Callers check only that the state is not 0, which is also true if only NVTX is on.
 */
static struct weir_ring *track_if_on(void)
{
    return weir_recording() & WEIR_RECORDING_ON ? weir_track_mine() : NULL;
}

void weir_async_record_(weir_name name, uint64_t start, uint64_t end, uint64_t item)
{
    struct weir_ring *track = track_if_on();
    if (track)
        weir_track_range_full(track, WEIR_RECORD_ASYNC, name, start, end > start ? end - start : 0, item, 0, 0);
}

void weir_counter_(weir_name name, double value)
{
    struct weir_writing writing;
    struct weir_ring *track = track_if_on();
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (!track || !weir_track_begin(track, 2, &writing))
        return;
    weir_track_put(&writing, weir_clock_ticks(), weir_record_word(0, name, WEIR_RECORD_COUNTER, 0));
    weir_track_put(&writing, bits, 0);
    weir_track_end(&writing);
}

void weir_instant_(weir_name name)
{
    struct weir_writing writing;
    struct weir_ring *track = track_if_on();
    bool tagged = weir_item_self != 0;
    if (!track || !weir_track_begin(track, 1u + tagged, &writing))
        return;
    weir_track_put(&writing, weir_clock_ticks(),
                   weir_record_word(0, name, WEIR_RECORD_INSTANT, tagged ? WEIR_RECORD_TAGS : 0));
    if (tagged)
        weir_track_put(&writing, weir_item_self, 0);
    weir_track_end(&writing);
}

/* ---- ranges ---- */

weir_name weir_site_name_(weir_name *site, const char *text, enum weir_cat cat)
{
    weir_name name = __atomic_load_n(site, __ATOMIC_RELAXED);
    if (name)
        return name;
    name = weir_name_intern(text, cat);
    __atomic_store_n(site, name, __ATOMIC_RELAXED);
    return name;
}

/* Ranges nested deeper than WEIR_OPEN_MAX are recorded when they end, but are not listed while they are open. */
void weir_range_begin_(struct weir_range *range)
{
    if (range->state & WEIR_RECORDING_NVTX) {
        range->nvtx_depth = weir_nvtx_depth_();
        weir_nvtx_push_(range->name);
    }
    struct weir_ring *track = range->state & WEIR_RECORDING_ON ? weir_track_mine() : NULL;
    if (!track) {
        range->state &= WEIR_RECORDING_NVTX; /* no window records this range */
        return;
    }
    uint32_t depth = atomic_load_explicit(&track->depth, memory_order_relaxed);
    range->depth = (uint16_t)(depth < UINT16_MAX ? depth : UINT16_MAX);
    range->start = weir_clock_ticks();
    if (depth < WEIR_OPEN_MAX) {
        struct weir_open_range *open = &track->open[depth];
        atomic_store_explicit(&track->version, atomic_load_explicit(&track->version, memory_order_relaxed) + 1,
                              memory_order_relaxed);
        atomic_thread_fence(memory_order_release); /* a reader that sees the changed slot also sees the new version */
        atomic_store_explicit(&open->start, range->start, memory_order_relaxed);
        atomic_store_explicit(&open->name, range->name, memory_order_relaxed);
    }
    atomic_store_explicit(&track->depth, depth + 1, memory_order_release);
}

void weir_range_end_(struct weir_range *range)
{
    if (range->state & WEIR_RECORDING_ON) {
        if (weir_track_self)
            atomic_store_explicit(&weir_track_self->depth, range->depth, memory_order_release);
        uint64_t now = weir_clock_ticks();
        now = now > range->start ? now : range->start;
        weir_track_range(range->name, range->start, now, range->state, range->shapes);
    }
    if (range->state & WEIR_RECORDING_NVTX)
        weir_nvtx_pop_to_(range->nvtx_depth);
    range->state = 0;
}

/* ---- reading ---- */

static void drain_held(struct weir_ring *track, weir_drain_fn *each, void *user)
{
    struct weir_run run = unread(track);
    size_t n = run.n[0] + run.n[1];
    if (n == 0)
        return;
    each(user, track, &run);
    atomic_fetch_add_explicit(&track->tail, n, memory_order_release);
}

static void drain_one(struct weir_ring *track, weir_drain_fn *each, void *user)
{
    if (atomic_exchange_explicit(&track->held, true, memory_order_acquire))
        return;
    drain_held(track, each, user);
    atomic_store_explicit(&track->held, false, memory_order_release);
}

/* Entries are removed only here and added only at the head, so the lock is not held during the walk and threads can
 * join. */
void weir_tracks_drain(weir_drain_fn *each, void *user)
{
    pthread_mutex_lock(&lock);
    struct weir_ring *first = tracks;
    pthread_mutex_unlock(&lock);
    for (struct weir_ring *track = first, *next; track; track = next) {
        bool dead = atomic_load_explicit(&track->dead, memory_order_acquire);
        drain_one(track, each, user);
        next = track->next;
        if (!dead)
            continue;
        pthread_mutex_lock(&lock);
        unlink_and_free(track);
        pthread_mutex_unlock(&lock);
    }
}

uint64_t weir_tracks_dropped(void)
{
    pthread_mutex_lock(&lock);
    uint64_t now = dropped_gone;
    for (const struct weir_ring *track = tracks; track; track = track->next)
        now += atomic_load_explicit(&track->dropped, memory_order_relaxed);
    uint64_t since = now - dropped_seen;
    dropped_seen = now;
    pthread_mutex_unlock(&lock);
    return since;
}

/* Copies a consistent set of open ranges. Returns 0 after 1000 failed attempts. */
static uint32_t copy_open(const struct weir_ring *track, uint64_t *starts, weir_name *names)
{
    for (int tries = 0; tries < 1000; tries++) {
        uint32_t version = atomic_load_explicit(&track->version, memory_order_acquire);
        uint32_t depth = atomic_load_explicit(&track->depth, memory_order_acquire);
        depth = depth < WEIR_OPEN_MAX ? depth : WEIR_OPEN_MAX;
        for (uint32_t i = 0; i < depth; i++) {
            starts[i] = atomic_load_explicit(&track->open[i].start, memory_order_relaxed);
            names[i] = (weir_name)atomic_load_explicit(&track->open[i].name, memory_order_relaxed);
        }
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load_explicit(&track->version, memory_order_relaxed) == version)
            return depth;
    }
    return 0;
}

void weir_tracks_open(weir_open_fn *each, void *user)
{
    uint64_t starts[WEIR_OPEN_MAX];
    weir_name names[WEIR_OPEN_MAX];
    pthread_mutex_lock(&lock);
    for (const struct weir_ring *track = tracks; track; track = track->next) {
        if (atomic_load_explicit(&track->dead, memory_order_acquire))
            continue;
        uint32_t n = copy_open(track, starts, names);
        for (uint32_t i = 0; i < n; i++)
            each(user, track->tid, track->name, names[i], starts[i]);
    }
    pthread_mutex_unlock(&lock);
}
