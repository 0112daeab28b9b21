/* track_priv.h: each thread's ring of records, and what the collector does with them.
 *
 * A record is 16 bytes, with up to three more slots of 16 bytes behind it, and is written when a range ends. One thread
 * writes, the collector reads. Tracks are made at a thread's first record and belong to the registry, so that threads
 * may come and go while a window records. */
#ifndef WEIR_PROF_TRACK_PRIV_H
#define WEIR_PROF_TRACK_PRIV_H

#include "prof/recording.h"

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <sys/types.h>

enum weir_record_type {
    WEIR_RECORD_RANGE,
    WEIR_RECORD_STEP, /* {number, 0} follows */
    WEIR_RECORD_ASYNC,
    WEIR_RECORD_COUNTER, /* {value, 0} follows */
    WEIR_RECORD_INSTANT,
    WEIR_RECORD_MEMORY, /* {address, bytes}, {allocated, reserved} follow; low is the device + 1 */
};

/* Which slots follow the record, in this order, before those of its type. */
enum {
    WEIR_RECORD_TAGS = 1, /* {item, shapes | stack << 32} */
    WEIR_RECORD_LONG = 2, /* {duration in ticks, 0}; low is 0 */
};

struct weir_slot2 {
    uint64_t a, b;
};

/* a: ticks at the start. b: */
static inline uint64_t weir_record_word(uint32_t low, weir_name name, enum weir_record_type type, unsigned follows)
{
    return low | (uint64_t)name << 32 | (uint64_t)type << 48 | (uint64_t)follows << 56;
}

/* How many slots a record has, itself included. */
static inline unsigned weir_record_slots(uint64_t b)
{
    unsigned type = b >> 48 & 255, follows = (unsigned)(b >> 56);
    unsigned own = type == WEIR_RECORD_MEMORY ? 2 : type == WEIR_RECORD_STEP || type == WEIR_RECORD_COUNTER;
    return 1 + (follows & 1) + (follows >> 1 & 1) + own;
}

enum { WEIR_RECORD_SLOTS_MAX = 5, WEIR_RING_SLOTS = 1 << 15, WEIR_OPEN_MAX = 64 };

struct weir_open_range {
    _Atomic uint64_t start;
    _Atomic uint32_t name;
};

struct weir_ring {
    /* The writer's. */
    alignas(64) uint64_t head, limit; /* limit: how far head may go before it must look at tail */
    struct weir_slot2 *slots;
    _Atomic uint64_t published, dropped;
    _Atomic uint32_t version; /* of open: grows with each range opened */
    _Atomic uint32_t depth;
    struct weir_open_range open[WEIR_OPEN_MAX];
    /* The collector's. */
    alignas(64) _Atomic uint64_t tail;
    uint64_t dropped_before; /* when the window began */
    /* Set at the beginning. */
    pid_t tid;
    char name[16];
    _Atomic bool dead; /* the thread is gone: freed when it is drained */
    struct weir_ring *next;
};

extern __thread struct weir_ring *weir_track_self __attribute__((tls_model("initial-exec")));

/* The calling thread's track, made when it has none; NULL when memory is short. */
struct weir_ring *weir_track_make(void);
/* Room for n slots, after a look at the tail; false: dropped and counted. */
bool weir_track_room(struct weir_ring *track, unsigned n);

static inline struct weir_slot2 *weir_track_begin(struct weir_ring *track, unsigned n)
{
    if (__builtin_expect(track->head + n > track->limit, 0) && !weir_track_room(track, n))
        return NULL;
    return track->slots;
}

static inline void weir_track_put(struct weir_ring *track, uint64_t a, uint64_t b)
{
    struct weir_slot2 *slot = &track->slots[track->head++ & (WEIR_RING_SLOTS - 1)];
    slot->a = a;
    slot->b = b;
}

static inline void weir_track_end(struct weir_ring *track)
{
    atomic_store_explicit(&track->published, track->head, memory_order_release);
}

/* ---- stacks ---- */

/* The calling thread's stack as a number, the same for the same stack; 0 when there are too many. */
uint32_t weir_stack_capture(void);
/* Return addresses, innermost first; at most WEIR_STACK_DEPTH. Lent for the life of the process. */
enum { WEIR_STACK_DEPTH = 32 };
int weir_stack_addresses(uint32_t stack, const void *const **addresses);

/* A range with all that may follow it. shapes and stack as recorded, 0 = none. */
void weir_track_range_full(struct weir_ring *track, enum weir_record_type type, weir_name name, uint64_t start,
                           uint64_t ticks, uint64_t item, uint32_t shapes, uint32_t stack);

/* A range of the calling thread that ended now, opened under state. The caller has checked that state is not 0. */
static inline void weir_track_range(weir_name name, uint64_t start, uint64_t end, uint32_t state, uint32_t shapes)
{
    if (state != weir_recording())
        return; /* its window has closed, and shows it as unfinished */
    struct weir_ring *track = weir_track_self ? weir_track_self : weir_track_make();
    uint64_t ticks = end > start ? end - start : 0, item = weir_item_self;
    if (!track)
        return;
    bool plain = item == 0 && ticks <= UINT32_MAX && !(state & (WEIR_RECORDING_SHAPES | WEIR_RECORDING_STACKS));
    if (!plain) {
        uint32_t stack = state & WEIR_RECORDING_STACKS ? weir_stack_capture() : 0;
        weir_track_range_full(track, WEIR_RECORD_RANGE, name, start, ticks, item,
                              state & WEIR_RECORDING_SHAPES ? shapes : 0, stack);
        return;
    }
    if (!weir_track_begin(track, 1))
        return;
    weir_track_put(track, start, weir_record_word((uint32_t)ticks, name, WEIR_RECORD_RANGE, 0));
    weir_track_end(track);
}

/* A step of the profiler that ended now. */
void weir_track_step(int64_t number, uint64_t start, uint64_t end);

/* ---- for the collector ---- */

/* Whole records of one thread, in two pieces where the ring wraps. */
struct weir_run {
    const struct weir_slot2 *slots[2];
    size_t n[2];
};

static inline const struct weir_slot2 *weir_run_slot(const struct weir_run *run, size_t i)
{
    return i < run->n[0] ? &run->slots[0][i] : &run->slots[1][i - run->n[0]];
}

/* Calls back with what each track has new, then counts it as read; tracks of threads that are gone are freed
 * afterwards. One caller at a time. */
typedef void weir_drain_fn(void *user, const struct weir_ring *ring, const struct weir_run *run);
void weir_tracks_drain(weir_drain_fn *each, void *user);

/* The ranges and zones that are open on some thread: name, start, thread. */
typedef void weir_open_fn(void *user, pid_t tid, const char *thread, weir_name name, uint64_t start);
void weir_tracks_open(weir_open_fn *each, void *user);

void weir_recorders_open_zones(weir_open_fn *each, void *user); /* recorder.c's part of it */
/* While collecting, what threads that end have written is kept for the next drain. */
void weir_tracks_collect(bool collecting);

/* Records dropped by all tracks since the last call. */
uint64_t weir_tracks_dropped(void);

/* Called (from any thread, no locks held by it) when some ring is half full; NULL: nobody. */
void weir_tracks_on_half(void (*call)(void));

#endif
