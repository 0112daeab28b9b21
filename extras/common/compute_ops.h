/* compute_ops.h: the operations of a backend for networks: matrix products, convolutions, and the functions between
 * them.
 *
 * Memory belongs to the device: the caller does pointer arithmetic, and reads it through copy_out only. Calls run in
 * order, as on a stream, and may return early; copy_out waits. Numbers are weir_real, matrices are stored by rows, ld
 * is the distance between rows, images are dense [channels, height, width]. The output of a convolution, and its
 * gradient, is read only by another convolution or a pool: a backend may store it in a smaller type. An argument
 * "gradient" is added to for parameters, and overwritten otherwise. One thread uses a context.
 *
 * A new backend is a file with a struct weir_compute_ops, its extern below, a line of CMake and a test. */
#ifndef WEIR_EXTRAS_COMMON_COMPUTE_OPS_H
#define WEIR_EXTRAS_COMMON_COMPUTE_OPS_H

#include "extras/common/real.h"
#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WEIR_SENT_MAX = 64 };

/* A 3x3 convolution with stride 2 and padding 1, the only kind in these networks: it halves both sides, rounded up. */
enum { WEIR_KERNEL = 3 };
struct weir_convolution {
    int channels, height, width; /* input */
    int filters;                 /* output channels */
    int out_height, out_width;   /* (height + 1) / 2, (width + 1) / 2 */
    int images;                  /* 1: x are images; 0: x is the output of a convolution */
};

/* c = a b + beta c, with m rows and n columns, and k products per sum. */
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
    uint64_t step; /* number of this step, from 1 */
};

struct weir_compute_config {
    int threads;  /* CPU threads, at least 1; the library may allow fewer */
    int gpu;      /* index, from 0 */
    void *stream; /* stream (cudaStream_t) for all work; NULL: the backend's own */
    bool amp;     /* float16 products and convolutions, float32 sums, dynamic loss scale; not on the CPU */
};

/* State of the loss scale. A non-finite gradient halves it and skips the step; 2000 finite steps in a row double it
 * (Micikevicius et al. 2018, with the constants of torch.amp.GradScaler). */
struct weir_loss_scale {
    double scale;     /* 1 without amp */
    uint64_t growth;  /* steps since the last change */
    uint64_t skipped; /* skipped steps */
};

struct weir_compute_ops {
    /* Memory is host memory, which the caller may read and write between calls. */
    bool host_memory;
    /* Target size of a group's activations: images pass through the encoder in groups of about so many bytes. */
    size_t group_bytes;

    /* 0, -ENOENT (missing library), -ENOMEM, -EAGAIN (threads) or -ENODEV (no such GPU). */
    int (*open)(void **self, const struct weir_compute_config *config, struct weir_err *err);
    /* Accepts NULL. */
    void (*close)(void *self);
    /* Returns a name such as "OpenBLAS 0.3.21, 2 threads", lent until close. */
    const char *(*describe)(const void *self);
    /* Waits for all calls. 0, or the error of one of them, as calls return none: -EIO (GPU lost, kernel fault) or
     * -ENOMEM. Results since that call are invalid. */
    int (*finish)(void *self, struct weir_err *err);

    /* ---- memory ---- */
    /* Returns the bytes available for allocations; 0 = unknown. */
    uint64_t (*available_bytes)(void *self);
    /* Allocates zeroed numbers; NULL: out of memory. release accepts NULL, and waits for work that uses the memory. */
    weir_real *(*allocate)(void *self, size_t numbers);
    void (*release)(void *self, weir_real *memory);
    /* Copies from host memory, which may be reused on return. */
    void (*copy_in)(void *self, weir_real *to, const float *from, size_t numbers);
    /* Copies to host memory. Writes zeros after an error, which finish returns. */
    void (*copy_out)(void *self, weir_real *to, const weir_real *from, size_t numbers);
    /* send queues a copy of one number to the host, after all earlier calls. receive returns the numbers in order: 1
     * with the next one, 0 if none has arrived or none was sent, or an error as finish. With wait it waits. At most
     * WEIR_SENT_MAX may be in flight. */
    void (*send)(void *self, const weir_real *number);
    int (*receive)(void *self, bool wait, weir_real *number, struct weir_err *err);
    /* weights[i] = is_pad[i] ? 0 : 1; is_pad is device memory. */
    void (*weigh)(void *self, size_t rows, const uint8_t *is_pad, weir_real *weights);
    /* Applies x = scale x + shift the given number of times, in one pass. */
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
    /* dy is the gradient before the ReLU. Adds the gradients of weight and bias. dx, unless NULL, is the gradient
     * before the preceding ReLU: 0 where x is 0. */
    void (*convolve_backward)(void *self, const struct weir_convolution *convolution, int n, const weir_real *x,
                              size_t x_stride, const weir_real *weight, const weir_real *dy, weir_real *weight_gradient,
                              weir_real *bias_gradient, weir_real *dx);
    /* y[n, channels] = mean over the pixels of x[n, channels, pixels]. */
    void (*average_pool)(void *self, int n, int channels, int pixels, const weir_real *x, weir_real *y, int ld);
    /* dx is the gradient before the preceding ReLU. */
    void (*average_pool_backward)(void *self, int n, int channels, int pixels, const weir_real *x, const weir_real *dy,
                                  int ld, weir_real *dx);

    /* ---- loss and optimiser ---- */
    /* loss[0] is the mean of |y - wanted| over rows with a nonzero weight; loss[1] is 1 / the number of these values,
     * for the backward pass. Both are 0 without such rows. */
    void (*l1)(void *self, int rows, int columns, const weir_real *y, const weir_real *wanted, const weir_real *weights,
               weir_real *loss);
    /* dy = scale * d loss / dy */
    void (*l1_backward)(void *self, int rows, int columns, const weir_real *y, const weir_real *wanted,
                        const weir_real *weights, const weir_real *loss, double scale, weir_real *dy);
    /* With amp, l1_backward multiplies by the loss scale and adamw divides by it. */
    void (*loss_scale)(void *self, struct weir_loss_scale *now);
    void (*set_loss_scale)(void *self, const struct weir_loss_scale *scale);
    /* AdamW with decoupled weight decay (Loshchilov and Hutter 2019, algorithm 2), as in torch.optim.AdamW. Resets the
     * gradients to 0. */
    void (*adamw)(void *self, const struct weir_adamw *adamw, size_t numbers, weir_real *parameters,
                  weir_real *gradients, weir_real *mean, weir_real *variance);
};

extern const struct weir_compute_ops weir_compute_cpu;

/* Returns the CUDA module's backend. NULL: err has -ENODEV (no module) or -ENOTSUP (module without networks). */
const struct weir_compute_ops *weir_compute_ops_cuda(struct weir_err *err);

#endif
