/* network.h: a sequence of layers. A backend computes the forward and backward passes.
 *
 *     struct weir_network network = {.parameters = &parameters};
 *     weir_network_add_convolution, weir_network_add_average_pool, weir_network_add_linear, in the order of the layers
 *     weir_parameters_allocate; weir_network_allocate
 *     for each batch: weir_network_forward, weir_network_backward
 *     weir_network_release
 *
 * A network starts either with convolutions followed by a pool, or with linear layers. All pointers to numbers are
 * device memory (compute_ops.h). A network must be used by one thread only. */
#ifndef WEIR_EXTRAS_COMMON_NETWORK_H
#define WEIR_EXTRAS_COMMON_NETWORK_H

#include "extras/common/compute_ops.h"

/* ---- parameters.c ---- */

/* The parameters of a policy, their gradients and AdamW's moments: four arrays with the same layout, in which each
 * tensor occupies a range. They must be used by one thread only. */

enum { WEIR_PARAMETERS_MAX = 160, WEIR_PARAMETER_NAME = 72 };

struct weir_parameter {
    char name[WEIR_PARAMETER_NAME];
    int ndim;
    int64_t shape[4];
    size_t at, count; /* offset and length in numbers */
    double bound;     /* initial values are uniform from -bound to bound */
};

struct weir_parameters {
    const struct weir_compute_ops *ops;
    void *self; /* the backend's context */
    struct weir_parameter list[WEIR_PARAMETERS_MAX];
    int n;
    size_t numbers; /* length of each array below; each tensor's count is rounded up to whole cache lines */
    weir_real *values, *gradients, *mean, *variance;
};

/* Adds the tensors "name.weight" and "name.bias". Initial weights are uniform with variance 2 / fan_in, where fan_in is
 * the product of all dimensions except the first (He et al. 2015). The bias consists of shape[0] zeros. Returns the
 * index of the weight; the bias has the next index. */
int weir_parameters_add(struct weir_parameters *parameters, const char *name, int ndim, const int64_t *shape);
/* Returns the number of parameters in all tensors, without padding. */
size_t weir_parameters_count(const struct weir_parameters *parameters);
/* Allocates all four arrays. 0 or -ENOMEM. */
int weir_parameters_allocate(struct weir_parameters *parameters);
/* Sets the initial values, which depend only on the seed. 0 or -ENOMEM. */
int weir_parameters_initialise(struct weir_parameters *parameters, uint64_t seed);
void weir_parameters_release(struct weir_parameters *parameters);

/* splitmix64 (Steele, Lea, Flood 2014), which produces the same numbers on every machine. */
uint64_t weir_next_random(uint64_t *state);

/* ---- network.c ---- */

enum { WEIR_LAYERS_MAX = 8 };

enum weir_layer_kind { WEIR_LAYER_CONVOLUTION, WEIR_LAYER_AVERAGE_POOL, WEIR_LAYER_LINEAR };

struct weir_layer {
    enum weir_layer_kind kind;
    bool relu;                           /* linear layers only; convolutions always end in a ReLU */
    struct weir_convolution convolution; /* for a pool, the preceding convolution */
    int in, out;                         /* linear layers only */
    int parameter;                       /* index of the weight; the bias has the next index */
    size_t numbers;                      /* output numbers per sample */
    weir_real *y; /* [samples, numbers], owned; NULL for the last layer, whose output is the caller's array */
};

struct weir_network {
    struct weir_parameters *parameters;
    struct weir_layer layers[WEIR_LAYERS_MAX];
    int n_layers;
    int group;               /* samples per group; each group passes through all layers before the next group starts */
    weir_real *gradients[2]; /* gradients of a group's layer outputs, used alternately; borrowed */
};

void weir_network_add_convolution(struct weir_network *network, const char *name, int channels, int height, int width,
                                  int filters);
/* Adds a layer that computes the mean of each channel of the preceding convolution. */
void weir_network_add_average_pool(struct weir_network *network);
void weir_network_add_linear(struct weir_network *network, const char *name, int in, int out, bool relu);

/* Returns the number of activations per sample, without the last layer's. */
size_t weir_network_numbers(const struct weir_network *network);
/* Chooses the group size for batches of this many samples. Returns the required length of each array in gradients. */
size_t weir_network_plan(struct weir_network *network, int samples);
/* Allocates the activations for batches of up to this many samples. 0 or -ENOMEM. */
int weir_network_allocate(struct weir_network *network, int samples);
void weir_network_release(struct weir_network *network);

/* Computes n samples. Rows of x are ldx apart, rows of y ldy apart. */
void weir_network_forward(const struct weir_network *network, int n, const weir_real *x, size_t ldx, weir_real *y,
                          size_t ldy);
/* Computes the backward pass of the last forward call, whose x must be unchanged. Adds to the gradients of the
 * parameters. dx, unless NULL, receives the gradient of x, in rows that are ldx apart (only in networks that start with
 * a linear layer). */
void weir_network_backward(const struct weir_network *network, int n, const weir_real *x, size_t ldx,
                           const weir_real *dy, size_t ldy, weir_real *dx);

#endif
