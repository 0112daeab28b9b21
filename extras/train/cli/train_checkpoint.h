/* train_checkpoint.h: everything needed to resume training, in one safetensors file: parameters and AdamW's moments as
 * arrays; the progress and the options that results depend on as metadata. */
#ifndef WEIR_EXTRAS_TRAIN_CLI_TRAIN_CHECKPOINT_H
#define WEIR_EXTRAS_TRAIN_CLI_TRAIN_CHECKPOINT_H

#include "extras/train/cli/train_options.h"
#include "extras/train/policy.h"
#include "weir/loader.h"

/* Sum of the losses of batches, weighted by their samples. */
struct train_sum {
    double loss;
    uint64_t samples;
};

/* Progress of a training. A resumed training gives the same results as an uninterrupted one. */
struct train_progress {
    struct weir_state data;      /* the loader's position, and the settings of its order */
    int epoch;                   /* finished epochs */
    struct train_sum train, val; /* of the current epoch */
    int best_epoch;              /* 1-based; 0 = none yet */
    double best_loss;            /* of best_epoch */
};

/* Writes atomically. */
int weir_checkpoint_write(const char *path, const struct train_options *options, struct weir_policy *policy,
                          const struct train_progress *progress, struct weir_err *err);
/* Reads only the metadata. -EINVAL if the training used other options (err names path and the difference), or if path
 * is not a checkpoint of weir train. */
int weir_checkpoint_progress(const char *path, const struct train_options *options, struct train_progress *progress,
                             struct weir_err *err);
/* Reads the arrays into a policy that was opened with these options. */
int weir_checkpoint_read(const char *path, struct weir_policy *policy, struct weir_err *err);

#endif
