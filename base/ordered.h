/* ordered.h: processes units of work on several threads, and delivers the results in order on the calling thread. At
 * most `window` units are being processed or waiting for delivery, each in its own slot. */
#ifndef WEIR_BASE_ORDERED_H
#define WEIR_BASE_ORDERED_H

#include "weir/base.h"

#include <stdint.h>

struct weir_ordered {
    uint64_t n;          /* number of units */
    int workers, window; /* at least 1 */
    /* Processes a unit on thread `worker`, which owns the slot until the unit is delivered. A negative result ends the
     * run. */
    int (*work)(void *user, int worker, uint64_t unit, int slot, struct weir_err *err);
    /* Delivers a unit, on the calling thread. A negative result ends the run. */
    int (*deliver)(void *user, uint64_t unit, int slot, struct weir_err *err);
    /* Called on the calling thread after each delivery and about every 100 ms while it waits; may be NULL. */
    void (*tick)(void *user);
    void *user;
};

/* Returns 0 or the first error. Uses fewer threads if not all of them can be started. */
int weir_ordered_run(const struct weir_ordered *run, struct weir_err *err);

#endif
