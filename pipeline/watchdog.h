/* watchdog.h: a thread that detects that the consumer waits without progress, and then reports what each thread is
 * doing. */
#ifndef WEIR_PIPELINE_WATCHDOG_H
#define WEIR_PIPELINE_WATCHDOG_H

#include "pipeline/work/worker.h"

struct weir_watchdog {
    struct weir_shared *shared;
    const struct weir_worker *workers;
    int n_workers;
    _Atomic bool waiting;         /* the consumer is blocked */
    _Atomic uint64_t waiting_for; /* number of the batch that it waits for */
    pthread_t thread;
    bool started;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stop;
};

int weir_watchdog_start(struct weir_watchdog *dog, struct weir_shared *shared, const struct weir_worker *workers,
                        int n_workers);
void weir_watchdog_stop(struct weir_watchdog *dog);

#endif
