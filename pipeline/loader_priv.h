/* loader_priv.h: the loader itself. */
#ifndef WEIR_PIPELINE_LOADER_PRIV_H
#define WEIR_PIPELINE_LOADER_PRIV_H

#include "pipeline/steps.h"
#include "pipeline/watchdog.h"
#include "pipeline/work/worker.h"

struct weir_queue_depth {
    uint64_t sum, samples;
    int min, max; /* since the last reset; min > max = none seen */
};

/* One thread opens, consumes and closes; figures may be asked for by others where loader.h says so. */
struct weir_loader {
    struct weir_shared shared;
    int n_workers;  /* threads; 0 = inline */
    int n_contexts; /* workers allocated: at least one */
    struct weir_worker *workers;
    struct weir_watchdog watchdog;
    struct weir_thread *consumer; /* cells of the thread that opened us, when it was not attached before */
    uint64_t next;                /* batch that weir_loader_next gives out next */
    uint64_t taken;               /* batches that it gave out */
    int epoch;                    /* of the last one */
    _Atomic int lent;
    bool finished;
    uint64_t start_ns, indexed_ns, opened_ns, first_batch_ns; /* points in time; 0 = not yet */
    struct weir_steps steps;
    pthread_mutex_t depth_lock;
    struct weir_queue_depth depth;
};

/* Where the run begins; the sampler is open. */
int weir_resume_loader(struct weir_loader *loader, struct weir_err *err);

#endif
