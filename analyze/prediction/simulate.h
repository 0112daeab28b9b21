/* simulate.h: the pipeline of a run as a small discrete-event simulation: workers that share cores and slots, what
 * serves one at a time, and the consumer's step.
 *
 * The least bound of the utilisation law is what a run cannot pass; how far it stays below, where two resources are
 * nearly balanced, few batches may be ahead, or some reads are slow, comes out of the simulation. Tasks are taken in
 * order, as the loader's are; threads share the cores evenly.
 *
 * Pure and deterministic: no clocks, no I/O. Memory for the time of the call. Any thread. A call takes about a
 * millisecond. */
#ifndef WEIR_ANALYZE_PREDICTION_SIMULATE_H
#define WEIR_ANALYZE_PREDICTION_SIMULATE_H

#include "analyze/prediction/demands.h"

enum { WEIR_SIMULATE_POINTS = 4 };

/* What sharing the machine (caches, memory, SMT, clock) makes of CPU time: with so many threads on cores it is so many
 * times what it is for one. */
struct weir_growth_point {
    double busy, times;
};

struct weir_simulation {
    int workers;      /* 0: the consumer's thread does their work, in turns with the step */
    int slots;        /* batches in the making, complete or lent: prefetch + 1 */
    int tasks;        /* of a batch: images */
    double cores;     /* may be a fraction; > 0 */
    double cpu_s;     /* of a task on a core, with one thread running */
    double spread;    /* of cpu_s: standard deviation over mean, 0..1 */
    double asleep_s;  /* of a task: asleep, beside others; the mean, slow tasks included */
    double slow_part; /* of the tasks so many sleep slow_times as long as the others; 0 = none */
    double slow_times;
    double library_s;  /* of a task: in what serves one worker at a time */
    double feed_s;     /* of a batch: between completion and delivery, one batch at a time (copies, a GPU's decoders) */
    int outputs;       /* batches that may be delivered and not released; 0: there is no feed */
    double step_s;     /* of a batch: the consumer, asleep or on another device */
    double step_cpu_s; /* and on a core */
    double handover_s; /* until a thread that waits for a batch or a slot goes on, when there is one */
    int n_growth;      /* ascending; none: CPU time does not grow */
    struct weir_growth_point growth[WEIR_SIMULATE_POINTS];
};

struct weir_simulated {
    double batches_per_s;        /* 0: the simulation makes no sense (no time at all, or not finite) */
    double busy[WEIR_RESOURCES]; /* of each resource's capacity, 0..1; the feed is WEIR_RESOURCE_BUS */
    enum weir_resource busiest;
    double wait; /* of the time, the consumer waited, 0..1 */
};

/* 0, -EINVAL for figures that are negative, not finite, or no counts, or -ENOMEM. */
int weir_simulate(struct weir_simulated *result, const struct weir_simulation *simulation);

/* By how much CPU time is longer with so many threads on cores. */
double weir_growth_at(const struct weir_growth_point *points, int n, double busy);

#endif
