/* train_options.h: the options of weir train: those that people of ACT's imitate_episodes type, and those of weir run
 * that decide what is loaded, how, and what is printed. */
#ifndef WEIR_EXTRAS_TRAIN_CLI_TRAIN_OPTIONS_H
#define WEIR_EXTRAS_TRAIN_CLI_TRAIN_OPTIONS_H

#include "cli/run/run_options.h"

struct train_options {
    struct run_options run; /* first: weir_train_sets */
    const char *task_name, *dataset_dir, *ckpt_dir, *policy_class;
    double kl_weight, lr, weight_decay;
    int hidden_dim, dim_feedforward, grad_accumulation;
    bool temporal_agg, onscreen_render, amp, resume;
    int gpu; /* its number, -1: the CPU; set by weir_train_options_check */
};

enum { TRAIN_OPTS = 18 };
extern const struct weir_opt weir_train_opts[TRAIN_OPTS];
extern const struct weir_opt_set weir_train_sets[];
extern const char weir_train_examples[];

/* 0; -EINVAL: what was typed cannot be. What weir run has and weir train has not is set
 * to what training takes. */
int weir_train_options_check(struct train_options *options, struct weir_err *err);

/* The files of --ckpt-dir. */
#define WEIR_TRAIN_BEST "policy_best.safetensors"
#define WEIR_TRAIN_LAST "policy_last.safetensors"

/* Where the data is: data, when it is not NULL, --dataset-dir, or $WEIR_DATASETS/TASK_NAME, which is put into path.
 * NULL and err: none of them is given. */
enum { TRAIN_PATH = 4096 };
const char *weir_train_data(const struct train_options *options, const char *data, char path[TRAIN_PATH],
                            struct weir_err *err);

/* The options that were typed and that the policy has no use for: "--kl-weight, --temporal-agg"; "" = none. */
void weir_train_unused(const struct train_options *options, char *text, size_t size);

#endif
