/* Zones, batches, items and files of the calling thread. */
#include "base/hash.h"
#include "prof/watch/watch_read.h"
#include "prof/watch/zones_priv.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* The CPU clock is a system call on most machines, so it is read in one batch of this many, and for stages whose calls
 * are long enough. */
enum { SAMPLE_EVERY = 8, SAMPLE_LEAST_NS = 5000 };

static uint64_t cpu_now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- cells ---- */

void weir_watch_cell_add(struct weir_shared_slot *slot, int stage, uint64_t ticks, uint64_t nested)
{
    struct weir_shared_cell *cell = &slot->cells[stage];
    uint64_t count = weir_shared_get(&cell->count);
    _Atomic uint32_t *bucket = &cell->hist[weir_hist_bucket(ticks)];
    atomic_store_explicit(bucket, atomic_load_explicit(bucket, memory_order_relaxed) + 1, memory_order_relaxed);
    weir_shared_add(&cell->total, ticks);
    if (nested)
        weir_shared_add(&cell->nested, nested < ticks ? nested : ticks);
    if (count == 0 || ticks < weir_shared_get(&cell->min))
        weir_shared_put(&cell->min, ticks);
    if (ticks > weir_shared_get(&cell->max))
        weir_shared_put(&cell->max, ticks);
    weir_shared_put(&cell->count, count + 1);
    weir_shared_add(&slot->zones, 1);
}

/* ---- zones ---- */

/* Stages with very short calls are not sampled: reading the clock would take as long as they do. */
static bool is_long(const struct weir_shared_cell *cell)
{
    uint64_t count = weir_shared_get(&cell->count);
    return count == 0 || weir_clock_to_ns(weir_shared_get(&cell->total) / count) >= SAMPLE_LEAST_NS;
}

void weir_watch_zone_open(struct weir_watch_thread *t, int stage, uint64_t now)
{
    if ((unsigned)stage >= WEIR_STAGE_MAX)
        return;
    if (t->depth >= WEIR_WATCH_DEPTH) {
        t->too_deep++;
        weir_shared_add(&t->slot->too_deep, 1);
        return;
    }
    struct weir_watch_zone *zone = &t->zones[++t->depth];
    zone->slot = t->slot;
    zone->stage = stage;
    zone->start = now;
    zone->child = 0;
    zone->sampled = t->sampling && is_long(&t->slot->cells[stage]);
    zone->cpu_child_ns = 0;
    if (__builtin_expect(zone->sampled, 0))
        zone->cpu_start_ns = cpu_now_ns();
}

static void close_sampled(struct weir_watch_zone *zone)
{
    struct weir_shared_cell *cell = &zone->slot->cells[zone->stage];
    uint64_t end_ns = cpu_now_ns(), cpu_ns = end_ns > zone->cpu_start_ns ? end_ns - zone->cpu_start_ns : 0;
    weir_shared_add(&cell->sampled, 1);
    weir_shared_add(&cell->sampled_cpu_ns, cpu_ns > zone->cpu_child_ns ? cpu_ns - zone->cpu_child_ns : 0);
    zone[-1].cpu_child_ns += cpu_ns;
}

void weir_watch_zone_close(struct weir_watch_thread *t, uint64_t now)
{
    if (t->too_deep > 0) {
        t->too_deep--;
        return;
    }
    if (t->depth == 0)
        return;
    struct weir_watch_zone *zone = &t->zones[t->depth--];
    uint64_t ticks = now > zone->start ? now - zone->start : 0;
    if (__builtin_expect(zone->sampled, 0))
        close_sampled(zone);
    zone[-1].child += ticks;
    weir_watch_cell_add(zone->slot, zone->stage, ticks, zone->child);
}

static int find_open(const struct weir_watch_thread *t, int stage, int loader)
{
    int i = t->depth;
    while (i > 0 && !(t->zones[i].stage == stage &&
                      (loader < 0 || atomic_load_explicit(&t->zones[i].slot->loader, memory_order_relaxed) == loader)))
        i--;
    return i;
}

static void remove_zone(struct weir_watch_thread *t, int i)
{
    memmove(&t->zones[i], &t->zones[i + 1], sizeof t->zones[0] * (size_t)(t->depth - i));
    t->depth--;
}

void weir_watch_zone_drop(struct weir_watch_thread *t, int stage, int loader)
{
    int i = find_open(t, stage, loader);
    if (i > 0)
        remove_zone(t, i);
}

/* Closes a zone below the innermost one. A zone that the program opened in it lasts longer: its part until now is not
 * this stage's own time. */
static uint64_t close_below(struct weir_watch_thread *t, int i, uint64_t now)
{
    struct weir_watch_zone *zone = &t->zones[i];
    uint64_t ticks = now > zone->start ? now - zone->start : 0, inner = now > zone[1].start ? now - zone[1].start : 0;
    zone[-1].child += ticks > inner ? ticks - inner : 0;
    weir_watch_cell_add(zone->slot, zone->stage, ticks, zone->child + inner);
    remove_zone(t, i);
    return ticks;
}

uint64_t weir_watch_zone_close_stage(struct weir_watch_thread *t, int stage, int loader, uint64_t now)
{
    int i = find_open(t, stage, loader);
    if (i == 0)
        return 0;
    if (i < t->depth)
        return close_below(t, i, now);
    uint64_t start = t->zones[i].start;
    weir_watch_zone_close(t, now);
    return now > start ? now - start : 0;
}

void weir_watch_sample_next(struct weir_watch_thread *t)
{
    t->sampling = --t->until_sample == 0;
    if (t->sampling)
        t->until_sample = SAMPLE_EVERY;
}

static int register_stage(struct weir_segment *segment, const char *name, unsigned kind)
{
    char known[WEIR_TEXT_WORDS * 8], cut[WEIR_TEXT_WORDS * 8];
    snprintf(cut, sizeof cut, "%s", name);
    int found = -1;
    weir_segment_lock(segment);
    for (int i = 0; i < WEIR_SEGMENT_NAMED && found < 0; i++) {
        bool is_free = atomic_load(&segment->stage_kind[i]) == 0;
        if (is_free) {
            weir_shared_text_put(segment->stage_name[i].words, WEIR_TEXT_WORDS, cut);
            atomic_store(&segment->stage_kind[i], kind);
        }
        weir_shared_text_get(known, sizeof known, segment->stage_name[i].words, WEIR_TEXT_WORDS);
        if (is_free || strcmp(known, cut) == 0)
            found = WEIR_STAGE_TABLE_MAX + i;
    }
    weir_segment_unlock(segment);
    return found;
}

int weir_watch_stage(const char *name, int kind)
{
    static const enum weir_stage_kind kinds[] = {WEIR_KIND_WORK, WEIR_KIND_INCLUSIVE, WEIR_KIND_WAIT};
    struct weir_watch_thread *t = weir_watch_self();
    if (!t || !name || kind < 0 || kind > 2)
        return -1;
    for (int i = 0; i < WEIR_WATCH_STAGES; i++)
        if (strcmp(weir_watch_stages[i].name, name) == 0)
            return i;
    bool loop = atomic_load(&t->slot->role) == WEIR_WATCH_LOOP;
    for (int i = 1; i <= t->depth; i++) /* without workers, the loop's thread prepares batches */
        loop &= t->zones[i].stage != WEIR_WATCH_TOTAL_BATCH;
    return register_stage(t->watch->segment, name, (unsigned)kinds[kind] + 1 + (loop ? 256 : 0));
}

void weir_watch_begin(int stage)
{
    struct weir_watch_thread *t = weir_watch_self();
    if (t)
        weir_watch_zone_open(t, stage, weir_clock_ticks());
}

/* A program that times its own request for a batch ends that stage inside the step, which began meanwhile and lasts
 * until the next request. */
void weir_watch_end(void)
{
    struct weir_watch_thread *t = weir_watch_self();
    if (!t)
        return;
    int i = t->depth;
    while (t->too_deep == 0 && i > 0 && t->zones[i].stage == WEIR_WATCH_STEP)
        i--;
    if (i > 0 && i < t->depth)
        close_below(t, i, weir_clock_ticks());
    else if (i > 0 || t->too_deep > 0)
        weir_watch_zone_close(t, weir_clock_ticks());
}

/* ---- batches ---- */

void weir_watch_batch_begin(int64_t batch)
{
    struct weir_watch_thread *t = weir_watch_self();
    (void)batch;
    if (!t)
        return;
    uint64_t now = weir_clock_ticks(), since = t->last_end ? t->last_end : t->attached;
    if (atomic_load_explicit(&t->slot->role, memory_order_relaxed) != WEIR_WATCH_LOOP && now > since)
        weir_watch_cell_add(t->slot, t->last_end ? WEIR_WATCH_WAIT_WORK : WEIR_WATCH_START_WORKER, now - since, 0);
    if (now > weir_shared_get(&t->slot->seen))
        weir_shared_put(&t->slot->seen, now);
    weir_watch_sample_next(t);
    weir_watch_zone_open(t, WEIR_WATCH_TOTAL_BATCH, now);
}

void weir_watch_batch_end(int n_items)
{
    struct weir_watch_thread *t = weir_watch_self();
    if (!t)
        return;
    uint64_t now = weir_clock_ticks();
    int i = find_open(t, WEIR_WATCH_TOTAL_BATCH, -1);
    if (i == 0)
        return;
    struct weir_shared_slot *slot = t->zones[i].slot;
    uint64_t ticks = now > t->zones[i].start ? now - t->zones[i].start : 0;
    t->too_deep = 0;
    while (t->depth >= i) /* an exception can leave zones open */
        weir_watch_zone_close(t, now);
    t->path_hash = 0;
    t->last_end = now;
    weir_shared_add(&slot->batches, 1);
    weir_shared_add(&slot->items, n_items > 0 ? (uint64_t)n_items : 0);
    weir_shared_add_square(&slot->batch_squares, ticks);
    weir_watch_account(t, now);
}

/* ---- items and files ---- */

/* Counts the time since the path was named, in its entry of the item's slot or in that of the shortest one. */
static void close_path(struct weir_watch_thread *t, struct weir_shared_slot *slot, uint64_t now)
{
    uint64_t ticks = now > t->path_start ? now - t->path_start : 0;
    if (t->path_hash == 0)
        return;
    struct weir_shared_path *to = NULL, *least = &slot->paths[0];
    for (int i = 0; i < WEIR_SLOT_PATHS && !to; i++) {
        struct weir_shared_path *path = &slot->paths[i];
        uint64_t hash = weir_shared_get(&path->hash);
        if (hash == t->path_hash || hash == 0)
            to = path;
        else if (weir_shared_get(&path->max) < weir_shared_get(&least->max))
            least = path;
    }
    bool replaces = !to && ticks > weir_shared_get(&least->max);
    to = replaces ? least : to;
    weir_shared_add(&slot->path_total, ticks);
    weir_shared_add(&slot->path_count, 1);
    if (!to)
        return;
    if (weir_shared_get(&to->hash) != t->path_hash) {
        weir_shared_text_put(to->name, WEIR_PATH_WORDS, t->path_name);
        weir_shared_put(&to->count, 0);
        weir_shared_put(&to->total, 0);
        weir_shared_put(&to->max, 0);
        weir_shared_put(&to->hash, t->path_hash);
    }
    weir_shared_add(&to->count, 1);
    weir_shared_add(&to->total, ticks);
    if (ticks > weir_shared_get(&to->max))
        weir_shared_put(&to->max, ticks);
}

void weir_watch_path(const char *path)
{
    struct weir_watch_thread *t = weir_watch_self();
    int i = t && path ? find_open(t, WEIR_WATCH_GETITEM, -1) : 0;
    if (i == 0)
        return;
    size_t length = strlen(path), most = sizeof t->path_name - 1;
    uint64_t hash = weir_hash64(path, length) | 1;
    if (hash == t->path_hash)
        return;
    uint64_t now = weir_clock_ticks();
    close_path(t, t->zones[i].slot, now);
    t->path_hash = hash;
    t->path_start = now;
    snprintf(t->path_name, sizeof t->path_name, "%s", length > most ? path + length - most : path);
}

void weir_watch_item_begin(int64_t index)
{
    struct weir_watch_thread *t = weir_watch_self();
    if (!t)
        return;
    t->path_hash = 0;
    weir_watch_zone_open(t, WEIR_WATCH_GETITEM, weir_clock_ticks());
    t->zones[t->depth].item = index < 0 ? -1 : index;
}

/* Keeps the longest items, each index once. */
static void keep_slowest(struct weir_shared_slot *slot, int64_t index, uint64_t path_hash, uint64_t ticks)
{
    struct weir_shared_item *to = &slot->slowest[0];
    for (int i = 0; i < WEIR_SLOT_ITEMS; i++) {
        struct weir_shared_item *item = &slot->slowest[i];
        uint64_t known = weir_shared_get(&item->ticks);
        if (known > 0 && atomic_load_explicit(&item->index, memory_order_relaxed) == index) {
            to = item;
            break;
        }
        if (known < weir_shared_get(&to->ticks))
            to = item;
    }
    if (ticks <= weir_shared_get(&to->ticks))
        return;
    atomic_store_explicit(&to->index, index, memory_order_relaxed);
    weir_shared_put(&to->path, path_hash);
    weir_shared_put(&to->ticks, ticks);
}

void weir_watch_item_end(void)
{
    struct weir_watch_thread *t = weir_watch_self();
    if (!t)
        return;
    uint64_t now = weir_clock_ticks();
    int i = find_open(t, WEIR_WATCH_GETITEM, -1);
    if (i == 0)
        return;
    struct weir_shared_slot *slot = t->zones[i].slot;
    int64_t index = t->zones[i].item;
    uint64_t ticks = now > t->zones[i].start ? now - t->zones[i].start : 0;
    t->too_deep = 0;
    while (t->depth >= i)
        weir_watch_zone_close(t, now);
    close_path(t, slot, now);
    keep_slowest(slot, index, t->path_hash, ticks);
    weir_shared_add(&slot->item_total, ticks);
    weir_shared_add(&slot->item_count, 1);
    t->path_hash = 0;
    weir_watch_turn_back(t);
}

/* ---- cost ---- */

static double zone_cost_ns;

/* The best of several rounds, on a slot of its own. Each zone reads the clock twice, as weir_watch_begin and _end do.
 */
static void measure_zones(void)
{
    enum { ROUNDS = 8, ZONES = 2000 };
    struct weir_watch_thread *t = calloc(1, sizeof *t);
    struct weir_shared_slot *slot = aligned_alloc(64, sizeof *slot);
    uint64_t best = UINT64_MAX;
    if (t && slot) {
        memset(slot, 0, sizeof *slot);
        t->slot = slot;
        for (int round = 0; round < ROUNDS; round++) {
            uint64_t start = weir_clock_ticks();
            for (int i = 0; i < ZONES; i++) {
                weir_watch_zone_open(t, WEIR_WATCH_READ, weir_clock_ticks());
                weir_watch_zone_close(t, weir_clock_ticks());
            }
            uint64_t ticks = weir_clock_ticks() - start;
            best = ticks < best ? ticks : best;
        }
        zone_cost_ns = (double)best * weir_clock_ns_per_tick() / ZONES;
    }
    free(t);
    free(slot);
}

double weir_watch_zone_cost_ns(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    weir_clock_init();
    pthread_once(&once, measure_zones);
    return zone_cost_ns;
}
