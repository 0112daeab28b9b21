/* Convolutions through cuDNN, which is opened with dlopen at first use and never linked. float32 convolutions use TF32
 * if the GPU supports it, as in PyTorch. Only deterministic algorithms are used. */
#include "extras/common/cuda/compute_cuda_priv.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>
#include <cudnn.h>

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

static const char file[] = "libcudnn.so." TEXT(CUDNN_MAJOR);
enum { PLANS = 64, ALGORITHMS = 10 };
static const size_t WORKSPACE_MAX_BYTES = (size_t)1 << 30;

struct functions {
    __typeof__(cudnnCreate) *create;
    __typeof__(cudnnDestroy) *destroy;
    __typeof__(cudnnSetStream) *set_stream;
    __typeof__(cudnnGetVersion) *get_version;
    __typeof__(cudnnCreateTensorDescriptor) *create_tensor;
    __typeof__(cudnnDestroyTensorDescriptor) *destroy_tensor;
    __typeof__(cudnnSetTensor4dDescriptorEx) *set_tensor;
    __typeof__(cudnnCreateFilterDescriptor) *create_filter;
    __typeof__(cudnnDestroyFilterDescriptor) *destroy_filter;
    __typeof__(cudnnSetFilter4dDescriptor) *set_filter;
    __typeof__(cudnnCreateConvolutionDescriptor) *create_convolution;
    __typeof__(cudnnDestroyConvolutionDescriptor) *destroy_convolution;
    __typeof__(cudnnSetConvolution2dDescriptor) *set_convolution;
    __typeof__(cudnnSetConvolutionMathType) *set_math;
    __typeof__(cudnnGetConvolutionForwardAlgorithm_v7) *forward_algorithms;
    __typeof__(cudnnGetConvolutionBackwardDataAlgorithm_v7) *data_algorithms;
    __typeof__(cudnnGetConvolutionBackwardFilterAlgorithm_v7) *filter_algorithms;
    __typeof__(cudnnConvolutionForward) *forward;
    __typeof__(cudnnConvolutionBackwardData) *backward_data;
    __typeof__(cudnnConvolutionBackwardFilter) *backward_filter;
};

/* Descriptors and algorithms for a convolution of n images. */
struct plan {
    struct weir_convolution shape;
    int n;
    size_t x_stride;
    cudnnTensorDescriptor_t x, y;
    cudnnFilterDescriptor_t weight;
    cudnnConvolutionDescriptor_t convolution;
    cudnnConvolutionFwdAlgo_t forward;
    cudnnConvolutionBwdDataAlgo_t data;
    cudnnConvolutionBwdFilterAlgo_t filter;
    size_t forward_bytes, data_bytes, filter_bytes; /* workspace sizes */
    bool refused;                                   /* cuDNN does not support this many images */
};

struct weir_cudnn {
    struct functions call;
    cudnnHandle_t handle;
    bool half;
    struct plan plans[PLANS];
    int n_plans, next; /* next plan to replace once all are in use */
};

/* ---- the library ---- */

static bool find_functions(void *library, struct functions *call)
{
    const struct {
        const char *name;
        void *function;
    } names[] = {
        {"cudnnCreate", &call->create},
        {"cudnnDestroy", &call->destroy},
        {"cudnnSetStream", &call->set_stream},
        {"cudnnGetVersion", &call->get_version},
        {"cudnnCreateTensorDescriptor", &call->create_tensor},
        {"cudnnDestroyTensorDescriptor", &call->destroy_tensor},
        {"cudnnSetTensor4dDescriptorEx", &call->set_tensor},
        {"cudnnCreateFilterDescriptor", &call->create_filter},
        {"cudnnDestroyFilterDescriptor", &call->destroy_filter},
        {"cudnnSetFilter4dDescriptor", &call->set_filter},
        {"cudnnCreateConvolutionDescriptor", &call->create_convolution},
        {"cudnnDestroyConvolutionDescriptor", &call->destroy_convolution},
        {"cudnnSetConvolution2dDescriptor", &call->set_convolution},
        {"cudnnSetConvolutionMathType", &call->set_math},
        {"cudnnGetConvolutionForwardAlgorithm_v7", &call->forward_algorithms},
        {"cudnnGetConvolutionBackwardDataAlgorithm_v7", &call->data_algorithms},
        {"cudnnGetConvolutionBackwardFilterAlgorithm_v7", &call->filter_algorithms},
        {"cudnnConvolutionForward", &call->forward},
        {"cudnnConvolutionBackwardData", &call->backward_data},
        {"cudnnConvolutionBackwardFilter", &call->backward_filter},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        void *symbol = dlsym(library, names[i].name);
        if (!symbol)
            return false;
        memcpy(names[i].function, &symbol, sizeof symbol); /* ISO C does not allow a cast to a function pointer */
    }
    return true;
}

/* WEIR_CUDNN=0 disables cuDNN, for example to measure its benefit or to avoid a broken installation. */
static void *open_library(struct weir_err *err)
{
    const char *wanted = getenv("WEIR_CUDNN");
    if (wanted && strcmp(wanted, "0") == 0) {
        weir_err_set(err, -ENOENT, "WEIR_CUDNN is 0");
        return NULL;
    }
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL); /* stays open until the process ends */
    if (!library)
        weir_err_set(err, -ENOENT, "%s cannot be opened", file);
    return library;
}

int weir_cudnn_open(struct weir_cudnn **out, void *stream, bool half, struct weir_err *err)
{
    *out = NULL;
    void *library = open_library(err);
    if (!library)
        return -ENOENT;
    struct weir_cudnn *dnn = calloc(1, sizeof *dnn);
    if (!dnn)
        return weir_err_set(err, -ENOMEM, "out of memory");
    dnn->half = half;
    if (!find_functions(library, &dnn->call))
        weir_err_set(err, -ENOENT, "%s does not have all required functions", file);
    else if (dnn->call.create(&dnn->handle) != CUDNN_STATUS_SUCCESS)
        weir_err_set(err, -ENOENT, "%s cannot be used with this GPU", file);
    else if (dnn->call.set_stream(dnn->handle, stream) == CUDNN_STATUS_SUCCESS) {
        *out = dnn;
        return 0;
    }
    weir_cudnn_close(dnn);
    return -ENOENT;
}

static void clear_plan(const struct weir_cudnn *dnn, struct plan *p)
{
    if (p->x)
        dnn->call.destroy_tensor(p->x);
    if (p->y)
        dnn->call.destroy_tensor(p->y);
    if (p->weight)
        dnn->call.destroy_filter(p->weight);
    if (p->convolution)
        dnn->call.destroy_convolution(p->convolution);
    *p = (struct plan){0};
}

void weir_cudnn_close(struct weir_cudnn *dnn)
{
    if (!dnn)
        return;
    for (int i = 0; i < dnn->n_plans; i++)
        clear_plan(dnn, &dnn->plans[i]);
    if (dnn->handle)
        dnn->call.destroy(dnn->handle);
    free(dnn);
}

int weir_cudnn_version(const struct weir_cudnn *dnn)
{
    return (int)dnn->call.get_version();
}

/* ---- plans ---- */

static size_t output_of(const struct weir_convolution *c)
{
    return (size_t)c->filters * (size_t)c->out_height * (size_t)c->out_width;
}

static int describe_tensor(const struct weir_cudnn *dnn, cudnnTensorDescriptor_t *tensor, int n, int channels,
                           int height, int width, size_t stride)
{
    cudnnStatus_t status = dnn->call.create_tensor(tensor);
    if (status == CUDNN_STATUS_SUCCESS)
        status = dnn->call.set_tensor(*tensor, dnn->half ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT, n, channels, height,
                                      width, (int)stride, height * width, width, 1);
    return (int)status;
}

static int describe(const struct weir_cudnn *dnn, struct plan *p)
{
    const struct weir_convolution *c = &p->shape;
    cudnnDataType_t type = dnn->half ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT;
    size_t y_stride = output_of(c);
    int status = describe_tensor(dnn, &p->x, p->n, c->channels, c->height, c->width, p->x_stride);
    if (status == 0)
        status = describe_tensor(dnn, &p->y, p->n, c->filters, c->out_height, c->out_width, y_stride);
    if (status == 0)
        status = (int)dnn->call.create_filter(&p->weight);
    if (status == 0)
        status = (int)dnn->call.set_filter(p->weight, type, CUDNN_TENSOR_NCHW, c->filters, c->channels, WEIR_KERNEL,
                                           WEIR_KERNEL);
    if (status == 0)
        status = (int)dnn->call.create_convolution(&p->convolution);
    if (status == 0)
        status =
            (int)dnn->call.set_convolution(p->convolution, 1, 1, 2, 2, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);
    if (status == 0)
        status = (int)dnn->call.set_math(p->convolution, dnn->half ? CUDNN_TENSOR_OP_MATH : CUDNN_DEFAULT_MATH);
    return status;
}

/* A macro, because the three lists have different element types with the same members. */
#define CHOOSE(list, n, algorithm, bytes)                                                                              \
    do {                                                                                                               \
        for (int i_ = 0; i_ < (n); i_++) {                                                                             \
            if ((list)[i_].status != CUDNN_STATUS_SUCCESS || (list)[i_].determinism != CUDNN_DETERMINISTIC ||          \
                (list)[i_].memory > WORKSPACE_MAX_BYTES)                                                               \
                continue;                                                                                              \
            (algorithm) = (list)[i_].algo;                                                                             \
            (bytes) = (list)[i_].memory;                                                                               \
            return 0;                                                                                                  \
        }                                                                                                              \
        return (int)CUDNN_STATUS_NOT_SUPPORTED;                                                                        \
    } while (0)

static int choose_forward(const struct weir_cudnn *dnn, struct plan *p)
{
    cudnnConvolutionFwdAlgoPerf_t list[ALGORITHMS];
    int n = 0;
    cudnnStatus_t status =
        dnn->call.forward_algorithms(dnn->handle, p->x, p->weight, p->convolution, p->y, ALGORITHMS, &n, list);
    if (status != CUDNN_STATUS_SUCCESS)
        return (int)status;
    CHOOSE(list, n, p->forward, p->forward_bytes);
}

static int choose_filter(const struct weir_cudnn *dnn, struct plan *p)
{
    cudnnConvolutionBwdFilterAlgoPerf_t list[ALGORITHMS];
    int n = 0;
    cudnnStatus_t status =
        dnn->call.filter_algorithms(dnn->handle, p->x, p->y, p->convolution, p->weight, ALGORITHMS, &n, list);
    if (status != CUDNN_STATUS_SUCCESS)
        return (int)status;
    CHOOSE(list, n, p->filter, p->filter_bytes);
}

static int choose_data(const struct weir_cudnn *dnn, struct plan *p)
{
    cudnnConvolutionBwdDataAlgoPerf_t list[ALGORITHMS];
    int n = 0;
    cudnnStatus_t status =
        dnn->call.data_algorithms(dnn->handle, p->weight, p->y, p->convolution, p->x, ALGORITHMS, &n, list);
    if (status != CUDNN_STATUS_SUCCESS)
        return (int)status;
    CHOOSE(list, n, p->data, p->data_bytes);
}

static struct plan *room_for_plan(struct weir_cudnn *dnn)
{
    if (dnn->n_plans < PLANS)
        return &dnn->plans[dnn->n_plans++];
    struct plan *p = &dnn->plans[dnn->next++ % PLANS];
    clear_plan(dnn, p);
    return p;
}

/* Returns the plan for n images, creating it if necessary; NULL after an error. If cuDNN does not support this many
 * images, the plan is marked as refused. */
static struct plan *plan_of(struct weir_cuda_compute *self, const struct weir_convolution *c, int n, size_t x_stride)
{
    struct weir_cudnn *dnn = self->dnn;
    if (self->err.code < 0)
        return NULL;
    for (int i = 0; i < dnn->n_plans; i++) {
        struct plan *p = &dnn->plans[i];
        if (p->n == n && p->x_stride == x_stride && memcmp(&p->shape, c, sizeof *c) == 0)
            return p;
    }
    struct plan *p = room_for_plan(dnn);
    *p = (struct plan){.shape = *c, .n = n, .x_stride = x_stride};
    int status = describe(dnn, p);
    status = status == 0 ? choose_forward(dnn, p) : status;
    status = status == 0 ? choose_filter(dnn, p) : status;
    status = status == 0 && !c->images ? choose_data(dnn, p) : status;
    p->refused = status == (int)CUDNN_STATUS_NOT_SUPPORTED;
    if (p->refused && n > 1)
        return p;
    return weir_cuda_compute_library(self, status, "cuDNN", "choosing a convolution algorithm") ? p : NULL;
}

/* ---- convolutions ---- */

static size_t weights_of(const struct weir_convolution *c)
{
    return (size_t)c->filters * (size_t)c->channels * WEIR_KERNEL * WEIR_KERNEL;
}

static size_t input_of(const struct weir_convolution *c)
{
    return (size_t)c->channels * (size_t)c->height * (size_t)c->width;
}

static size_t rounded(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* The arrays that a cuDNN call uses. With float16, weights and input images are converted into scratch memory. */
struct operands {
    const void *x, *weight;
    void *gradient; /* gradient of the weights */
    void *workspace;
};

/* Fills in *o and converts the inputs. Returns false after an error. */
static bool make_operands(struct weir_cuda_compute *self, const struct plan *p, const float *x, size_t x_stride,
                          const float *weight, size_t workspace, struct operands *o)
{
    const struct weir_convolution *c = &p->shape;
    size_t weights = weights_of(c), image_bytes = c->images ? rounded((size_t)p->n * input_of(c) * 2) : 0;
    *o = (struct operands){.x = x, .weight = weight};
    if (!self->half) {
        o->workspace = weir_cuda_compute_scratch(self, workspace);
        return self->err.code >= 0;
    }
    char *scratch = weir_cuda_compute_scratch(self, workspace + 2 * rounded(weights * 2) + image_bytes);
    if (!scratch)
        return false;
    o->workspace = scratch + 2 * rounded(weights * 2) + image_bytes; /* aligned by the rounding */
    o->weight = scratch;
    o->gradient = scratch + rounded(weights * 2);
    if (!weir_cuda_compute_fine(self, weir_kernel_to_half(1, weights, weight, weights, scratch, self->stream),
                                "converting weights"))
        return false;
    if (!c->images)
        return true;
    o->x = scratch + 2 * rounded(weights * 2);
    return weir_cuda_compute_fine(
        self, weir_kernel_to_half(p->n, input_of(c), x, x_stride, scratch + 2 * rounded(weights * 2), self->stream),
        "converting images");
}

/* Returns the distance between images. Images converted to float16 are dense. */
static size_t stride_of(const struct weir_cuda_compute *self, const struct weir_convolution *c, size_t x_stride)
{
    return self->half && c->images ? input_of(c) : x_stride;
}

/* Returns a plan for n images, or for fewer if cuDNN refuses n because the workspace would be too large. NULL after an
 * error. */
static const struct plan *plan_of_some(struct weir_cuda_compute *self, const struct weir_convolution *c, int n,
                                       size_t x_stride)
{
    const struct plan *p = plan_of(self, c, n, stride_of(self, c, x_stride));
    while (p && p->refused && n > 1) {
        n = (n + 1) / 2;
        p = plan_of(self, c, n, stride_of(self, c, x_stride));
    }
    return p;
}

/* Returns image i of a convolution's output, whose elements are float16 or float. */
static const float *image_at(const struct weir_cuda_compute *self, const float *images, int i, size_t numbers)
{
    size_t bytes = (size_t)i * numbers * (self->half ? sizeof(uint16_t) : sizeof(float));
    return (const float *)(const void *)((const char *)images + bytes);
}

static const float *input_at(const struct weir_cuda_compute *self, const struct weir_convolution *c, const float *x,
                             int i, size_t x_stride)
{
    return c->images ? x + (size_t)i * x_stride : image_at(self, x, i, x_stride);
}

/* Returns the number of images computed; 0 after an error. */
static int convolve_some(struct weir_cuda_compute *self, const struct weir_convolution *c, int n, const float *x,
                         size_t x_stride, const float *weight, const float *y)
{
    const float one = 1, zero = 0;
    struct operands o;
    const struct plan *p = plan_of_some(self, c, n, x_stride);
    if (!p || !make_operands(self, p, x, x_stride, weight, p->forward_bytes, &o))
        return 0;
    cudnnStatus_t status =
        self->dnn->call.forward(self->dnn->handle, &one, p->x, o.x, p->weight, o.weight, p->convolution, p->forward,
                                o.workspace, p->forward_bytes, &zero, p->y, (void *)y);
    return weir_cuda_compute_library(self, (int)status, "cuDNN", "computing a convolution") ? p->n : 0;
}

void weir_cudnn_convolve(struct weir_cuda_compute *self, const struct weir_convolution *c, int n, const float *x,
                         size_t x_stride, const float *weight, const float *bias, float *y)
{
    for (int i = 0, done; i < n; i += done) {
        done = convolve_some(self, c, n - i, input_at(self, c, x, i, x_stride), x_stride, weight,
                             image_at(self, y, i, output_of(c)));
        if (done == 0)
            return;
    }
    weir_cuda_compute_fine(
        self,
        weir_kernel_plane_bias_relu(n, c->filters, c->out_height * c->out_width, bias, y, self->half, self->stream),
        "adding a convolution's bias");
}

static void backward_filter(struct weir_cuda_compute *self, const struct plan *p, const struct operands *o,
                            const float *dy, float *weight_gradient)
{
    const float one = 1, beta = self->half ? 0 : 1;
    cudnnStatus_t status = self->dnn->call.backward_filter(
        self->dnn->handle, &one, p->x, o->x, p->y, dy, p->convolution, p->filter, o->workspace, p->filter_bytes, &beta,
        p->weight, self->half ? o->gradient : weight_gradient);
    if (weir_cuda_compute_library(self, (int)status, "cuDNN", "computing a convolution's weight gradient") &&
        self->half)
        weir_cuda_compute_fine(self,
                               weir_kernel_add_half(weights_of(&p->shape), o->gradient, weight_gradient, self->stream),
                               "adding a weight gradient");
}

static void backward_data(struct weir_cuda_compute *self, const struct plan *p, const struct operands *o,
                          const float *dy, float *dx)
{
    const float one = 1, zero = 0;
    cudnnStatus_t status =
        self->dnn->call.backward_data(self->dnn->handle, &one, p->weight, o->weight, p->y, dy, p->convolution, p->data,
                                      o->workspace, p->data_bytes, &zero, p->x, dx);
    weir_cuda_compute_library(self, (int)status, "cuDNN", "computing a convolution's input gradient");
}

static int backward_some(struct weir_cuda_compute *self, const struct weir_convolution *c, int n, const float *x,
                         size_t x_stride, const float *weight, const float *dy, float *weight_gradient, float *dx)
{
    struct operands o;
    const struct plan *p = plan_of_some(self, c, n, x_stride);
    if (!p)
        return 0;
    size_t bytes = dx && p->data_bytes > p->filter_bytes ? p->data_bytes : p->filter_bytes;
    if (!make_operands(self, p, x, x_stride, weight, bytes, &o))
        return 0;
    backward_filter(self, p, &o, dy, weight_gradient);
    if (dx && self->err.code >= 0)
        backward_data(self, p, &o, dy, dx);
    return self->err.code >= 0 ? p->n : 0;
}

void weir_cudnn_convolve_backward(struct weir_cuda_compute *self, const struct weir_convolution *c, int n,
                                  const float *x, size_t x_stride, const float *weight, const float *dy,
                                  float *weight_gradient, float *dx)
{
    for (int i = 0, done; i < n; i += done) {
        float *to = dx ? (float *)image_at(self, dx, i, input_of(c)) : NULL;
        done = backward_some(self, c, n - i, input_at(self, c, x, i, x_stride), x_stride, weight,
                             image_at(self, dy, i, output_of(c)), weight_gradient, to);
        if (done == 0)
            return;
    }
}
