/* run_live.h: what a run shows on stderr while it runs: its duration, announced once if it is long, and on a terminal a
 * live line with its progress and the state of the loader. One thread calls these functions. */
#ifndef WEIR_CLI_RUN_RUN_LIVE_H
#define WEIR_CLI_RUN_RUN_LIVE_H

#include "weir/loader.h"
#include "weir/report.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- run_window.c: the window that weir run --seconds S measures: S seconds after a warm-up, across epochs. With
 * --cold the window starts when the loader opens and covers at most one epoch. Times are weir_clock_monotonic_ns. */

struct weir_run_window {
    double seconds;   /* measured time; 0 means no window, and the run ends with its last epoch */
    bool no_warm_up;  /* starts the window with the run */
    bool whole_epoch; /* extends the warm-up to the end of the first epoch, which fills caches */
    int slots;        /* min batches of the warm-up, so that each slot is used once */
    bool open, over;
    uint64_t run_ns, begin_ns, end_ns; /* start of the run; start and end of the window */
    uint64_t batches;                  /* number of batches in the warm-up */
    struct weir_measured_line line;    /* samples, images and batches of the window so far */
    uint64_t wait_ns;                  /* the consumer's waits within the window so far */
};

/* Call this when the workers start. */
void weir_run_window_begin(struct weir_run_window *window, uint64_t now_ns);
/* Counts a consumed batch. ends_epoch: the batch is the last one of its epoch. Returns true when the window opens. The
 * caller must then restart its other counters. */
bool weir_run_window_batch(struct weir_run_window *window, const struct weir_batch *batch, int images_per_sample,
                           bool ends_epoch, uint64_t now_ns);
/* Returns the time that the warm-up and the window take at least, in seconds. */
double weir_run_window_least(const struct weir_run_window *window);
/* Fills in the line at the end of the run. */
void weir_run_window_finish(struct weir_run_window *window, struct weir_measured_line *line);

/* ---- run_live.c */

/* Times are weir_clock_monotonic_ns. */
struct weir_run_live {
    const struct weir_loader *loader; /* borrowed, as is window */
    const struct weir_run_window *window;
    int epochs, images_per_sample;
    bool has_step; /* without a step there is no data wait to show */
    bool terminal, announced;
    uint64_t due_ns;   /* when the line is drawn next, or the duration announced; UINT64_MAX: never */
    uint64_t first_ns; /* when the first batch was consumed; 0 before */
    /* Since the last line. */
    uint64_t since_ns, batches, images, wait_ns;
    double batch_s; /* recent time per batch; 0 = unknown */
};

/* Announces the duration of a run with a window. */
void weir_run_live_begin(struct weir_run_live *live);

/* Slow part of weir_run_live_batch. */
void weir_run_live_update_(struct weir_run_live *live, const struct weir_batch *batch, uint64_t now_ns);

/* Counts a consumed batch. Costs a few additions, except twice per second on a terminal. */
static inline void weir_run_live_batch(struct weir_run_live *live, const struct weir_batch *batch, uint64_t now_ns)
{
    live->batches++;
    live->images += (uint64_t)batch->n * (uint64_t)live->images_per_sample;
    live->wait_ns += batch->wait_ns;
    if (now_ns >= live->due_ns)
        weir_run_live_update_(live, batch, now_ns);
}

#endif
