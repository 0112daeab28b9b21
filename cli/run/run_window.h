/* run_window.h: the measured window of weir run --seconds: S seconds after a warm-up, across epochs. With --cold it
 * starts when the loader opens and covers one epoch at most. Times are weir_clock_monotonic_ns. */
#ifndef WEIR_CLI_RUN_RUN_WINDOW_H
#define WEIR_CLI_RUN_RUN_WINDOW_H

#include "weir/loader.h"
#include "weir/report.h"

#include <stdbool.h>
#include <stdint.h>

struct weir_run_window {
    double seconds;   /* measured time; 0: no window, the run ends with its epochs */
    bool no_warm_up;  /* the window starts with the run */
    bool whole_epoch; /* the warm-up lasts at least one epoch, to fill the decode cache */
    int slots;        /* the warm-up also uses each slot once */
    bool open, over;
    uint64_t run_ns, begin_ns, end_ns; /* start of the run; start and end of the window */
    uint64_t batches;                  /* consumed during the warm-up */
    struct weir_measured_line line;    /* samples, images and batches in the window so far */
    uint64_t wait_ns;                  /* the consumer's waits within the window */
};

/* Call when the workers start. */
void weir_run_window_begin(struct weir_run_window *window, uint64_t now_ns);
/* Counts a consumed batch if the window is open. ends_epoch: it is the epoch's last one. Returns true when the window
 * opens: other counters must restart. */
bool weir_run_window_batch(struct weir_run_window *window, const struct weir_batch *batch, int images_per_sample,
                           bool ends_epoch, uint64_t now_ns);
/* Fills the line at the end of the run. */
void weir_run_window_finish(struct weir_run_window *window, struct weir_measured_line *line);

#endif
