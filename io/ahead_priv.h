/* ahead_priv.h: what opening read-ahead makes, and its thread and its takers share. */
#ifndef WEIR_IO_AHEAD_PRIV_H
#define WEIR_IO_AHEAD_PRIV_H

#include "io/ahead.h"
#include "io/io_ops.h"

#include <pthread.h>

enum { WEIR_AHEAD_NONE = -1, WEIR_AHEAD_BUCKETS = 256 };

enum weir_ahead_state { WEIR_AHEAD_FREE, WEIR_AHEAD_PLANNED, WEIR_AHEAD_FLYING, WEIR_AHEAD_DONE };

/* A read. Planned and free ones are changed under the lock only; one that flies is the thread's. */
struct weir_ahead_buffer {
    enum weir_ahead_state state;
    int refs; /* entries in it */
    int file;
    uint64_t begin, end; /* in the file; whole blocks when direct */
    uint64_t wanted_end; /* of the last entry */
    size_t done;         /* bytes read */
    int result;          /* 0, or -errno */
    bool awaited;
    pthread_cond_t cond;
    uint8_t *bytes;
};

/* An extent of a ticket. */
struct weir_ahead_entry {
    uint64_t ticket;
    struct weir_extent extent;
    int buffer;
    int next;   /* in its bucket, or among the free ones */
    bool given; /* its taker has it */
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
    pthread_mutex_t lock; /* all below, and the above where it says so */
    pthread_cond_t wake;  /* the thread: something was given back */
    bool asleep, stop;
    bool given_back; /* since it was asleep last */
    int bucket[WEIR_AHEAD_BUCKETS], free_entry;
    int planned, flying;
    uint64_t reads, extents;
    /* the thread's own */
    void *ring;
    bool has_pending;
    uint64_t pending_ticket, last_ticket;
    struct weir_extent pending, last;
    /* how opening the ring went */
    pthread_cond_t opened;
    bool is_open;
    int open_rc;
    struct weir_err open_err;
    char features[160];
};

/* The thread: opens the ring, reads ahead until a->stop, closes the ring. */
void *weir_ahead_main(void *ahead);

#endif
