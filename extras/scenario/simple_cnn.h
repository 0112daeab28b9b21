/* simple_cnn.h: a small network on a GPU, or a narrower one on the CPU: three convolutions, the mean over the pixels,
 * two linear layers, mean absolute error, AdamW. An optional block of many tiny operations, with its own parameters,
 * follows the convolutions.
 *
 * Calls are queued and return early, except loss, finish, open and close. One thread uses a network. */
#ifndef WEIR_EXTRAS_SCENARIO_SIMPLE_CNN_H
#define WEIR_EXTRAS_SCENARIO_SIMPLE_CNN_H

#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_compute_ops;
struct weir_device;
struct weir_simple_cnn;

/* Numbers per sample. */
enum { WEIR_CNN_SIDE = 64, WEIR_CNN_IMAGE = 3 * WEIR_CNN_SIDE * WEIR_CNN_SIDE, WEIR_CNN_OUTPUTS = 1024 };

enum weir_tiny_ops {
    WEIR_TINY_NONE,     /* no such block */
    WEIR_TINY_SEPARATE, /* one kernel per operation */
    WEIR_TINY_FUSED,    /* one kernel for all operations, same results */
};
enum { WEIR_TINY_OPS = 200 }; /* per pass */

struct weir_simple_cnn_config {
    struct weir_device *device; /* borrowed until close; NULL: the CPU, where no call is queued */
    void *stream;               /* the device's stream for all work; borrowed until close */
    int batch_size;
    bool amp;      /* on a GPU */
    uint64_t seed; /* of the parameters */
    enum weir_tiny_ops tiny;
};

/* 0, -ENOTSUP (CUDA module without networks), -ENOENT (missing library) or -ENOMEM. */
int weir_simple_cnn_open(struct weir_simple_cnn **out, const struct weir_simple_cnn_config *config,
                         struct weir_err *err);
/* Accepts NULL. */
void weir_simple_cnn_close(struct weir_simple_cnn **cnn);

/* Copies [batch, 3, side, side] and [batch, outputs], as weir_device_copy_in. */
int weir_simple_cnn_copy_in(struct weir_simple_cnn *cnn, const float *images, const float *targets,
                            struct weir_err *err);
void weir_simple_cnn_forward(struct weir_simple_cnn *cnn);
void weir_simple_cnn_backward(struct weir_simple_cnn *cnn);
void weir_simple_cnn_optimise(struct weir_simple_cnn *cnn);
/* Waits for the last forward pass and returns its loss. */
double weir_simple_cnn_loss(struct weir_simple_cnn *cnn);
/* The same without waiting: send queues the loss, receive returns 1 with the next one, 0 if none has arrived. */
void weir_simple_cnn_send_loss(struct weir_simple_cnn *cnn);
int weir_simple_cnn_receive_loss(struct weir_simple_cnn *cnn, double *loss, struct weir_err *err);
/* Waits for all queued work. 0, or the error of a queued call (-EIO, -ENOMEM). */
int weir_simple_cnn_finish(struct weir_simple_cnn *cnn, struct weir_err *err);

size_t weir_simple_cnn_parameters(const struct weir_simple_cnn *cnn);
/* "cuBLAS 13.0, ..."; lent until close. */
const char *weir_simple_cnn_engine(const struct weir_simple_cnn *cnn);
/* 1 without amp. */
double weir_simple_cnn_loss_scale(struct weir_simple_cnn *cnn);
/* The backend, and its context. */
const struct weir_compute_ops *weir_simple_cnn_ops(const struct weir_simple_cnn *cnn, void **self);

#endif
