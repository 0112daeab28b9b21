/* run_window.h: what `weir run --seconds F` measures: F seconds behind a warm-up, over the borders of epochs; with
 * --cold from the loader's opening on, and never more than one epoch. Times are weir_clock_monotonic_ns. */
#ifndef WEIR_CLI_RUN_RUN_WINDOW_H
#define WEIR_CLI_RUN_RUN_WINDOW_H

#include "weir/loader.h"
#include "weir/report.h"

#include <stdbool.h>
#include <stdint.h>

struct weir_run_window {
    double seconds;   /* to be measured; 0 = there is no window, runs end with their epochs */
    bool no_warm_up;  /* it begins where the run does */
    bool whole_epoch; /* the warm-up lasts an epoch at least: what is kept in memory is there then */
    int slots;        /* and until each of these was used once */
    bool open, over;
    uint64_t run_ns, begin_ns, end_ns; /* the run's beginning, and the window's */
    uint64_t batches;                  /* of the warm-up */
    struct weir_measured_line line;    /* samples, images and batches of the window so far */
    uint64_t wait_ns;                  /* of the consumer, in it */
};

/* The run began: its workers did. */
void weir_run_window_begin(struct weir_run_window *window, uint64_t now_ns);
/* A batch was consumed; ends_epoch: the last of its epoch. Counts it when the window is open. Returns true when the
 * window opens: what is counted elsewhere begins anew. */
bool weir_run_window_batch(struct weir_run_window *window, const struct weir_batch *batch, int images_per_sample,
                           bool ends_epoch, uint64_t now_ns);
/* The line, when the run is over. */
void weir_run_window_finish(struct weir_run_window *window, struct weir_measured_line *line);

#endif
