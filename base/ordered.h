/* ordered.h: runs units of work on several threads and delivers their results from one, in order. At most `window`
 * units are in progress or waiting for delivery, each in its own slot. */
#ifndef WEIR_BASE_ORDERED_H
#define WEIR_BASE_ORDERED_H

#include "weir/base.h"

#include <stdint.h>

struct weir_ordered {
    uint64_t n;          /* units, from 0 */
    int workers, window; /* at least 1 */
    /* Called from thread `worker`, which owns the slot until its delivery. A negative result ends the run. */
    int (*work)(void *user, int worker, uint64_t unit, int slot, struct weir_err *err);
    /* Called from the calling thread. A negative result ends the run. */
    int (*deliver)(void *user, uint64_t unit, int slot, struct weir_err *err);
    /* Called from the calling thread about every 100 ms; may be NULL. */
    void (*tick)(void *user);
    void *user;
};

/* Returns 0 or the first error. Runs with fewer threads when not all can be started. */
int weir_ordered_run(const struct weir_ordered *run, struct weir_err *err);

#endif
