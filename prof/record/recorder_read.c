#include "prof/record/cells.h"
#include "prof/record/track_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void weir_stage_split(struct weir_thread_stats *stats, int stage, uint64_t self_ns, uint64_t off_ns)
{
    const struct weir_stage_info *info = weir_stage_info(stage);
    if (!info)
        return;
    stats->self_ns[stage] += self_ns;
    bool work = info->kind == WEIR_KIND_WORK, wait = info->kind == WEIR_KIND_WAIT;
    *(work ? &stats->work_ns : wait ? &stats->wait_ns : &stats->unattributed_ns) += self_ns;
    *(work   ? &stats->work_cpu_ns
      : wait ? &stats->wait_cpu_ns
             : &stats->unattributed_cpu_ns) += self_ns > off_ns ? self_ns - off_ns : 0;
}

/* Checks for underflow, because the thread can update the cell between the two loads. */
static uint64_t self_ticks_of(const struct weir_cell *cell)
{
    uint64_t nested = get(&cell->nested), total = get(&cell->total);
    return total > nested ? total - nested : 0;
}

struct open_view {
    int depth;
    int stage[WEIR_DEPTH_MAX];
    uint64_t start[WEIR_DEPTH_MAX], child_ns[WEIR_DEPTH_MAX], off[WEIR_DEPTH_MAX];
    uint64_t self_ns[WEIR_STAGE_MAX], off_ns[WEIR_STAGE_MAX], zones;
    uint64_t now_ns, ticks;
};

static bool has_ended(const struct weir_thread *t)
{
    return atomic_load_explicit(&t->totals->ended, memory_order_relaxed) != 0;
}

/* Charges time off the core that the thread has not processed yet to the zone that was innermost when it began. */
static void view_off(void *user, uint64_t start, uint64_t end, bool preempted)
{
    struct open_view *view = user;
    (void)preempted;
    int i = view->depth - 1;
    while (i >= 0 && view->start[i] > start)
        i--;
    if (i >= 0)
        view->off[i] += end - start;
}

/* Distributes unprocessed time off the core among the copied zones, so it runs after they are copied. */
static void view_switches(struct weir_thread *t, struct open_view *view)
{
    uint64_t now_ticks, now_ns;
    if (!t->switches.page)
        return;
    weir_switches_now(&now_ticks, &now_ns);
    weir_switches_peek(&t->switches, now_ticks, now_ns, view_off, view);
}

static void view_copy(struct weir_thread *t, struct open_view *view)
{
    view->depth = (int)(atomic_load_explicit(&t->top, memory_order_acquire) - t->open);
    view->depth = view->depth < WEIR_DEPTH_MAX ? view->depth : WEIR_DEPTH_MAX;
    for (int i = 0; i < view->depth; i++) {
        const struct weir_open_zone *zone = &t->open[1 + i];
        view->stage[i] = atomic_load_explicit(&zone->cell, memory_order_acquire)->stage;
        view->start[i] = get(&zone->start);
        view->child_ns[i] = weir_clock_to_ns(get(&zone->child));
        view->off[i] = get(&zone->off);
    }
    view_switches(t, view);
    view->zones = 0;
    for (int s = 0; s < WEIR_STAGE_MAX; s++) {
        struct weir_cell *cell = atomic_load_explicit(&t->cells[s], memory_order_acquire);
        view->self_ns[s] = cell ? weir_ns_of(self_ticks_of(cell)) : 0;
        view->off_ns[s] = cell ? weir_clock_to_ns(get(&cell->off)) : 0;
        view->zones += cell ? get(&cell->count) : 0;
    }
    view->ticks = weir_clock_ticks();
    view->now_ns = weir_clock_monotonic_ns();
}

/* Attempts once to copy a consistent set of the open zones and the closed zones' self times. */
static bool view_try(struct weir_thread *t, struct open_view *view)
{
    uint32_t before = atomic_load_explicit(&t->version, memory_order_acquire);
    if (before & 1)
        return false;
    view_copy(t, view);
    atomic_thread_fence(memory_order_acquire); /* completes the copies above before the version is read again */
    return atomic_load_explicit(&t->version, memory_order_relaxed) == before;
}

/* Retries until the copy is consistent. A writer's change takes a few ns, but the writer can be preempted during it.
 * After about a second, gives up and returns an inconsistent copy. */
static void view_take(struct weir_thread *t, struct open_view *view)
{
    enum { TRIES_AT_ONCE = 1000, TRIES = TRIES_AT_ONCE + 20000, PAUSE_NS = 50000 };
    for (int tries = 0; tries < TRIES; tries++) {
        if (view_try(t, view))
            return;
        if (tries >= TRIES_AT_ONCE)
            nanosleep(&(struct timespec){0, PAUSE_NS}, NULL);
    }
    view_copy(t, view);
}

void weir_totals_read(struct weir_thread_stats *stats, const struct weir_thread_totals *totals)
{
    uint64_t start_ns = get(&totals->start_ns), seen_ns = get(&totals->seen_ns);
    uint64_t wall_ns = seen_ns > start_ns ? seen_ns - start_ns : 0;
    uint64_t cpu_ns = get(&totals->cpu_ns), delay_ns = get(&totals->delay_ns);
    stats->wall_ns = wall_ns < (uint64_t)WEIR_NS_MOST ? wall_ns : (uint64_t)WEIR_NS_MOST;
    stats->cpu_ns = cpu_ns < stats->wall_ns ? cpu_ns : stats->wall_ns;
    stats->delay_known = atomic_load_explicit(&totals->delay_unknown, memory_order_relaxed) == 0;
    stats->delay_ns = delay_ns < stats->wall_ns - stats->cpu_ns ? delay_ns : stats->wall_ns - stats->cpu_ns;
    stats->too_deep = weir_count_of(get(&totals->too_deep));
}

/* Requires the recorder's lock, which also keeps the thread from ending. */
static void thread_read(struct weir_thread *t, struct weir_thread_stats *stats)
{
    struct open_view view = {0};
    view_take(t, &view);
    memset(stats, 0, sizeof *stats);
    memcpy(stats->name, t->name, sizeof stats->name);
    stats->role = t->role;
    stats->is_caller = t == weir_thread_self;
    stats->cpu_known = t->exact;
    stats->zones = view.zones;
    uint64_t delay_ns = 0;
    bool delay_known = has_ended(t) || weir_run_delay_ns(t->tid, &delay_ns);
    if (!has_ended(t))
        weir_thread_account(t, view.now_ns, delay_known ? &delay_ns : NULL);
    weir_totals_read(stats, t->totals);
    stats->delay_known = stats->delay_known && delay_known;
    stats->delay_ns = stats->delay_known ? stats->delay_ns : 0;
    for (int s = 0; s < WEIR_STAGE_MAX; s++)
        weir_stage_split(stats, s, view.self_ns[s], view.off_ns[s]);
    stats->open_stage = -1;
    uint64_t inner_ns = 0;
    for (int i = view.depth - 1; i >= 0; i--) {
        uint64_t open_ns = view.ticks > view.start[i] ? weir_clock_to_ns(view.ticks - view.start[i]) : 0;
        uint64_t inside_ns = view.child_ns[i] + inner_ns;
        weir_stage_split(stats, view.stage[i], open_ns > inside_ns ? open_ns - inside_ns : 0,
                         weir_clock_to_ns(view.off[i]));
        inner_ns = open_ns;
        if (stats->open_stage >= 0)
            continue;
        stats->open_stage = view.stage[i];
        stats->open_ns = open_ns;
    }
}

uint64_t weir_cell_read(struct weir_stage_stats *to, const struct weir_cell *cell, bool exact)
{
    uint64_t count = weir_count_of(atomic_load_explicit(&cell->count, memory_order_acquire));
    if (count == 0)
        return 0;
    uint64_t min = get(&cell->min), min_ns = weir_ns_of(min), max_ns = weir_ns_of(min + get(&cell->spread));
    min_ns = min_ns < max_ns ? min_ns : max_ns;
    to->min_ns = to->count == 0 || min_ns < to->min_ns ? min_ns : to->min_ns;
    to->max_ns = max_ns > to->max_ns ? max_ns : to->max_ns;
    uint64_t total_ns = weir_ns_of(get(&cell->total)), self_ns = weir_ns_of(self_ticks_of(cell));
    to->count += count;
    to->total_ns += total_ns;
    to->self_ns += self_ns;
    if (exact) {
        uint64_t logged = get(&cell->logged), logged_ns = weir_ns_of(get(&cell->logged_self));
        to->measured += count > logged ? count - logged : 0;
        to->measured_ns += self_ns > logged_ns ? self_ns - logged_ns : 0;
        to->off_ns += weir_ns_of(get(&cell->off));
        to->preempted_ns += weir_ns_of(get(&cell->preempted));
    } else {
        uint64_t cpu_ns = get(&cell->sampled_cpu_ns);
        to->sampled += weir_count_of(get(&cell->sampled));
        to->sampled_cpu_ns += cpu_ns < total_ns ? cpu_ns : total_ns;
    }
    to->hist_ns = weir_clock_ns_per_tick();
    for (int b = 0; b < WEIR_HIST_BUCKETS; b++)
        to->hist[b] += atomic_load_explicit(&cell->hist[b], memory_order_relaxed);
    return self_ns;
}

/* Counts calls by other threads (WEIR_ROLE_OTHER) separately, because a stage's share refers to the workers' work only.
 * Spans are exempt, because they belong to no thread. */
static struct weir_stage_stats *stats_of(struct weir_snapshot *snapshot, const struct weir_thread *t, int stage)
{
    const struct weir_stage_info *info = weir_stage_info(stage);
    bool own = info && !info->consumer && (info->kind == WEIR_KIND_WORK || info->kind == WEIR_KIND_WAIT);
    return own && t->role == WEIR_ROLE_OTHER ? &snapshot->others[stage] : &snapshot->stages[stage];
}

struct weir_snapshot *weir_snapshot_new(int n_threads)
{
    struct weir_snapshot *snapshot = calloc(1, sizeof *snapshot);
    struct weir_thread_stats *threads = calloc((size_t)(n_threads ? n_threads : 1), sizeof *threads);
    if (!snapshot || !threads) {
        free(snapshot);
        free(threads);
        return NULL;
    }
    snapshot->at_ns = weir_clock_monotonic_ns();
    snapshot->n_stages = weir_stage_count();
    snapshot->threads = threads;
    snapshot->n_threads = n_threads;
    return snapshot;
}

/* Reads throttling and CPU times since the session was opened. */
static void machine_read(const struct weir_recorder *recorder, struct weir_snapshot *snapshot)
{
    struct weir_throttling throttling;
    struct weir_machine_time machine;
    weir_throttling_read(&throttling, "");
    weir_machine_time_read(&machine, "");
    if (recorder->throttling_opened.known && throttling.throttled_ns > recorder->throttling_opened.throttled_ns)
        snapshot->throttled_ns = throttling.throttled_ns - recorder->throttling_opened.throttled_ns;
    if (recorder->machine_opened.busy == 0 || machine.busy <= recorder->machine_opened.busy ||
        machine.steal < recorder->machine_opened.steal)
        return;
    snapshot->machine_busy = machine.busy - recorder->machine_opened.busy;
    snapshot->machine_steal = machine.steal - recorder->machine_opened.steal;
}

int weir_snapshot_take(struct weir_recorder *recorder, struct weir_snapshot **out)
{
    return weir_snapshot_take_workers(recorder, NULL, out);
}

static bool is_left_out(const struct weir_thread *t, const char *workers)
{
    return workers && t->role == WEIR_ROLE_WORKER && strncmp(t->name, workers, strlen(workers)) != 0;
}

/* Adds one thread to the snapshot. The caller keeps the entries of threads that it leaves out, so that the threads of
 * two snapshots have the same indexes. */
static void thread_add(struct weir_snapshot *snapshot, struct weir_thread *t, struct weir_thread_stats *stats)
{
    thread_read(t, stats);
    for (int s = 0; s < WEIR_STAGE_MAX; s++) {
        struct weir_cell *cell = atomic_load_explicit(&t->cells[s], memory_order_acquire);
        if (cell)
            weir_cell_read(stats_of(snapshot, t, s), cell, t->exact);
    }
}

int weir_snapshot_take_workers(struct weir_recorder *recorder, const char *workers, struct weir_snapshot **out)
{
    *out = NULL;
    pthread_mutex_lock(&recorder->lock);
    struct weir_snapshot *snapshot = weir_snapshot_new(recorder->n_threads);
    if (snapshot) {
        snapshot->switches_error = recorder->switches_error;
        machine_read(recorder, snapshot);
        for (int i = 0; i < recorder->n_threads; i++) {
            if (is_left_out(recorder->threads[i], workers))
                snapshot->threads[i].role = WEIR_ROLE_OTHER;
            else
                thread_add(snapshot, recorder->threads[i], &snapshot->threads[i]);
        }
    }
    pthread_mutex_unlock(&recorder->lock);
    *out = snapshot;
    return snapshot ? 0 : -ENOMEM;
}

double weir_stage_cpu_ns(const struct weir_stage_stats *stats)
{
    enum { READINGS_MIN = 30 };
    uint64_t others = stats->count > stats->measured ? stats->count - stats->measured : 0;
    if (others > 0 && stats->sampled < READINGS_MIN)
        return -1;
    double cpu_ns = stats->measured_ns > stats->off_ns ? (double)(stats->measured_ns - stats->off_ns) : 0;
    return others > 0 ? cpu_ns + (double)others * (double)stats->sampled_cpu_ns / (double)stats->sampled : cpu_ns;
}

double weir_stage_quantile_ns(const struct weir_stage_stats *stats, double q)
{
    double unit_ns = stats->hist_ns > 0 ? stats->hist_ns : 1;
    uint64_t min = (uint64_t)((double)stats->min_ns / unit_ns), max = (uint64_t)((double)stats->max_ns / unit_ns + 0.5);
    double ns = weir_hist_quantile(stats->hist, q, min, max) * unit_ns;
    ns = ns < (double)stats->max_ns ? ns : (double)stats->max_ns;
    return ns > (double)stats->min_ns ? ns : (double)stats->min_ns;
}

void weir_stage_stats_add(struct weir_stage_stats *stats, uint64_t ns)
{
    stats->min_ns = stats->count == 0 || ns < stats->min_ns ? ns : stats->min_ns;
    stats->max_ns = ns > stats->max_ns ? ns : stats->max_ns;
    stats->count++;
    stats->total_ns += ns;
    stats->self_ns += ns;
    stats->hist[weir_hist_bucket(ns)]++;
}

/* Saturates at 0, because the time of a zone that is open in both snapshots can differ by a few ns. */
static void subtract(uint64_t *from, uint64_t value)
{
    *from = *from > value ? *from - value : 0;
}

void weir_stage_stats_subtract(struct weir_stage_stats *to, const struct weir_stage_stats *then)
{
    bool whole = then->count == 0;
    to->count -= then->count;
    subtract(&to->total_ns, then->total_ns);
    subtract(&to->self_ns, then->self_ns);
    subtract(&to->measured, then->measured);
    subtract(&to->measured_ns, then->measured_ns);
    subtract(&to->off_ns, then->off_ns);
    subtract(&to->preempted_ns, then->preempted_ns);
    subtract(&to->sampled, then->sampled);
    subtract(&to->sampled_cpu_ns, then->sampled_cpu_ns);
    int low = -1, high = -1;
    for (int b = 0; b < WEIR_HIST_BUCKETS; b++) {
        to->hist[b] -= then->hist[b];
        if (to->hist[b] == 0)
            continue;
        low = low < 0 ? b : low;
        high = b;
    }
    if (whole)
        return; /* there were no calls before the window, so the exact extremes are valid */
    if (low < 0) {
        to->min_ns = to->max_ns = 0;
        return;
    }
    double unit_ns = to->hist_ns > 0 ? to->hist_ns : 1;
    uint64_t low_ns = (uint64_t)((double)weir_hist_low((unsigned)low) * unit_ns);
    uint64_t high_ns = (uint64_t)((double)(weir_hist_low((unsigned)high + 1) - 1) * unit_ns);
    to->min_ns = low_ns > to->min_ns ? low_ns : to->min_ns;
    to->max_ns = high_ns < to->max_ns ? high_ns : to->max_ns;
}

static void thread_subtract(struct weir_thread_stats *to, const struct weir_thread_stats *then)
{
    subtract(&to->wall_ns, then->wall_ns);
    subtract(&to->cpu_ns, then->cpu_ns);
    subtract(&to->work_ns, then->work_ns);
    subtract(&to->wait_ns, then->wait_ns);
    subtract(&to->unattributed_ns, then->unattributed_ns);
    subtract(&to->work_cpu_ns, then->work_cpu_ns);
    subtract(&to->wait_cpu_ns, then->wait_cpu_ns);
    subtract(&to->unattributed_cpu_ns, then->unattributed_cpu_ns);
    subtract(&to->delay_ns, then->delay_ns);
    to->delay_known &= then->delay_known;
    subtract(&to->zones, then->zones);
    subtract(&to->too_deep, then->too_deep);
    for (int s = 0; s < WEIR_STAGE_MAX; s++)
        subtract(&to->self_ns[s], then->self_ns[s]);
}

int weir_snapshot_diff(const struct weir_snapshot *now, const struct weir_snapshot *then, struct weir_snapshot **out)
{
    struct weir_snapshot *diff = weir_snapshot_new(now->n_threads);
    *out = diff;
    if (!diff)
        return -ENOMEM;
    struct weir_thread_stats *threads = diff->threads;
    *diff = *now;
    diff->threads = threads;
    memcpy(threads, now->threads, sizeof *threads * (size_t)now->n_threads);
    if (!then)
        return 0;
    subtract(&diff->throttled_ns, then->throttled_ns);
    subtract(&diff->machine_busy, then->machine_busy);
    subtract(&diff->machine_steal, then->machine_steal);
    for (int s = 0; s < WEIR_STAGE_MAX; s++) {
        weir_stage_stats_subtract(&diff->stages[s], &then->stages[s]);
        weir_stage_stats_subtract(&diff->others[s], &then->others[s]);
    }
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

static void open_zones_of(struct weir_thread *t, weir_open_fn *each, void *user)
{
    struct open_view view = {0};
    view_take(t, &view);
    for (int i = 0; i < view.depth; i++)
        each(user, t->tid, t->name, (weir_name)view.stage[i], view.start[i]);
}

void weir_recorders_open_zones(weir_open_fn *each, void *user)
{
    pthread_mutex_lock(&weir_recorders_lock);
    for (struct weir_recorder *r = weir_recorders; r; r = r->next) {
        pthread_mutex_lock(&r->lock);
        for (int i = 0; i < r->n_threads; i++)
            if (!has_ended(r->threads[i]))
                open_zones_of(r->threads[i], each, user);
        pthread_mutex_unlock(&r->lock);
    }
    pthread_mutex_unlock(&weir_recorders_lock);
}

/* ---- the calling thread ---- */

struct weir_zone_now weir_zone_now(void)
{
    struct weir_thread *t = weir_thread_self;
    const struct weir_open_zone *top = t ? atomic_load_explicit(&t->top, memory_order_relaxed) : NULL;
    if (!top || top == t->open || top > weir_zone_top(t))
        return (struct weir_zone_now){.stage = -1};
    return (struct weir_zone_now){weir_zone_stage(top), get(&top->start)};
}

uint64_t weir_zone_own(void)
{
    struct weir_zone_now zone = weir_zone_now();
    if (zone.stage < 0)
        return 0;
    uint64_t now = weir_clock_ticks(), without = zone.start + get(&weir_zone_top(weir_thread_self)->child);
    return now > without ? now - without : 0;
}

uint64_t weir_stage_ticks_here(int stage)
{
    struct weir_thread *t = weir_thread_self;
    const struct weir_cell *cell = t ? atomic_load_explicit(&t->cells[stage], memory_order_relaxed) : NULL;
    return cell && cell != &weir_cell_nobody ? self_ticks_of(cell) : 0;
}
