/* compute_cuda_priv.h: declarations shared by the files of the CUDA backend for networks (its function table is in
 * compute_cuda.c).
 *
 * Only this backend reads the outputs of convolutions and their gradients. With mixed precision and cuDNN they are
 * float16 and occupy only the first half of their weir_real arrays. Everything else is float32. */
#ifndef WEIR_EXTRAS_COMMON_CUDA_COMPUTE_CUDA_PRIV_H
#define WEIR_EXTRAS_COMMON_CUDA_COMPUTE_CUDA_PRIV_H

#include "extras/common/compute_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The loss scale. It is in GPU memory so that no step waits for the host. */
struct weir_cuda_scale {
    float scale;
    uint32_t growth;
    uint64_t skipped;
    uint32_t not_finite; /* set if this step had a non-finite gradient */
};

struct weir_cublas; /* compute_cublas.c */
struct weir_cudnn;  /* compute_cudnn.c */

struct weir_cuda_compute {
    void *stream; /* cudaStream_t */
    bool own_stream, amp;
    void *context_before; /* the thread's previous context, restored by close */
    char gpu[160];        /* e.g. "GPU 0 (NVIDIA H200)" */
    char description[320];
    struct weir_err err; /* the first error; nothing is queued after it */
    struct weir_cublas *blas;
    struct weir_cudnn *dnn; /* NULL: convolutions use im2col and matrix products */
    bool half;              /* outputs of convolutions are float16 */
    struct weir_cuda_scale *scale;
    void *scratch; /* reused by each call */
    size_t scratch_bytes;
    float *sent; /* pinned ring of WEIR_SENT_MAX numbers */
    void *sent_events[WEIR_SENT_MAX];
    unsigned sent_count, received_count;
    void *done; /* cudaEvent_t */
};

/* Records the error if it is the first one. "error" is a cudaError_t, and "doing" describes the call, e.g. "copying to
 * the GPU". Returns false if this or an earlier call failed. */
bool weir_cuda_compute_fine(struct weir_cuda_compute *self, int error, const char *doing);
/* Like weir_cuda_compute_fine, for a status from cuBLAS or cuDNN (0 is success). */
bool weir_cuda_compute_library(struct weir_cuda_compute *self, int status, const char *library, const char *doing);
/* Returns scratch memory, valid until the next call of this function; NULL after an error. */
void *weir_cuda_compute_scratch(struct weir_cuda_compute *self, size_t bytes);

/* ---- compute_cublas.c ---- */

/* 0, -ENOENT (no libcublas), -ENOMEM or -ENODEV (libcublas cannot be used). */
int weir_cublas_open(struct weir_cublas **out, void *stream, bool amp, struct weir_err *err);
void weir_cublas_close(struct weir_cublas *blas);
int weir_cublas_version(const struct weir_cublas *blas);
/* A batch of "count" products like weir_compute_ops.gemm. Matrix i starts i strides after the first matrix. */
struct weir_cublas_batch {
    int count;
    int64_t stride_a, stride_b, stride_c;
};
void weir_cublas_gemm(struct weir_cuda_compute *self, const struct weir_gemm *gemm,
                      const struct weir_cublas_batch *batch);

/* ---- compute_cudnn.c ---- */

/* 0, -ENOENT (no usable libcudnn; err gives the reason) or -ENOMEM. */
int weir_cudnn_open(struct weir_cudnn **out, void *stream, bool half, struct weir_err *err);
void weir_cudnn_close(struct weir_cudnn *dnn);
int weir_cudnn_version(const struct weir_cudnn *dnn);
void weir_cudnn_convolve(struct weir_cuda_compute *self, const struct weir_convolution *c, int n, const float *x,
                         size_t x_stride, const float *weight, const float *bias, float *y);
/* Adds the gradient of the weights to weight_gradient. dx, unless NULL, receives the gradient of x, without the mask of
 * the preceding ReLU. */
void weir_cudnn_convolve_backward(struct weir_cuda_compute *self, const struct weir_convolution *c, int n,
                                  const float *x, size_t x_stride, const float *weight, const float *dy,
                                  float *weight_gradient, float *dx);

/* ---- compute_im2col.c: the same functions through matrix products ---- */

void weir_im2col_convolve(struct weir_cuda_compute *self, const struct weir_convolution *c, int n, const float *x,
                          size_t x_stride, const float *weight, const float *bias, float *y);
void weir_im2col_convolve_backward(struct weir_cuda_compute *self, const struct weir_convolution *c, int n,
                                   const float *x, size_t x_stride, const float *weight, const float *dy,
                                   float *weight_gradient, float *dx);

/* ---- compute_kernels.cu: all functions queue work on the stream and return a cudaError_t. With half, the arrays
 * passed as void * contain float16, otherwise float ---- */

int weir_kernel_bias_relu(int rows, int columns, const float *bias, bool relu, float *y, int ld, void *stream);
int weir_kernel_bias_gradient(int rows, int columns, const float *dy, int ld, float *gradient, void *stream);
int weir_kernel_relu_backward(int rows, int columns, const float *y, float *dy, int ld, void *stream);
/* y = relu(y + bias) for n images, each with one plane of pixels per channel. */
int weir_kernel_plane_bias_relu(int n, int channels, int pixels, const float *bias, void *y, bool half, void *stream);
/* Adds the sum of each channel of dy to gradient. "partial" is scratch memory for channels * WEIR_PLANE_PARTS floats.
 */
enum { WEIR_PLANE_PARTS = 64 };
int weir_kernel_plane_sums(int n, int channels, int pixels, const void *dy, bool half, float *partial, float *gradient,
                           void *stream);
/* Sets dx to 0 where x is 0. */
int weir_kernel_mask(size_t numbers, const void *x, void *dx, bool half, void *stream);
int weir_kernel_average_pool(int planes, int channels, int pixels, const void *x, float *y, int ld, bool half,
                             void *stream);
int weir_kernel_average_pool_backward(int planes, int channels, int pixels, const void *x, const float *dy, int ld,
                                      void *dx, bool half, void *stream);
/* Converts rows of floats to dense float16. The rows are "stride" numbers apart. */
int weir_kernel_to_half(int rows, size_t columns, const float *from, size_t stride, void *to, void *stream);
/* Adds the float16 array "from" to the float array "to". */
int weir_kernel_add_half(size_t numbers, const void *from, float *to, void *stream);
/* im2col writes columns[(channel, tap), pixel] for each of n images, for 3x3 kernels with stride 2 and padding 1.
 * col2im does the reverse and sums the taps that cover the same pixel. */
int weir_kernel_im2col(const struct weir_convolution *c, int n, const float *x, size_t x_stride, float *columns,
                       void *stream);
int weir_kernel_col2im(const struct weir_convolution *c, int n, const float *columns, float *dx, void *stream);
int weir_kernel_weigh(size_t rows, const uint8_t *is_pad, float *weights, void *stream);
int weir_kernel_affine(size_t numbers, float scale, float shift, int times, float *x, void *stream);
/* "partial" is scratch memory for 2 * WEIR_L1_PARTS doubles. */
enum { WEIR_L1_PARTS = 256 };
int weir_kernel_l1(int rows, int columns, const float *y, const float *wanted, const float *weights, double *partial,
                   float *loss, void *stream);
int weir_kernel_l1_backward(int rows, int columns, const float *y, const float *wanted, const float *weights,
                            const float *loss, float factor, const struct weir_cuda_scale *scale, float *dy,
                            void *stream);
int weir_kernel_adamw(const struct weir_adamw *adamw, bool amp, size_t numbers, float *parameters, float *gradients,
                      float *mean, float *variance, struct weir_cuda_scale *scale, void *stream);

#ifdef __cplusplus
}
#endif

#endif
