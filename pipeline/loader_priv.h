/* loader_priv.h: the state of a loader. */
#ifndef WEIR_PIPELINE_LOADER_PRIV_H
#define WEIR_PIPELINE_LOADER_PRIV_H

#include "pipeline/samples/steps.h"
#include "pipeline/watchdog.h"
#include "pipeline/work/worker.h"
#include "weir/loader.h"

struct weir_queue_depth {
    uint64_t sum, samples;
    int min, max; /* since the last reset; min > max = no samples */
};

/* One thread opens, consumes and closes; other threads may read figures where loader.h permits it. */
struct weir_loader {
    struct weir_shared shared;
    int n_workers;  /* threads; 0 = inline */
    int n_contexts; /* workers allocated: at least one */
    struct weir_worker *workers;
    struct weir_watchdog watchdog;
    struct weir_thread *consumer; /* cells of the opening thread, if the loader attached it */
    uint64_t next;                /* next batch for weir_loader_next */
    uint64_t taken;               /* batches delivered */
    int epoch;                    /* of the last delivered batch */
    _Atomic int lent;
    bool finished;
    uint64_t start_ns, indexed_ns, opened_ns, first_batch_ns; /* timestamps; 0 = not reached */
    struct weir_steps steps;
    pthread_mutex_t depth_lock;
    struct weir_queue_depth depth;
};

/* Copies the caller's configuration, possibly of an older version, into this version's struct. Returns -EINVAL or
 * -ENOTSUP as weir_sized_copy does. */
int weir_config_take(struct weir_loader_config *full, const struct weir_loader_config *given, struct weir_err *err);

/* One option that determines the sample order. */
struct weir_state_field {
    const char *name; /* name of the option */
    uint64_t value;
};

/* Writes a temporary file and renames it, so that the path always holds a complete file. */
int weir_state_write(const char *path, uint64_t next, const struct weir_state_field fields[WEIR_STATE_FIELDS],
                     struct weir_err *err);
/* state->given stays false when there is no such file. Returns -EBADMSG for a damaged file (its last line is an XXH3 of
 * the lines before it), -ENOTSUP for version 1, which had no hash, -EEXIST for another kind of file. */
int weir_state_read(const char *path, struct weir_state *state, struct weir_err *err);
/* Returns 0, or -EINVAL naming the first setting that differs. */
int weir_state_check(const struct weir_state *state, const struct weir_state_field fields[WEIR_STATE_FIELDS],
                     struct weir_err *err);

/* Returns the number of batches to prefetch for config.prefetch = 0; the slots' layout is known (prefetch.c). */
int weir_prefetch_auto(const struct weir_shared *shared);

/* Sets the position where the run starts; the sampler is open. */
int weir_resume_loader(struct weir_loader *loader, struct weir_err *err);

#endif
