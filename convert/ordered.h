/* ordered.h: units of work done by several threads and delivered by one, in their order. No more than `window` of them
 * are under way or wait to be delivered, each in a slot of its own. */
#ifndef WEIR_CONVERT_ORDERED_H
#define WEIR_CONVERT_ORDERED_H

#include "weir/base.h"

#include <stdint.h>

struct weir_ordered {
    uint64_t n;          /* units, from 0 */
    int workers, window; /* at least 1 */
    /* From thread `worker`: slot is the unit's until it was delivered. Negative ends the run. */
    int (*work)(void *user, int worker, uint64_t unit, int slot, struct weir_err *err);
    /* From the calling thread. Negative ends the run. */
    int (*deliver)(void *user, uint64_t unit, int slot, struct weir_err *err);
    /* From the calling thread, every 100 ms or so; may be NULL. */
    void (*tick)(void *user);
    void *user;
};

/* 0, or the first error of them all. With fewer threads than asked for when there are no more. */
int weir_ordered_run(const struct weir_ordered *run, struct weir_err *err);

#endif
