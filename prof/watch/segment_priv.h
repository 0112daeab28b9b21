/* segment_priv.h: the layout of the shared segment, and a process's view of it.
 *
 * Every member that can change is atomic, and is read with relaxed loads. A reader trusts none of them: the other
 * process may be killed at any time, or write nonsense. Times are ticks of the clock (weir_clock_ticks), which all
 * processes of a machine share. */
#ifndef WEIR_PROF_WATCH_SEGMENT_PRIV_H
#define WEIR_PROF_WATCH_SEGMENT_PRIV_H

#include "prof/record/cells.h"
#include "prof/watch/watch.h"
#include "prof/watch/watch_read.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

enum {
    WEIR_SEGMENT_SLOTS = 4096, /* a loop, 7 workers and their feeders for each loader */
    WEIR_SEGMENT_NAMED = WEIR_STAGE_MAX - WEIR_STAGE_TABLE_MAX, /* stages of users */
    WEIR_SEGMENT_NUMBERS = 24,
    WEIR_SEGMENT_TEXTS = 8,
    WEIR_SLOT_ITEMS = 8,
    WEIR_SLOT_PATHS = 64,
    WEIR_TEXT_WORDS = WEIR_WATCH_TEXT / 8,
    WEIR_PATH_WORDS = WEIR_WATCH_PATH / 8,
};

/* A string in words, so that it can be read while it is written. Always ends with a 0. */
struct weir_shared_text {
    _Atomic uint64_t words[WEIR_TEXT_WORDS];
};

struct weir_shared_item {
    _Atomic int64_t index;
    _Atomic uint64_t ticks;
    _Atomic uint64_t path; /* hash; 0 = none */
};

struct weir_shared_path {
    _Atomic uint64_t hash; /* 0 = free */
    _Atomic uint64_t count, total, max;
    _Atomic uint64_t name[WEIR_PATH_WORDS]; /* the end of a long path */
};

/* A thread's figures. */
struct weir_shared_slot {
    alignas(64) _Atomic uint64_t owner;   /* process and thread; 0 = never used */
    _Atomic int32_t loader, role, worker; /* fixed when the slot is taken for the first time */
    struct weir_thread_totals totals;
    _Atomic uint64_t batches, items;
    _Atomic uint64_t batch_squares; /* sum of squared durations, a double in ns */
    _Atomic uint64_t path_total, path_count;
    struct weir_shared_item slowest[WEIR_SLOT_ITEMS];
    struct weir_shared_path paths[WEIR_SLOT_PATHS];
    struct weir_cell cells[WEIR_STAGE_MAX];
};

struct weir_shared_epoch {
    _Atomic uint64_t number, complete, total, wait, first_wait, startup, batches, items;
};

/* Durations of steps: from one request to the next. */
struct weir_shared_rate {
    _Atomic uint64_t batches, ticks, squares; /* squares: a double in ns */
};

/* A watched loader: settings, and the figures of its loop, which the loop's thread writes. */
struct weir_shared_loader {
    struct weir_shared_text name;
    _Atomic uint64_t numbers[WEIR_SEGMENT_NUMBERS]; /* doubles */
    _Atomic uint32_t numbers_set;
    struct weir_shared_text texts[WEIR_SEGMENT_TEXTS];
    _Atomic uint64_t begun; /* first request */
    _Atomic uint64_t requests, batches, items;
    _Atomic uint64_t loop_ticks, wait_ticks; /* of the batches above */
    _Atomic uint64_t ready_known, ready_sum, ready_min, ready_max, ready_none;
    _Atomic uint64_t waits[WEIR_WATCH_WAITS], wait_of[WEIR_WATCH_WAITS];
    _Atomic uint64_t worker_wait[WEIR_WATCH_WORKERS];          /* out of order, by the worker that was due */
    _Atomic uint64_t first_waits, first_wait_ticks, run_first; /* for the first batch of an epoch, and of the run */
    _Atomic uint64_t startups, startup_ticks;
    _Atomic uint64_t epochs, epochs_complete;
    struct weir_shared_epoch epoch[WEIR_WATCH_EPOCHS];
    _Atomic uint64_t windows, given_up, held_ticks;
    struct weir_shared_rate window, rest;
};

struct weir_segment {
    _Atomic uint64_t magic;
    _Atomic uint32_t version, bytes;
    _Atomic int32_t pid;        /* of the training process */
    _Atomic uint32_t clock_tsc; /* its clock, for processes that map the segment */
    _Atomic uint64_t clock_ratio;
    _Atomic uint32_t loaders, slots, unseen, lock;
    struct weir_shared_text unseen_text[WEIR_WATCH_UNSEEN];
    _Atomic uint32_t stage_kind[WEIR_SEGMENT_NAMED]; /* 0 = free; else kind + 1, plus 256 for the consumer's */
    struct weir_shared_text stage_name[WEIR_SEGMENT_NAMED];
    alignas(64) struct weir_shared_loader loader[WEIR_WATCH_LOADERS];
    alignas(4096) struct weir_shared_slot slot[WEIR_SEGMENT_SLOTS];
};

/* An open file whose number the program may have closed, and given to another file. */
struct weir_own_file {
    int fd; /* -1 = none */
    dev_t device;
    ino_t inode;
};

/* A process's view. */
struct weir_watch {
    struct weir_own_file file;
    struct weir_segment *segment;
    _Atomic int users; /* threads of this process that have a slot, and the creator */
    void *reports;     /* belongs to the reader of reports */
    void (*reports_free)(void *reports);
    _Atomic int wake; /* the next request calls this function */
    void (*on_wake)(struct weir_watch *watch);
};

/* Numbers of the known stages, which are those of the table. */
enum weir_watch_stage {
    WEIR_WATCH_TOTAL_BATCH,
    WEIR_WATCH_START_WORKER,
    WEIR_WATCH_GETITEM,
    WEIR_WATCH_OPEN,
    WEIR_WATCH_READ,
    WEIR_WATCH_IMAGE_DECODE,
    WEIR_WATCH_VIDEO_DECODE,
    WEIR_WATCH_TRANSFORM,
    WEIR_WATCH_COLLATE,
    WEIR_WATCH_PICKLE,
    WEIR_WATCH_H2D_COPY,
    WEIR_WATCH_PIN_MEMORY,
    WEIR_WATCH_WAIT_DATA,
    WEIR_WATCH_WAIT_WORK,
    WEIR_WATCH_STEP,
    WEIR_WATCH_STAGES
};
extern const struct weir_stage_info weir_watch_stages[WEIR_WATCH_STAGES];

static inline double weir_shared_double(const _Atomic uint64_t *value)
{
    uint64_t bits = get(value);
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static inline void weir_shared_put_double(_Atomic uint64_t *to, double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    put(to, bits);
}

/* Adds the square of a duration. */
static inline void weir_shared_add_square(_Atomic uint64_t *to, uint64_t ticks)
{
    double ns = (double)weir_clock_to_ns(ticks);
    weir_shared_put_double(to, weir_shared_double(to) + ns * ns);
}

/* Copy a string to and from words. Long strings are cut; what is read ends with a 0 and is printable. */
void weir_shared_text_put(_Atomic uint64_t *words, int n, const char *text);
void weir_shared_text_get(char *text, size_t size, const _Atomic uint64_t *words, int n);

/* A lock for rare changes that several processes make. Gives up after about 10 ms, because its owner may have been
 * killed, and takes it over. */
void weir_segment_lock(struct weir_segment *segment);
void weir_segment_unlock(struct weir_segment *segment);

/* The settings: each one's number in a segment, and its place in struct weir_watch_settings. */
struct weir_watch_key {
    const char *key; /* NULL = the end */
    size_t offset;
};
extern const struct weir_watch_key weir_watch_number_keys[WEIR_SEGMENT_NUMBERS];
extern const struct weir_watch_key weir_watch_text_keys[WEIR_SEGMENT_TEXTS];
/* Returns the number of a numeric setting, or -1. */
int weir_watch_number_key(const char *key);

/* Takes over fd, which may be below 0. */
void weir_own_file_set(struct weir_own_file *file, int fd);
/* Returns whether the number still is that of the same file. */
bool weir_own_file_is_open(const struct weir_own_file *file);
/* Closes it, unless the number is that of another file now. */
void weir_own_file_close(struct weir_own_file *file);

/* Frees the view when nothing uses it. */
void weir_watch_release(struct weir_watch *watch);

#endif
