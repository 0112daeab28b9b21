/* run_live.h: what a run shows on stderr while it runs: its duration, announced once if it is long, and on a terminal a
 * live line with its progress and the state of the loader. One thread calls these functions. */
#ifndef WEIR_CLI_RUN_RUN_LIVE_H
#define WEIR_CLI_RUN_RUN_LIVE_H

#include "cli/run/run_window.h"
#include "weir/loader.h"

#include <stdbool.h>
#include <stdint.h>

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
