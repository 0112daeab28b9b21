/* run_window.h: the window that weir run --seconds S measures: S seconds after a warm-up, across epochs. With --cold
 * the window starts when the loader opens and covers at most one epoch. Times are weir_clock_monotonic_ns. */
#ifndef WEIR_CLI_RUN_RUN_WINDOW_H
#define WEIR_CLI_RUN_RUN_WINDOW_H

#include "weir/loader.h"
#include "weir/report.h"

#include <stdbool.h>
#include <stdint.h>

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

#endif
