/* watch_figures.h: the figures of a watched loader, from its segment and from a thread that samples what the loops of
 * workers and of training wait for, by /proc. */
#ifndef WEIR_ANALYZE_WATCH_WATCH_FIGURES_H
#define WEIR_ANALYZE_WATCH_WATCH_FIGURES_H

#include "analyze/jobs/dataloader.h"

/* Sets the figures from a reading whose counts cover the time of the report. The figures of samples are unknown. */
void weir_watch_figures_make(struct weir_dataloader_figures *figures, const struct weir_watch_reading *reading,
                             double run_first_s);

/* Since sampling began. */
struct weir_watch_samples {
    struct weir_task_shares loop, workers[WEIR_WATCH_WORKERS];
    double threads, thread_counts;    /* sum of numbers of threads of worker processes, and how many were added */
    double process_cpu_s, task_cpu_s; /* of worker processes, and of their loops */
};

/* Starts or stops the thread. It also stops before any fork(), and starts again with the next request of a loop. */
void weir_watch_samples_run(struct weir_watch *watch, bool on);
/* Has the thread call a function too, before each sample, without a lock. */
void weir_watch_samples_also(void (*function)(void));
/* Copies the sums of a loader. */
void weir_watch_samples_read(int loader, struct weir_watch_samples *samples);
void weir_watch_samples_subtract(struct weir_watch_samples *to, const struct weir_watch_samples *then);
/* Sets the figures that come from samples. */
void weir_watch_samples_fill(struct weir_dataloader_figures *figures, const struct weir_watch_samples *samples);

/* Forgets a watch that is closed, and stops its thread. */
void weir_watch_samples_end(const struct weir_watch *watch);

#endif
