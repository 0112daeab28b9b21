/* ahead_priv.h: state of read-ahead, shared by open, the read-ahead thread, and the takers. Each part states which
 * threads may access it. */
#ifndef WEIR_IO_AHEAD_PRIV_H
#define WEIR_IO_AHEAD_PRIV_H

#include "base/threads.h"
#include "io/ahead.h"
#include "io/io_ops.h"

#include <pthread.h>
#include <stdalign.h>

enum { WEIR_AHEAD_NONE = -1, WEIR_AHEAD_BUCKETS = 4096, WEIR_AHEAD_HEAD_BITS = 20 };

enum weir_ahead_state { WEIR_AHEAD_FREE, WEIR_AHEAD_PLANNED, WEIR_AHEAD_FLYING, WEIR_AHEAD_DONE };

/* A read. Owned by the read-ahead thread, except state, arrived and was_taken. Takers may read it once the state is
 * WEIR_AHEAD_DONE, and is_near at any time. */
struct weir_ahead_buffer {
    _Atomic int state; /* enum weir_ahead_state; written only by the read-ahead thread */
    bool is_near;      /* the taker of its extent reads it: the buffer only counts it */
    int refs;          /* number of entries that use this buffer */
    int next;          /* WEIR_AHEAD_FREE: next free buffer */
    int file;
    uint64_t begin, end; /* file offsets of the read; aligned to whole blocks for direct reads */
    uint64_t wanted_end; /* maximum end offset of its entries */
    size_t done;         /* bytes read so far */
    int result;          /* 0, or -errno */
    struct weir_eventcount arrived;
    _Atomic bool was_taken; /* a taker has called taken of the ring */
    uint8_t *bytes;
};

/* A planned extent of a task. Owned by the read-ahead thread while it is free. Once it has been added to a bucket, it
 * belongs to the taker of its task until the taker returns it. */
struct weir_ahead_entry {
    struct weir_extent extent;
    int buffer;
    int next; /* next entry in the list of the task, of returned entries, or of free entries */
};

struct weir_ahead {
    struct weir_ahead_config config;
    const struct weir_io_ops *ops;
    size_t align, buffer_bytes, pool_bytes;
    _Atomic size_t gap_bytes; /* maximum gap between merged extents: reading it costs less than another read */
    _Atomic int limit;        /* number of reads to keep in flight, at most config.depth */
    bool is_adaptive;         /* the engine changes them */
    bool is_fixed;            /* the user chose the number of reads in flight */
    uint8_t *pool;
    int n_buffers, n_entries;
    struct weir_ahead_buffer *buffers;
    struct weir_ahead_entry *entries;
    pthread_t thread;
    bool started;
    /* Shared by the read-ahead thread and the takers. A bucket serves one task at a time. Its word contains the task id
     * and the task's first entry, or no entry after the task has been taken. The thread adds entries by
     * compare-and-swap, and the taker replaces the word by an atomic exchange, so that each entry has exactly one owner
     * at any time. */
    _Atomic uint64_t bucket[WEIR_AHEAD_BUCKETS];
    alignas(64) _Atomic int returned; /* list of returned entries */
    struct weir_eventcount wake;      /* wakes the thread so that it stops */
    _Atomic bool stop;
    /* Owned by the read-ahead thread, except that any thread may read the atomic counters. */
    alignas(64) int free_entry, n_used; /* first free entry, number of used entries */
    int free_buffer, n_busy;            /* first free buffer, number of the others */
    int *plans;                         /* the planned buffers */
    int planned, flying;                /* numbers of buffers in these states */
    _Atomic uint64_t reads, extents;
    int came_back; /* number of entries returned since the thread's last pause */
    uint64_t pause_ns;
    void *ring;
    bool has_pending;
    uint64_t pending_task, last_task;
    struct weir_extent pending, last;
    /* Result of opening the ring, which the thread reports to weir_ahead_open. */
    pthread_mutex_t lock;
    pthread_cond_t opened;
    bool is_open;
    int open_rc;
    struct weir_err open_err;
    char features[160];
};

static inline _Atomic uint64_t *weir_ahead_bucket(struct weir_ahead *a, uint64_t task_id)
{
    return &a->bucket[task_id % WEIR_AHEAD_BUCKETS];
}

/* Packs a bucket's word: task id and first entry (WEIR_AHEAD_NONE: the task has been taken). The word 0 belongs to no
 * task. */
static inline uint64_t weir_ahead_word(uint64_t task_id, int head)
{
    return ((task_id + 1) << WEIR_AHEAD_HEAD_BITS) | (uint64_t)(head + 1);
}

static inline uint64_t weir_ahead_task_of(uint64_t word)
{
    return (word >> WEIR_AHEAD_HEAD_BITS) - 1;
}

static inline int weir_ahead_head_of(uint64_t word)
{
    return (int)(word & ((1u << WEIR_AHEAD_HEAD_BITS) - 1)) - 1;
}

/* Main function of the read-ahead thread: opens the ring, reads ahead until a->stop is set, closes the ring. */
void *weir_ahead_main(void *ahead);

#endif
