/* loader_priv.h: the loader itself. */
#ifndef WEIR_PIPELINE_LOADER_PRIV_H
#define WEIR_PIPELINE_LOADER_PRIV_H

#include "pipeline/steps.h"
#include "pipeline/watchdog.h"
#include "pipeline/work/worker.h"
#include "weir/loader.h"

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

/* The caller's configuration in this version's struct; -EINVAL, -ENOTSUP as weir_sized_copy. */
int weir_config_take(struct weir_loader_config *full, const struct weir_loader_config *given, struct weir_err *err);

/* What the order of samples depends on. */
struct weir_state_field {
    const char *name; /* as the option is called */
    uint64_t value;
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

/* Where the run begins; the sampler is open. */
int weir_resume_loader(struct weir_loader *loader, struct weir_err *err);

#endif
