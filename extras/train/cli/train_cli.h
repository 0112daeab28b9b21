/* train_cli.h: the parts of weir train: options, checkpoints, and the loop that trains a policy. */
#ifndef WEIR_EXTRAS_TRAIN_CLI_TRAIN_CLI_H
#define WEIR_EXTRAS_TRAIN_CLI_TRAIN_CLI_H

#include "cli/run/run_loop.h"
#include "cli/run/run_options.h"
#include "extras/train/policy.h"
#include "weir/loader.h"

/* ---- train_options.c: the options of ACT's imitate_episodes, and those of weir run for loading and printing ---- */

struct train_options {
    struct run_options run; /* first: weir_train_sets */
    const char *task_name, *dataset_dir, *ckpt_dir, *policy_class;
    double kl_weight, lr, weight_decay;
    int hidden_dim, dim_feedforward, grad_accumulation;
    bool temporal_agg, onscreen_render, amp, resume;
    int gpu; /* index, -1: the CPU; set by weir_train_options_check */
};

enum { TRAIN_OPTS = 18, TRAIN_PATH = 4096 };
extern const struct weir_opt weir_train_opts[TRAIN_OPTS];
extern const struct weir_opt_set weir_train_sets[];
extern const char weir_train_examples[];

/* Checks the options, and sets those that only weir run has to what training needs. 0 or -EINVAL. */
int weir_train_options_check(struct train_options *options, struct weir_err *err);

/* The files of --ckpt-dir. */
#define WEIR_TRAIN_BEST "policy_best.safetensors"
#define WEIR_TRAIN_LAST "policy_last.safetensors"

/* Returns the path of the data: data unless NULL, --dataset-dir, or $WEIR_DATASETS/TASK_NAME, written to path. NULL and
 * err: none is given. */
const char *weir_train_data(const struct train_options *options, const char *data, char path[TRAIN_PATH],
                            struct weir_err *err);

/* Lists the given options that the policy ignores: "--kl-weight, --temporal-agg"; "" = none. */
void weir_train_unused(const struct train_options *options, char *text, size_t size);

/* ---- train_checkpoint.c: everything needed to resume, in one safetensors file: parameters and AdamW's moments as
 * arrays; the progress and the options that results depend on as metadata ---- */

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

/* ---- train_loop.c: the consumer of a run (cli/run/run_loop.h) whose steps are forward, backward, optimiser ---- */

/* A loss in flight: the batch it belongs to, and the loader's position after that batch. */
struct train_late_loss {
    enum weir_split split;
    int n, index, epoch; /* samples; batch, from 0 */
    uint64_t position;
};

/* Zero all but options, which are borrowed. */
struct train {
    const struct train_options *options;
    struct weir_loader *loader;
    struct weir_policy *policy;
    char last[TRAIN_PATH], best[TRAIN_PATH]; /* checkpoints; empty = none */
    struct train_progress now;               /* after the last batch */
    struct train_progress safe;              /* after the last batch that left no gradients pending */
    int pending;                             /* batches since the optimiser's last step */
    void *stream;                            /* GPU only: the stream of all steps */
    struct train_late_loss late[WEIR_POLICY_LOSSES];
    unsigned losses_sent, losses_received;
    struct weir_err late_err; /* error of a loss that arrived after its epoch */
    bool diverged, unsaved, resumed;
};

/* Returns the callbacks for a run, with train as their user pointer. */
struct weir_run_consumer weir_train_consumer(struct train *train);

#endif
