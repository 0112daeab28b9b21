/* read_priv.h: numbers that another process wrote, clamped. */
#ifndef WEIR_PROF_WATCH_READ_PRIV_H
#define WEIR_PROF_WATCH_READ_PRIV_H

#include "prof/watch/segment_priv.h"
#include "prof/watch/watch_read.h"

#include <math.h>

static inline uint64_t weir_watch_ns(const _Atomic uint64_t *ticks)
{
    return weir_ns_of(get(ticks));
}

static inline double weir_watch_s(const _Atomic uint64_t *ticks)
{
    return (double)weir_watch_ns(ticks) / 1e9;
}

static inline uint64_t weir_watch_count(const _Atomic uint64_t *value)
{
    return weir_count_of(get(value));
}

/* Returns a sum of squares in s^2. */
static inline double weir_watch_squares(const _Atomic uint64_t *value)
{
    double ns2 = weir_shared_double(value);
    return isfinite(ns2) && ns2 > 0 ? fmin(ns2 / 1e18, 1e18) : 0;
}

static inline int weir_watch_role_of(const struct weir_shared_slot *slot)
{
    int role = atomic_load_explicit(&slot->role, memory_order_relaxed);
    return role >= 0 && role < WEIR_WATCH_ROLES ? role : WEIR_WATCH_OTHER;
}

static inline int weir_watch_worker_of(const struct weir_shared_slot *slot)
{
    int worker = atomic_load_explicit(&slot->worker, memory_order_relaxed);
    return worker < 0 ? 0 : worker < WEIR_WATCH_WORKERS ? worker : WEIR_WATCH_WORKERS - 1;
}

static inline uint32_t weir_watch_slots(const struct weir_segment *segment)
{
    uint32_t n = atomic_load(&segment->slots);
    return n < WEIR_SEGMENT_SLOTS ? n : WEIR_SEGMENT_SLOTS;
}

static inline bool weir_watch_is_of(const struct weir_shared_slot *slot, int loader)
{
    return atomic_load_explicit(&slot->loader, memory_order_relaxed) == loader;
}

/* Reads a slot's slowest items, and all files of a loader. Return 0 or -ENOMEM. */
void weir_watch_read_items(struct weir_watch_slowest *to, const struct weir_shared_slot *slot);
int weir_watch_read_files(struct weir_watch_slowest *to, const struct weir_segment *segment, int loader);

#endif
