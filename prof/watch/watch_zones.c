/* Zones, batches, items and files of the calling thread. */
#include "base/hash.h"
#include "prof/watch/watch_read.h"
#include "prof/watch/zones_priv.h"

#include <stdio.h>

/* The CPU clock is a system call on most machines, so it is read in one batch of this many. */
enum { SAMPLE_EVERY = 8 };

/* ---- zones ---- */

void weir_watch_zone_open(struct weir_watch_thread *t, int stage, uint64_t now)
{
    weir_zone_begin_at(t->thread, stage, now);
    atomic_load_explicit(&t->thread->top, memory_order_relaxed)->owner = t->slot;
}

static bool is_of(const struct weir_open_zone *zone, int loader)
{
    const struct weir_shared_slot *slot = zone->owner;
    return loader < 0 || (slot && atomic_load_explicit(&slot->loader, memory_order_relaxed) == loader);
}

/* Returns the innermost zone of this stage, or NULL. */
static struct weir_open_zone *find_open(struct weir_watch_thread *t, int stage, int loader)
{
    struct weir_open_zone *zone = weir_zone_top(t->thread);
    while (zone > t->thread->open && !(weir_zone_stage(zone) == stage && is_of(zone, loader)))
        zone--;
    return zone > t->thread->open ? zone : NULL;
}

void weir_watch_zone_drop(struct weir_watch_thread *t, int stage, int loader)
{
    struct weir_open_zone *zone = find_open(t, stage, loader);
    if (zone)
        weir_zone_drop(t->thread, zone);
}

uint64_t weir_watch_zone_close_stage(struct weir_watch_thread *t, int stage, int loader, uint64_t now)
{
    struct weir_open_zone *zone = find_open(t, stage, loader);
    return zone ? weir_zone_end_below(t->thread, zone, now) : 0;
}

/* Closes a zone and those in it, which an exception can leave open. Returns its duration. */
static uint64_t close_all(struct weir_watch_thread *t, const struct weir_open_zone *zone, uint64_t now)
{
    uint64_t start = get(&zone->start);
    while (atomic_load_explicit(&t->thread->top, memory_order_relaxed) >= zone)
        weir_zone_end_at(t->thread, now);
    return now > start ? now - start : 0;
}

void weir_watch_sample_next(struct weir_watch_thread *t)
{
    bool sampled = --t->until_sample == 0;
    if (sampled)
        t->until_sample = SAMPLE_EVERY;
    if (sampled != t->thread->sample_all)
        weir_thread_sample(t->thread, sampled);
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
    loop &= !find_open(t, WEIR_WATCH_TOTAL_BATCH, -1); /* without workers, the loop's thread prepares batches */
    return register_stage(t->watch->segment, name, (unsigned)kinds[kind] + 1 + (loop ? 256 : 0));
}

static struct weir_open_zone *open_now(struct weir_watch_thread *t, int stage)
{
    weir_zone_begin_(t->thread, stage);
    struct weir_open_zone *zone = atomic_load_explicit(&t->thread->top, memory_order_relaxed);
    zone->owner = t->slot;
    return zone;
}

void weir_watch_begin(int stage)
{
    struct weir_watch_thread *t = weir_watch_self();
    if (t && (unsigned)stage < WEIR_STAGE_MAX)
        open_now(t, stage);
}

/* A program that times its own request for a batch ends that stage inside the step, which began meanwhile and lasts
 * until the next request. */
static __attribute__((noinline)) void end_below_step(struct weir_watch_thread *t)
{
    struct weir_open_zone *zone = weir_zone_top(t->thread);
    while (zone > t->thread->open && weir_zone_stage(zone) == WEIR_WATCH_STEP)
        zone--;
    if (zone > t->thread->open)
        weir_zone_end_below(t->thread, zone, weir_clock_ticks());
}

void weir_watch_end(void)
{
    struct weir_watch_thread *t = weir_watch_self();
    if (!t)
        return;
    if (__builtin_expect(
            weir_zone_stage(atomic_load_explicit(&t->thread->top, memory_order_relaxed)) == WEIR_WATCH_STEP, 0))
        end_below_step(t);
    else
        weir_zone_end_(t->thread);
}

/* ---- batches ---- */

void weir_watch_batch_begin(int64_t batch)
{
    struct weir_watch_thread *t = weir_watch_self();
    (void)batch;
    if (!t)
        return;
    if (atomic_load_explicit(&t->slot->role, memory_order_relaxed) != WEIR_WATCH_LOOP)
        weir_lap_(t->thread, &t->lap, t->has_batches ? WEIR_WATCH_WAIT_WORK : WEIR_WATCH_START_WORKER);
    else
        t->lap.at = weir_clock_ticks();
    put(&t->slot->totals.seen_ns, weir_clock_to_ns(t->lap.at));
    weir_watch_sample_next(t);
    weir_watch_zone_open(t, WEIR_WATCH_TOTAL_BATCH, t->lap.at);
}

void weir_watch_batch_end(int n_items)
{
    struct weir_watch_thread *t = weir_watch_self();
    struct weir_open_zone *zone = t ? find_open(t, WEIR_WATCH_TOTAL_BATCH, -1) : NULL;
    if (!zone)
        return;
    struct weir_shared_slot *slot = zone->owner;
    t->lap.at = weir_clock_ticks();
    weir_shared_add_square(&slot->batch_squares, close_all(t, zone, t->lap.at));
    t->path_hash = 0;
    t->has_batches = true;
    add(&slot->batches, 1);
    add(&slot->items, n_items > 0 ? (uint64_t)n_items : 0);
    weir_watch_account(t, t->lap.at);
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
        uint64_t hash = get(&path->hash);
        if (hash == t->path_hash || hash == 0)
            to = path;
        else if (get(&path->max) < get(&least->max))
            least = path;
    }
    bool replaces = !to && ticks > get(&least->max);
    to = replaces ? least : to;
    add(&slot->path_total, ticks);
    add(&slot->path_count, 1);
    if (!to)
        return;
    if (get(&to->hash) != t->path_hash) {
        weir_shared_text_put(to->name, WEIR_PATH_WORDS, t->path_name);
        put(&to->count, 0);
        put(&to->total, 0);
        put(&to->max, 0);
        put(&to->hash, t->path_hash);
    }
    add(&to->count, 1);
    add(&to->total, ticks);
    if (ticks > get(&to->max))
        put(&to->max, ticks);
}

void weir_watch_path(const char *path)
{
    struct weir_watch_thread *t = weir_watch_self();
    const struct weir_open_zone *zone = t && path ? find_open(t, WEIR_WATCH_GETITEM, -1) : NULL;
    if (!zone)
        return;
    size_t length = strlen(path), most = sizeof t->path_name - 1;
    uint64_t hash = weir_hash64(path, length) | 1;
    if (hash == t->path_hash)
        return;
    uint64_t now = weir_clock_ticks();
    close_path(t, zone->owner, now);
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
    open_now(t, WEIR_WATCH_GETITEM)->item = index < 0 ? -1 : index;
}

/* Keeps the longest items, each index once. */
static void keep_slowest(struct weir_shared_slot *slot, int64_t index, uint64_t path_hash, uint64_t ticks)
{
    struct weir_shared_item *to = &slot->slowest[0];
    for (int i = 0; i < WEIR_SLOT_ITEMS; i++) {
        struct weir_shared_item *item = &slot->slowest[i];
        uint64_t known = get(&item->ticks);
        if (known > 0 && atomic_load_explicit(&item->index, memory_order_relaxed) == index) {
            to = item;
            break;
        }
        if (known < get(&to->ticks))
            to = item;
    }
    if (ticks <= get(&to->ticks))
        return;
    atomic_store_explicit(&to->index, index, memory_order_relaxed);
    put(&to->path, path_hash);
    put(&to->ticks, ticks);
}

void weir_watch_item_end(void)
{
    struct weir_watch_thread *t = weir_watch_self();
    const struct weir_open_zone *zone = t ? find_open(t, WEIR_WATCH_GETITEM, -1) : NULL;
    if (!zone)
        return;
    struct weir_shared_slot *slot = zone->owner;
    int64_t index = zone->item;
    uint64_t now = weir_clock_ticks(), ticks = close_all(t, zone, now);
    close_path(t, slot, now);
    keep_slowest(slot, index, t->path_hash, ticks);
    t->path_hash = 0;
    weir_watch_turn_back(t);
}
