/* simulate.h: simulates a run's pipeline as discrete events: workers that share cores and slots, resources that serve
 * one request at a time, and the consumer's step.
 *
 * A run cannot exceed the lowest bound of the utilisation law. The simulation shows how far it stays below this bound
 * if two resources are nearly balanced, prefetch is small, or some reads are slow. Tasks are processed in order, as in
 * the loader. Threads share the cores evenly.
 *
 * The result depends only on the input. No clocks, no I/O; allocates only during the call. Can be called on any thread.
 * A call takes about 1 ms. */
#ifndef WEIR_ANALYZE_PREDICTION_SIMULATE_H
#define WEIR_ANALYZE_PREDICTION_SIMULATE_H

#include "analyze/prediction/demands.h"

enum { WEIR_SIMULATE_POINTS = 4 };

/* Factor by which CPU time grows, relative to one busy thread, because threads share caches, memory, SMT cores and
 * clock. */
struct weir_growth_point {
    double busy, times;
};

struct weir_simulation {
    int workers;      /* 0: the consumer's thread loads data, alternating with the step */
    int slots;        /* batches that can be in preparation, complete or with the consumer: prefetch + 1 */
    int tasks;        /* tasks (images) per batch */
    double cores;     /* greater than 0; can be a fraction */
    double cpu_s;     /* CPU time per task if one thread runs */
    double spread;    /* standard deviation of cpu_s divided by its mean, 0..1 */
    double asleep_s;  /* mean time asleep per task, including slow tasks */
    double slow_part; /* fraction of tasks whose sleep is slow_times that of other tasks; 0 = none */
    double slow_times;
    double library_s;  /* time per task in a resource that serves one worker at a time */
    double feed_s;     /* time per batch from completion to delivery, one batch at a time (upload, GPU decoding) */
    int outputs;       /* max batches that are delivered but not released; 0 = no upload */
    double step_s;     /* time per batch that the consumer spends asleep or on another device */
    double step_cpu_s; /* CPU time of the consumer per batch */
    double handover_s; /* time until a thread that waits for a batch or a slot wakes up */
    int n_growth;      /* points, ascending by busy; 0 = CPU time does not grow */
    struct weir_growth_point growth[WEIR_SIMULATE_POINTS];
};

struct weir_simulated {
    double batches_per_s;        /* 0 = no result, because times are 0 or not finite */
    double busy[WEIR_RESOURCES]; /* used fraction of each resource's capacity; the upload counts as WEIR_RESOURCE_BUS */
    enum weir_resource busiest;
    double wait; /* fraction of the time that the consumer waited */
};

/* Returns 0, -EINVAL if a figure is negative, not finite or out of range, or -ENOMEM. */
int weir_simulate(struct weir_simulated *result, const struct weir_simulation *simulation);

/* Returns the factor by which CPU time grows with this many busy threads. */
double weir_growth_at(const struct weir_growth_point *points, int n, double busy);

#endif
