#include "prof/record/bracket_priv.h"
#include "prof/record/cells.h"
#include "prof/record/nvtx.h"
#include "prof/record/track_priv.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* CPU time is wall time minus the time off a core, which is known from the kernel's context-switch records
 * (switches.h). Without these records, the thread's CPU clock is sampled. Each reading is a system call, at which the
 * scheduler can end the time slice, so readings must be rare. Only stages of kind work are sampled: every 16th call,
 * every 256th call of stages with a call under 200 us, and no calls of stages with a call under 2 us. A thread whose
 * batches are sampled (weir_thread_sample) reads it in all calls of a batch, except in stages with a mean under 5 us.
 */
enum { CPU_SAMPLE_EVERY_SHORT = 256, SHORT_NS = 200 * 1000, TINY_NS = 2000, BATCH_TINY_NS = 5000 };

/* Stands in for cells that cannot be allocated. Shared by all threads, so its figures are unreliable. */
struct weir_cell weir_cell_nobody;
uint64_t weir_cpu_read_ticks;
__thread struct weir_thread *weir_thread_self __attribute__((tls_model("initial-exec")));

/* Keeps rare code out of line, so that the fast path of zones does not save registers for it. */
#define RARELY __attribute__((noinline, cold))

static RARELY struct weir_cell *cell_new(struct weir_thread *t, int stage)
{
    struct weir_cell *cell = t->block ? &t->block[stage] : calloc(1, sizeof *cell);
    if (!cell)
        return NULL;
    if (get(&cell->count) == 0) /* else an earlier thread used it */
        put(&cell->min, UINT64_MAX);
    cell->stage = stage;
    t->n_stages = stage < t->n_stages ? t->n_stages : stage + 1;
    const struct weir_stage_info *info = weir_stage_info(stage);
    cell->work = info && info->kind == WEIR_KIND_WORK;
    cell->loop = info && info->kind == WEIR_KIND_LOOP;
    /* 0 wraps around: never sampled in practice */
    cell->until_sample = t->by_batch ? t->sample_all : cell->work && !t->exact ? 2 : 0;
    atomic_store_explicit(&t->cells[stage], cell, memory_order_release); /* publishes the initial min to snapshots */
    return cell;
}

/* Returns NULL if memory is short or the stage number is invalid. The call is then not counted. */
static inline struct weir_cell *cell_of(struct weir_thread *t, int stage)
{
    if ((unsigned)stage >= WEIR_STAGE_MAX)
        return NULL;
    struct weir_cell *cell = atomic_load_explicit(&t->cells[stage], memory_order_relaxed);
    return cell ? cell : cell_new(t, stage);
}

static RARELY void record_extreme(struct weir_cell *cell, uint64_t ticks)
{
    uint64_t min = get(&cell->min), max = min + get(&cell->spread);
    bool first = min == UINT64_MAX;
    min = ticks < min ? ticks : min;
    max = first || ticks > max ? ticks : max;
    put(&cell->min, min);
    put(&cell->spread, max - min);
}

static inline __attribute__((always_inline)) void record_in(struct weir_cell *cell, uint64_t ticks, uint64_t place)
{
    _Atomic uint32_t *bucket = &cell->hist[place];
    atomic_store_explicit(bucket, atomic_load_explicit(bucket, memory_order_relaxed) + 1, memory_order_relaxed);
    add(&cell->total, ticks);
    if (__builtin_expect(ticks - get(&cell->min) > get(&cell->spread), 0))
        record_extreme(cell, ticks);
    /* Written last, so that a reader that sees the new count also sees the new extremes. */
    atomic_store_explicit(&cell->count, get(&cell->count) + 1, memory_order_release);
}

static void record(struct weir_cell *cell, uint64_t ticks)
{
    record_in(cell, ticks, weir_hist_bucket(ticks));
}

/* Writer side of a sequence lock: makes the version odd before a change and even after it. */
static inline uint32_t change_begin(struct weir_thread *t)
{
    uint32_t version = atomic_load_explicit(&t->version, memory_order_relaxed);
    atomic_store_explicit(&t->version, version + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release); /* makes the odd version visible before any change */
    return version + 2;
}

static inline void change_end(struct weir_thread *t, uint32_t version)
{
    atomic_store_explicit(&t->version, version, memory_order_release);
}

/* Decides whether to read the CPU clock in a call that is due for sampling. Uses the stage's shortest call so far,
 * because the mean of a short stage grows whenever a time slice ends in it. */
static bool is_sampled(const struct weir_thread *t, struct weir_cell *cell)
{
    if (t->by_batch) {
        uint64_t count = get(&cell->count);
        cell->until_sample = 1;
        return count == 0 || weir_clock_to_ns(get(&cell->total) / count) >= BATCH_TINY_NS;
    }
    uint64_t least_ns = get(&cell->count) ? weir_clock_to_ns(get(&cell->min)) : 0;
    if (!cell->work || least_ns < TINY_NS) {
        cell->until_sample = WEIR_CPU_SAMPLE_EVERY;
        return false;
    }
    bool is_short = least_ns < SHORT_NS;
    cell->until_sample = is_short ? CPU_SAMPLE_EVERY_SHORT : WEIR_CPU_SAMPLE_EVERY;
    /* Skip the first sample of a short stage, because its shortest call may not be known yet. */
    bool sampled = !is_short || cell->seen_short;
    cell->seen_short = is_short;
    return sampled;
}

static inline struct weir_open_zone *top_of(struct weir_thread *t)
{
    return atomic_load_explicit(&t->top, memory_order_relaxed);
}

/* Makes the innermost zone use the slow path when it ends. */
static void make_special(struct weir_open_zone *zone)
{
    if (zone->flags.special)
        return;
    zone->flags.special = 1;
    zone->carved = zone->cpu_start_ns = zone->child_cpu_ns = zone->child_cpu_ticks = 0;
}

void weir_thread_sample(struct weir_thread *t, bool all)
{
    t->by_batch = true;
    t->sample_all = all;
    for (int s = 0; s < t->n_stages; s++) {
        struct weir_cell *cell = atomic_load_explicit(&t->cells[s], memory_order_relaxed);
        if (cell)
            cell->until_sample = all;
    }
}

/* Runs inside the zone. The scheduler can end the time slice at the system call. That time counts for the stage, as it
 * would if the time slice ended a moment later. The minimum cost of the reading is subtracted at the end of the zone.
 */
static RARELY void sample_begin(const struct weir_thread *t, struct weir_cell *cell, struct weir_open_zone *zone)
{
    if (!is_sampled(t, cell))
        return;
    make_special(zone);
    zone->cpu_start_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    zone->cpu_start = weir_clock_ticks();
}

/* The last entry of the stack stands for all zones that are nested too deep. It is marked special, so that only the
 * slow path has to check for it. */
static RARELY void begin_too_deep(struct weir_thread *t)
{
    struct weir_open_zone *rest = t->open + 1 + WEIR_DEPTH_MAX;
    add(&t->totals->too_deep, 1);
    if (t->too_deep_open++ > 0)
        return;
    put(&rest->child, 0);
    atomic_store_explicit(&t->top, rest, memory_order_release);
}

static RARELY void end_too_deep(struct weir_thread *t, struct weir_open_zone *rest)
{
    if (--t->too_deep_open > 0)
        return;
    uint32_t version = change_begin(t);
    add(&rest[-1].child, get(&rest->child)); /* time of laps inside the dropped zones */
    atomic_store_explicit(&t->top, rest - 1, memory_order_relaxed);
    change_end(t, version);
}

/* Shows a zone in NVTX, unless its stage is of kind loop. */
static RARELY void show_begin(struct weir_cell *cell)
{
    if (!cell->loop)
        weir_nvtx_push_((weir_name)cell->stage);
}

static RARELY void show_end(const struct weir_cell *cell)
{
    if (!cell->loop)
        weir_nvtx_pop_();
}

/* now: 0 = the zone begins when it is recorded, by the time stamp counter. */
static inline __attribute__((always_inline)) void begin_in(struct weir_thread *t, struct weir_open_zone *zone,
                                                           struct weir_cell *cell, uint64_t now)
{
    uint32_t state = weir_recording();
    zone->flags.state = state;
    zone->flags.special = 0;
    zone->shapes = 0;
    /* Release, because a reader can see the new cell while the stack changes. */
    atomic_store_explicit(&zone->cell, cell, memory_order_release);
    put(&zone->child, 0);
    put(&zone->start, now ? now : weir_clock_tsc());
    atomic_store_explicit(&t->top, zone, memory_order_release);
    bracket_begin(t, zone);
    if (__builtin_expect(--cell->until_sample == 0, 0))
        sample_begin(t, cell, zone);
    if (__builtin_expect(state & WEIR_RECORDING_NVTX, 0))
        show_begin(cell);
}

/* Handles a stage's first call on a thread, a zone that is nested too deep, and an invalid stage number. If memory for
 * the cell is short, the stage uses a shared cell that is not reported. */
static RARELY void begin_first(struct weir_thread *t, int stage)
{
    if (top_of(t) >= t->open + WEIR_DEPTH_MAX) {
        begin_too_deep(t);
        return;
    }
    if ((unsigned)stage >= WEIR_STAGE_MAX) {
        begin_in(t, top_of(t) + 1, &weir_cell_nobody, weir_clock_ticks());
        top_of(t)->flags.state = 0; /* an invalid stage is not shown in traces */
        return;
    }
    if (!cell_new(t, stage))
        atomic_store_explicit(&t->cells[stage], &weir_cell_nobody, memory_order_relaxed);
    weir_zone_begin_(t, stage);
}

/* Returns NULL if begin_first has to begin the zone. */
static inline struct weir_cell *cell_for(struct weir_thread *t, int stage)
{
    return (unsigned)stage < WEIR_STAGE_MAX && top_of(t) < t->open + WEIR_DEPTH_MAX
               ? atomic_load_explicit(&t->cells[stage], memory_order_relaxed)
               : NULL;
}

/* A separate function, because the fast path saves no registers only if all its calls are tail calls. */
static RARELY void begin_no_tsc(struct weir_thread *t, struct weir_cell *cell)
{
    begin_in(t, top_of(t) + 1, cell, weir_clock_ticks());
}

void weir_zone_begin_(struct weir_thread *t, int stage)
{
    struct weir_cell *cell = cell_for(t, stage);
    if (__builtin_expect(!cell, 0))
        begin_first(t, stage);
    else if (__builtin_expect(!weir_clock.tsc, 0))
        begin_no_tsc(t, cell);
    else
        begin_in(t, top_of(t) + 1, cell, 0);
}

void weir_zone_begin_at(struct weir_thread *t, int stage, uint64_t now)
{
    struct weir_cell *cell = cell_for(t, stage);
    if (cell) {
        begin_in(t, top_of(t) + 1, cell, now);
    } else {
        begin_first(t, stage);
        put(&top_of(t)->start, now);
    }
}

/* The CPU time of inner zones that were not sampled is estimated as proportional to wall time, and so is that of the
 * carved-out time. sampled is the wall time between the two CPU clock readings, in ticks. */
static void record_cpu(struct weir_thread *t, struct weir_open_zone *zone, struct weir_cell *cell, uint64_t cpu_ns,
                       uint64_t sampled, uint64_t carved_ns)
{
    uint64_t read_ns = weir_clock_to_ns(weir_cpu_read_ticks), wall_ns = weir_clock_to_ns(sampled);
    uint64_t known = zone->child_cpu_ticks, child = get(&zone->child);
    cpu_ns = cpu_ns > read_ns ? cpu_ns - read_ns : 0;
    cpu_ns = cpu_ns < wall_ns ? cpu_ns : wall_ns;
    zone[-1].child_cpu_ns += cpu_ns; /* used if that zone is sampled */
    zone[-1].child_cpu_ticks += sampled;
    cpu_ns -= zone->child_cpu_ns < cpu_ns ? zone->child_cpu_ns : cpu_ns;
    wall_ns = weir_clock_to_ns(known < sampled ? sampled - known : 0);
    uint64_t nested_ns = weir_clock_to_ns(known < child ? child - known : 0);
    uint64_t others_ns = carved_ns + nested_ns < wall_ns ? carved_ns + nested_ns : wall_ns;
    double per_ns = wall_ns ? (double)cpu_ns / (double)wall_ns : 0;
    add(&cell->sampled, 1);
    add(&cell->sampled_cpu_ns, (uint64_t)(per_ns * (double)(wall_ns - others_ns)));
    struct weir_cell *other = carved_ns ? cell_of(t, zone->carved_stage) : NULL;
    if (!other)
        return;
    add(&other->sampled, 1);
    add(&other->sampled_cpu_ns, (uint64_t)(per_ns * (double)(carved_ns < wall_ns ? carved_ns : wall_ns)));
}

/* Zones and laps to charge for the time that the thread spent off a core. */
struct off_core {
    struct weir_thread *thread;
    struct weir_cell *lap; /* the lap that is ending, or NULL */
    uint64_t lap_start;
};

/* Charges the zone that was innermost when the thread left its core. This is one of the currently open zones: records
 * are read whenever a zone ends, so since the last reading zones have only been opened. */
static void record_off(void *user, uint64_t start, uint64_t end, bool preempted)
{
    const struct off_core *to = user;
    struct weir_open_zone *zone = weir_zone_top(to->thread), *none = to->thread->open;
    if (to->lap && start >= to->lap_start) {
        add(&to->lap->off, end - start);
        add(&to->lap->preempted, preempted ? end - start : 0);
        return;
    }
    while (zone > none && get(&zone->start) > start)
        zone--;
    if (zone == none)
        return;
    make_special(zone);
    add(&zone->off, end - start);
    add(&zone->preempted, preempted ? end - start : 0);
}

static RARELY void read_switches(struct weir_thread *t, struct weir_cell *lap, uint64_t lap_start)
{
    struct off_core to = {t, lap, lap_start};
    uint32_t version = change_begin(t);
    weir_switches_read(&t->switches, record_off, &to);
    change_end(t, version);
}

/* Adds the zone's time off the core to its stage and, in proportion, to the stage to which carved-out time is charged.
 */
static RARELY void close_off(struct weir_thread *t, struct weir_open_zone *zone, struct weir_cell *cell, uint64_t own,
                             uint64_t carved)
{
    double part = carved < own ? (double)carved / (double)own : carved > 0;
    uint64_t off = get(&zone->off), preempted = get(&zone->preempted);
    uint64_t carved_off = (uint64_t)((double)off * part), carved_preempted = (uint64_t)((double)preempted * part);
    struct weir_cell *other = carved_off ? cell_of(t, zone->carved_stage) : NULL;
    add(&cell->off, off - carved_off);
    add(&cell->preempted, preempted - carved_preempted);
    put(&zone->off, 0);
    put(&zone->preempted, 0);
    if (!other)
        return;
    add(&other->off, carved_off);
    add(&other->preempted, carved_preempted);
}

/* Adds an ended zone to its stage's cell, and its time to the enclosing zone's `child`. */
static inline __attribute__((always_inline)) void close_zone(struct weir_thread *t, struct weir_open_zone *zone,
                                                             struct weir_cell *cell, uint64_t wall, uint64_t carved,
                                                             uint64_t place, bool is_special)
{
    uint64_t nested = get(&zone->child), total = wall - carved;
    bracket_end(t, zone, cell, wall, carved);
    uint32_t version = change_begin(t);
    record_in(cell, total, place);
    add(&zone[-1].child, wall); /* for an outermost zone this is open[0], which is not read */
    if (is_special && get(&zone->off))
        close_off(t, zone, cell, wall > nested ? wall - nested : 0, carved);
    if (nested)
        add(&cell->nested, nested < total ? nested : total);
    atomic_store_explicit(&t->top, zone - 1, memory_order_relaxed);
    change_end(t, version);
}

static void record_carved(struct weir_thread *t, const struct weir_open_zone *zone, uint64_t carved)
{
    struct weir_cell *cell = cell_of(t, zone->carved_stage);
    uint32_t version = change_begin(t);
    if (cell)
        record(cell, carved);
    change_end(t, version);
}

/* Carved-out time is recorded as one range at the end of the zone, even if it was carved out in several pieces. */
static void trace_zone(const struct weir_open_zone *zone, const struct weir_cell *cell, uint64_t now)
{
    uint64_t start = get(&zone->start), carved = zone->flags.special ? zone->carved : 0;
    uint32_t state = zone->flags.state, shapes = zone->shapes;
    if (state & WEIR_RECORDING_NVTX)
        show_end(cell);
    if (!(state & WEIR_RECORDING_ON))
        return;
    carved = carved < now - start ? carved : now - start;
    if (carved)
        weir_track_range((weir_name)zone->carved_stage, now - carved, now, state, 0);
    weir_track_range((weir_name)cell->stage, start, now, state, shapes);
}

/* Ends a zone whose CPU time was sampled, from which time was carved out, during which the thread left its core, or
 * that is nested too deep. */
static RARELY void end_special(struct weir_thread *t, struct weir_open_zone *zone)
{
    if (zone > t->open + WEIR_DEPTH_MAX) {
        end_too_deep(t, zone);
        return;
    }
    make_special(zone); /* not done yet if the only reason for this path is a missing TSC */
    uint64_t sampled = zone->cpu_start_ns ? weir_clock_ticks() - zone->cpu_start : 0;
    uint64_t cpu_ns = zone->cpu_start_ns ? clock_ns(CLOCK_THREAD_CPUTIME_ID) - zone->cpu_start_ns : 0;
    uint64_t now = weir_clock_ticks(), overhead = zone->cpu_start_ns ? 2 * weir_cpu_read_ticks : 0;
    if (weir_switches_any(&t->switches))
        read_switches(t, NULL, 0);
    struct weir_cell *cell = atomic_load_explicit(&zone->cell, memory_order_relaxed);
    uint64_t start = get(&zone->start) + overhead;
    uint64_t wall = now > start ? now - start : 0, carved = zone->carved < wall ? zone->carved : wall;
    close_zone(t, zone, cell, wall, carved, weir_hist_bucket(wall - carved), true);
    if (carved)
        record_carved(t, zone, carved);
    if (zone->cpu_start_ns)
        record_cpu(t, zone, cell, cpu_ns, sampled, weir_clock_to_ns(carved));
    if (zone->flags.state)
        trace_zone(zone, cell, now);
}

/* Ends a zone that took more than about a minute, or that ended on a core whose clock is behind that of the core on
 * which it began. */
static RARELY void end_odd(struct weir_thread *t, struct weir_open_zone *zone, struct weir_cell *cell, int64_t ticks)
{
    uint64_t wall = ticks > 0 ? (uint64_t)ticks : 0;
    close_zone(t, zone, cell, wall, 0, weir_hist_bucket(wall), false);
    if (zone->flags.state)
        trace_zone(zone, cell, get(&zone->start) + wall);
}

/* Ends a zone that is recorded in a trace or shown in NVTX but needs no other special handling. */
static __attribute__((noinline)) void end_traced(struct weir_thread *t, struct weir_open_zone *zone)
{
    struct weir_cell *cell = atomic_load_explicit(&zone->cell, memory_order_relaxed);
    uint64_t start = get(&zone->start), now = weir_clock_tsc();
    if (__builtin_expect((now - start) >> WEIR_HIST_BITS != 0, 0)) {
        end_odd(t, zone, cell, (int64_t)(now - start));
        return;
    }
    close_zone(t, zone, cell, now - start, 0, weir_hist_bucket_short(now - start), false);
    if (__builtin_expect(zone->flags.state & WEIR_RECORDING_NVTX, 0))
        trace_zone(zone, cell, now);
    else
        weir_track_range((weir_name)cell->stage, start, now, zone->flags.state, zone->shapes);
}

void weir_zone_end_(struct weir_thread *t)
{
    struct weir_open_zone *zone = top_of(t);
    if (__builtin_expect(zone == t->open, 0))
        return;
    bracket_stop();
    if (__builtin_expect(zone->flags.special || weir_switches_any(&t->switches) || !weir_clock.tsc, 0)) {
        end_special(t, zone);
    } else if (__builtin_expect(zone->flags.state != 0, 0)) {
        end_traced(t, zone);
    } else {
        struct weir_cell *cell = atomic_load_explicit(&zone->cell, memory_order_relaxed);
        uint64_t ticks = weir_clock_tsc() - get(&zone->start);
        if (__builtin_expect(ticks >> WEIR_HIST_BITS != 0, 0))
            end_odd(t, zone, cell, (int64_t)ticks);
        else
            close_zone(t, zone, cell, ticks, 0, weir_hist_bucket_short(ticks), false);
    }
}

/* ---- zones at given times ---- */

void weir_zone_end_at(struct weir_thread *t, uint64_t now)
{
    struct weir_open_zone *zone = top_of(t);
    if (zone == t->open)
        return;
    bracket_stop();
    if (zone->flags.special) {
        end_special(t, zone);
        return;
    }
    struct weir_cell *cell = atomic_load_explicit(&zone->cell, memory_order_relaxed);
    uint64_t start = get(&zone->start), ticks = now > start ? now - start : 0;
    close_zone(t, zone, cell, ticks, 0, weir_hist_bucket(ticks), false);
    if (zone->flags.state)
        trace_zone(zone, cell, now);
}

/* Zones that are nested too deep would end in the wrong place now, so they are forgotten. */
static void remove_zone(struct weir_thread *t, struct weir_open_zone *zone)
{
    struct weir_open_zone *top = weir_zone_top(t);
    memmove(zone, zone + 1, sizeof *zone * (size_t)(top - zone));
    t->too_deep_open = 0;
    atomic_store_explicit(&t->top, top - 1, memory_order_relaxed);
}

void weir_zone_drop(struct weir_thread *t, struct weir_open_zone *zone)
{
    uint32_t version = change_begin(t);
    remove_zone(t, zone);
    change_end(t, version);
}

uint64_t weir_zone_end_below(struct weir_thread *t, struct weir_open_zone *zone, uint64_t now)
{
    uint64_t start = get(&zone->start), ticks = now > start ? now - start : 0;
    if (zone == top_of(t)) {
        weir_zone_end_at(t, now);
        return ticks;
    }
    struct weir_cell *cell = atomic_load_explicit(&zone->cell, memory_order_relaxed);
    uint64_t inner = zone < weir_zone_top(t) && now > get(&zone[1].start) ? now - get(&zone[1].start) : 0;
    uint64_t nested = get(&zone->child) + inner;
    uint32_t version = change_begin(t);
    record(cell, ticks);
    add(&cell->nested, nested < ticks ? nested : ticks);
    add(&zone[-1].child, ticks > inner ? ticks - inner : 0);
    remove_zone(t, zone);
    change_end(t, version);
    return ticks;
}

void weir_zone_carve_(struct weir_thread *t, int stage, uint64_t ticks)
{
    struct weir_open_zone *zone = top_of(t);
    if (zone == t->open || zone > t->open + WEIR_DEPTH_MAX)
        return; /* the enclosing zone is dropped, so its carved-out time is dropped too */
    make_special(zone);
    if (zone->carved > 0 && zone->carved_stage != stage)
        return;
    zone->carved += ticks;
    zone->carved_stage = stage;
}

void weir_zone_shapes_(struct weir_thread *t, uint32_t shapes)
{
    top_of(t)->shapes = shapes; /* used only if the state enables shapes */
}

void weir_lap_(struct weir_thread *t, struct weir_lap *lap, int stage)
{
    struct weir_cell *cell = cell_of(t, stage);
    uint64_t now = weir_clock_ticks(), start = lap->at;
    now = now > start ? now : start;
    lap->at = now;
    if (__builtin_expect(weir_switches_any(&t->switches), 0))
        read_switches(t, cell, start);
    uint32_t version = change_begin(t);
    add(&top_of(t)->child, now - start);
    if (cell)
        record(cell, now - start);
    change_end(t, version);
    if (__builtin_expect(lap->state & WEIR_RECORDING_ON, 0))
        weir_track_range((weir_name)stage, start, now, lap->state, 0);
    lap->state = weir_recording();
}

/* Like a lap that ends now, but only `own` of its ticks are the stage's own time. */
void weir_zone_logged(int stage, uint64_t ticks, uint64_t own)
{
    struct weir_thread *t = weir_thread_self;
    struct weir_cell *cell = t ? cell_of(t, stage) : NULL;
    if (!cell)
        return;
    uint64_t now = weir_clock_ticks();
    if (weir_switches_any(&t->switches))
        read_switches(t, cell, now > ticks ? now - ticks : 0);
    uint32_t version = change_begin(t);
    add(&top_of(t)->child, own);
    record(cell, ticks);
    add(&cell->nested, ticks - own);
    add(&cell->logged, 1);
    add(&cell->logged_self, own);
    change_end(t, version);
    if (weir_recording() != 0)
        weir_async_record_((weir_name)stage, now > ticks ? now - ticks : 0, now, weir_item_self);
}

/* A span has no self time, so all of its time counts as nested. */
void weir_span_(struct weir_thread *t, int stage, uint64_t start, uint64_t end)
{
    struct weir_cell *cell = cell_of(t, stage);
    uint64_t ticks = end > start ? end - start : 0;
    if (!cell)
        return;
    uint32_t version = change_begin(t);
    record(cell, ticks);
    add(&cell->nested, ticks);
    change_end(t, version);
    if (__builtin_expect(weir_recording() != 0, 0))
        weir_async_record_((weir_name)stage, start, end, weir_item_self);
}
