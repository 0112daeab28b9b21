/* simple_cnn.h: a small network on a GPU, or a narrower one on the CPU, as people profile it: three convolutions, the
 * mean over the pixels, two linear layers, mean absolute error, AdamW. A block of many tiny operations may lie between
 * the convolutions and the linear layers; it has parameters of its own, which the same optimiser changes.
 *
 * Calls are queued and return before they are done, except loss, finish, open and close. One thread uses it. */
#ifndef WEIR_EXTRAS_SCENARIO_SIMPLE_CNN_H
#define WEIR_EXTRAS_SCENARIO_SIMPLE_CNN_H

#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_compute_ops;
struct weir_device;
struct weir_simple_cnn;

/* What a sample has. */
enum { WEIR_CNN_SIDE = 64, WEIR_CNN_IMAGE = 3 * WEIR_CNN_SIDE * WEIR_CNN_SIDE, WEIR_CNN_OUTPUTS = 1024 };

enum weir_tiny_ops {
    WEIR_TINY_NONE,     /* no such block */
    WEIR_TINY_SEPARATE, /* a kernel for each operation */
    WEIR_TINY_FUSED,    /* one kernel for all of them: the same numbers */
};
enum { WEIR_TINY_OPS = 200 }; /* in the forward pass, and as many in the backward pass */

struct weir_simple_cnn_config {
    struct weir_device *device; /* borrowed until close; NULL: the CPU, where calls return when they are done */
    void *stream;               /* of it, likewise: all is queued on it */
    int batch_size;
    bool amp;      /* on a GPU */
    uint64_t seed; /* of the parameters */
    enum weir_tiny_ops tiny;
};

/* 0; -ENOTSUP: the CUDA module computes no networks; -ENOENT: a library is missing; -ENOMEM. */
int weir_simple_cnn_open(struct weir_simple_cnn **out, const struct weir_simple_cnn_config *config,
                         struct weir_err *err);
/* Accepts NULL. */
void weir_simple_cnn_close(struct weir_simple_cnn **cnn);

/* [batch, 3, side, side] and [batch, outputs]; as weir_device_copy_in. */
int weir_simple_cnn_copy_in(struct weir_simple_cnn *cnn, const float *images, const float *targets,
                            struct weir_err *err);
void weir_simple_cnn_forward(struct weir_simple_cnn *cnn);
void weir_simple_cnn_backward(struct weir_simple_cnn *cnn);
void weir_simple_cnn_optimise(struct weir_simple_cnn *cnn);
/* Of the last forward: waits for it. */
double weir_simple_cnn_loss(struct weir_simple_cnn *cnn);
/* The same without a wait: the number is sent now, and received some time later: 1 with a number, 0: not yet. */
void weir_simple_cnn_send_loss(struct weir_simple_cnn *cnn);
int weir_simple_cnn_receive_loss(struct weir_simple_cnn *cnn, double *loss, struct weir_err *err);
/* Waits for all that is queued: 0, or what went wrong in it (-EIO, -ENOMEM). */
int weir_simple_cnn_finish(struct weir_simple_cnn *cnn, struct weir_err *err);

size_t weir_simple_cnn_parameters(const struct weir_simple_cnn *cnn);
/* "cuBLAS 13.0, ..."; lent until close. */
const char *weir_simple_cnn_engine(const struct weir_simple_cnn *cnn);
/* 1 without amp. */
double weir_simple_cnn_loss_scale(struct weir_simple_cnn *cnn);
/* The backend, and its context. */
const struct weir_compute_ops *weir_simple_cnn_ops(const struct weir_simple_cnn *cnn, void **self);

#endif
