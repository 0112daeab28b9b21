/* ahead.h: read-ahead. One thread walks the extents of future tasks in order. Depending on the engine, it either reads
 * them into a bounded pool of buffers or announces them to the kernel. A thread that takes a task looks up its extents
 * here, waits for those that are in flight, and reads the remaining ones itself; it never waits for an extent to be
 * planned. Neighbouring extents of a file are merged into one read. */
#ifndef WEIR_IO_AHEAD_H
#define WEIR_IO_AHEAD_H

#include "io/io.h"

#include <stdatomic.h>

/* WEIR_IO_DEPTH: the default of engines that do not choose the number of reads in flight themselves. */
enum { WEIR_IO_DEPTH_MAX = 1024, WEIR_IO_DEPTH = 64 };

struct weir_ahead_config {
    const char *engine;
    struct weir_file_set *set;
    int depth;  /* maximum number of reads in flight; 0: the engine's choice. Reduced if the pool would be too large. */
    int takers; /* number of threads that take tasks; each can hold one buffer */
    size_t extent_max; /* in bytes; longer extents are not read ahead */
    /* Stores the next extent of any task with an id of at least `from`. Returns 1; 0 if none exists yet (the function
     * is then called again); negative if there are no more. Task ids must never decrease. Called by the read-ahead
     * thread. */
    int (*next)(void *user, uint64_t from, uint64_t *task_id, struct weir_extent *extent);
    struct weir_recorder *recorder; /* for the stages of requests to servers; may be NULL */
    const _Atomic uint64_t *taken;  /* all tasks with a lower id have been taken */
    void *user;
};

/* How an engine reads ahead: not at all, with hints to the kernel, or into the buffers of the pool. */
enum weir_ahead_kind { WEIR_AHEAD_NOT, WEIR_AHEAD_HINTS, WEIR_AHEAD_BUFFERS };
enum weir_ahead_kind weir_ahead_kind(const char *engine);

/* Starts the read-ahead thread. The readers of the file set must use the same engine. */
int weir_ahead_open(struct weir_ahead **out, const struct weir_ahead_config *config, struct weir_err *err);
/* Waits for reads in flight. No other thread may still use the object. */
void weir_ahead_close(struct weir_ahead **ahead);

struct weir_ahead_facts {
    int depth;     /* maximum number of reads in flight */
    int in_flight; /* the number that is kept in flight at present; differs from depth if is_adaptive */
    bool is_adaptive;
    size_t pool_bytes, gap_bytes; /* gap_bytes: maximum gap between merged extents at present */
    uint64_t reads, extents;      /* totals so far: number of reads, and number of extents that were merged into them */
    const char *features;         /* kernel features that the engine uses, or ""; owned by the read-ahead object */
};
void weir_ahead_facts(struct weir_ahead *ahead, struct weir_ahead_facts *facts);

/* ---- called by io.c for weir_read; lock-free ---- */

/* The entries planned for a task, owned by its taker. An empty field is -1. */
struct weir_ahead_taken {
    int chain, given;
};
/* Takes a task, which config.taken must already count. The taker owns the task's entries until weir_ahead_end. */
void weir_ahead_take(struct weir_ahead *ahead, uint64_t task_id, struct weir_ahead_taken *taken);
/* Returns the entry that begins where the extent begins, or -1. *length: bytes of the extent that it has; the planned
 * extent may be longer or shorter than the requested one, because the end of the data may have become known in the
 * meantime. Also releases the entry that the previous call returned. */
int weir_ahead_find(struct weir_ahead *ahead, struct weir_ahead_taken *taken, const struct weir_extent *extent,
                    size_t *length);
/* Waits until the entry's extent has been read. Returns 0 and sets *data, which is valid until the taker's next call to
 * weir_ahead_find or weir_ahead_end; otherwise returns the error of the read. */
int weir_ahead_wait(struct weir_ahead *ahead, int entry, const uint8_t **data);
void weir_ahead_end(struct weir_ahead *ahead, struct weir_ahead_taken *taken);

#endif
