/* window_priv.h: the contents of a recording window while it is collected, and their conversion to a trace. */
#ifndef WEIR_PROF_RECORD_WINDOW_PRIV_H
#define WEIR_PROF_RECORD_WINDOW_PRIV_H

#include "prof/gpu/gpu_trace.h"
#include "prof/record/track_priv.h"

/* The records of one thread. */
struct weir_take {
    pid_t tid;
    char name[16];
    struct weir_slot2 *slots;
    size_t first, n, room; /* the records are first .. n - 1; first is 0 in a window */
};

struct weir_store {
    struct weir_take *takes;
    size_t n_takes;
    uint64_t bytes, bytes_max;
    uint64_t dropped; /* records that did not fit */
};

void weir_store_clear(struct weir_store *store);
/* Copies all records that threads have written since the last call. */
void weir_store_drain(struct weir_store *store);
/* Moves the records that began before ticks into the empty store `earlier`, or discards them if it is NULL. ticks must
 * be outside all windows. The cost depends only on the number of records moved. */
void weir_store_split(struct weir_store *store, uint64_t ticks, struct weir_store *earlier);

struct weir_open_copy {
    pid_t tid;
    char thread[16];
    weir_name name;
    uint64_t start;
};

struct weir_window {
    uint64_t begin, end; /* ticks */
    int64_t begin_unix_ns;
    int64_t first_step, last_step; /* -1 without steps */
    struct weir_store store;
    struct weir_open_copy *open; /* ranges that were open at the window's end */
    size_t n_open;
    struct weir_gpu_take *gpu; /* NULL if no GPU was recorded */
    uint64_t dropped;          /* dropped by rings, the store and the GPU recording */
    uint32_t state;            /* value of weir_recording() during the window */
    bool discard;              /* not written; only its records are removed */
    struct weir_window *next;
};

/* A FIFO queue. */
struct weir_windows {
    struct weir_window *first, *last;
};
void weir_windows_put(struct weir_windows *windows, struct weir_window *window);
/* Returns NULL if the queue is empty. */
struct weir_window *weir_windows_take(struct weir_windows *windows);

/* Copies the currently open ranges. */
void weir_window_note_open(struct weir_window *window);
void weir_window_free(struct weir_window **window);

struct weir_export {
    const char *data_wait; /* name to use for the consumer's data wait */
    bool worker_ops;       /* show workers' stages as operators */
    const char *metadata;  /* JSON members to add to the trace, or NULL */
};

/* Converts the window to a trace. Returns 0 or -ENOMEM. */
int weir_window_trace(const struct weir_window *window, const struct weir_export *how, struct weir_trace **out);

#endif
