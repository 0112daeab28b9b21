/* ahead.h: read-ahead. A thread goes through the extents that will be asked for, in the order of their tasks, ahead
 * of the threads that take tasks, and reads them into a bounded pool of buffers, or announces them
 * to the kernel, whichever the engine does. A thread that takes a task finds its extents here, waits for those still
 * in flight, and reads what is not here itself: it never waits for an extent to be planned. Neighbours in a file become
 * one read. */
#ifndef WEIR_IO_AHEAD_H
#define WEIR_IO_AHEAD_H

#include "io/io.h"

#include <stdatomic.h>

enum { WEIR_IO_DEPTH_MAX = 1024, WEIR_IO_DEPTH = 64 };

struct weir_ahead_config {
    const char *engine;
    struct weir_file_set *set;
    int depth;         /* reads in flight; 0 = WEIR_IO_DEPTH. Less when the pool would be too large */
    int takers;        /* threads that take tasks: each may hold a buffer */
    size_t extent_max; /* bytes; larger ones are passed over */
    /* The next extent, of tasks not below from: 1. 0: none for the moment, to be asked again. Negative: none any
     * more. Task ids never go down. From the thread of read-ahead. */
    int (*next)(void *user, uint64_t from, uint64_t *task_id, struct weir_extent *extent);
    const _Atomic uint64_t *taken; /* tasks below this one were taken: too late for them */
    void *user;
};

/* How an engine reads ahead: not at all; by announcing to the kernel what will be read; or into the pool's buffers. */
enum weir_ahead_kind { WEIR_AHEAD_NOT, WEIR_AHEAD_HINTS, WEIR_AHEAD_BUFFERS };
enum weir_ahead_kind weir_ahead_kind(const char *engine);

/* Starts the thread. The set's readers are opened with the same engine. */
int weir_ahead_open(struct weir_ahead **out, const struct weir_ahead_config *config, struct weir_err *err);
/* Nobody uses it any more. Waits for what is in flight. */
void weir_ahead_close(struct weir_ahead **ahead);

struct weir_ahead_facts {
    int depth;
    size_t pool_bytes;
    uint64_t reads, extents; /* so far: extents went into so many reads */
    const char *features;    /* what the kernel gave the engine; may be empty; lent */
};
void weir_ahead_facts(struct weir_ahead *ahead, struct weir_ahead_facts *facts);

/* ---- for io.c, which calls these for weir_read. They lock nothing ---- */

/* What was planned for a task, its taker's: entries, -1 = none. */
struct weir_ahead_taken {
    int chain, given;
};
/* The task was taken (config.taken counts it): what was planned for it is its taker's until weir_ahead_end. */
void weir_ahead_take(struct weir_ahead *ahead, uint64_t task_id, struct weir_ahead_taken *taken);
/* The entry of an extent, or -1. What was found before is given back. */
int weir_ahead_find(struct weir_ahead *ahead, struct weir_ahead_taken *taken, const struct weir_extent *extent);
/* Waits until it is read: 0 and *data until the next find of the task, or its end; or the error of the read. */
int weir_ahead_wait(struct weir_ahead *ahead, int entry, const uint8_t **data);
void weir_ahead_end(struct weir_ahead *ahead, struct weir_ahead_taken *taken);

#endif
