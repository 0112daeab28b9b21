#include "pipeline/samples/shared.h"
#include "weir/dataset.h"
#include "weir/loader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const double STD_MIN = 1e-2; /* the same minimum as in ACT */

int weir_norm_open(struct weir_norm *norm, const struct weir_dataset *dataset, const struct weir_sampler *sampler,
                   bool actions, bool raw, struct weir_err *err)
{
    norm->dim = actions ? weir_dataset_action_dim(dataset) : weir_dataset_qpos_dim(dataset);
    size_t dim = (size_t)norm->dim;
    double *mean = malloc(2 * dim * sizeof *mean);
    norm->mean = malloc(dim * sizeof *norm->mean);
    norm->std = malloc(dim * sizeof *norm->std);
    int n, rc = mean && norm->mean && norm->std ? 0 : -ENOMEM;
    const int *episodes = weir_sampler_episodes(sampler, WEIR_SPLIT_TRAIN, &n);
    if (rc == 0)
        rc = weir_dataset_stats(dataset, episodes, n, actions, mean, mean + dim);
    for (size_t d = 0; d < dim && rc == 0; d++) {
        norm->mean[d] = raw ? 0 : (float)mean[d];
        norm->std[d] = raw ? 1 : (float)(mean[dim + d] > STD_MIN ? mean[dim + d] : STD_MIN);
    }
    free(mean);
    return rc < 0 ? weir_err_set(err, rc, "the statistics of state and actions cannot be computed: %s", strerror(-rc))
                  : 0;
}

void weir_norm_close(struct weir_norm *norm)
{
    free(norm->mean);
    free(norm->std);
    *norm = (struct weir_norm){0};
}
