#include "base/grow.h"
#include "prof/record/window_priv.h"

#include <stdlib.h>
#include <string.h>

/* ---- the store ---- */

void weir_store_clear(struct weir_store *store)
{
    for (size_t i = 0; i < store->n_takes; i++)
        free(store->takes[i].slots);
    free(store->takes);
    *store = (struct weir_store){.bytes_max = store->bytes_max};
}

static struct weir_take *take_of(struct weir_store *store, pid_t tid, const char *name)
{
    for (size_t i = 0; i < store->n_takes; i++)
        if (store->takes[i].tid == tid && strcmp(store->takes[i].name, name) == 0)
            return &store->takes[i];
    if (!weir_grow(&store->takes, store->n_takes, sizeof *store->takes))
        return NULL;
    struct weir_take *take = &store->takes[store->n_takes++];
    *take = (struct weir_take){.tid = tid};
    memcpy(take->name, name, sizeof take->name);
    return take;
}

/* Doubles the array, or enlarges it by the memory that remains under the limit. */
static bool take_room(struct weir_store *store, struct weir_take *take, size_t n)
{
    if (take->n + n <= take->room)
        return true;
    size_t left = (size_t)((store->bytes_max - store->bytes) / sizeof *take->slots);
    size_t room = take->room ? 2 * take->room : 4096;
    while (room < take->n + n)
        room *= 2;
    room = room - take->room <= left ? room : take->room + left;
    if (take->n + n > room)
        return false;
    struct weir_slot2 *moved = realloc(take->slots, room * sizeof *moved);
    if (!moved)
        return false;
    store->bytes += (room - take->room) * sizeof *moved;
    take->slots = moved;
    take->room = room;
    return true;
}

static void keep(struct weir_store *store, pid_t tid, const char *name, const struct weir_run *run)
{
    struct weir_take *take = take_of(store, tid, name);
    size_t n = run->n[0] + run->n[1];
    if (!take || !take_room(store, take, n)) {
        store->dropped += weir_run_records(run);
        return;
    }
    memcpy(take->slots + take->n, run->slots[0], run->n[0] * sizeof *take->slots);
    memcpy(take->slots + take->n + run->n[0], run->slots[1], run->n[1] * sizeof *take->slots);
    take->n += n;
}

static void keep_of_ring(void *user, const struct weir_ring *ring, const struct weir_run *run)
{
    keep(user, ring->tid, ring->name, run);
}

void weir_store_drain(struct weir_store *store)
{
    weir_tracks_drain(keep_of_ring, store);
}

/* Returns the end of the records that began before ticks. A range that is open at the end of its window is not
 * recorded, so a thread's records of one window come before its records of all later windows. */
static size_t end_before(const struct weir_take *take, uint64_t ticks)
{
    size_t at = take->first;
    while (at < take->n && take->slots[at].a < ticks)
        at += weir_record_slots(take->slots[at].b);
    return at;
}

/* Moves the remaining records to the start of the array once at least half of the array is unused. */
static void close_gap(struct weir_take *take)
{
    if (take->first < take->n - take->first)
        return;
    memmove(take->slots, take->slots + take->first, (take->n - take->first) * sizeof *take->slots);
    take->n -= take->first;
    take->first = 0;
}

/* Moves the thread's array to `earlier` without copying it. Returns false if memory for the entry is short. */
static bool hand_over(struct weir_store *store, struct weir_take *take, struct weir_store *earlier)
{
    size_t bytes = take->room * sizeof *take->slots;
    struct weir_take *to = take_of(earlier, take->tid, take->name);
    if (!to)
        return false;
    *to = *take;
    earlier->bytes += bytes;
    store->bytes -= bytes;
    take->slots = NULL;
    take->room = 0;
    return true;
}

static void move(struct weir_store *store, struct weir_take *take, size_t end, struct weir_store *earlier)
{
    const struct weir_slot2 *slots = take->slots + take->first;
    bool all = take->first == 0 && end == take->n;
    if (end > take->first && !(all && hand_over(store, take, earlier)))
        keep(earlier, take->tid, take->name, &(struct weir_run){{slots, slots}, {end - take->first, 0}});
}

/* Moves or discards the records that began before ticks. Returns false if no records remain. */
static bool split_take(struct weir_store *store, struct weir_take *take, uint64_t ticks, struct weir_store *earlier)
{
    size_t end = end_before(take, ticks);
    if (earlier)
        move(store, take, end, earlier);
    take->first = end;
    if (end < take->n) {
        close_gap(take);
        return true;
    }
    store->bytes -= take->room * sizeof *take->slots;
    free(take->slots);
    return false;
}

void weir_store_split(struct weir_store *store, uint64_t ticks, struct weir_store *earlier)
{
    size_t left = 0;
    for (size_t i = 0; i < store->n_takes; i++)
        if (split_take(store, &store->takes[i], ticks, earlier))
            store->takes[left++] = store->takes[i];
    store->n_takes = left;
}

/* ---- open ranges ---- */

static void copy_open(void *user, pid_t tid, const char *thread, weir_name name, uint64_t start)
{
    struct weir_window *window = user;
    if (!weir_grow(&window->open, window->n_open, sizeof *window->open))
        return; /* this unfinished range is not shown */
    struct weir_open_copy *copy = &window->open[window->n_open++];
    *copy = (struct weir_open_copy){.tid = tid, .name = name, .start = start};
    strncpy(copy->thread, thread, sizeof copy->thread - 1);
}

void weir_window_note_open(struct weir_window *window)
{
    weir_tracks_open(copy_open, window);
    weir_recorders_open_zones(copy_open, window);
}

void weir_window_free(struct weir_window **window)
{
    if (!*window)
        return;
    weir_store_clear(&(*window)->store);
    weir_gpu_take_free(&(*window)->gpu);
    free((*window)->open);
    free(*window);
    *window = NULL;
}

void weir_windows_put(struct weir_windows *windows, struct weir_window *window)
{
    window->next = NULL;
    *(windows->last ? &windows->last->next : &windows->first) = window;
    windows->last = window;
}

struct weir_window *weir_windows_take(struct weir_windows *windows)
{
    struct weir_window *window = windows->first;
    if (window)
        windows->first = window->next;
    if (!windows->first)
        windows->last = NULL;
    return window;
}
