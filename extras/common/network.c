#include "extras/common/network.h"

#include <assert.h>
#include <errno.h>

static struct weir_layer *add(struct weir_network *network, enum weir_layer_kind kind, size_t numbers)
{
    assert(network->n_layers < WEIR_LAYERS_MAX);
    struct weir_layer *layer = &network->layers[network->n_layers++];
    *layer = (struct weir_layer){.kind = kind, .numbers = numbers};
    return layer;
}

void weir_network_add_convolution(struct weir_network *network, const char *name, int channels, int height, int width,
                                  int filters)
{
    int out_height = (height + 1) / 2, out_width = (width + 1) / 2;
    struct weir_layer *layer =
        add(network, WEIR_LAYER_CONVOLUTION, (size_t)filters * (size_t)out_height * (size_t)out_width);
    layer->convolution =
        (struct weir_convolution){channels, height, width, filters, out_height, out_width, network->n_layers == 1};
    layer->parameter =
        weir_parameters_add(network->parameters, name, 4, (int64_t[]){filters, channels, WEIR_KERNEL, WEIR_KERNEL});
}

void weir_network_add_average_pool(struct weir_network *network)
{
    assert(network->n_layers > 0);
    const struct weir_convolution *before = &network->layers[network->n_layers - 1].convolution;
    add(network, WEIR_LAYER_AVERAGE_POOL, (size_t)before->filters)->convolution = *before;
}

void weir_network_add_linear(struct weir_network *network, const char *name, int in, int out, bool relu)
{
    struct weir_layer *layer = add(network, WEIR_LAYER_LINEAR, (size_t)out);
    layer->relu = relu;
    layer->in = in;
    layer->out = out;
    layer->parameter = weir_parameters_add(network->parameters, name, 2, (int64_t[]){out, in});
}

size_t weir_network_numbers(const struct weir_network *network)
{
    size_t numbers = 0;
    for (int i = 0; i + 1 < network->n_layers; i++)
        numbers += network->layers[i].numbers;
    return numbers;
}

size_t weir_network_plan(struct weir_network *network, int samples)
{
    size_t bytes = weir_network_numbers(network) * sizeof(weir_real), most = 0;
    size_t group = bytes ? network->parameters->ops->group_bytes / bytes : 1;
    if (network->layers[0].kind == WEIR_LAYER_LINEAR || group > (size_t)samples)
        group = (size_t)samples;
    network->group = group ? (int)group : 1;
    for (int i = 0; i + 1 < network->n_layers; i++)
        most = network->layers[i].numbers > most ? network->layers[i].numbers : most;
    return most * (size_t)network->group;
}

int weir_network_allocate(struct weir_network *network, int samples)
{
    const struct weir_parameters *parameters = network->parameters;
    for (int i = 0; i < network->n_layers; i++) {
        struct weir_layer *layer = &network->layers[i];
        bool last = i + 1 == network->n_layers;
        if (!last && !(layer->y = parameters->ops->allocate(parameters->self, layer->numbers * (size_t)samples)))
            return -ENOMEM;
        if (layer->kind == WEIR_LAYER_CONVOLUTION &&
            parameters->ops->reserve(parameters->self, &layer->convolution) < 0)
            return -ENOMEM;
    }
    return 0;
}

void weir_network_release(struct weir_network *network)
{
    for (int i = 0; i < network->n_layers; i++) {
        network->parameters->ops->release(network->parameters->self, network->layers[i].y);
        network->layers[i].y = NULL;
    }
}

static weir_real *weight(const struct weir_network *network, const struct weir_layer *layer, weir_real *array)
{
    return array + network->parameters->list[layer->parameter].at;
}

static weir_real *bias(const struct weir_network *network, const struct weir_layer *layer, weir_real *array)
{
    return array + network->parameters->list[layer->parameter + 1].at;
}

/* ---- forward ---- */

static void forward_layer(const struct weir_network *network, const struct weir_layer *layer, int n, const weir_real *x,
                          size_t ldx, weir_real *y, size_t ldy)
{
    const struct weir_compute_ops *ops = network->parameters->ops;
    void *self = network->parameters->self;
    const struct weir_convolution *c = &layer->convolution;
    weir_real *values = network->parameters->values;
    switch (layer->kind) {
    case WEIR_LAYER_CONVOLUTION:
        ops->convolve(self, c, n, x, ldx, weight(network, layer, values), bias(network, layer, values), y);
        break;
    case WEIR_LAYER_AVERAGE_POOL:
        ops->average_pool(self, n, c->filters, c->out_height * c->out_width, x, y, (int)ldy);
        break;
    case WEIR_LAYER_LINEAR:
        ops->gemm(self, &(struct weir_gemm){.transpose_b = true,
                                            .m = n,
                                            .n = layer->out,
                                            .k = layer->in,
                                            .a = x,
                                            .lda = (int)ldx,
                                            .b = weight(network, layer, values),
                                            .ldb = layer->in,
                                            .c = y,
                                            .ldc = (int)ldy});
        ops->bias_relu(self, n, layer->out, bias(network, layer, values), layer->relu, y, (int)ldy);
        break;
    }
}

/* Input and output of a layer, from sample "first" on. The first layer's input and the last layer's output are the
 * caller's arrays. */
struct ends {
    const weir_real *x;
    size_t ldx;
    weir_real *y;
    size_t ldy;
};

static struct ends ends_of(const struct weir_network *network, int i, int first, const struct ends *whole)
{
    const struct weir_layer *layer = &network->layers[i];
    struct ends ends = *whole;
    if (i > 0) {
        ends.x = layer[-1].y;
        ends.ldx = layer[-1].numbers;
    }
    if (i + 1 < network->n_layers) {
        ends.y = layer->y;
        ends.ldy = layer->numbers;
    }
    ends.x += (size_t)first * ends.ldx;
    if (ends.y) /* NULL for the last layer in backward; adding even 0 to a null pointer is undefined */
        ends.y += (size_t)first * ends.ldy;
    return ends;
}

void weir_network_forward(const struct weir_network *network, int n, const weir_real *x, size_t ldx, weir_real *y,
                          size_t ldy)
{
    struct ends whole = {x, ldx, y, ldy};
    for (int first = 0; first < n; first += network->group) {
        int count = n - first < network->group ? n - first : network->group;
        for (int i = 0; i < network->n_layers; i++) {
            struct ends ends = ends_of(network, i, first, &whole);
            forward_layer(network, &network->layers[i], count, ends.x, ends.ldx, ends.y, ends.ldy);
        }
    }
}

/* ---- backward ---- */

static void backward_linear(const struct weir_network *network, const struct weir_layer *layer, int n,
                            const struct ends *ends, const weir_real *dy, size_t lddy, weir_real *dx)
{
    const struct weir_compute_ops *ops = network->parameters->ops;
    void *self = network->parameters->self;
    weir_real *gradients = network->parameters->gradients;
    ops->gemm(self, &(struct weir_gemm){.transpose_a = true,
                                        .m = layer->out,
                                        .n = layer->in,
                                        .k = n,
                                        .a = dy,
                                        .lda = (int)lddy,
                                        .b = ends->x,
                                        .ldb = (int)ends->ldx,
                                        .beta = 1,
                                        .c = weight(network, layer, gradients),
                                        .ldc = layer->in});
    ops->bias_gradient(self, n, layer->out, dy, (int)lddy, bias(network, layer, gradients));
    if (!dx)
        return;
    ops->gemm(self, &(struct weir_gemm){.m = n,
                                        .n = layer->in,
                                        .k = layer->out,
                                        .a = dy,
                                        .lda = (int)lddy,
                                        .b = weight(network, layer, network->parameters->values),
                                        .ldb = layer->in,
                                        .c = dx,
                                        .ldc = (int)ends->ldx});
    if (layer > network->layers && layer[-1].relu)
        ops->relu_backward(self, n, layer->in, ends->x, dx, (int)ends->ldx);
}

static void backward_layer(const struct weir_network *network, const struct weir_layer *layer, int n,
                           const struct ends *ends, const weir_real *dy, size_t lddy, weir_real *dx)
{
    const struct weir_compute_ops *ops = network->parameters->ops;
    void *self = network->parameters->self;
    const struct weir_convolution *c = &layer->convolution;
    weir_real *gradients = network->parameters->gradients;
    switch (layer->kind) {
    case WEIR_LAYER_CONVOLUTION:
        ops->convolve_backward(self, c, n, ends->x, ends->ldx, weight(network, layer, network->parameters->values), dy,
                               weight(network, layer, gradients), bias(network, layer, gradients), dx);
        break;
    case WEIR_LAYER_AVERAGE_POOL:
        ops->average_pool_backward(self, n, c->filters, c->out_height * c->out_width, ends->x, dy, (int)lddy, dx);
        break;
    case WEIR_LAYER_LINEAR:
        backward_linear(network, layer, n, ends, dy, lddy, dx);
        break;
    }
}

void weir_network_backward(const struct weir_network *network, int n, const weir_real *x, size_t ldx,
                           const weir_real *dy, size_t ldy, weir_real *dx)
{
    struct ends whole = {.x = x, .ldx = ldx};
    for (int first = 0; first < n; first += network->group) {
        int count = n - first < network->group ? n - first : network->group;
        const weir_real *from = dy + (size_t)first * ldy;
        size_t ldfrom = ldy;
        for (int i = network->n_layers - 1; i >= 0; i--) {
            struct ends ends = ends_of(network, i, first, &whole);
            weir_real *to = i > 0 ? network->gradients[i % 2] : dx ? dx + (size_t)first * ldx : NULL;
            backward_layer(network, &network->layers[i], count, &ends, from, ldfrom, to);
            from = to;
            ldfrom = ends.ldx;
        }
    }
}
