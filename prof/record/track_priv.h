/* track_priv.h: each thread's ring of records, and the collector's access to it.
 *
 * A record is written when a range ends. It has 16 bytes, followed by up to three more 16-byte slots. The thread
 * writes, and the collector reads. A track is created at its thread's first record and belongs to a global registry, so
 * threads can start and end while a window records. */
#ifndef WEIR_PROF_RECORD_TRACK_PRIV_H
#define WEIR_PROF_RECORD_TRACK_PRIV_H

#include "weir/recorder.h"

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <sys/types.h>

enum weir_record_type {
    WEIR_RECORD_RANGE,
    WEIR_RECORD_STEP, /* followed by {number, 0} */
    WEIR_RECORD_ASYNC,
    WEIR_RECORD_COUNTER, /* followed by {value, 0} */
    WEIR_RECORD_INSTANT,
    WEIR_RECORD_MEMORY, /* followed by {address, bytes}, {allocated, reserved}; low is the device + 1 */
};

/* Flags for optional slots. These follow the record in this order, before the slots of its type. */
enum {
    WEIR_RECORD_TAGS = 1, /* {item, shapes | stack << 32} */
    WEIR_RECORD_LONG = 2, /* {duration in ticks, 0}; the record's low is then 0 */
};

struct weir_slot2 {
    uint64_t a, b;
};

/* Returns the record's second word. The first word is its start in ticks. */
static inline uint64_t weir_record_word(uint32_t low, weir_name name, enum weir_record_type type, unsigned follows)
{
    return low | (uint64_t)name << 32 | (uint64_t)type << 48 | (uint64_t)follows << 56;
}

/* Returns the number of slots of a record, including the record itself. b is its second word. */
static inline unsigned weir_record_slots(uint64_t b)
{
    unsigned type = b >> 48 & 255, follows = (unsigned)(b >> 56);
    unsigned own = type == WEIR_RECORD_MEMORY ? 2 : type == WEIR_RECORD_STEP || type == WEIR_RECORD_COUNTER;
    return 1 + (follows & 1) + (follows >> 1 & 1) + own;
}

enum { WEIR_RING_SLOTS = 1 << 15, WEIR_OPEN_MAX = 64 };

struct weir_open_range {
    _Atomic uint64_t start;
    _Atomic uint32_t name;
};

struct weir_ring {
    /* Used by the writer. */
    alignas(64) _Atomic uint64_t head; /* slots before head are readable */
    uint64_t limit;                    /* head up to which no check of tail is needed */
    struct weir_slot2 *slots;
    struct weir_stacks_seen *stacks; /* NULL until the first stack is captured */
    _Atomic uint64_t dropped;
    _Atomic uint32_t version; /* version of `open`, incremented each time a range is opened */
    _Atomic uint32_t depth;
    struct weir_open_range open[WEIR_OPEN_MAX];
    /* Used by the collector. */
    alignas(64) _Atomic uint64_t tail;
    _Atomic bool held;       /* set while the slots are being read */
    struct weir_slot2 *rest; /* unread slots of an ended thread, which replace the ring */
    size_t n_rest;
    /* Set once, at creation. */
    pid_t tid;
    char name[16];
    _Atomic bool dead; /* the thread has ended; the track is freed after it is drained */
    struct weir_ring *next;
};

extern __thread struct weir_ring *weir_track_self __attribute__((tls_model("initial-exec")));

/* Creates the calling thread's track. Returns NULL if memory is short. */
struct weir_ring *weir_track_make(void);
static inline struct weir_ring *weir_track_mine(void)
{
    return weir_track_self ? weir_track_self : weir_track_make();
}

/* Checks for space for n slots, reading tail if needed. Returns false if the ring is full; the record is then dropped
 * and counted. */
bool weir_track_room(struct weir_ring *track, unsigned n);

/* A record of n slots that is being written, starting at slot `at`. */
struct weir_writing {
    struct weir_ring *ring;
    uint64_t at;
};

static inline bool weir_track_begin(struct weir_ring *track, unsigned n, struct weir_writing *writing)
{
    writing->ring = track;
    writing->at = atomic_load_explicit(&track->head, memory_order_relaxed);
    return __builtin_expect(writing->at + n <= track->limit, 1) || weir_track_room(track, n);
}

static inline void weir_track_put(struct weir_writing *writing, uint64_t a, uint64_t b)
{
    struct weir_slot2 *slot = &writing->ring->slots[writing->at++ & (WEIR_RING_SLOTS - 1)];
    slot->a = a;
    slot->b = b;
}

static inline void weir_track_end(const struct weir_writing *writing)
{
    atomic_store_explicit(&writing->ring->head, writing->at, memory_order_release);
}

/* ---- stacks ---- */

/* Returns a number for the calling thread's stack, the same for equal stacks, or 0 if there are too many stacks. *seen
 * is the thread's cache of stacks: NULL at first, allocated here, freed by the caller. name helps to find the stack in
 * the cache, because calls with the same name usually have the same stack. */
struct weir_stacks_seen;
uint32_t weir_stack_capture(struct weir_stacks_seen **seen, weir_name name);
/* Return the number of a stack of return addresses, and these, innermost first, at most WEIR_STACK_DEPTH. They stay
 * valid until the process ends. */
enum { WEIR_STACK_DEPTH = 32 };
uint32_t weir_stack_intern(void *const *addresses, int n);
int weir_stack_addresses(uint32_t stack, const void *const **addresses);
/* Returns the frames of a stack from weir_stack_text, or NULL if the stack consists of addresses. They stay valid until
 * the process ends. */
const char *weir_stack_frames(uint32_t stack);

/* Records a range with all optional slots. For shapes and stack, 0 means none. */
void weir_track_range_full(struct weir_ring *track, enum weir_record_type type, weir_name name, uint64_t start,
                           uint64_t ticks, uint64_t item, uint32_t shapes, uint32_t stack);

/* Slow path of weir_track_range for a thread's first record and for ranges with optional slots. */
void weir_track_range_slow(weir_name name, uint64_t start, uint64_t end, uint32_t state, uint32_t shapes);

/* Records a range of the calling thread that ended now. state is the recording state when the range was opened.
 * Requires end >= start and state != 0. */
static inline void weir_track_range(weir_name name, uint64_t start, uint64_t end, uint32_t state, uint32_t shapes)
{
    struct weir_ring *track = weir_track_self;
    uint64_t ticks = end - start, at;
    uint32_t tagged = state & (WEIR_RECORDING_SHAPES | WEIR_RECORDING_STACKS);
    bool quick = track && (weir_item_self | ticks >> 32 | tagged | (state ^ weir_recording())) == 0;
    if (!quick || (at = atomic_load_explicit(&track->head, memory_order_relaxed)) >= track->limit) {
        weir_track_range_slow(name, start, end, state, shapes);
        return;
    }
    struct weir_writing writing = {track, at};
    weir_track_put(&writing, start, weir_record_word((uint32_t)ticks, name, WEIR_RECORD_RANGE, 0));
    weir_track_end(&writing);
}

/* Records a profiler step that ended now. */
void weir_track_step(int64_t number, uint64_t start, uint64_t end);

/* ---- for the collector ---- */

/* Consecutive whole records of one thread, in two pieces if the ring wraps around. */
struct weir_run {
    const struct weir_slot2 *slots[2];
    size_t n[2];
};

static inline const struct weir_slot2 *weir_run_slot(const struct weir_run *run, size_t i)
{
    return i < run->n[0] ? &run->slots[0][i] : &run->slots[1][i - run->n[0]];
}

static inline uint64_t weir_run_records(const struct weir_run *run)
{
    uint64_t records = 0;
    for (size_t i = 0; i < run->n[0] + run->n[1]; i += weir_record_slots(weir_run_slot(run, i)->b))
        records++;
    return records;
}

/* Calls `each` with the new records of each track, then marks them as read. Tracks of ended threads are freed
 * afterwards. Only one thread may call this at a time. */
typedef void weir_drain_fn(void *user, const struct weir_ring *ring, const struct weir_run *run);
void weir_tracks_drain(weir_drain_fn *each, void *user);

/* Called for each open range with its thread, name and start. */
typedef void weir_open_fn(void *user, pid_t tid, const char *thread, weir_name name, uint64_t start);
void weir_tracks_open(weir_open_fn *each, void *user);
/* Calls `each` for the open zones of all sessions (recorder_read.c). */
void weir_recorders_open_zones(weir_open_fn *each, void *user);

/* Limit of the memory for unread records of threads that end while a window records. Records beyond it are dropped and
 * counted. */
enum { WEIR_REST_MAX_BYTES = 16 << 20 };
void weir_tracks_collect(bool collecting);

/* Returns the number of records dropped by all tracks since the last call. */
uint64_t weir_tracks_dropped(void);

/* Sets a function to call when a ring is half full, or NULL. It runs on any thread, without locks held. */
void weir_tracks_on_half(void (*call)(void));

#endif
