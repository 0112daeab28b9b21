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

static void split_take(struct weir_store *store, struct weir_take *take, uint64_t ticks, struct weir_store *later)
{
    size_t kept = 0;
    struct weir_take *other = NULL;
    for (size_t i = 0, n; i < take->n; i += n) {
        n = weir_record_slots(take->slots[i].b);
        if (take->slots[i].a < ticks) {
            memmove(take->slots + kept, take->slots + i, n * sizeof *take->slots);
            kept += n;
            continue;
        }
        other = other ? other : take_of(later, take->tid, take->name);
        if (!other || !take_room(later, other, n)) {
            store->dropped++;
            continue;
        }
        memcpy(other->slots + other->n, take->slots + i, n * sizeof *take->slots);
        other->n += n;
    }
    take->n = kept;
}

void weir_store_split(struct weir_store *store, uint64_t ticks, struct weir_store *later)
{
    for (size_t i = 0; i < store->n_takes; i++)
        split_take(store, &store->takes[i], ticks, later);
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
