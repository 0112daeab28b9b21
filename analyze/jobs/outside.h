/* outside.h: the figures of a training job that is seen from outside, from the last intervals of its samples.
 *
 *     struct weir_outside_window *window = calloc(1, sizeof *window);
 *     for (each second) {
 *         weir_outside_add(window, &interval);
 *         weir_outside_figures(window, &figures);
 *         weir_job_judge(&verdict, &figures);
 *     }
 */
#ifndef WEIR_ANALYZE_JOBS_OUTSIDE_H
#define WEIR_ANALYZE_JOBS_OUTSIDE_H

#include "analyze/jobs/dataloader.h"
#include "prof/processes/job_watch.h"

enum { WEIR_OUTSIDE_INTERVALS = 10 };

/* One interval of a job. GPU figures are -1 if they are unknown. */
struct weir_outside_interval {
    struct weir_job_figures job;
    struct weir_report_machine machine; /* of this interval (weir_machine_between) */
    double gpu_busy, to_gpu_bytes_per_s;
    double other_jobs_cores; /* part of the machine's others_cores: this user's other training jobs */
    int world_size;          /* ranks; -1 = unknown */
};

/* The last WEIR_OUTSIDE_INTERVALS intervals. Zeroed before the first call. */
struct weir_outside_window {
    int n, next;
    struct weir_outside_interval intervals[WEIR_OUTSIDE_INTERVALS];
};

/* Returns the interval that the caller fills before it calls weir_outside_add; the oldest one if there are many. */
struct weir_outside_interval *weir_outside_next(struct weir_outside_window *window);
void weir_outside_add(struct weir_outside_window *window);

/* Sets the figures to means over the window. Parked workers, of a loader that is not in use, are left out. */
void weir_outside_figures(const struct weir_outside_window *window, struct weir_dataloader_figures *figures);

#endif
