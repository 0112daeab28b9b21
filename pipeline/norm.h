/* norm.h: mean and standard deviation of state or actions over the training episodes, which normalise what a batch has
 * of them. */
#ifndef WEIR_PIPELINE_NORM_H
#define WEIR_PIPELINE_NORM_H

#include "weir/base.h"

struct weir_dataset;
struct weir_sampler;

/* Of each dimension, as float; std is at least 1e-2, as ACT clips it. */
struct weir_norm {
    int dim;
    float *mean, *std; /* owned */
};

/* Of state, or of actions; raw: mean 0 and std 1, which change nothing. -ENOMEM, or what reading them says; what there
 * is then is for weir_norm_close. */
int weir_norm_open(struct weir_norm *norm, const struct weir_dataset *dataset, const struct weir_sampler *sampler,
                   bool actions, bool raw, struct weir_err *err);
/* Accepts zeros. */
void weir_norm_close(struct weir_norm *norm);

#endif
