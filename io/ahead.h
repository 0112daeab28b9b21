/* ahead.h: read-ahead. One thread walks the extents of future tasks in order and either reads them into a bounded pool
 * of buffers or announces them to the kernel, depending on the engine. A thread that takes a task looks its extents up
 * here, waits for those in flight, and reads the others itself; it never waits for an extent to be planned.
 * Neighbouring extents of a file become one read. */
#ifndef WEIR_IO_AHEAD_H
#define WEIR_IO_AHEAD_H

#include "io/io.h"

#include <stdatomic.h>

enum { WEIR_IO_DEPTH_MAX = 1024, WEIR_IO_DEPTH = 64 };

struct weir_ahead_config {
    const char *engine;
    struct weir_file_set *set;
    int depth;         /* reads in flight; 0 = WEIR_IO_DEPTH; reduced when the pool would be too large */
    int takers;        /* number of threads that take tasks; each may hold a buffer */
    size_t extent_max; /* in bytes; larger extents are not read ahead */
    /* Stores the next extent of a task >= from. Returns 1; 0 when there is none yet (it is called again); negative when
     * there are no more. Task ids never decrease. Called by the read-ahead thread. */
    int (*next)(void *user, uint64_t from, uint64_t *task_id, struct weir_extent *extent);
    const _Atomic uint64_t *taken; /* tasks below this one have been taken */
    void *user;
};

/* How an engine reads ahead: not at all, by hints to the kernel, or into the pool's buffers. */
enum weir_ahead_kind { WEIR_AHEAD_NOT, WEIR_AHEAD_HINTS, WEIR_AHEAD_BUFFERS };
enum weir_ahead_kind weir_ahead_kind(const char *engine);

/* Starts the thread. The set's readers must use the same engine. */
int weir_ahead_open(struct weir_ahead **out, const struct weir_ahead_config *config, struct weir_err *err);
/* Waits for reads in flight. No other thread may be using it. */
void weir_ahead_close(struct weir_ahead **ahead);

struct weir_ahead_facts {
    int depth;
    size_t pool_bytes;
    uint64_t reads, extents; /* totals so far: extents were merged into this many reads */
    const char *features;    /* kernel features the engine uses; may be empty; lent */
};
void weir_ahead_facts(struct weir_ahead *ahead, struct weir_ahead_facts *facts);

/* ---- called by io.c for weir_read; lock-free ---- */

/* The entries planned for a task, owned by its taker; -1 = none. */
struct weir_ahead_taken {
    int chain, given;
};
/* Takes a task (config.taken counts it): the taker owns its entries until weir_ahead_end. */
void weir_ahead_take(struct weir_ahead *ahead, uint64_t task_id, struct weir_ahead_taken *taken);
/* Returns the entry of an extent, or -1. Returns the previously found entry to the pool. */
int weir_ahead_find(struct weir_ahead *ahead, struct weir_ahead_taken *taken, const struct weir_extent *extent);
/* Waits for the read. Returns 0 with *data, valid until the task's next find or its end, or the read's error. */
int weir_ahead_wait(struct weir_ahead *ahead, int entry, const uint8_t **data);
void weir_ahead_end(struct weir_ahead *ahead, struct weir_ahead_taken *taken);

#endif
