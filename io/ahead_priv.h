/* ahead_priv.h: state of read-ahead, shared by open, its thread, and the takers. Each part names the threads that may
 * access it. */
#ifndef WEIR_IO_AHEAD_PRIV_H
#define WEIR_IO_AHEAD_PRIV_H

#include "base/threads.h"
#include "io/ahead.h"
#include "io/io_ops.h"

#include <pthread.h>
#include <stdalign.h>

enum { WEIR_AHEAD_NONE = -1, WEIR_AHEAD_BUCKETS = 4096, WEIR_AHEAD_HEAD_BITS = 20 };

enum weir_ahead_state { WEIR_AHEAD_FREE, WEIR_AHEAD_PLANNED, WEIR_AHEAD_FLYING, WEIR_AHEAD_DONE };

/* A read. Owned by the thread, except state and arrived; takers may read it once state is done. */
struct weir_ahead_buffer {
    _Atomic int state; /* enum weir_ahead_state; written by the thread */
    int refs;          /* number of its entries */
    int file;
    uint64_t begin, end; /* file offsets; whole blocks with direct reads */
    uint64_t wanted_end; /* end of the last entry */
    size_t done;         /* bytes read */
    int result;          /* 0, or -errno */
    struct weir_eventcount arrived;
    uint8_t *bytes;
};

/* An extent of a task. Owned by the thread while free, then by the task's taker until returned. */
struct weir_ahead_entry {
    struct weir_extent extent;
    int buffer;
    int next; /* next entry of the task, of the returned ones, or of the free ones */
};

struct weir_ahead {
    struct weir_ahead_config config;
    const struct weir_io_ops *ops;
    size_t align, buffer_bytes, pool_bytes;
    uint8_t *pool;
    int n_buffers, n_entries;
    struct weir_ahead_buffer *buffers;
    struct weir_ahead_entry *entries;
    pthread_t thread;
    bool started;
    /* Shared by the thread and the takers. A bucket serves one task at a time: its word holds the task id and its first
     * entry, or none once taken. The thread adds entries by compare-and-swap; the taker exchanges the word for a closed
     * one, so each entry has one owner at any time. */
    _Atomic uint64_t bucket[WEIR_AHEAD_BUCKETS];
    alignas(64) _Atomic int returned; /* chain of returned entries */
    struct weir_eventcount wake;      /* for stopping */
    _Atomic bool stop;
    /* Owned by the read-ahead thread; any thread may read the counts. */
    alignas(64) int free_entry, n_used; /* of entries */
    int planned, flying;                /* of buffers */
    _Atomic uint64_t reads, extents;
    int came_back; /* entries returned since its last pause */
    uint64_t pause_ns;
    void *ring;
    bool has_pending;
    uint64_t pending_task, last_task;
    struct weir_extent pending, last;
    /* result of opening the ring */
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

/* A bucket's word: task id and first entry (WEIR_AHEAD_NONE: taken). 0 belongs to no task. */
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

/* Thread function: opens the ring, reads ahead until a->stop, closes the ring. */
void *weir_ahead_main(void *ahead);

#endif
