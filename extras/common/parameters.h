/* parameters.h: the parameters of a policy, their gradients and AdamW's moments: four arrays of the same layout, with
 * one range per tensor. One thread uses them. */
#ifndef WEIR_EXTRAS_COMMON_PARAMETERS_H
#define WEIR_EXTRAS_COMMON_PARAMETERS_H

#include "extras/common/compute_ops.h"

enum { WEIR_PARAMETERS_MAX = 160, WEIR_PARAMETER_NAME = 72 };

struct weir_parameter {
    char name[WEIR_PARAMETER_NAME];
    int ndim;
    int64_t shape[4];
    size_t at, count; /* offset and length in numbers */
    double bound;     /* initial values are from -bound to bound */
};

struct weir_parameters {
    const struct weir_compute_ops *ops;
    void *self; /* the backend's context */
    struct weir_parameter list[WEIR_PARAMETERS_MAX];
    int n;
    size_t numbers; /* length of each array below: the sum of the counts, each rounded up to a cache line */
    weir_real *values, *gradients, *mean, *variance;
};

/* Adds a tensor "name.weight" and, if bias > 0, "name.bias" with that many zeros. Weights are uniform with variance 2 /
 * fan_in, where fan_in is the product of all dimensions but the first (He et al. 2015). Returns the index of the
 * weight; the bias is the next one. */
int weir_parameters_add(struct weir_parameters *parameters, const char *name, int ndim, const int64_t *shape);
/* Returns the numbers of all tensors, without padding. */
size_t weir_parameters_count(const struct weir_parameters *parameters);
/* Allocates all four arrays. 0 or -ENOMEM. */
int weir_parameters_allocate(struct weir_parameters *parameters);
/* Sets the initial values, which depend on the seed only. 0 or -ENOMEM. */
int weir_parameters_initialise(struct weir_parameters *parameters, uint64_t seed);
void weir_parameters_release(struct weir_parameters *parameters);

#endif
