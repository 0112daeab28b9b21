/* compute_ops.h: the operations of a backend for networks: matrix products, convolutions, and the functions between
 * them.
 *
 * Arrays are in device memory. The caller may do arithmetic on their pointers, but reads them only through copy_out.
 * Calls run in order, as on a stream, and may return before their work is done; copy_out waits for it. Numbers are
 * weir_real. Matrices are row-major, and ld is the distance between rows. Images are dense [channels, height, width].
 * Only other convolutions and pools read the output of a convolution and its gradient, so a backend may store these
 * arrays in a smaller type. Functions add to the gradients of parameters, and overwrite all other gradients.
 * A context must be used by one thread only.
 *
 * To add a backend, write a file with a struct weir_compute_ops, declare the struct below, add the
 * file to CMake, and write a test. */
#ifndef WEIR_EXTRAS_COMMON_COMPUTE_OPS_H
#define WEIR_EXTRAS_COMMON_COMPUTE_OPS_H

#include "extras/common/real.h"
#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WEIR_SENT_MAX = 64 };

/* A 3x3 convolution with stride 2 and padding 1, which halves height and width (rounded up). These networks use no
 * other kind. */
enum { WEIR_KERNEL = 3 };
struct weir_convolution {
    int channels, height, width; /* size of an input image */
    int filters;                 /* output channels */
    int out_height, out_width;   /* (height + 1) / 2, (width + 1) / 2 */
    int images;                  /* 1: x contains input images; 0: x is the output of another convolution */
};

/* c = a b + beta c. c has m rows and n columns, and each number of the product is a sum of k terms. */
struct weir_gemm {
    bool transpose_a, transpose_b; /* a is stored as [k, m] if transposed, b as [n, k] */
    int m, n, k;
    const weir_real *a, *b;
    int lda, ldb;
    weir_real beta;
    weir_real *c;
    int ldc;
};

struct weir_adamw {
    double learning_rate, weight_decay, beta1, beta2, eps;
    uint64_t step; /* number of this step, from 1 */
};

struct weir_compute_config {
    int threads;  /* CPU threads, at least 1; the BLAS library may reduce the number */
    int gpu;      /* GPU index, from 0 */
    void *stream; /* cudaStream_t for all work; NULL: the backend creates one */
    bool amp;     /* mixed precision: float16 products and convolutions, float32 sums, dynamic loss scale; GPU only */
    uint64_t memory_bytes; /* memory that the networks may use; 0: unknown; CPU only */
};

/* State of the dynamic loss scale. A step with a non-finite gradient halves the scale and is skipped. 2000 finite steps
 * in a row double it (Micikevicius et al. 2018, with the constants of torch.amp.GradScaler). */
struct weir_loss_scale {
    double scale;     /* 1 without amp */
    uint64_t growth;  /* steps since the scale last changed */
    uint64_t skipped; /* number of skipped steps */
};

struct weir_compute_ops {
    /* Device memory is host memory, and the caller may read and write it between calls. */
    bool host_memory;
    /* Images pass through the encoder in groups. This is the approximate size of a group's activations. */
    size_t group_bytes;

    /* 0, -ENOENT (library not found), -ENOMEM, -EAGAIN (cannot start threads) or -ENODEV (no such GPU). */
    int (*open)(void **self, const struct weir_compute_config *config, struct weir_err *err);
    /* Accepts NULL. */
    void (*close)(void *self);
    /* Returns a name such as "OpenBLAS 0.3.21, 2 threads", valid until close. */
    const char *(*describe)(const void *self);
    /* Waits for all earlier calls. Returns 0 or the error of the first call that failed, because the calls themselves
     * return none: -EIO (GPU lost, kernel fault) or -ENOMEM. All results since that call are invalid. */
    int (*finish)(void *self, struct weir_err *err);

    /* ---- memory ---- */
    /* Returns the number of bytes available for allocation; 0 if unknown. */
    uint64_t (*available_bytes)(void *self);
    /* allocate returns zeroed memory, or NULL if memory is exhausted. release accepts NULL, and waits for work that
     * uses the memory. */
    weir_real *(*allocate)(void *self, size_t numbers);
    void (*release)(void *self, weir_real *memory);
    /* Copies from host memory, which the caller may reuse on return. */
    void (*copy_in)(void *self, weir_real *to, const float *from, size_t numbers);
    /* Copies to host memory. After an error, which finish reports, it writes zeros. */
    void (*copy_out)(void *self, weir_real *to, const weir_real *from, size_t numbers);
    /* send queues a copy of one number to the host, to run after all earlier calls. receive gets these numbers in
     * order. It returns 1 and the next number, 0 if none is in flight or (without wait) none has arrived, or an error
     * like finish. At most WEIR_SENT_MAX numbers may be in flight. */
    void (*send)(void *self, const weir_real *number);
    int (*receive)(void *self, bool wait, weir_real *number, struct weir_err *err);
    /* weights[i] = is_pad[i] ? 0 : 1; is_pad is device memory. */
    void (*weigh)(void *self, size_t rows, const uint8_t *is_pad, weir_real *weights);
    /* Replaces x with scale * x + shift, "times" times in a row, in one pass over the array. */
    void (*affine)(void *self, size_t numbers, double scale, double shift, int times, weir_real *x);

    /* ---- linear layers ---- */
    void (*gemm)(void *self, const struct weir_gemm *gemm);
    /* Adds bias to each row of y. If relu is true, then replaces negative values with 0. */
    void (*bias_relu)(void *self, int rows, int columns, const weir_real *bias, bool relu, weir_real *y, int ld);
    /* Adds the sum of the rows of dy to gradient. */
    void (*bias_gradient)(void *self, int rows, int columns, const weir_real *dy, int ld, weir_real *gradient);
    /* Sets dy to 0 where y, the output of a ReLU, is 0. */
    void (*relu_backward)(void *self, int rows, int columns, const weir_real *y, weir_real *dy, int ld);

    /* ---- convolutions (of n images per call) ---- */
    /* Must be called for each convolution before its first use. 0 or -ENOMEM. */
    int (*reserve)(void *self, const struct weir_convolution *convolution);
    /* y = relu(convolution of x + bias). Consecutive images of x are x_stride numbers apart. weight is [filters,
     * channels, 3, 3]. */
    void (*convolve)(void *self, const struct weir_convolution *convolution, int n, const weir_real *x, size_t x_stride,
                     const weir_real *weight, const weir_real *bias, weir_real *y);
    /* dy is the gradient before the ReLU. The gradients of weight and bias are added to weight_gradient and
     * bias_gradient. dx, unless NULL, receives the gradient before the preceding ReLU, which is 0 where x is 0. */
    void (*convolve_backward)(void *self, const struct weir_convolution *convolution, int n, const weir_real *x,
                              size_t x_stride, const weir_real *weight, const weir_real *dy, weir_real *weight_gradient,
                              weir_real *bias_gradient, weir_real *dx);
    /* y[n, channels] = mean over the pixels of x[n, channels, pixels]. */
    void (*average_pool)(void *self, int n, int channels, int pixels, const weir_real *x, weir_real *y, int ld);
    /* dx receives the gradient before the preceding ReLU, which is 0 where x is 0. */
    void (*average_pool_backward)(void *self, int n, int channels, int pixels, const weir_real *x, const weir_real *dy,
                                  int ld, weir_real *dx);

    /* ---- loss and optimiser ---- */
    /* loss[0] is the mean of |y - wanted| over the rows with a nonzero weight. loss[1] is 1 / the number of these
     * values, for the backward pass. Both are 0 if there are no such rows. */
    void (*l1)(void *self, int rows, int columns, const weir_real *y, const weir_real *wanted, const weir_real *weights,
               weir_real *loss);
    /* Computes dy, the gradient of scale * loss[0] with respect to y. */
    void (*l1_backward)(void *self, int rows, int columns, const weir_real *y, const weir_real *wanted,
                        const weir_real *weights, const weir_real *loss, double scale, weir_real *dy);
    /* Get and set the loss scale. With amp, l1_backward multiplies by it and adamw divides by it. */
    void (*loss_scale)(void *self, struct weir_loss_scale *now);
    void (*set_loss_scale)(void *self, const struct weir_loss_scale *scale);
    /* Updates the parameters with AdamW (decoupled weight decay, Loshchilov and Hutter 2019, algorithm 2), like
     * torch.optim.AdamW, and sets the gradients to 0. */
    void (*adamw)(void *self, const struct weir_adamw *adamw, size_t numbers, weir_real *parameters,
                  weir_real *gradients, weir_real *mean, weir_real *variance);
};

extern const struct weir_compute_ops weir_compute_cpu;

#endif
