/* norm.h: mean and standard deviation of state or actions over the training episodes, for normalising batches. */
#ifndef WEIR_PIPELINE_SAMPLES_NORM_H
#define WEIR_PIPELINE_SAMPLES_NORM_H

#include "weir/base.h"

struct weir_dataset;
struct weir_sampler;

/* One value per dimension; std is at least 1e-2, as in ACT. */
struct weir_norm {
    int dim;
    float *mean, *std; /* owned */
};

/* Computes the statistics of the state or the actions. raw: mean 0 and std 1, so that values do not change. Returns
 * -ENOMEM or a read error; call weir_norm_close even then. */
int weir_norm_open(struct weir_norm *norm, const struct weir_dataset *dataset, const struct weir_sampler *sampler,
                   bool actions, bool raw, struct weir_err *err);
/* Accepts a zeroed struct. */
void weir_norm_close(struct weir_norm *norm);

#endif
