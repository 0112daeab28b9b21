/* network.h: layers in a row, computed forwards and backwards by a backend.
 *
 *     struct weir_network network = {.parameters = &parameters};
 *     weir_network_add_convolution, weir_network_add_average_pool, weir_network_add_linear, in the order of the layers
 *     weir_parameters_allocate; weir_network_allocate
 *     for each batch: weir_network_forward, weir_network_backward
 *     weir_network_release
 *
 * A network begins with convolutions, which a pool ends, or with linear layers. All pointers to numbers are the
 * device's (compute_ops.h). One thread uses it. */
#ifndef WEIR_EXTRAS_COMMON_NETWORK_H
#define WEIR_EXTRAS_COMMON_NETWORK_H

#include "extras/common/parameters.h"

enum { WEIR_LAYERS_MAX = 8 };

enum weir_layer_kind { WEIR_LAYER_CONVOLUTION, WEIR_LAYER_AVERAGE_POOL, WEIR_LAYER_LINEAR };

struct weir_layer {
    enum weir_layer_kind kind;
    bool relu;                           /* of linear layers; convolutions end in one */
    struct weir_convolution convolution; /* of a pool: the one before it */
    int in, out;                         /* of linear layers */
    int parameter;                       /* its weight; the bias is the next one */
    size_t numbers;                      /* of a sample's output */
    weir_real *y;                        /* [samples, numbers], owned; NULL of the last layer */
};

struct weir_network {
    struct weir_parameters *parameters;
    struct weir_layer layers[WEIR_LAYERS_MAX];
    int n_layers;
    int group;               /* samples that go through all layers before the next ones do */
    weir_real *gradients[2]; /* of the outputs of a group, by turns; borrowed: networks may share them */
};

void weir_network_add_convolution(struct weir_network *network, const char *name, int channels, int height, int width,
                                  int filters);
/* The mean of each channel of the convolution before. */
void weir_network_add_average_pool(struct weir_network *network);
void weir_network_add_linear(struct weir_network *network, const char *name, int in, int out, bool relu);

/* Numbers that a sample's activations take, without those of the last layer. */
size_t weir_network_numbers(const struct weir_network *network);
/* Chooses the group, for batches of so many samples. Returns how many numbers each of gradients has to hold. */
size_t weir_network_plan(struct weir_network *network, int samples);
/* Allocates the activations of so many samples. 0 or -ENOMEM. */
int weir_network_allocate(struct weir_network *network, int samples);
void weir_network_release(struct weir_network *network);

/* Rows of x and y, one a sample, are ld apart. */
void weir_network_forward(const struct weir_network *network, int n, const weir_real *x, size_t ldx, weir_real *y,
                          size_t ldy);
/* Of the last forward, whose x is there still. Adds to the gradients of the parameters; dx, unless NULL, becomes that
 * of x (linear networks only; rows are ldx apart too). */
void weir_network_backward(const struct weir_network *network, int n, const weir_real *x, size_t ldx,
                           const weir_real *dy, size_t ldy, weir_real *dx);

#endif
