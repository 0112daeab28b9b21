/* simulate.h: discrete-event simulation of a run's pipeline: workers that share cores and slots, resources that serve
 * one request at a time, and the consumer's step.
 *
 * A run cannot exceed the lowest bound of the utilisation law. The simulation shows how far it stays below where two
 * resources are nearly balanced, prefetch is small, or some reads are slow. Tasks are taken in order, as in the loader;
 * threads share the cores evenly.
 *
 * Pure and deterministic: no clocks, no I/O. Allocates during the call only. Any thread. A call takes about 1 ms. */
#ifndef WEIR_ANALYZE_PREDICTION_SIMULATE_H
#define WEIR_ANALYZE_PREDICTION_SIMULATE_H

#include "analyze/prediction/demands.h"

enum { WEIR_SIMULATE_POINTS = 4 };

/* Growth of CPU time by sharing the machine (caches, memory, SMT, clock): factor relative to one busy thread. */
struct weir_growth_point {
    double busy, times;
};

struct weir_simulation {
    int workers;      /* 0: the consumer's thread loads, alternating with the step */
    int slots;        /* batches being made, complete, or with the consumer: prefetch + 1 */
    int tasks;        /* per batch: images */
    double cores;     /* may be a fraction; > 0 */
    double cpu_s;     /* per task, with one running thread */
    double spread;    /* standard deviation of cpu_s over its mean, 0..1 */
    double asleep_s;  /* per task: mean time asleep, including slow tasks */
    double slow_part; /* fraction of the tasks that sleep slow_times as long as the others; 0 = none */
    double slow_times;
    double library_s;  /* per task: in a resource that serves one worker at a time */
    double feed_s;     /* per batch: between completion and delivery, one batch at a time (upload, a GPU's decoders) */
    int outputs;       /* max batches delivered but not released; 0: no upload */
    double step_s;     /* per batch: the consumer, asleep or on another device */
    double step_cpu_s; /* per batch: the consumer, on a core */
    double handover_s; /* wake-up time of a thread that waits for a batch or a slot */
    int n_growth;      /* ascending; 0: CPU time does not grow */
    struct weir_growth_point growth[WEIR_SIMULATE_POINTS];
};

struct weir_simulated {
    double batches_per_s;        /* 0: no result (times are 0 or not finite) */
    double busy[WEIR_RESOURCES]; /* fraction of each resource's capacity; the upload is WEIR_RESOURCE_BUS */
    enum weir_resource busiest;
    double wait; /* fraction of time that the consumer waited */
};

/* 0; -EINVAL for figures that are negative, not finite, or not counts; -ENOMEM. */
int weir_simulate(struct weir_simulated *result, const struct weir_simulation *simulation);

/* Factor of CPU time with this many busy threads. */
double weir_growth_at(const struct weir_growth_point *points, int n, double busy);

#endif
