#include "extras/scenario/simple_cnn.h"
#include "extras/common/network.h"
#include "weir/recorder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { CONVOLUTIONS = 3 };

struct widths {
    int filters[CONVOLUTIONS], mixed, hidden; /* mixed: width of the block of tiny operations */
};
/* On a GPU, kernels take longer than their launches for batches of 64 or more. On the CPU, a step takes less time than
 * making its items. */
static const struct widths gpu_widths = {{256, 512, 512}, 512, 4096}, cpu_widths = {{8, 16, 32}, 4096, 256};

/* The tiny operation. It changes numbers so little that they keep their magnitude over all repetitions. */
static const double tiny_scale = 0.999, tiny_shift = 1e-4;

/* An array to allocate in device memory. */
struct array {
    weir_real **numbers;
    size_t count;
};
enum { ARRAYS = 12 };

struct weir_simple_cnn {
    struct weir_simple_cnn_config config;
    const struct widths *widths;
    int features; /* number of filters in the last convolution */
    const struct weir_compute_ops *ops;
    void *self;
    struct weir_parameters parameters;
    struct weir_network encoder, block, head; /* block: the linear layer before the tiny operations */
    struct array arrays[ARRAYS];
    weir_real *gradients[2]; /* shared by the networks */
    weir_real *features_out, *features_gradients, *mixed, *mixed_gradients, *predicted, *predicted_gradients;
    weir_real *weights, *loss, *images, *targets;
    uint64_t steps;
    weir_name tiny_name;
};

/* ---- open ---- */

static int head_inputs(const struct weir_simple_cnn *cnn)
{
    return cnn->config.tiny != WEIR_TINY_NONE ? cnn->widths->mixed : cnn->features;
}

static void build(struct weir_simple_cnn *cnn)
{
    static const char *const names[CONVOLUTIONS] = {"conv1", "conv2", "conv3"};
    int channels = 3, side = WEIR_CNN_SIDE;
    cnn->parameters.ops = cnn->ops;
    cnn->parameters.self = cnn->self;
    cnn->encoder.parameters = cnn->block.parameters = cnn->head.parameters = &cnn->parameters;
    for (int i = 0; i < CONVOLUTIONS; i++) {
        weir_network_add_convolution(&cnn->encoder, names[i], channels, side, side, cnn->widths->filters[i]);
        channels = cnn->widths->filters[i];
        side = (side + 1) / 2;
    }
    weir_network_add_average_pool(&cnn->encoder);
    cnn->features = channels;
    if (cnn->config.tiny != WEIR_TINY_NONE)
        weir_network_add_linear(&cnn->block, "tiny", cnn->features, cnn->widths->mixed, false);
    weir_network_add_linear(&cnn->head, "fc1", head_inputs(cnn), cnn->widths->hidden, true);
    weir_network_add_linear(&cnn->head, "fc2", cnn->widths->hidden, WEIR_CNN_OUTPUTS, false);
}

static void list_arrays(struct weir_simple_cnn *cnn)
{
    size_t batch = (size_t)cnn->config.batch_size;
    size_t of_encoder = weir_network_plan(&cnn->encoder, cnn->config.batch_size);
    size_t of_head = weir_network_plan(&cnn->head, cnn->config.batch_size);
    size_t gradients = of_encoder > of_head ? of_encoder : of_head;
    size_t mixed = cnn->config.tiny != WEIR_TINY_NONE ? batch * (size_t)cnn->widths->mixed : 0;
    size_t features = batch * (size_t)cnn->features;
    cnn->block.group = cnn->config.batch_size;
    const struct array arrays[ARRAYS] = {
        {&cnn->gradients[0], gradients},
        {&cnn->gradients[1], gradients},
        {&cnn->features_out, features},
        {&cnn->features_gradients, features},
        {&cnn->mixed, mixed},
        {&cnn->mixed_gradients, mixed},
        {&cnn->predicted, batch * WEIR_CNN_OUTPUTS},
        {&cnn->predicted_gradients, batch * WEIR_CNN_OUTPUTS},
        {&cnn->weights, batch},
        {&cnn->loss, 2},
        {&cnn->images, batch * WEIR_CNN_IMAGE},
        {&cnn->targets, batch * WEIR_CNN_OUTPUTS},
    };
    memcpy(cnn->arrays, arrays, sizeof arrays);
}

static int allocate(struct weir_simple_cnn *cnn)
{
    for (int i = 0; i < ARRAYS; i++) {
        const struct array *array = &cnn->arrays[i];
        if (array->count > 0 && !(*array->numbers = cnn->ops->allocate(cnn->self, array->count)))
            return -ENOMEM;
    }
    memcpy(cnn->encoder.gradients, cnn->gradients, sizeof cnn->gradients);
    memcpy(cnn->head.gradients, cnn->gradients, sizeof cnn->gradients);
    int rc = weir_parameters_allocate(&cnn->parameters);
    if (rc == 0)
        rc = weir_network_allocate(&cnn->encoder, cnn->config.batch_size);
    if (rc == 0)
        rc = weir_network_allocate(&cnn->head, cnn->config.batch_size);
    return rc == 0 ? weir_parameters_initialise(&cnn->parameters, cnn->config.seed) : rc;
}

static int open_backend(struct weir_simple_cnn *cnn, struct weir_err *err)
{
    const struct weir_cnn_gpu *gpu = cnn->config.gpu;
    const struct weir_compute_config compute = {
        .threads = 1,
        .gpu = gpu ? gpu->number : 0,
        .stream = gpu ? gpu->stream : NULL,
        .amp = cnn->config.amp,
    };
    cnn->ops = gpu ? gpu->ops : &weir_compute_cpu;
    cnn->widths = gpu ? &gpu_widths : &cpu_widths;
    return cnn->ops->open(&cnn->self, &compute, err);
}

/* ---- memory, for traces ---- */

static void note(const void *memory, size_t numbers, int device, bool taken)
{
    uint64_t bytes = numbers * sizeof(weir_real);
    if (!memory)
        return;
    weir_memory_reserved(taken ? (int64_t)bytes : -(int64_t)bytes, device);
    if (taken)
        weir_memory_allocated(memory, bytes, device);
    else
        weir_memory_freed(memory, bytes, device);
}

static void note_network(const struct weir_network *network, int samples, int device, bool taken)
{
    for (int i = 0; i < network->n_layers; i++)
        note(network->layers[i].y, network->layers[i].numbers * (size_t)samples, device, taken);
}

static void note_memory(const struct weir_simple_cnn *cnn, bool taken)
{
    const struct weir_parameters *p = &cnn->parameters;
    const weir_real *const kinds[] = {p->values, p->gradients, p->mean, p->variance};
    int device = cnn->config.gpu ? cnn->config.gpu->number : WEIR_MEMORY_CPU, samples = cnn->config.batch_size;
    for (int i = 0; i < ARRAYS; i++)
        note(*cnn->arrays[i].numbers, cnn->arrays[i].count, device, taken);
    for (int i = 0; i < 4; i++)
        note(kinds[i], p->numbers, device, taken);
    note_network(&cnn->encoder, samples, device, taken);
    note_network(&cnn->head, samples, device, taken);
}

int weir_simple_cnn_open(struct weir_simple_cnn **out, const struct weir_simple_cnn_config *config,
                         struct weir_err *err)
{
    *out = NULL;
    struct weir_simple_cnn *cnn = calloc(1, sizeof *cnn);
    if (!cnn)
        return weir_err_set(err, -ENOMEM, "out of memory");
    cnn->config = *config;
    int rc = open_backend(cnn, err);
    if (rc < 0) {
        free(cnn);
        return rc;
    }
    cnn->tiny_name = weir_name_intern("affine", WEIR_CAT_CPU_OP);
    build(cnn);
    list_arrays(cnn);
    rc = allocate(cnn);
    if (rc < 0)
        weir_err_set(err, rc, "%s memory is too small for the network at a batch size of %d; use a smaller batch size",
                     config->gpu ? "the GPU's" : "the", config->batch_size);
    note_memory(cnn, true);
    if (rc == 0) {
        cnn->ops->affine(cnn->self, (size_t)config->batch_size, 0, 1, 1, cnn->weights);
        rc = cnn->ops->finish(cnn->self, err);
    }
    if (rc < 0)
        weir_simple_cnn_close(&cnn);
    *out = cnn;
    return rc;
}

void weir_simple_cnn_close(struct weir_simple_cnn **out)
{
    struct weir_simple_cnn *cnn = *out;
    if (!cnn)
        return;
    note_memory(cnn, false);
    for (int i = 0; i < ARRAYS; i++)
        cnn->ops->release(cnn->self, *cnn->arrays[i].numbers);
    weir_network_release(&cnn->encoder);
    weir_network_release(&cnn->head);
    weir_parameters_release(&cnn->parameters);
    cnn->ops->close(cnn->self);
    free(cnn);
    *out = NULL;
}

/* ---- a step ---- */

int weir_simple_cnn_copy_in(struct weir_simple_cnn *cnn, const float *images, const float *targets,
                            struct weir_err *err)
{
    const struct weir_cnn_gpu *gpu = cnn->config.gpu;
    size_t batch = (size_t)cnn->config.batch_size, image_numbers = batch * WEIR_CNN_IMAGE;
    size_t target_numbers = batch * WEIR_CNN_OUTPUTS;
    if (!gpu) {
        cnn->ops->copy_in(cnn->self, cnn->images, images, image_numbers);
        cnn->ops->copy_in(cnn->self, cnn->targets, targets, target_numbers);
        return 0;
    }
    int rc = gpu->copy_in(gpu->device, cnn->images, images, image_numbers * sizeof *images, gpu->stream, err);
    if (rc == 0)
        rc = gpu->copy_in(gpu->device, cnn->targets, targets, target_numbers * sizeof *targets, gpu->stream, err);
    return rc;
}

static void tiny_ops(struct weir_simple_cnn *cnn, double shift, weir_real *x)
{
    size_t numbers = (size_t)cnn->config.batch_size * (size_t)cnn->widths->mixed;
    bool fused = cnn->config.tiny == WEIR_TINY_FUSED;
    for (int i = 0; i < (fused ? 1 : WEIR_TINY_OPS); i++) {
        /* On a GPU the trace shows the kernel itself, so no range is needed. */
        struct weir_range range = cnn->config.gpu ? (struct weir_range){0} : weir_range_begin(cnn->tiny_name);
        cnn->ops->affine(cnn->self, numbers, tiny_scale, shift, fused ? WEIR_TINY_OPS : 1, x);
        weir_range_end(&range);
    }
}

void weir_simple_cnn_forward(struct weir_simple_cnn *cnn)
{
    int batch = cnn->config.batch_size, features = cnn->features;
    const weir_real *x = cnn->features_out;
    weir_network_forward(&cnn->encoder, batch, cnn->images, WEIR_CNN_IMAGE, cnn->features_out, features);
    if (cnn->config.tiny != WEIR_TINY_NONE) {
        weir_network_forward(&cnn->block, batch, cnn->features_out, features, cnn->mixed, cnn->widths->mixed);
        tiny_ops(cnn, tiny_shift, cnn->mixed);
        x = cnn->mixed;
    }
    weir_network_forward(&cnn->head, batch, x, head_inputs(cnn), cnn->predicted, WEIR_CNN_OUTPUTS);
    cnn->ops->l1(cnn->self, batch, WEIR_CNN_OUTPUTS, cnn->predicted, cnn->targets, cnn->weights, cnn->loss);
}

void weir_simple_cnn_backward(struct weir_simple_cnn *cnn)
{
    int batch = cnn->config.batch_size, features = cnn->features;
    bool tiny = cnn->config.tiny != WEIR_TINY_NONE;
    cnn->ops->l1_backward(cnn->self, batch, WEIR_CNN_OUTPUTS, cnn->predicted, cnn->targets, cnn->weights, cnn->loss, 1,
                          cnn->predicted_gradients);
    weir_network_backward(&cnn->head, batch, tiny ? cnn->mixed : cnn->features_out, head_inputs(cnn),
                          cnn->predicted_gradients, WEIR_CNN_OUTPUTS,
                          tiny ? cnn->mixed_gradients : cnn->features_gradients);
    if (tiny) {
        tiny_ops(cnn, 0, cnn->mixed_gradients);
        weir_network_backward(&cnn->block, batch, cnn->features_out, features, cnn->mixed_gradients, cnn->widths->mixed,
                              cnn->features_gradients);
    }
    weir_network_backward(&cnn->encoder, batch, cnn->images, WEIR_CNN_IMAGE, cnn->features_gradients, features, NULL);
}

void weir_simple_cnn_optimise(struct weir_simple_cnn *cnn)
{
    const struct weir_adamw adamw = {
        .learning_rate = 1e-4, .weight_decay = 1e-2, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .step = ++cnn->steps};
    struct weir_parameters *p = &cnn->parameters;
    cnn->ops->adamw(cnn->self, &adamw, p->numbers, p->values, p->gradients, p->mean, p->variance);
}

double weir_simple_cnn_loss(struct weir_simple_cnn *cnn)
{
    weir_real loss = 0;
    cnn->ops->copy_out(cnn->self, &loss, cnn->loss, 1);
    return (double)loss;
}

void weir_simple_cnn_send_loss(struct weir_simple_cnn *cnn)
{
    cnn->ops->send(cnn->self, cnn->loss);
}

int weir_simple_cnn_receive_loss(struct weir_simple_cnn *cnn, double *loss, struct weir_err *err)
{
    weir_real number = 0;
    int rc = cnn->ops->receive(cnn->self, false, &number, err);
    *loss = (double)number;
    return rc;
}

int weir_simple_cnn_finish(struct weir_simple_cnn *cnn, struct weir_err *err)
{
    return cnn->ops->finish(cnn->self, err);
}

/* ---- figures ---- */

size_t weir_simple_cnn_parameters(const struct weir_simple_cnn *cnn)
{
    return weir_parameters_count(&cnn->parameters);
}

const char *weir_simple_cnn_engine(const struct weir_simple_cnn *cnn)
{
    return cnn->ops->describe(cnn->self);
}

double weir_simple_cnn_loss_scale(struct weir_simple_cnn *cnn)
{
    struct weir_loss_scale now;
    cnn->ops->loss_scale(cnn->self, &now);
    return now.scale;
}

const struct weir_compute_ops *weir_simple_cnn_ops(const struct weir_simple_cnn *cnn, void **self)
{
    *self = cnn->self;
    return cnn->ops;
}
