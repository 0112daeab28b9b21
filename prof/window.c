#include "prof/window_priv.h"

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
    if (store->n_takes == store->takes_room) {
        size_t room = store->takes_room ? 2 * store->takes_room : 16;
        struct weir_take *moved = realloc(store->takes, room * sizeof *moved);
        if (!moved)
            return NULL;
        store->takes = moved;
        store->takes_room = room;
    }
    struct weir_take *take = &store->takes[store->n_takes++];
    *take = (struct weir_take){.tid = tid};
    memcpy(take->name, name, sizeof take->name);
    return take;
}

/* Doubles, or takes what may still be had. */
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

static void take_run(void *user, const struct weir_ring *ring, const struct weir_run *run)
{
    struct weir_store *store = user;
    struct weir_take *take = take_of(store, ring->tid, ring->name);
    size_t n = run->n[0] + run->n[1];
    if (take && take_room(store, take, n)) {
        memcpy(take->slots + take->n, run->slots[0], run->n[0] * sizeof *take->slots);
        memcpy(take->slots + take->n + run->n[0], run->slots[1], run->n[1] * sizeof *take->slots);
        take->n += n;
        return;
    }
    for (size_t i = 0; i < n; i += weir_record_slots(weir_run_slot(run, i)->b))
        store->dropped++;
}

void weir_store_drain(struct weir_store *store)
{
    weir_tracks_drain(take_run, store);
}

/* A range that is open when its window ends is not recorded: so what a thread has written of one window comes before
 * all that it wrote of later ones. */
static size_t end_before(const struct weir_take *take, uint64_t ticks)
{
    size_t at = take->first;
    while (at < take->n && take->slots[at].a < ticks)
        at += weir_record_slots(take->slots[at].b);
    return at;
}

/* Slots first .. end - 1. */
static bool append(struct weir_store *store, const struct weir_take *from, size_t end)
{
    size_t n = end - from->first;
    struct weir_take *take = take_of(store, from->tid, from->name);
    if (!take || !take_room(store, take, n))
        return false;
    memcpy(take->slots + take->n, from->slots + from->first, n * sizeof *take->slots);
    take->n += n;
    return true;
}

static void count_dropped(struct weir_store *store, const struct weir_take *take, size_t end)
{
    for (size_t at = take->first; at < end; at += weir_record_slots(take->slots[at].b))
        store->dropped++;
}

/* What was moved is given up once it is half of what is there. */
static void close_gap(struct weir_take *take)
{
    if (take->first < take->n - take->first)
        return;
    memmove(take->slots, take->slots + take->first, (take->n - take->first) * sizeof *take->slots);
    take->n -= take->first;
    take->first = 0;
}

/* False when nothing is left of it. */
static bool split_take(struct weir_store *store, struct weir_take *take, uint64_t ticks, struct weir_store *earlier)
{
    size_t end = end_before(take, ticks);
    if (earlier && end > take->first && !append(earlier, take, end))
        count_dropped(store, take, end);
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
    if (window->n_open == window->open_room) {
        size_t room = window->open_room ? 2 * window->open_room : 64;
        struct weir_open_copy *moved = realloc(window->open, room * sizeof *moved);
        if (!moved)
            return; /* one range less is seen as unfinished */
        window->open = moved;
        window->open_room = room;
    }
    struct weir_open_copy *copy = &window->open[window->n_open++];
    *copy = (struct weir_open_copy){.tid = tid, .name = name, .start = start};
    strncpy(copy->thread, thread, sizeof copy->thread - 1);
}

void weir_window_note_open(struct weir_window *window)
{
    weir_tracks_open(copy_open, window);
}

void weir_window_free(struct weir_window **window)
{
    if (!*window)
        return;
    weir_store_clear(&(*window)->store);
    free((*window)->open);
    free(*window);
    *window = NULL;
}
