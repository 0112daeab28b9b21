/* compute_ops.h: what a backend computes for the networks of workloads/: matrix products, convolutions, and the few
 * functions between them.
 *
 * Memory is the device's: the caller adds to its pointers and reads none of it, unless by copy_out. Calls are done in
 * the order in which they are made, as on a stream, and may return before they are done; copy_out waits. Numbers are
 * weir_real, matrices are stored by rows, ld is the distance from row to row, images are [channels, height, width] and
 * dense. What a convolution gives, and the gradient of it, goes only where another convolution or a pool takes it: a
 * backend may have smaller numbers there. An argument "gradient" is added to where it belongs to parameters, and
 * overwritten elsewhere. One thread uses a context.
 *
 * A new backend is a file with a struct weir_compute_ops, its extern below, its row in compute.c, a line of CMake and a
 * test. */
#ifndef WEIR_EXTRAS_COMMON_COMPUTE_OPS_H
#define WEIR_EXTRAS_COMMON_COMPUTE_OPS_H

#include "extras/common/real.h"
#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WEIR_SENT_MAX = 64 };

/* A convolution of 3x3 with a stride of 2 and a border of one zero around the image, the only kind that the networks
 * have: it halves both sides, rounded up. */
enum { WEIR_KERNEL = 3 };
struct weir_convolution {
    int channels, height, width; /* of what comes in */
    int filters;                 /* the channels of what comes out */
    int out_height, out_width;   /* (height + 1) / 2, (width + 1) / 2 */
    int images;                  /* 1: x are images; 0: what a convolution gave */
};

/* c = a b + beta c, of m rows and n columns; k numbers are summed up for each. */
struct weir_gemm {
    bool transpose_a, transpose_b; /* a is stored as [k, m], b as [n, k] */
    int m, n, k;
    const weir_real *a, *b;
    int lda, ldb;
    weir_real beta;
    weir_real *c;
    int ldc;
};

struct weir_adamw {
    double learning_rate, weight_decay, beta1, beta2, eps;
    uint64_t step; /* the number of this step, from 1 */
};

struct weir_compute_config {
    int threads;  /* of the CPU, at least 1; fewer where a library allows no more */
    int gpu;      /* which one, from 0 */
    void *stream; /* of that GPU (cudaStream_t): all is queued on it; NULL: one of the backend's own */
    bool amp; /* products and convolutions of float16, sums of float32, and a dynamic loss scale; the CPU has none */
};

/* Where the loss scale is: it is halved, and the step is left out, when a gradient is not finite, and doubled after
 * 2000 steps in a row that were none of these (Micikevicius et al. 2018; the numbers are torch.amp.GradScaler's). */
struct weir_loss_scale {
    double scale;     /* 1 without amp */
    uint64_t growth;  /* steps since it changed */
    uint64_t skipped; /* steps that were left out so far */
};

struct weir_compute_ops {
    const char *name, *summary;
    const char *why_not; /* not built in: the reason; the functions are NULL then */
    /* Memory is the host's: what it holds can be read, and written, between calls. */
    bool host_memory;
    /* A group of images goes through all layers of an encoder before the next: as many as have activations of about so
     * many bytes. */
    size_t group_bytes;

    /* 0; -ENOENT (a library is not there), -ENOMEM, -EAGAIN (threads), -ENODEV (the GPU is not there). */
    int (*open)(void **self, const struct weir_compute_config *config, struct weir_err *err);
    /* Accepts NULL. */
    void (*close)(void *self);
    /* "OpenBLAS 0.3.21, 2 threads"; lent until close. */
    const char *(*describe)(const void *self);
    /* Waits for all calls. 0, or what went wrong in one of them, which have no results of their own: -EIO (the GPU is
     * lost, a kernel faulted), -ENOMEM. What was computed since is worth nothing then. */
    int (*finish)(void *self, struct weir_err *err);

    /* ---- memory ---- */
    /* What is free, for all that is allocated; 0 = not known. */
    uint64_t (*available_bytes)(void *self);
    /* So many zeros; NULL when there is no memory. release accepts NULL, and waits where memory may be in use. */
    weir_real *(*allocate)(void *self, size_t numbers);
    void (*release)(void *self, weir_real *memory);
    /* from is the host's, and not read any more on return. */
    void (*copy_in)(void *self, weir_real *to, const float *from, size_t numbers);
    /* Zeros when something went wrong, which finish tells. */
    void (*copy_out)(void *self, weir_real *to, const weir_real *from, size_t numbers);
    /* The number there goes to the host behind what was called before; receive gives such numbers in the order in which
     * they were sent: 1 with the next one, 0 when it is not there yet (or none is sent), or as finish. wait: for it. At
     * most WEIR_SENT_MAX are under way. */
    void (*send)(void *self, const weir_real *number);
    int (*receive)(void *self, bool wait, weir_real *number, struct weir_err *err);
    /* weights[i] = is_pad[i] ? 0 : 1; is_pad is the device's. */
    void (*weigh)(void *self, size_t rows, const uint8_t *is_pad, weir_real *weights);
    /* x = scale x + shift, so many times over, in one go. */
    void (*affine)(void *self, size_t numbers, double scale, double shift, int times, weir_real *x);

    /* ---- linear layers ---- */
    void (*gemm)(void *self, const struct weir_gemm *gemm);
    /* y += bias in each row; then what is below 0 becomes 0 when relu is true. */
    void (*bias_relu)(void *self, int rows, int columns, const weir_real *bias, bool relu, weir_real *y, int ld);
    /* Adds the sum of the rows. */
    void (*bias_gradient)(void *self, int rows, int columns, const weir_real *dy, int ld, weir_real *gradient);
    /* dy becomes 0 where y, which a ReLU gave, is 0. */
    void (*relu_backward)(void *self, int rows, int columns, const weir_real *y, weir_real *dy, int ld);

    /* ---- convolutions, of n images each ---- */
    /* To be called for each convolution before its first use. 0 or -ENOMEM. */
    int (*reserve)(void *self, const struct weir_convolution *convolution);
    /* y = relu(convolution of x + bias). Images of x are x_stride numbers apart. weight is [filters, channels, 3, 3].
     */
    void (*convolve)(void *self, const struct weir_convolution *convolution, int n, const weir_real *x, size_t x_stride,
                     const weir_real *weight, const weir_real *bias, weir_real *y);
    /* dy is the gradient before the ReLU. Adds those of weight and bias. dx, unless NULL, is that of what the ReLU in
     * front of x was given: 0 where x is 0. */
    void (*convolve_backward)(void *self, const struct weir_convolution *convolution, int n, const weir_real *x,
                              size_t x_stride, const weir_real *weight, const weir_real *dy, weir_real *weight_gradient,
                              weir_real *bias_gradient, weir_real *dx);
    /* y[n, channels] = mean over the pixels of x[n, channels, pixels]. */
    void (*average_pool)(void *self, int n, int channels, int pixels, const weir_real *x, weir_real *y, int ld);
    /* dx is the gradient of what the ReLU in front of x was given. */
    void (*average_pool_backward)(void *self, int n, int channels, int pixels, const weir_real *x, const weir_real *dy,
                                  int ld, weir_real *dx);

    /* ---- loss and optimiser ---- */
    /* Mean of |y - wanted| over the rows whose weight is not 0: loss[0]. loss[1] is 1 / the number of its values, which
     * the backward needs. Both are 0 when there is no such row. */
    void (*l1)(void *self, int rows, int columns, const weir_real *y, const weir_real *wanted, const weir_real *weights,
               weir_real *loss);
    /* dy = scale * d loss / dy */
    void (*l1_backward)(void *self, int rows, int columns, const weir_real *y, const weir_real *wanted,
                        const weir_real *weights, const weir_real *loss, double scale, weir_real *dy);
    /* With amp the loss scale multiplies what l1_backward gives, and adamw divides by it. */
    void (*loss_scale)(void *self, struct weir_loss_scale *now);
    void (*set_loss_scale)(void *self, const struct weir_loss_scale *scale);
    /* AdamW with decoupled weight decay (Loshchilov and Hutter 2019, algorithm 2), as torch.optim.AdamW computes it.
     * Sets the gradients to 0. */
    void (*adamw)(void *self, const struct weir_adamw *adamw, size_t numbers, weir_real *parameters,
                  weir_real *gradients, weir_real *mean, weir_real *variance);
};

extern const struct weir_compute_ops weir_compute_cpu;

/* Row i of the table; NULL past the end. The first one is the default. The CUDA module has one more. */
const struct weir_compute_ops *weir_compute_ops_at(int row);
/* That of the CUDA module. NULL and err: -ENODEV (there is none), -ENOTSUP (it computes no networks). */
const struct weir_compute_ops *weir_compute_ops_cuda(struct weir_err *err);

#endif
