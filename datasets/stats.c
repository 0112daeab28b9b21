/* Computes the mean and the standard deviation of state and actions. Sums are in double and in a fixed order, so that
 * results do not depend on the machine or the number of threads. The estimate is unbiased, as in torch.std. */
#include "datasets/index.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static void add_rows(const float *rows, int steps, int dim, const double *mean, double *sum)
{
    for (int t = 0; t < steps; t++)
        for (int d = 0; d < dim; d++) {
            double x = rows[(size_t)t * (size_t)dim + (size_t)d];
            sum[d] += mean ? (x - mean[d]) * (x - mean[d]) : x;
        }
}

int weir_dataset_stats(const struct weir_dataset *dataset, const int *episodes, int n, bool actions, double *mean,
                       double *std)
{
    int dim = actions ? weir_dataset_action_dim(dataset) : weir_dataset_qpos_dim(dataset);
    uint64_t count = 0;
    for (int d = 0; d < dim; d++)
        mean[d] = std[d] = 0;
    for (int i = 0; i < n; i++)
        count += (uint64_t)dataset->episodes[episodes[i]].steps;
    if (count == 0)
        return -EINVAL;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < n; i++) {
            const struct weir_episode *e = &dataset->episodes[episodes[i]];
            add_rows(actions ? e->actions : e->qpos, e->steps, dim, pass ? mean : NULL, pass ? std : mean);
        }
        for (int d = 0; d < dim && pass == 0; d++)
            mean[d] /= (double)count;
    }
    for (int d = 0; d < dim; d++)
        std[d] = count > 1 ? sqrt(std[d] / (double)(count - 1)) : 0;
    return 0;
}
