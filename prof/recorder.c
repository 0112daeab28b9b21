#include "prof/recorder.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 16, THREADS_MAX = 1024 };

/* The CPU clock is a system call, and one that lets the scheduler end our time slice: on a busy machine the call that
 * asks is the one that waits. So it is asked rarely, of work only, and never of stages so short that the question would
 * outweigh them: one call in 16, one in 256 of stages that have taken less than 200 us, none of those under 2 us. */
enum { CPU_SAMPLE_EVERY = 16, CPU_SAMPLE_EVERY_SHORT = 256, SHORT_NS = 200 * 1000, TINY_NS = 2000 };

/* All fields have one writer, the thread itself; readers see each value whole, and min <= max is all they rely on. */
struct cell {
    _Atomic uint64_t count, total_ns, self_ns, min_ns, max_ns;
    _Atomic uint64_t sampled_wall_ns, sampled_cpu_ns;
    _Atomic uint32_t hist[WEIR_HIST_BUCKETS];
    bool work; /* of kind work: only these are asked for CPU time */
};

struct open_zone {
    _Atomic uint64_t start;    /* ticks */
    _Atomic uint64_t child_ns; /* what closed zones inside it took */
    _Atomic int stage;
    uint64_t carved; /* ticks moved to another stage */
    int carved_stage;
    uint64_t cpu_start_ns, cpu_start; /* CPU time and ticks when it was read; 0 = this call is not sampled */
};

struct weir_thread {
    alignas(64) struct weir_recorder *recorder;
    char name[16];
    enum weir_thread_role role;
    clockid_t cpu_clock;
    uint64_t attached_ns, cpu_attached_ns;
    _Atomic uint64_t detached_ns; /* 0 while attached */
    uint64_t cpu_detached_ns;     /* valid once detached_ns is set */
    /* Odd while depth or an open zone changes: the reader's retry counter. */
    _Atomic uint32_t version;
    _Atomic int depth;
    _Atomic uint64_t zones;
    struct open_zone open[DEPTH_MAX];
    struct cell *_Atomic cells[WEIR_STAGE_MAX];
};

struct weir_recorder {
    pthread_mutex_t lock; /* attach and snapshot; never taken by zones */
    int n_threads;
    struct weir_thread *threads[THREADS_MAX];
};

__thread struct weir_thread *weir_thread_self __attribute__((tls_model("initial-exec")));

static inline uint64_t get(const _Atomic uint64_t *value)
{
    return atomic_load_explicit(value, memory_order_relaxed);
}

static inline void put(_Atomic uint64_t *to, uint64_t value)
{
    atomic_store_explicit(to, value, memory_order_relaxed);
}

static inline void add(_Atomic uint64_t *to, uint64_t value)
{
    put(to, get(to) + value); /* one writer: no read-modify-write needed */
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec ts;
    return clock_gettime(clock, &ts) == 0 ? (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec : 0;
}

static uint64_t cpu_read_ticks; /* least cost of reading a thread's CPU clock */

static void measure_cpu_read(void)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 200; i++) {
        uint64_t start = weir_clock_ticks();
        clock_ns(CLOCK_THREAD_CPUTIME_ID);
        uint64_t took = weir_clock_ticks() - start;
        least = took < least ? took : least;
    }
    cpu_read_ticks = least;
}

int weir_recorder_open(struct weir_recorder **out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    weir_clock_init();
    pthread_once(&once, measure_cpu_read);
    *out = calloc(1, sizeof **out);
    if (!*out)
        return -ENOMEM;
    pthread_mutex_init(&(*out)->lock, NULL);
    return 0;
}

void weir_recorder_close(struct weir_recorder **recorder)
{
    struct weir_recorder *r = *recorder;
    if (!r)
        return;
    for (int i = 0; i < r->n_threads; i++) {
        for (int s = 0; s < WEIR_STAGE_MAX; s++)
            free(atomic_load_explicit(&r->threads[i]->cells[s], memory_order_relaxed));
        free(r->threads[i]);
    }
    pthread_mutex_destroy(&r->lock);
    free(r);
    *recorder = NULL;
}

int weir_thread_attach(struct weir_recorder *recorder, const char *name, enum weir_thread_role role)
{
    assert(!weir_thread_self);
    struct weir_thread *t = aligned_alloc(alignof(struct weir_thread), sizeof *t);
    if (!t)
        return -ENOMEM;
    memset(t, 0, sizeof *t);
    t->recorder = recorder;
    t->role = role;
    memcpy(t->name, name, strnlen(name, sizeof t->name - 1));
    if (pthread_getcpuclockid(pthread_self(), &t->cpu_clock) != 0)
        t->cpu_clock = CLOCK_THREAD_CPUTIME_ID;
    t->attached_ns = weir_clock_monotonic_ns();
    t->cpu_attached_ns = clock_ns(t->cpu_clock);
    pthread_mutex_lock(&recorder->lock);
    bool full = recorder->n_threads == THREADS_MAX;
    if (!full)
        recorder->threads[recorder->n_threads++] = t;
    pthread_mutex_unlock(&recorder->lock);
    if (full) {
        free(t);
        return -ENOSPC;
    }
    weir_thread_self = t;
    return 0;
}

void weir_thread_detach(void)
{
    struct weir_thread *t = weir_thread_self;
    if (!t)
        return;
    assert(atomic_load_explicit(&t->depth, memory_order_relaxed) == 0);
    pthread_mutex_lock(&t->recorder->lock); /* a reader must not meet a CPU clock whose thread is gone */
    t->cpu_detached_ns = clock_ns(t->cpu_clock);
    put(&t->detached_ns, weir_clock_monotonic_ns());
    pthread_mutex_unlock(&t->recorder->lock);
    weir_thread_self = NULL;
}

static struct cell *cell_new(struct weir_thread *t, int stage)
{
    struct cell *cell = calloc(1, sizeof *cell);
    if (!cell)
        return NULL;
    put(&cell->min_ns, UINT64_MAX);
    const struct weir_stage_info *info = weir_stage_info(stage);
    cell->work = info && info->kind == WEIR_KIND_WORK;
    atomic_store_explicit(&t->cells[stage], cell, memory_order_release); /* publishes min_ns to snapshots */
    return cell;
}

static inline struct cell *cell_of(struct weir_thread *t, int stage)
{
    assert(stage >= 0 && stage < WEIR_STAGE_MAX);
    struct cell *cell = atomic_load_explicit(&t->cells[stage], memory_order_relaxed);
    return cell ? cell : cell_new(t, stage);
}

static void record(struct weir_thread *t, int stage, uint64_t total_ns, uint64_t self_ns)
{
    struct cell *cell = cell_of(t, stage);
    if (!cell)
        return; /* out of memory: the call goes uncounted */
    add(&cell->total_ns, total_ns);
    add(&cell->self_ns, self_ns);
    if (total_ns < get(&cell->min_ns))
        put(&cell->min_ns, total_ns);
    if (total_ns > get(&cell->max_ns))
        put(&cell->max_ns, total_ns);
    _Atomic uint32_t *bucket = &cell->hist[weir_hist_bucket(total_ns)];
    atomic_store_explicit(bucket, atomic_load_explicit(bucket, memory_order_relaxed) + 1, memory_order_relaxed);
    add(&cell->count, 1);
    add(&t->zones, 1);
}

/* The writer's half of a sequence lock: odd, change, even. */
static inline uint32_t change_begin(struct weir_thread *t)
{
    uint32_t version = atomic_load_explicit(&t->version, memory_order_relaxed);
    atomic_store_explicit(&t->version, version + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release); /* the odd version is seen before any change */
    return version + 2;
}

static inline void change_end(struct weir_thread *t, uint32_t version)
{
    atomic_store_explicit(&t->version, version, memory_order_release);
}

/* By the shortest call so far: the mean of a short stage grows with every time slice that ends in it. */
static inline bool is_sampled(const struct cell *cell)
{
    if (!cell || !cell->work)
        return false;
    uint64_t count = get(&cell->count), least_ns = get(&cell->min_ns);
    if (count == 0 || least_ns < TINY_NS)
        return false;
    if (least_ns >= SHORT_NS)
        return count % CPU_SAMPLE_EVERY == 1;
    return count % CPU_SAMPLE_EVERY_SHORT == CPU_SAMPLE_EVERY_SHORT - 1; /* the first ones tell how short it can be */
}

void weir_zone_begin_(struct weir_thread *t, int stage)
{
    int depth = atomic_load_explicit(&t->depth, memory_order_relaxed);
    assert(depth < DEPTH_MAX);
    struct open_zone *zone = &t->open[depth];
    zone->carved = 0;
    bool sample = is_sampled(cell_of(t, stage));
    uint32_t version = change_begin(t);
    atomic_store_explicit(&zone->stage, stage, memory_order_relaxed);
    put(&zone->child_ns, 0);
    put(&zone->start, weir_clock_ticks());
    atomic_store_explicit(&t->depth, depth + 1, memory_order_relaxed);
    change_end(t, version);
    /* Inside the zone: the system call lets the scheduler end our time slice, and what that costs is the stage's, as
     * it would be an instant later. Its own least cost is taken off at the end. */
    zone->cpu_start_ns = sample ? clock_ns(CLOCK_THREAD_CPUTIME_ID) : 0;
    zone->cpu_start = sample ? weir_clock_ticks() : 0;
}

/* wall_ns: between the two readings, so that a time slice that ended in one of them does not count as waiting. The
 * stage whose ticks were carved out of a sampled zone shares its ratio of CPU to wall time. */
static void record_cpu(struct weir_thread *t, const struct open_zone *zone, int stage, uint64_t cpu_ns,
                       uint64_t wall_ns, uint64_t carved_ns)
{
    uint64_t read_ns = weir_clock_to_ns(cpu_read_ticks);
    cpu_ns = cpu_ns > read_ns ? cpu_ns - read_ns : 0;
    cpu_ns = cpu_ns < wall_ns ? cpu_ns : wall_ns;
    carved_ns = carved_ns < wall_ns ? carved_ns : wall_ns;
    double carved = wall_ns ? (double)carved_ns / (double)wall_ns : 0;
    uint64_t carved_cpu_ns = (uint64_t)((double)cpu_ns * carved);
    struct cell *cell = cell_of(t, stage);
    if (!cell)
        return;
    add(&cell->sampled_wall_ns, wall_ns - carved_ns);
    add(&cell->sampled_cpu_ns, cpu_ns - carved_cpu_ns);
    struct cell *other = carved_ns ? cell_of(t, zone->carved_stage) : NULL;
    if (!other)
        return;
    add(&other->sampled_wall_ns, carved_ns);
    add(&other->sampled_cpu_ns, carved_cpu_ns);
}

void weir_zone_end_(struct weir_thread *t)
{
    int depth = atomic_load_explicit(&t->depth, memory_order_relaxed) - 1;
    assert(depth >= 0);
    struct open_zone *zone = &t->open[depth];
    uint64_t sampled = zone->cpu_start_ns ? weir_clock_ticks() - zone->cpu_start : 0;
    uint64_t cpu_ns = zone->cpu_start_ns ? clock_ns(CLOCK_THREAD_CPUTIME_ID) - zone->cpu_start_ns : 0;
    uint64_t now = weir_clock_ticks(), overhead = zone->cpu_start_ns ? 2 * cpu_read_ticks : 0;
    int stage = atomic_load_explicit(&zone->stage, memory_order_relaxed);
    uint64_t start = get(&zone->start) + overhead;
    uint64_t wall_ns = weir_clock_to_ns(now > start ? now - start : 0);
    uint64_t carved_ns = zone->carved ? weir_clock_to_ns(zone->carved) : 0;
    carved_ns = carved_ns < wall_ns ? carved_ns : wall_ns;
    uint64_t child_ns = get(&zone->child_ns);
    uint64_t total_ns = wall_ns - carved_ns;
    uint32_t version = change_begin(t);
    if (depth > 0)
        add(&t->open[depth - 1].child_ns, wall_ns);
    record(t, stage, total_ns, total_ns > child_ns ? total_ns - child_ns : 0);
    if (carved_ns)
        record(t, zone->carved_stage, carved_ns, carved_ns);
    atomic_store_explicit(&t->depth, depth, memory_order_relaxed);
    change_end(t, version);
    if (zone->cpu_start_ns)
        record_cpu(t, zone, stage, cpu_ns, weir_clock_to_ns(sampled), carved_ns);
}

void weir_zone_carve_(struct weir_thread *t, int stage, uint64_t ticks)
{
    int depth = atomic_load_explicit(&t->depth, memory_order_relaxed);
    assert(depth > 0);
    struct open_zone *zone = &t->open[depth - 1];
    assert(zone->carved == 0 || zone->carved_stage == stage);
    zone->carved += ticks;
    zone->carved_stage = stage;
}

void weir_span_(struct weir_thread *t, int stage, uint64_t ticks)
{
    record(t, stage, weir_clock_to_ns(ticks), 0);
}

/* ---- reading ---- */

static void split_add(struct weir_thread_stats *stats, int stage, uint64_t self_ns)
{
    const struct weir_stage_info *info = weir_stage_info(stage);
    if (!info || info->kind == WEIR_KIND_SPAN)
        return;
    if (info->kind == WEIR_KIND_WORK)
        stats->work_ns += self_ns;
    else if (info->kind == WEIR_KIND_WAIT)
        stats->wait_ns += self_ns;
    else
        stats->other_ns += self_ns;
}

struct open_view {
    int depth;
    int stage[DEPTH_MAX];
    uint64_t start[DEPTH_MAX], child_ns[DEPTH_MAX], self_ns[WEIR_STAGE_MAX];
    uint64_t wall_ns, ticks;
};

/* One try at a consistent copy of the open zones and the self times of the closed ones. */
static bool view_try(struct weir_thread *t, struct open_view *view)
{
    uint32_t before = atomic_load_explicit(&t->version, memory_order_acquire);
    if (before & 1)
        return false;
    view->depth = atomic_load_explicit(&t->depth, memory_order_relaxed);
    for (int i = 0; i < view->depth; i++) {
        view->stage[i] = atomic_load_explicit(&t->open[i].stage, memory_order_relaxed);
        view->start[i] = get(&t->open[i].start);
        view->child_ns[i] = get(&t->open[i].child_ns);
    }
    for (int s = 0; s < WEIR_STAGE_MAX; s++) {
        struct cell *cell = atomic_load_explicit(&t->cells[s], memory_order_acquire);
        view->self_ns[s] = cell ? get(&cell->self_ns) : 0;
    }
    view->ticks = weir_clock_ticks();
    uint64_t end_ns = get(&t->detached_ns);
    view->wall_ns = (end_ns ? end_ns : weir_clock_monotonic_ns()) - t->attached_ns;
    atomic_thread_fence(memory_order_acquire); /* the copies above happen before the second look at the version */
    return atomic_load_explicit(&t->version, memory_order_relaxed) == before;
}

static void thread_read(struct weir_thread *t, struct weir_thread_stats *stats)
{
    struct open_view view = {0};
    for (int tries = 0; tries < 100000 && !view_try(t, &view); tries++)
        continue; /* a writer is inside a change for some ns at a time; a copy that raced 100,000 times is used as it is
                   */
    memset(stats, 0, sizeof *stats);
    memcpy(stats->name, t->name, sizeof stats->name);
    stats->role = t->role;
    stats->zones = get(&t->zones);
    stats->wall_ns = view.wall_ns;
    stats->cpu_ns = (get(&t->detached_ns) ? t->cpu_detached_ns : clock_ns(t->cpu_clock)) - t->cpu_attached_ns;
    for (int s = 0; s < WEIR_STAGE_MAX; s++)
        split_add(stats, s, view.self_ns[s]);
    stats->open_stage = -1;
    uint64_t inner_ns = 0;
    for (int i = view.depth - 1; i >= 0; i--) {
        uint64_t open_ns = view.ticks > view.start[i] ? weir_clock_to_ns(view.ticks - view.start[i]) : 0;
        uint64_t inside_ns = view.child_ns[i] + inner_ns;
        split_add(stats, view.stage[i], open_ns > inside_ns ? open_ns - inside_ns : 0);
        inner_ns = open_ns;
        if (stats->open_stage >= 0)
            continue;
        stats->open_stage = view.stage[i];
        stats->open_ns = open_ns;
    }
}

static void stage_merge(struct weir_stage_stats *to, const struct cell *cell)
{
    uint64_t count = get(&cell->count);
    if (count == 0)
        return;
    uint64_t min_ns = get(&cell->min_ns), max_ns = get(&cell->max_ns);
    to->min_ns = to->count == 0 || min_ns < to->min_ns ? min_ns : to->min_ns;
    to->max_ns = max_ns > to->max_ns ? max_ns : to->max_ns;
    to->count += count;
    to->total_ns += get(&cell->total_ns);
    to->self_ns += get(&cell->self_ns);
    to->sampled_wall_ns += get(&cell->sampled_wall_ns);
    to->sampled_cpu_ns += get(&cell->sampled_cpu_ns);
    for (int b = 0; b < WEIR_HIST_BUCKETS; b++)
        to->hist[b] += atomic_load_explicit(&cell->hist[b], memory_order_relaxed);
}

static struct weir_snapshot *snapshot_new(int n_threads)
{
    struct weir_snapshot *snapshot = calloc(1, sizeof *snapshot);
    struct weir_thread_stats *threads = calloc((size_t)(n_threads ? n_threads : 1), sizeof *threads);
    if (!snapshot || !threads) {
        free(snapshot);
        free(threads);
        return NULL;
    }
    snapshot->threads = threads;
    snapshot->n_threads = n_threads;
    return snapshot;
}

int weir_snapshot_take(struct weir_recorder *recorder, struct weir_snapshot **out)
{
    *out = NULL;
    pthread_mutex_lock(&recorder->lock);
    struct weir_snapshot *snapshot = snapshot_new(recorder->n_threads);
    if (snapshot) {
        snapshot->at_ns = weir_clock_monotonic_ns();
        snapshot->n_stages = weir_stage_count();
        for (int i = 0; i < recorder->n_threads; i++) {
            struct weir_thread *t = recorder->threads[i];
            thread_read(t, &snapshot->threads[i]);
            for (int s = 0; s < WEIR_STAGE_MAX; s++) {
                struct cell *cell = atomic_load_explicit(&t->cells[s], memory_order_acquire);
                if (cell)
                    stage_merge(&snapshot->stages[s], cell);
            }
        }
    }
    pthread_mutex_unlock(&recorder->lock);
    *out = snapshot;
    return snapshot ? 0 : -ENOMEM;
}

static void stage_subtract(struct weir_stage_stats *to, const struct weir_stage_stats *then)
{
    bool whole = then->count == 0;
    to->count -= then->count;
    to->total_ns -= then->total_ns;
    to->self_ns -= then->self_ns;
    to->sampled_wall_ns -= then->sampled_wall_ns;
    to->sampled_cpu_ns -= then->sampled_cpu_ns;
    int low = -1, high = -1;
    for (int b = 0; b < WEIR_HIST_BUCKETS; b++) {
        to->hist[b] -= then->hist[b];
        if (to->hist[b] == 0)
            continue;
        low = low < 0 ? b : low;
        high = b;
    }
    if (whole)
        return; /* all calls are inside the window: the exact extremes hold */
    if (low < 0) {
        to->min_ns = to->max_ns = 0;
        return;
    }
    uint64_t low_ns = weir_hist_low((unsigned)low), high_ns = weir_hist_low((unsigned)high + 1) - 1;
    to->min_ns = low_ns > to->min_ns ? low_ns : to->min_ns;
    to->max_ns = high_ns < to->max_ns ? high_ns : to->max_ns;
}

/* Saturating: a zone that was open at both ends may have been split a few ns differently each time. */
static void subtract(uint64_t *from, uint64_t value)
{
    *from = *from > value ? *from - value : 0;
}

static void thread_subtract(struct weir_thread_stats *to, const struct weir_thread_stats *then)
{
    subtract(&to->wall_ns, then->wall_ns);
    subtract(&to->cpu_ns, then->cpu_ns);
    subtract(&to->work_ns, then->work_ns);
    subtract(&to->wait_ns, then->wait_ns);
    subtract(&to->other_ns, then->other_ns);
    subtract(&to->zones, then->zones);
}

int weir_snapshot_diff(const struct weir_snapshot *now, const struct weir_snapshot *then, struct weir_snapshot **out)
{
    struct weir_snapshot *diff = snapshot_new(now->n_threads);
    *out = diff;
    if (!diff)
        return -ENOMEM;
    struct weir_thread_stats *threads = diff->threads;
    *diff = *now;
    diff->threads = threads;
    memcpy(threads, now->threads, sizeof *threads * (size_t)now->n_threads);
    if (!then)
        return 0;
    for (int s = 0; s < WEIR_STAGE_MAX; s++)
        stage_subtract(&diff->stages[s], &then->stages[s]);
    for (int i = 0; i < then->n_threads; i++)
        thread_subtract(&diff->threads[i], &then->threads[i]);
    return 0;
}

void weir_snapshot_free(struct weir_snapshot **snapshot)
{
    if (!*snapshot)
        return;
    free((*snapshot)->threads);
    free(*snapshot);
    *snapshot = NULL;
}

/* ---- own cost ---- */

static _Atomic uint64_t zone_cost_ps; /* 0 = not measured yet */

static void measure_round(double *best_ns)
{
    enum { ZONES = 4096 };
    uint64_t t0 = weir_clock_ticks();
    for (int i = 0; i < ZONES; i++) {
        weir_zone_begin(WEIR_STAGE_ONE_CAMERA);
        weir_zone_end();
    }
    double ns = (double)weir_clock_to_ns(weir_clock_ticks() - t0) / ZONES;
    *best_ns = *best_ns == 0 || ns < *best_ns ? ns : *best_ns;
}

double weir_zone_cost_ns(void)
{
    if (get(&zone_cost_ps))
        return (double)get(&zone_cost_ps) / 1000;
    struct weir_thread *mine = weir_thread_self;
    struct weir_recorder *scratch = NULL;
    double best_ns = 0;
    weir_thread_self = NULL;
    if (weir_recorder_open(&scratch) == 0 && weir_thread_attach(scratch, "cost", WEIR_ROLE_OTHER) == 0) {
        for (int round = 0; round < 5; round++)
            measure_round(&best_ns);
        weir_thread_detach();
    }
    weir_recorder_close(&scratch);
    weir_thread_self = mine;
    best_ns += 2.0 * (double)weir_clock_to_ns(cpu_read_ticks) / CPU_SAMPLE_EVERY;
    put(&zone_cost_ps, (uint64_t)(best_ns * 1000) + 1);
    return best_ns;
}
