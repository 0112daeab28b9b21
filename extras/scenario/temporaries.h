/* temporaries.h: memory of the device that a step needs for a moment, under names that traces show: allocated anew each
 * time, or taken from a pool that is allocated once. One thread uses them. */
#ifndef WEIR_EXTRAS_SCENARIO_TEMPORARIES_H
#define WEIR_EXTRAS_SCENARIO_TEMPORARIES_H

#include "extras/common/compute_ops.h"

#include "weir/recorder.h"

enum { WEIR_TEMPORARIES = 24 };

struct weir_temporaries {
    const struct weir_compute_ops *ops;
    void *self; /* the backend's context */
    int device; /* for memory events */
    bool pool;  /* memory is kept from step to step */
    weir_name names[WEIR_TEMPORARIES];
    weir_real *kept[WEIR_TEMPORARIES]; /* the pool's */
};

/* The first four fields are set. 0 or -ENOMEM: there is no memory for the pool. */
int weir_temporaries_open(struct weir_temporaries *temporaries, struct weir_err *err);
void weir_temporaries_close(struct weir_temporaries *temporaries);

/* Takes those from first to end, 1 to 4 MiB each, fills each by a kernel, and gives it back. 0 or -ENOMEM. */
int weir_temporaries_use(struct weir_temporaries *temporaries, int first, int end, struct weir_err *err);

#endif
