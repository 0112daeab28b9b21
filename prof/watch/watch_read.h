/* watch_read.h: the figures of a watched loader, read from the shared segment.
 *
 * The segment is written by other processes, which may be killed or broken, so every number is clamped and every string
 * is cut and made printable. The result is the same plain data that a recorder gives (weir/recorder.h), and the counts
 * of loop and workers. Can be called on any thread. */
#ifndef WEIR_PROF_WATCH_WATCH_READ_H
#define WEIR_PROF_WATCH_WATCH_READ_H

#include "prof/processes/task_watch.h"
#include "prof/watch/watch.h"
#include "weir/recorder.h"

#include <stdbool.h>

enum {
    WEIR_WATCH_WORKERS = 128, /* further workers are counted with the last of these */
    WEIR_WATCH_ITEMS = 10,
    WEIR_WATCH_FILES = 10,
    WEIR_WATCH_UNSEEN = 32,
    WEIR_WATCH_TEXT = 64,
    WEIR_WATCH_PATH = 160,
    WEIR_WATCH_EPOCHS = 64, /* kept, the last ones */
};

enum weir_watch_wait {
    WEIR_WATCH_WAIT_UNKNOWN,
    WEIR_WATCH_WAIT_NONE_READY,   /* no batch was ready */
    WEIR_WATCH_WAIT_OUT_OF_ORDER, /* others were ready, but not the one that was due */
    WEIR_WATCH_WAIT_DUE_READY,    /* the batch was ready, so the main process itself was slow */
    WEIR_WATCH_WAITS
};

/* What changes. All members are sums since the watch began, in seconds or numbers, so that they can be subtracted. */
struct weir_watch_counts {
    double requests, batches, items;
    double loop_s, wait_s; /* steps with their waits; without those of headroom measurements */
    double ready_known, ready_sum, ready_none;
    double waits[WEIR_WATCH_WAITS], wait_of_s[WEIR_WATCH_WAITS];
    double first_waits, first_wait_s; /* for the first batch of an epoch */
    double startups, startup_s;       /* creating workers */
    double epochs, epochs_complete;
    double windows, given_up, held_s;
    double window_batches, window_s, window_squares;
    double rest_batches, rest_s, rest_squares;
    double paths, paths_s; /* items with a file, and their time */
    struct weir_thread_figures workers[WEIR_WATCH_WORKERS];
};

/* Sets *to to the counts between then and *to. */
void weir_watch_counts_subtract(struct weir_watch_counts *to, const struct weir_watch_counts *then);

struct weir_watch_item {
    double index;  /* -1 = not a number */
    double worker; /* -1 = the training loop's thread */
    double s;
    char file[WEIR_WATCH_PATH]; /* empty = no file was seen */
};

struct weir_watch_file {
    char name[WEIR_WATCH_PATH];
    double count, mean_s, max_s;
};

struct weir_watch_unseen {
    char what[WEIR_WATCH_TEXT];
};

/* Since the watch began. */
struct weir_watch_slowest {
    int n_items, n_files, n_unseen;
    struct weir_watch_item items[WEIR_WATCH_ITEMS];
    struct weir_watch_file files[WEIR_WATCH_FILES]; /* by falling mean, of those read at least twice if there are any */
    double files_seen, files_mean_s;                /* all files, and their mean time per item */
    struct weir_watch_unseen unseen[WEIR_WATCH_UNSEEN]; /* calls that are not timed */
};

enum { WEIR_WATCH_REPLAYS = 2 }; /* headroom of a throw-away run that replays one batch; 1: measured in windows */

/* Settings; numbers are -1 if they are not known. */
struct weir_watch_settings {
    double num_workers, prefetch_factor, batch_size, pin_memory, persistent_workers, in_order;
    double cuda, iterable, any_iterable, torch_threads, cv2_threads, headroom;
    double hdf5_opened; /* 1: the dataset held an open HDF5 file when its workers were created */
    double zone_ns;     /* cost of a timed call with its part in Python, as measured there */
    double dataset_length, batches_per_epoch, world_size;
    /* Samples/s of weir.Loader on weir_path, in a trial, and of this loader with all workers busy; weir_sample
     * describes a sample of weir.Loader. */
    double weir_items_s, watched_items_s;
    char start_method[WEIR_WATCH_TEXT], dataset[WEIR_WATCH_TEXT], collate[WEIR_WATCH_TEXT];
    char torch_version[WEIR_WATCH_TEXT], sampler[WEIR_WATCH_TEXT];
    char weir_path[WEIR_WATCH_TEXT], weir_sample[WEIR_WATCH_TEXT];
};

/* A finished epoch. */
struct weir_watch_epoch {
    int number;
    bool complete;
    double total_s, wait_s, first_wait_s, startup_s;
    uint64_t batches, items;
};

/* A thread that has a slot. */
struct weir_watch_thread_id {
    int loader, role, worker;
    int pid, tid;
};

struct weir_watch_reading {
    char name[WEIR_WATCH_TEXT];
    struct weir_watch_settings settings;
    struct weir_watch_counts counts;
    double run_first_s;       /* wait for the run's first batch */
    int ready_min, ready_max; /* since the watch began */
    int n_workers;            /* largest number of a worker plus 1 */
    struct weir_watch_slowest slowest;
    int n_epochs; /* the last ones */
    struct weir_watch_epoch epochs[WEIR_WATCH_EPOCHS];
};

/* Returns whether it is the name of a stage that the watch itself times; a class can follow a transform's. */
bool weir_watch_is_stage(const char *name);

/* Returns the number of watched loaders. */
int weir_watch_loaders(const struct weir_watch *watch);
/* Returns the loader that was waited for most, or 0. */
int weir_watch_slowest_loader(const struct weir_watch *watch);

/* Reads a loader's figures. Frees neither; *snapshot is the caller's (weir_snapshot_free). Returns 0, -EINVAL for an
 * unknown loader, -ENOMEM, or -EEXIST if the program has registered another table of stages. */
int weir_watch_read(struct weir_watch *watch, int loader, struct weir_watch_reading *reading,
                    struct weir_snapshot **snapshot);

/* Writes the live threads of a loader (-1: of all) to threads, and returns how many there are, at most max. */
int weir_watch_threads(const struct weir_watch *watch, int loader, struct weir_watch_thread_id *threads, int max);

/* Ties an object to the watch, which is freed with it. */
void weir_watch_keep(struct weir_watch *watch, void *object, void (*free_object)(void *object));
void *weir_watch_kept(const struct weir_watch *watch);
/* Makes the next request of a loop call the function, once. It can be called in a handler of fork(). */
void weir_watch_wake(struct weir_watch *watch, void (*on_wake)(struct weir_watch *watch));

#endif
