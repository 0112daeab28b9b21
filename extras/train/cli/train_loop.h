/* train_loop.h: trains a policy on a loader's batches: the consumer of a run (cli/run/run_loop.h) whose steps are
 * forward, backward and optimiser. */
#ifndef WEIR_EXTRAS_TRAIN_CLI_TRAIN_LOOP_H
#define WEIR_EXTRAS_TRAIN_CLI_TRAIN_LOOP_H

#include "cli/run/run_loop.h"
#include "extras/train/cli/train_losses.h"

/* Zeroed but for options, which are borrowed. */
struct train {
    const struct train_options *options;
    struct weir_loader *loader;
    struct weir_policy *policy;
    char last[TRAIN_PATH], best[TRAIN_PATH]; /* checkpoints; empty = none */
    struct train_progress now;               /* after the last batch */
    struct train_progress safe;              /* after the last batch behind which no gradients are pending */
    int pending;                             /* batches since the last step of the optimiser */
    void *stream;                            /* on a GPU: what steps are queued on */
    struct train_losses losses;
    struct weir_err late_err; /* of a loss that came when the epoch was over */
    bool unsaved, resumed;
};

/* The calls that a run makes; user is train. */
struct weir_run_consumer weir_train_consumer(struct train *train);

#endif
