/* train_cli.h: the parts of the command weir train: options, checkpoints, and the loop that trains a policy. */
#ifndef WEIR_EXTRAS_TRAIN_CLI_TRAIN_CLI_H
#define WEIR_EXTRAS_TRAIN_CLI_TRAIN_CLI_H

#include "cli/run/run_loop.h"
#include "cli/run/run_options.h"
#include "extras/train/policy.h"
#include "weir/loader.h"

/* ---- train_options.c: options of ACT's imitate_episodes, and weir run's options for loading and printing ---- */

struct train_options {
    struct run_options run; /* must be first, for weir_train_sets */
    const char *task_name, *dataset_dir, *ckpt_dir, *policy_class;
    double kl_weight, lr, weight_decay;
    int hidden_dim, dim_feedforward, grad_accumulation;
    bool amp, resume;
    int gpu; /* GPU index, or -1 for the CPU; set by weir_train_options_check */
};

enum { TRAIN_OPTS = 16, TRAIN_PATH = 4096 };
extern const struct weir_opt weir_train_opts[TRAIN_OPTS];
extern const struct weir_opt_refused weir_train_refused[];
extern const struct weir_opt_set weir_train_sets[];
extern const char weir_train_examples[];

/* Checks the options. Loader options that weir train does not offer are set to the values that training needs. 0
 * or -EINVAL. */
int weir_train_options_check(struct train_options *options, struct weir_err *err);

/* The files in --ckpt-dir. */
#define WEIR_TRAIN_BEST "policy_best.safetensors"
#define WEIR_TRAIN_LAST "policy_last.safetensors"

/* Returns the path of the data: "data" unless NULL, otherwise --dataset-dir, otherwise $WEIR_DATASETS/TASK_NAME, which
 * is written to path. Returns NULL and sets err if none of the three was specified. */
const char *weir_train_data(const struct train_options *options, const char *data, char path[TRAIN_PATH],
                            struct weir_err *err);

/* ---- train_checkpoint.c: one safetensors file with everything that resuming needs. Arrays: parameters and AdamW's
 * moments. Metadata: the progress, and the options that affect the results ---- */

/* Sum of batch losses, each multiplied by its number of samples. */
struct train_sum {
    double loss;
    uint64_t samples;
};

/* The progress of a training run. Resuming from it gives the same results as an uninterrupted run. */
struct train_progress {
    struct weir_state data;      /* the loader's position, and the settings that determine its order */
    int epoch;                   /* number of finished epochs */
    struct train_sum train, val; /* sums over the current epoch */
    int best_epoch;              /* 1-based; 0 if no epoch has finished */
    double best_loss;            /* loss of best_epoch */
};

/* Writes the checkpoint atomically. */
int weir_checkpoint_write(const char *path, const struct train_options *options, struct weir_policy *policy,
                          const struct train_progress *progress, struct weir_err *err);
/* Reads only the metadata. Returns -EINVAL if path is not a checkpoint of weir train, or if it was written with
 * different options (err contains the path and the difference). */
int weir_checkpoint_progress(const char *path, const struct train_options *options, struct train_progress *progress,
                             struct weir_err *err);
/* Reads the arrays into a policy that was opened with these options. */
int weir_checkpoint_read(const char *path, struct weir_policy *policy, struct weir_err *err);

/* ---- train_loop.c: a run's consumer (cli/run/run_loop.h) whose steps are forward, backward and optimiser ---- */

/* A loss in flight: its batch, and the loader's position after that batch. */
struct train_late_loss {
    enum weir_split split;
    int n, index, epoch; /* number of samples; the batch's index in its epoch, from 0; epoch, from 0 */
    uint64_t position;
};

/* State of a training run. Initialise options, which is borrowed, and set everything else to zero. */
struct train {
    const struct train_options *options;
    struct weir_loader *loader;
    struct weir_policy *policy;
    char last[TRAIN_PATH], best[TRAIN_PATH]; /* paths of the checkpoints; empty: do not save */
    struct train_progress now;               /* progress after the last batch */
    struct train_progress safe;              /* progress after the last batch that left no gradients pending */
    int pending;                             /* batches since the last optimiser step */
    void *stream;                            /* GPU only: the stream on which all steps are queued */
    struct train_late_loss late[WEIR_POLICY_LOSSES];
    unsigned losses_sent, losses_received;
    struct weir_err late_err; /* error from the losses that fill_line waited for */
    bool diverged, unsaved, resumed;
};

/* Returns the callbacks for a run. Their user pointer is "train". */
struct weir_run_consumer weir_train_consumer(struct train *train);

#endif
