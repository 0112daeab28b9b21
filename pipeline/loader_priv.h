/* loader_priv.h: the state of a loader. */
#ifndef WEIR_PIPELINE_LOADER_PRIV_H
#define WEIR_PIPELINE_LOADER_PRIV_H

#include "pipeline/samples/steps.h"
#include "pipeline/work/worker.h"
#include "weir/loader.h"

/* ---- watchdog.c: a thread that detects that the consumer waits without progress, and then reports what each thread is
 * doing. */

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

/* ---- loader.c */

struct weir_queue_depth {
    uint64_t sum, samples;
    int min, max; /* values since the last reset; min > max = no samples */
};

/* Only one thread may open, use and close the loader. Other threads may read figures if loader.h permits it. */
struct weir_loader {
    struct weir_shared shared;
    int n_workers;  /* worker threads; 0 = the consumer's thread makes the batches */
    int n_contexts; /* allocated workers; at least one */
    struct weir_worker *workers;
    struct weir_watchdog watchdog;
    struct weir_thread *consumer; /* recording of the opening thread, if the loader attached that thread */
    uint64_t next;                /* number of the next batch that weir_loader_next returns */
    uint64_t taken;               /* number of batches delivered */
    int epoch;                    /* epoch of the last delivered batch */
    _Atomic int lent;
    bool finished;
    uint64_t start_ns, indexed_ns, opened_ns, first_batch_ns; /* timestamps; 0 = not reached */
    struct weir_steps steps;
    pthread_mutex_t depth_lock;
    struct weir_queue_depth depth;
};

/* Copies the caller's configuration, which may be from an older version, into this version's struct. Returns -EINVAL or
 * -ENOTSUP like weir_sized_copy. */
int weir_config_take(struct weir_loader_config *full, const struct weir_loader_config *given, struct weir_err *err);

/* One option that determines the sample order. */
struct weir_state_field {
    const char *name; /* name of the option */
    uint64_t value;
};

/* Writes a temporary file and renames it, so that path always names a complete file. */
int weir_state_write(const char *path, uint64_t next, const struct weir_state_field fields[WEIR_STATE_FIELDS],
                     struct weir_err *err);
/* If the file does not exist, sets state->given to false. Returns -EBADMSG if the file is damaged (its last line is an
 * XXH3 of the preceding lines), -ENOTSUP for older versions, or -EEXIST if it is not a state file. */
int weir_state_read(const char *path, struct weir_state *state, struct weir_err *err);
/* Returns 0, or -EINVAL with err naming the first setting that differs. */
int weir_state_check(const struct weir_state *state, const struct weir_state_field fields[WEIR_STATE_FIELDS],
                     struct weir_err *err);

/* Returns the number of batches to prefetch if config.prefetch is 0 (prefetch.c). The layout of the slots must be set.
 */
int weir_prefetch_auto(const struct weir_shared *shared);

/* Sets the number of the first batch of the run. The sampler must be open. */
int weir_resume_loader(struct weir_loader *loader, struct weir_err *err);

#endif
