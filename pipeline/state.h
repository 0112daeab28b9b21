/* state.h: where a run is, in a small text file: enough to go on with the next batch, on any number of workers, because
 * a batch is a pure function of the configuration, the seed and its number (sampler.h). */
#ifndef WEIR_PIPELINE_STATE_H
#define WEIR_PIPELINE_STATE_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum { WEIR_STATE_FIELDS = 12 };

/* What the order of samples depends on. */
struct weir_state_field {
    const char *name; /* as the option is called */
    uint64_t value;
};

struct weir_state {
    bool given;    /* there is one to go on from */
    uint64_t next; /* batches of the run that were handed out */
    uint64_t values[WEIR_STATE_FIELDS];
};

/* Written aside and renamed: there is a whole file or the one from before. */
int weir_state_write(const char *path, uint64_t next, const struct weir_state_field fields[WEIR_STATE_FIELDS],
                     struct weir_err *err);
/* state->given stays false when there is no such file. -EBADMSG when a byte of it is not as it was written (its last
 * line is an XXH3 of those before it), -ENOTSUP for version 1, which had none, -EEXIST for something else. */
int weir_state_read(const char *path, struct weir_state *state, struct weir_err *err);
/* 0, or -EINVAL naming the first thing that is not as it was. */
int weir_state_check(const struct weir_state *state, const struct weir_state_field fields[WEIR_STATE_FIELDS],
                     struct weir_err *err);

#endif
