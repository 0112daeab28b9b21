/* Networks on a GPU: implements extras/common/compute_ops.h. Matrix products use cuBLAS. Convolutions use cuDNN if it
 * is available. Everything else uses the kernels in compute_kernels.cu. Apart from allocation and release, only
 * copy_in, copy_out, finish, receive and the loss scale's functions wait for the GPU. */
#include "cuda/cuda_context.h"
#include "extras/common/cuda/compute_cuda_priv.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

extern const struct weir_compute_ops weir_compute_cuda;

static const float SCALE_FIRST = 65536; /* like torch.amp.GradScaler */

/* ---- errors ---- */

bool weir_cuda_compute_fine(struct weir_cuda_compute *self, int error, const char *doing)
{
    if (error != cudaSuccess && self->err.code >= 0)
        weir_cuda_failed(error, self->gpu, doing, &self->err);
    return self->err.code >= 0;
}

bool weir_cuda_compute_library(struct weir_cuda_compute *self, int status, const char *library, const char *doing)
{
    if (status != 0 && self->err.code >= 0)
        weir_err_set(&self->err, -EIO, "%s: %s failed: %s returned status %d", self->gpu, doing, library, status);
    return self->err.code >= 0;
}

static cudaStream_t stream_of(const struct weir_cuda_compute *self)
{
    return self->stream;
}

void *weir_cuda_compute_scratch(struct weir_cuda_compute *self, size_t bytes)
{
    if (bytes > self->scratch_bytes && self->err.code >= 0) {
        cudaError_t error = cudaFree(self->scratch); /* waits for kernels that use this memory */
        self->scratch = NULL;
        self->scratch_bytes = 0;
        if (error == cudaSuccess)
            error = cudaMalloc(&self->scratch, bytes);
        if (weir_cuda_compute_fine(self, error, "allocating scratch memory"))
            self->scratch_bytes = bytes;
    }
    return self->err.code >= 0 ? self->scratch : NULL;
}

/* ---- open ---- */

static cudaError_t make_current(struct weir_cuda_compute *self, int gpu)
{
    struct cudaDeviceProp properties;
    snprintf(self->gpu, sizeof self->gpu, "GPU %d", gpu);
    cudaError_t error = cudaSetDevice(gpu);
    if (error == cudaSuccess)
        error = cudaGetDeviceProperties(&properties, gpu);
    if (error == cudaSuccess)
        snprintf(self->gpu, sizeof self->gpu, "GPU %d (%.100s)", gpu, properties.name);
    return error;
}

static cudaError_t make_resources(struct weir_cuda_compute *self)
{
    const struct weir_cuda_scale scale = {.scale = self->amp ? SCALE_FIRST : 1};
    cudaStream_t stream = self->stream;
    cudaEvent_t event = NULL;
    cudaError_t error = cudaSuccess;
    if (self->own_stream)
        error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    self->stream = error == cudaSuccess ? stream : NULL;
    for (int i = 0; i <= WEIR_SENT_MAX && error == cudaSuccess; i++) {
        error = cudaEventCreateWithFlags(&event, cudaEventBlockingSync | cudaEventDisableTiming);
        *(i < WEIR_SENT_MAX ? &self->sent_events[i] : &self->done) = error == cudaSuccess ? event : NULL;
    }
    if (error == cudaSuccess)
        error = cudaHostAlloc((void **)&self->sent, WEIR_SENT_MAX * sizeof *self->sent, cudaHostAllocDefault);
    if (error == cudaSuccess)
        error = cudaMalloc((void **)&self->scale, sizeof *self->scale);
    return error == cudaSuccess ? cudaMemcpy(self->scale, &scale, sizeof scale, cudaMemcpyHostToDevice) : error;
}

static void describe(struct weir_cuda_compute *self, const struct weir_err *no_dnn)
{
    char dnn[160];
    int blas = weir_cublas_version(self->blas), version = self->dnn ? weir_cudnn_version(self->dnn) : 0;
    if (self->dnn)
        snprintf(dnn, sizeof dnn, "cuDNN %d.%d", version / 10000, version / 100 % 100);
    else
        snprintf(dnn, sizeof dnn, "slower without cuDNN (%.120s)", no_dnn->text);
    snprintf(self->description, sizeof self->description, "%.100s, cuBLAS %d.%d, %s%s", self->gpu, blas / 10000,
             blas / 100 % 100, dnn, self->amp ? ", mixed precision" : "");
}

static void cuda_close(void *user)
{
    struct weir_cuda_compute *self = user;
    if (!self)
        return;
    if (self->stream)
        cudaStreamSynchronize(stream_of(self));
    weir_cudnn_close(self->dnn);
    weir_cublas_close(self->blas);
    cudaFree(self->scratch);
    cudaFree(self->scale);
    cudaFreeHost(self->sent);
    for (int i = 0; i <= WEIR_SENT_MAX; i++) {
        void *event = i < WEIR_SENT_MAX ? self->sent_events[i] : self->done;
        if (event)
            cudaEventDestroy(event);
    }
    if (self->own_stream && self->stream)
        cudaStreamDestroy(stream_of(self));
    cudaGetLastError();
    weir_cuda_context_set(self->context_before);
    free(self);
}

static int cuda_open(void **out, const struct weir_compute_config *config, struct weir_err *err)
{
    *out = NULL;
    struct weir_cuda_compute *self = calloc(1, sizeof *self);
    if (!self)
        return weir_err_set(err, -ENOMEM, "out of memory");
    struct weir_err no_dnn = WEIR_ERR_NONE;
    self->stream = config->stream;
    self->own_stream = !config->stream;
    self->amp = config->amp;
    self->context_before = weir_cuda_context_now();
    cudaError_t error = make_current(self, config->gpu);
    if (error == cudaSuccess)
        error = make_resources(self);
    int rc = error == cudaSuccess ? 0 : weir_cuda_failed(error, self->gpu, "creating a stream and events", err);
    if (rc == 0)
        rc = weir_cublas_open(&self->blas, self->stream, self->amp, err);
    if (rc < 0) {
        cuda_close(self);
        return rc;
    }
    weir_cudnn_open(&self->dnn, self->stream, self->amp, &no_dnn);
    self->half = self->amp && self->dnn;
    describe(self, &no_dnn);
    *out = self;
    return 0;
}

static const char *cuda_describe(const void *self)
{
    return ((const struct weir_cuda_compute *)self)->description;
}

/* ---- host side ---- */

/* Sleeps instead of spinning, because the loader's workers need the cores. */
static cudaError_t wait_for(struct weir_cuda_compute *self)
{
    cudaError_t error = cudaEventRecord(self->done, stream_of(self));
    return error == cudaSuccess ? cudaEventSynchronize(self->done) : error;
}

static int cuda_finish(void *user, struct weir_err *err)
{
    struct weir_cuda_compute *self = user;
    if (self->err.code >= 0)
        weir_cuda_compute_fine(self, wait_for(self), "waiting for the network");
    return self->err.code < 0 ? weir_err_set(err, self->err.code, "%s", self->err.text) : 0;
}

static uint64_t cuda_available_bytes(void *self)
{
    size_t free_bytes = 0, total_bytes = 0;
    (void)self;
    if (cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess)
        cudaGetLastError();
    return free_bytes;
}

static float *cuda_allocate(void *user, size_t numbers)
{
    struct weir_cuda_compute *self = user;
    void *memory = NULL;
    if (self->err.code < 0 || numbers > SIZE_MAX / sizeof(float))
        return NULL;
    size_t bytes = (numbers > 0 ? numbers : 1) * sizeof(float);
    if (cudaMalloc(&memory, bytes) != cudaSuccess) {
        cudaGetLastError();
        return NULL;
    }
    weir_cuda_compute_fine(self, cudaMemsetAsync(memory, 0, bytes, stream_of(self)), "clearing memory");
    return memory;
}

static void cuda_release(void *self, float *memory)
{
    (void)self;
    if (memory && cudaFree(memory) != cudaSuccess)
        cudaGetLastError();
}

static void cuda_copy_in(void *user, float *to, const float *from, size_t numbers)
{
    struct weir_cuda_compute *self = user;
    if (self->err.code < 0)
        return;
    cudaError_t error = cudaMemcpyAsync(to, from, numbers * sizeof *to, cudaMemcpyHostToDevice, stream_of(self));
    weir_cuda_compute_fine(self, error == cudaSuccess ? wait_for(self) : error, "copying to the GPU");
}

static void copy_bytes_out(struct weir_cuda_compute *self, void *to, const void *from, size_t bytes)
{
    if (self->err.code >= 0) {
        cudaError_t error = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_of(self));
        weir_cuda_compute_fine(self, error == cudaSuccess ? wait_for(self) : error, "copying to the host");
    }
    if (self->err.code < 0)
        memset(to, 0, bytes);
}

static void cuda_copy_out(void *self, float *to, const float *from, size_t numbers)
{
    copy_bytes_out(self, to, from, numbers * sizeof *to);
}

static void cuda_send(void *user, const float *number)
{
    struct weir_cuda_compute *self = user;
    unsigned at = self->sent_count % WEIR_SENT_MAX;
    assert(self->sent_count - self->received_count < WEIR_SENT_MAX);
    self->sent_count++;
    if (self->err.code < 0)
        return;
    cudaError_t error =
        cudaMemcpyAsync(&self->sent[at], number, sizeof *number, cudaMemcpyDeviceToHost, stream_of(self));
    if (error == cudaSuccess)
        error = cudaEventRecord(self->sent_events[at], stream_of(self));
    weir_cuda_compute_fine(self, error, "copying a number to the host");
}

static int cuda_receive(void *user, bool wait, float *number, struct weir_err *err)
{
    struct weir_cuda_compute *self = user;
    unsigned at = self->received_count % WEIR_SENT_MAX;
    if (self->err.code >= 0 && self->received_count == self->sent_count)
        return 0;
    if (self->err.code >= 0) {
        cudaError_t error = wait ? cudaEventSynchronize(self->sent_events[at]) : cudaEventQuery(self->sent_events[at]);
        if (error == cudaErrorNotReady) {
            cudaGetLastError();
            return 0;
        }
        weir_cuda_compute_fine(self, error, "waiting for a number");
    }
    if (self->err.code < 0)
        return weir_err_set(err, self->err.code, "%s", self->err.text);
    *number = self->sent[at];
    self->received_count++;
    return 1;
}

/* ---- calculations ---- */

static void cuda_weigh(void *user, size_t rows, const uint8_t *is_pad, float *weights)
{
    struct weir_cuda_compute *self = user;
    if (self->err.code >= 0)
        weir_cuda_compute_fine(self, weir_kernel_weigh(rows, is_pad, weights, self->stream),
                               "computing the steps' weights");
}

static void cuda_affine(void *user, size_t numbers, double scale, double shift, int times, float *x)
{
    struct weir_cuda_compute *self = user;
    if (self->err.code >= 0)
        weir_cuda_compute_fine(self, weir_kernel_affine(numbers, (float)scale, (float)shift, times, x, self->stream),
                               "scaling numbers");
}

static void cuda_gemm(void *self, const struct weir_gemm *gemm)
{
    weir_cublas_gemm(self, gemm, NULL);
}

static void cuda_bias_relu(void *user, int rows, int columns, const float *bias, bool relu, float *y, int ld)
{
    struct weir_cuda_compute *self = user;
    if (self->err.code >= 0)
        weir_cuda_compute_fine(self, weir_kernel_bias_relu(rows, columns, bias, relu, y, ld, self->stream),
                               "adding a bias");
}

static void cuda_bias_gradient(void *user, int rows, int columns, const float *dy, int ld, float *gradient)
{
    struct weir_cuda_compute *self = user;
    if (self->err.code >= 0)
        weir_cuda_compute_fine(self, weir_kernel_bias_gradient(rows, columns, dy, ld, gradient, self->stream),
                               "summing a bias gradient");
}

static void cuda_relu_backward(void *user, int rows, int columns, const float *y, float *dy, int ld)
{
    struct weir_cuda_compute *self = user;
    if (self->err.code >= 0)
        weir_cuda_compute_fine(self, weir_kernel_relu_backward(rows, columns, y, dy, ld, self->stream),
                               "computing a ReLU's gradient");
}

/* Nothing to reserve: cuDNN's plans and scratch memory are allocated at first use. */
static int cuda_reserve(void *self, const struct weir_convolution *convolution)
{
    (void)self;
    (void)convolution;
    return 0;
}

static void cuda_convolve(void *user, const struct weir_convolution *c, int n, const float *x, size_t x_stride,
                          const float *weight, const float *bias, float *y)
{
    struct weir_cuda_compute *self = user;
    if (self->err.code < 0)
        return;
    if (self->dnn)
        weir_cudnn_convolve(self, c, n, x, x_stride, weight, bias, y);
    else
        weir_im2col_convolve(self, c, n, x, x_stride, weight, bias, y);
}

static void cuda_convolve_backward(void *user, const struct weir_convolution *c, int n, const float *x, size_t x_stride,
                                   const float *weight, const float *dy, float *weight_gradient, float *bias_gradient,
                                   float *dx)
{
    struct weir_cuda_compute *self = user;
    float *partial = weir_cuda_compute_scratch(self, (size_t)c->filters * WEIR_PLANE_PARTS * sizeof *partial);
    if (!partial)
        return;
    weir_cuda_compute_fine(self,
                           weir_kernel_plane_sums(n, c->filters, c->out_height * c->out_width, dy, self->half, partial,
                                                  bias_gradient, self->stream),
                           "summing a bias gradient");
    if (self->dnn)
        weir_cudnn_convolve_backward(self, c, n, x, x_stride, weight, dy, weight_gradient, dx);
    else
        weir_im2col_convolve_backward(self, c, n, x, x_stride, weight, dy, weight_gradient, dx);
    size_t numbers = (size_t)n * (size_t)c->channels * (size_t)c->height * (size_t)c->width;
    if (dx && self->err.code >= 0)
        weir_cuda_compute_fine(self, weir_kernel_mask(numbers, x, dx, self->half, self->stream),
                               "computing a ReLU's gradient");
}

static void cuda_average_pool(void *user, int n, int channels, int pixels, const float *x, float *y, int ld)
{
    struct weir_cuda_compute *self = user;
    if (self->err.code >= 0)
        weir_cuda_compute_fine(
            self, weir_kernel_average_pool(n * channels, channels, pixels, x, y, ld, self->half, self->stream),
            "computing an average pool");
}

static void cuda_average_pool_backward(void *user, int n, int channels, int pixels, const float *x, const float *dy,
                                       int ld, float *dx)
{
    struct weir_cuda_compute *self = user;
    if (self->err.code >= 0)
        weir_cuda_compute_fine(
            self,
            weir_kernel_average_pool_backward(n * channels, channels, pixels, x, dy, ld, dx, self->half, self->stream),
            "computing an average pool's gradient");
}

static void cuda_l1(void *user, int rows, int columns, const float *y, const float *wanted, const float *weights,
                    float *loss)
{
    struct weir_cuda_compute *self = user;
    double *partial = weir_cuda_compute_scratch(self, 2 * WEIR_L1_PARTS * sizeof *partial);
    if (partial)
        weir_cuda_compute_fine(self, weir_kernel_l1(rows, columns, y, wanted, weights, partial, loss, self->stream),
                               "computing the loss");
}

static void cuda_l1_backward(void *user, int rows, int columns, const float *y, const float *wanted,
                             const float *weights, const float *loss, double scale, float *dy)
{
    struct weir_cuda_compute *self = user;
    if (self->err.code >= 0)
        weir_cuda_compute_fine(self,
                               weir_kernel_l1_backward(rows, columns, y, wanted, weights, loss, (float)scale,
                                                       self->scale, dy, self->stream),
                               "computing the loss's gradient");
}

static void cuda_loss_scale(void *user, struct weir_loss_scale *now)
{
    struct weir_cuda_compute *self = user;
    struct weir_cuda_scale scale;
    copy_bytes_out(self, &scale, self->scale, sizeof scale);
    *now = (struct weir_loss_scale){scale.scale, scale.growth, scale.skipped};
}

/* A checkpoint from training without mixed precision has the loss scale 1. Mixed precision then starts with the initial
 * scale. */
static void cuda_set_loss_scale(void *user, const struct weir_loss_scale *given)
{
    struct weir_cuda_compute *self = user;
    bool none = given->scale == 1 && given->growth == 0 && given->skipped == 0;
    struct weir_cuda_scale scale = {.scale = self->amp ? none ? SCALE_FIRST : (float)given->scale : 1,
                                    .growth = self->amp ? (uint32_t)given->growth : 0,
                                    .skipped = given->skipped};
    cudaError_t error = cudaMemcpyAsync(self->scale, &scale, sizeof scale, cudaMemcpyHostToDevice, stream_of(self));
    weir_cuda_compute_fine(self, error == cudaSuccess ? wait_for(self) : error, "setting the loss scale");
}

static void cuda_adamw(void *user, const struct weir_adamw *adamw, size_t numbers, float *parameters, float *gradients,
                       float *mean, float *variance)
{
    struct weir_cuda_compute *self = user;
    if (self->err.code >= 0)
        weir_cuda_compute_fine(self,
                               weir_kernel_adamw(adamw, self->amp, numbers, parameters, gradients, mean, variance,
                                                 self->scale, self->stream),
                               "running the optimiser's step");
}

const struct weir_compute_ops weir_compute_cuda = {
    .group_bytes = SIZE_MAX,
    .open = cuda_open,
    .close = cuda_close,
    .describe = cuda_describe,
    .finish = cuda_finish,
    .available_bytes = cuda_available_bytes,
    .allocate = cuda_allocate,
    .release = cuda_release,
    .copy_in = cuda_copy_in,
    .copy_out = cuda_copy_out,
    .send = cuda_send,
    .receive = cuda_receive,
    .weigh = cuda_weigh,
    .affine = cuda_affine,
    .gemm = cuda_gemm,
    .bias_relu = cuda_bias_relu,
    .bias_gradient = cuda_bias_gradient,
    .relu_backward = cuda_relu_backward,
    .reserve = cuda_reserve,
    .convolve = cuda_convolve,
    .convolve_backward = cuda_convolve_backward,
    .average_pool = cuda_average_pool,
    .average_pool_backward = cuda_average_pool_backward,
    .l1 = cuda_l1,
    .l1_backward = cuda_l1_backward,
    .loss_scale = cuda_loss_scale,
    .set_loss_scale = cuda_set_loss_scale,
    .adamw = cuda_adamw,
};
