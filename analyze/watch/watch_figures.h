/* watch_figures.h: the figures of a watched loader, on which the verdict and the text depend. Plain data that stands in
 * logs too, so that `weir report` prints the same. Times are in seconds; unknown figures are -1. */
#ifndef WEIR_ANALYZE_WATCH_WATCH_FIGURES_H
#define WEIR_ANALYZE_WATCH_WATCH_FIGURES_H

#include "base/fields.h"
#include "prof/watch/watch_read.h"
#include "weir/report.h"

/* How threads spend their time, from samples: fractions of it. */
struct weir_watch_shares {
    double seconds; /* sampled; 0 = unknown */
    double storage, lock, sleep, idle, other;
};

struct weir_watch_worker {
    double worker;
    double wall_s, busy_s, wait_s, start_s;
    double batches, items;
    double batch_s, spread; /* mean time of a batch, and standard deviation over mean */
    double cpu_s, delay_s;  /* delay: runnable without a core */
    double asked_of_s;      /* the loop's out-of-order waits for its batches */
    struct weir_watch_shares shares;
};

struct weir_watch_slow_item {
    double index; /* -1 = not a number */
    double worker, s;
    char file[WEIR_WATCH_PATH];
};

struct weir_watch_slow_file {
    char name[WEIR_WATCH_PATH];
    double count, mean_s, max_s;
};

struct weir_watch_unseen {
    char what[WEIR_WATCH_TEXT];
};

struct weir_watch_figures {
    bool known; /* false: the log is not about a watched loader */
    char name[WEIR_WATCH_TEXT];
    struct weir_watch_settings settings;
    double requests, batches, items, loop_s, wait_s;
    double run_first_s; /* part of wait_s for the run's first batch */
    double ready_known, ready_mean, ready_min, ready_max, ready_none;
    double wait_none_s, wait_order_s, wait_due_s, wait_unknown_s; /* by reason */
    double epochs, first_waits, first_wait_s, startups, startup_s;
    double windows, given_up, held_s;
    double window_batches, window_s, window_sd_s, rest_batches, rest_s, rest_sd_s; /* sd of a step */
    double n_threads;        /* mean number of threads of a worker process */
    double others_in_worker; /* CPU time of a worker's other threads over that of its loop */
    struct weir_watch_shares loop_shares;
    int n_workers;
    struct weir_watch_worker workers[WEIR_WATCH_WORKERS];
    int n_items, n_files, n_unseen;
    struct weir_watch_slow_item slow_items[WEIR_WATCH_ITEMS];
    struct weir_watch_slow_file slow_files[WEIR_WATCH_FILES];
    double files_seen, files_mean_s, paths_s, paths;
    struct weir_watch_unseen unseen[WEIR_WATCH_UNSEEN];
};

/* Sets the figures from a reading whose counts cover the time of the report. The figures of samples are unknown. */
void weir_watch_figures_make(struct weir_watch_figures *figures, const struct weir_watch_reading *reading,
                             double run_first_s);

/* The members of the object "watch" in a log line. */
extern const struct weir_fields weir_watch_fields;

/* Sums over the workers. */
struct weir_watch_sums {
    double wall_s, busy_s, wait_s, batches, cpu_s, delay_s;
    double batch_s, spread;          /* of all batches */
    struct weir_watch_shares shares; /* fractions of busy_s */
    double on_core, core_wait;       /* the same */
    double threads;                  /* CPU time of their other threads over busy_s */
    double for_threads;              /* a part of on_core: waits for their other threads (weir_watch_sum_threads) */
};
void weir_watch_sum(struct weir_watch_sums *sums, const struct weir_watch_figures *figures);

/* What the workers' busy time consists of: self times of stages, from the report's rows. */
struct weir_watch_parts {
    double busy_s;
    double open_s, opens; /* a part of read_s */
    double read_s, read_cpu_s, decode_s, transform_s, collate_s, own_s, named_s;
    char transform[64]; /* the transform that takes most, or empty */
    char named[64];     /* the user's stage that takes most, or empty */
    double pickle_s, h2d_s, pin_s, step_s;
};
void weir_watch_parts_make(struct weir_watch_parts *parts, const struct weir_loader_report *report);

/* Counts a worker's waits for its own threads, such as those of a video decoder, as time on a core instead of in locks;
 * sums->threads is what remains of those threads' time. Pickling, which has a thread of its own, is left out. */
void weir_watch_sum_threads(struct weir_watch_sums *sums, const struct weir_watch_figures *figures,
                            const struct weir_watch_parts *parts);

#endif
