#include "prof/watch/watch_read.h"
#include "base/threads.h"
#include "prof/watch/read_priv.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

_Static_assert(sizeof(struct weir_watch_counts) % sizeof(double) == 0, "all members are doubles");

/* ---- stages ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* In a child, the thread that held the lock does not exist. A lock around other locks must not be held during fork().
 */
static void in_child(void)
{
    pthread_mutex_init(&lock, NULL);
}
__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

/* Returns the number in this process of a stage that a program named, or -1. */
static int named_stage(const struct weir_segment *segment, int i)
{
    uint32_t kind = atomic_load(&segment->stage_kind[i]);
    char name[WEIR_WATCH_TEXT];
    if ((kind & 255) < 1 || (kind & 255) > WEIR_KIND_LOOP)
        return -1;
    weir_shared_text_get(name, sizeof name, segment->stage_name[i].words, WEIR_TEXT_WORDS);
    char *kept = name[0] ? strdup(name) : NULL;
    if (!kept)
        return -1;
    int stage = weir_stage_register(kept, (enum weir_stage_kind)((kind & 255) - 1), kind & 256);
    if (stage < 0 || weir_stage_info(stage)->name != kept)
        free(kept);
    return stage;
}

static int map_stages(const struct weir_segment *segment, int map[WEIR_STAGE_MAX])
{
    pthread_mutex_lock(&lock);
    int rc = weir_stages_register(weir_watch_stages, WEIR_WATCH_STAGES);
    for (int i = 0; i < WEIR_STAGE_MAX; i++)
        map[i] = i < WEIR_WATCH_STAGES      ? i
                 : i < WEIR_STAGE_TABLE_MAX ? -1
                                            : named_stage(segment, i - WEIR_STAGE_TABLE_MAX);
    pthread_mutex_unlock(&lock);
    return rc;
}

bool weir_watch_is_stage(const char *name)
{
    const char *transform = weir_watch_stages[WEIR_WATCH_TRANSFORM].name;
    for (int i = 0; i < WEIR_WATCH_STAGES; i++)
        if (strcmp(weir_watch_stages[i].name, name) == 0)
            return true;
    return strncmp(name, transform, strlen(transform)) == 0 && name[strlen(transform)] == ' ';
}

/* ---- the snapshot ---- */

static void read_thread(struct weir_thread_stats *to, const struct weir_shared_slot *slot)
{
    static const char *const names[WEIR_WATCH_ROLES] = {"loop", "worker", "feeder", "pin", "other"};
    static const enum weir_thread_role roles[WEIR_WATCH_ROLES] = {WEIR_ROLE_CONSUMER, WEIR_ROLE_WORKER, WEIR_ROLE_OTHER,
                                                                  WEIR_ROLE_OTHER, WEIR_ROLE_OTHER};
    int role = weir_watch_role_of(slot);
    if (role == WEIR_WATCH_WORKER || role == WEIR_WATCH_FEEDER)
        snprintf(to->name, sizeof to->name, "%s %d", names[role], weir_watch_worker_of(slot));
    else
        snprintf(to->name, sizeof to->name, "%s", names[role]);
    to->role = roles[role];
    weir_totals_read(to, &slot->totals);
    to->open_stage = -1;
    to->is_caller = (pid_t)(uint32_t)get(&slot->owner) == weir_thread_id();
}

/* Adds a stage of a slot. Calls by threads beside the workers count separately, but not those of the loop's stages. A
 * loop without workers does their work. */
static void add_stage(struct weir_snapshot *snapshot, struct weir_thread_stats *thread, int stage,
                      const struct weir_cell *cell, bool own_work)
{
    const struct weir_stage_info *info = weir_stage_info(stage);
    if (!info)
        return;
    bool apart = !info->consumer && thread->role != WEIR_ROLE_WORKER && !own_work;
    thread->zones += weir_watch_count(&cell->count);
    weir_stage_split(thread, stage,
                     weir_cell_read(apart ? &snapshot->others[stage] : &snapshot->stages[stage], cell, false), 0);
}

static void read_slot(struct weir_snapshot *snapshot, struct weir_thread_stats *thread,
                      const struct weir_shared_slot *slot, const int map[WEIR_STAGE_MAX], bool workers)
{
    read_thread(thread, slot);
    for (int s = 0; s < WEIR_STAGE_MAX; s++)
        if (map[s] >= 0)
            add_stage(snapshot, thread, map[s], &slot->cells[s],
                      weir_watch_role_of(slot) == WEIR_WATCH_LOOP && !workers);
    uint64_t known_ns = thread->work_ns + thread->wait_ns;
    thread->unattributed_ns = thread->wall_ns > known_ns ? thread->wall_ns - known_ns : 0;
}

static struct weir_snapshot *snapshot_of(const struct weir_segment *segment, int loader, const int map[WEIR_STAGE_MAX])
{
    uint32_t n = weir_watch_slots(segment);
    struct weir_snapshot *snapshot = weir_snapshot_new((int)n);
    if (!snapshot)
        return NULL;
    snapshot->n_threads = 0;
    bool workers = false;
    for (uint32_t i = 0; i < n; i++)
        workers |=
            weir_watch_is_of(&segment->slot[i], loader) && weir_watch_role_of(&segment->slot[i]) == WEIR_WATCH_WORKER;
    for (uint32_t i = 0; i < n; i++)
        if (weir_watch_is_of(&segment->slot[i], loader))
            read_slot(snapshot, &snapshot->threads[snapshot->n_threads++], &segment->slot[i], map, workers);
    return snapshot;
}

/* ---- counts ---- */

static void read_loop_counts(struct weir_watch_counts *to, const struct weir_shared_loader *from)
{
    to->requests = (double)weir_watch_count(&from->requests);
    to->batches = (double)weir_watch_count(&from->batches);
    to->items = (double)weir_watch_count(&from->items);
    to->loop_s = weir_watch_s(&from->loop_ticks);
    to->wait_s = fmin(weir_watch_s(&from->wait_ticks), to->loop_s);
    to->ready_known = (double)weir_watch_count(&from->ready_known);
    to->ready_sum = (double)weir_watch_count(&from->ready_sum);
    to->ready_none = (double)weir_watch_count(&from->ready_none);
    for (int i = 0; i < WEIR_WATCH_WAITS; i++) {
        to->waits[i] = (double)weir_watch_count(&from->waits[i]);
        to->wait_of_s[i] = weir_watch_s(&from->wait_of[i]);
    }
    to->first_waits = (double)weir_watch_count(&from->first_waits);
    to->first_wait_s = weir_watch_s(&from->first_wait_ticks);
    to->startups = (double)weir_watch_count(&from->startups);
    to->startup_s = weir_watch_s(&from->startup_ticks);
    to->epochs = (double)weir_watch_count(&from->epochs);
    to->epochs_complete = (double)weir_watch_count(&from->epochs_complete);
    to->windows = (double)weir_watch_count(&from->windows);
    to->given_up = (double)weir_watch_count(&from->given_up);
    to->held_s = weir_watch_s(&from->held_ticks);
    to->window_batches = (double)weir_watch_count(&from->window.batches);
    to->window_s = weir_watch_s(&from->window.ticks);
    to->window_squares = weir_watch_squares(&from->window.squares);
    to->rest_batches = (double)weir_watch_count(&from->rest.batches);
    to->rest_s = weir_watch_s(&from->rest.ticks);
    to->rest_squares = weir_watch_squares(&from->rest.squares);
    for (int i = 0; i < WEIR_WATCH_WORKERS; i++)
        to->workers[i].asked_of_s = weir_watch_s(&from->worker_wait[i]);
}

static void add_worker_counts(struct weir_thread_figures *to, const struct weir_shared_slot *slot)
{
    struct weir_thread_stats totals;
    weir_totals_read(&totals, &slot->totals);
    to->wall_s += (double)totals.wall_ns / 1e9;
    to->busy_s += weir_watch_s(&slot->cells[WEIR_WATCH_TOTAL_BATCH].total);
    to->busy_squares += weir_watch_squares(&slot->batch_squares);
    to->wait_s += weir_watch_s(&slot->cells[WEIR_WATCH_WAIT_WORK].total);
    to->start_s += weir_watch_s(&slot->cells[WEIR_WATCH_START_WORKER].total);
    to->cpu_s += (double)totals.cpu_ns / 1e9;
    to->delay_s += (double)totals.delay_ns / 1e9;
    to->batches += (double)weir_watch_count(&slot->batches);
    to->items += (double)weir_watch_count(&slot->items);
}

void weir_watch_counts_subtract(struct weir_watch_counts *to, const struct weir_watch_counts *then)
{
    double numbers[sizeof *to / sizeof(double)], old[sizeof *to / sizeof(double)];
    memcpy(numbers, to, sizeof numbers);
    memcpy(old, then, sizeof old);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        numbers[i] = numbers[i] > old[i] ? numbers[i] - old[i] : 0;
    memcpy(to, numbers, sizeof numbers);
}

/* ---- settings ---- */

static void read_settings(struct weir_watch_settings *to, const struct weir_shared_loader *from)
{
    uint32_t set = atomic_load_explicit(&from->numbers_set, memory_order_relaxed);
    for (int i = 0; i < WEIR_SEGMENT_NUMBERS && weir_watch_number_keys[i].key; i++) {
        double value = set >> i & 1 ? weir_shared_double(&from->numbers[i]) : -1;
        value = isfinite(value) && fabs(value) < 1e15 ? value : -1;
        memcpy((char *)to + weir_watch_number_keys[i].offset, &value, sizeof value);
    }
    for (int i = 0; i < WEIR_SEGMENT_TEXTS && weir_watch_text_keys[i].key; i++)
        weir_shared_text_get((char *)to + weir_watch_text_keys[i].offset, WEIR_WATCH_TEXT, from->texts[i].words,
                             WEIR_TEXT_WORDS);
}

/* ---- epochs ---- */

static void read_epochs(struct weir_watch_reading *to, const struct weir_shared_loader *from)
{
    uint64_t last = weir_watch_count(&from->epochs);
    uint64_t first = last > WEIR_WATCH_EPOCHS ? last - WEIR_WATCH_EPOCHS + 1 : 1;
    for (uint64_t number = first; number <= last && number < INT32_MAX; number++) {
        const struct weir_shared_epoch *epoch = &from->epoch[number % WEIR_WATCH_EPOCHS];
        if (get(&epoch->number) != number)
            continue;
        to->epochs[to->n_epochs++] = (struct weir_watch_epoch){.number = (int)number,
                                                               .complete = get(&epoch->complete) != 0,
                                                               .total_s = weir_watch_s(&epoch->total),
                                                               .wait_s = weir_watch_s(&epoch->wait),
                                                               .first_wait_s = weir_watch_s(&epoch->first_wait),
                                                               .startup_s = weir_watch_s(&epoch->startup),
                                                               .batches = weir_watch_count(&epoch->batches),
                                                               .items = weir_watch_count(&epoch->items)};
    }
}

/* ---- reading ---- */

int weir_watch_loaders(const struct weir_watch *watch)
{
    uint32_t n = atomic_load(&watch->segment->loaders);
    return n < WEIR_WATCH_LOADERS ? (int)n : WEIR_WATCH_LOADERS;
}

int weir_watch_slowest_loader(const struct weir_watch *watch)
{
    int most = 0;
    for (int i = 1; i < weir_watch_loaders(watch); i++)
        if (get(&watch->segment->loader[i].wait_ticks) > get(&watch->segment->loader[most].wait_ticks))
            most = i;
    return most;
}

static void read_unseen(struct weir_watch_slowest *to, const struct weir_segment *segment)
{
    uint32_t n = atomic_load(&segment->unseen);
    to->n_unseen = n < WEIR_WATCH_UNSEEN ? (int)n : WEIR_WATCH_UNSEEN;
    for (int i = 0; i < to->n_unseen; i++)
        weir_shared_text_get(to->unseen[i].what, WEIR_WATCH_TEXT, segment->unseen_text[i].words, WEIR_TEXT_WORDS);
}

int weir_watch_read(struct weir_watch *watch, int loader, struct weir_watch_reading *reading,
                    struct weir_snapshot **snapshot)
{
    int map[WEIR_STAGE_MAX];
    *snapshot = NULL;
    if (loader < 0 || loader >= weir_watch_loaders(watch))
        return -EINVAL;
    const struct weir_segment *segment = watch->segment;
    const struct weir_shared_loader *from = &segment->loader[loader];
    int rc = map_stages(segment, map);
    if (rc < 0)
        return rc;
    memset(reading, 0, sizeof *reading);
    weir_shared_text_get(reading->name, sizeof reading->name, from->name.words, WEIR_TEXT_WORDS);
    read_settings(&reading->settings, from);
    read_loop_counts(&reading->counts, from);
    reading->run_first_s = weir_watch_s(&from->run_first);
    reading->ready_min = (int)fmin((double)weir_watch_count(&from->ready_min), 1e6);
    reading->ready_max = (int)fmin((double)weir_watch_count(&from->ready_max), 1e6);
    read_epochs(reading, from);
    read_unseen(&reading->slowest, segment);
    for (uint32_t i = 0; i < weir_watch_slots(segment); i++) {
        const struct weir_shared_slot *slot = &segment->slot[i];
        bool works = weir_watch_role_of(slot) == WEIR_WATCH_WORKER, loops = weir_watch_role_of(slot) == WEIR_WATCH_LOOP;
        if (!weir_watch_is_of(slot, loader) || !(works || loops))
            continue;
        weir_watch_read_items(&reading->slowest, slot);
        if (!works)
            continue;
        add_worker_counts(&reading->counts.workers[weir_watch_worker_of(slot)], slot);
        reading->counts.paths += (double)weir_watch_count(&slot->path_count);
        reading->counts.paths_s += weir_watch_s(&slot->path_total);
        reading->n_workers =
            weir_watch_worker_of(slot) + 1 > reading->n_workers ? weir_watch_worker_of(slot) + 1 : reading->n_workers;
    }
    rc = weir_watch_read_files(&reading->slowest, segment, loader);
    *snapshot = rc == 0 ? snapshot_of(segment, loader, map) : NULL;
    return rc < 0 ? rc : *snapshot ? 0 : -ENOMEM;
}

static int slot_loader(const struct weir_shared_slot *slot)
{
    int loader = atomic_load_explicit(&slot->loader, memory_order_relaxed);
    return loader >= 0 && loader < WEIR_WATCH_LOADERS ? loader : 0;
}

int weir_watch_threads(const struct weir_watch *watch, int loader, struct weir_watch_thread_id *threads, int max)
{
    int n = 0;
    for (uint32_t i = 0; i < weir_watch_slots(watch->segment) && n < max; i++) {
        const struct weir_shared_slot *slot = &watch->segment->slot[i];
        uint64_t owner = get(&slot->owner);
        if ((loader >= 0 && !weir_watch_is_of(slot, loader)) ||
            atomic_load_explicit(&slot->totals.ended, memory_order_relaxed))
            continue;
        threads[n++] = (struct weir_watch_thread_id){.loader = slot_loader(slot),
                                                     .role = weir_watch_role_of(slot),
                                                     .worker = weir_watch_worker_of(slot),
                                                     .pid = (int)(owner >> 32 & INT32_MAX),
                                                     .tid = (int)(owner & INT32_MAX)};
    }
    return n;
}

void weir_watch_keep(struct weir_watch *watch, void *object, void (*free_object)(void *object))
{
    watch->reports = object;
    watch->reports_free = free_object;
}

void *weir_watch_kept(const struct weir_watch *watch)
{
    return watch->reports;
}

void weir_watch_wake(struct weir_watch *watch, void (*on_wake)(struct weir_watch *watch))
{
    watch->on_wake = on_wake;
    atomic_store(&watch->wake, on_wake != NULL);
}
