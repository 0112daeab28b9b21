/* train_checkpoint.h: a policy and all that its training needs to go on, in one safetensors file: parameters and
 * AdamW's moments as arrays; where the training is, and the options that its results depend on, as metadata. */
#ifndef WEIR_EXTRAS_TRAIN_CLI_TRAIN_CHECKPOINT_H
#define WEIR_EXTRAS_TRAIN_CLI_TRAIN_CHECKPOINT_H

#include "extras/train/cli/train_options.h"
#include "extras/train/policy.h"
#include "weir/loader.h"

/* Losses of batches, each times its samples. */
struct train_sum {
    double loss;
    uint64_t samples;
};

/* Where a training is: its results from here on are those of one that was not interrupted. */
struct train_progress {
    struct weir_state data;      /* the loader's: the next batch, and what the order depends on */
    int epoch;                   /* epochs that are over */
    struct train_sum train, val; /* of the epoch under way */
    int best_epoch;              /* 1-based; 0 = none yet */
    double best_loss;            /* of it */
};

/* Written aside and renamed. */
int weir_checkpoint_write(const char *path, const struct train_options *options, struct weir_policy *policy,
                          const struct train_progress *progress, struct weir_err *err);
/* Reads the metadata alone. -EINVAL, naming path and what differs: the options are others than those that it was
 * trained with; or path is no checkpoint of weir train. */
int weir_checkpoint_progress(const char *path, const struct train_options *options, struct train_progress *progress,
                             struct weir_err *err);
/* Reads the arrays, into a policy that was opened with these options. */
int weir_checkpoint_read(const char *path, struct weir_policy *policy, struct weir_err *err);

#endif
