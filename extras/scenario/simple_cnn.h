/* simple_cnn.h: a small network for the GPU, with a narrower version for the CPU. It has three convolutions, a mean
 * over the pixels and two linear layers, and trains with mean absolute error and AdamW. A block of many tiny
 * operations, with parameters of its own, can be added after the convolutions.
 *
 * Calls are queued and return early, except loss, finish, open and close. A network must be used by one thread only. */
#ifndef WEIR_EXTRAS_SCENARIO_SIMPLE_CNN_H
#define WEIR_EXTRAS_SCENARIO_SIMPLE_CNN_H

#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_compute_ops;
struct weir_device;
struct weir_simple_cnn;

/* Side length of an image in pixels, and numbers per image and per output. */
enum { WEIR_CNN_SIDE = 64, WEIR_CNN_IMAGE = 3 * WEIR_CNN_SIDE * WEIR_CNN_SIDE, WEIR_CNN_OUTPUTS = 1024 };

enum weir_tiny_ops {
    WEIR_TINY_NONE,     /* network without the block */
    WEIR_TINY_SEPARATE, /* one kernel per operation */
    WEIR_TINY_FUSED,    /* one kernel for all operations, with the same results */
};
enum { WEIR_TINY_OPS = 200 }; /* tiny operations per pass */

/* A GPU that the caller has opened. Everything is borrowed until close. */
struct weir_cnn_gpu {
    const struct weir_compute_ops *ops;
    int number;                 /* GPU index, from 0 */
    void *stream;               /* cudaStream_t for all work */
    struct weir_device *device; /* passed to copy_in */
    /* Queues a copy to the GPU. If the host memory is not pinned, the copy may run before this returns. */
    int (*copy_in)(struct weir_device *device, void *to, const void *from, size_t bytes, void *stream,
                   struct weir_err *err);
};

struct weir_simple_cnn_config {
    const struct weir_cnn_gpu *gpu; /* borrowed until close; NULL: the CPU, where calls are not queued */
    int batch_size;
    bool amp;      /* mixed precision; GPU only */
    uint64_t seed; /* seed of the initial parameters */
    enum weir_tiny_ops tiny;
};

/* 0, -ENOENT (library not found) or -ENOMEM. */
int weir_simple_cnn_open(struct weir_simple_cnn **out, const struct weir_simple_cnn_config *config,
                         struct weir_err *err);
/* Accepts a pointer to NULL. */
void weir_simple_cnn_close(struct weir_simple_cnn **cnn);

/* Copies images [batch, 3, side, side] and targets [batch, outputs] to the device, with copy_in on a GPU. */
int weir_simple_cnn_copy_in(struct weir_simple_cnn *cnn, const float *images, const float *targets,
                            struct weir_err *err);
void weir_simple_cnn_forward(struct weir_simple_cnn *cnn);
void weir_simple_cnn_backward(struct weir_simple_cnn *cnn);
void weir_simple_cnn_optimise(struct weir_simple_cnn *cnn);
/* Waits for the last forward pass and returns its loss. */
double weir_simple_cnn_loss(struct weir_simple_cnn *cnn);
/* Transfer the loss without waiting. send queues a copy of the loss. receive returns 1 with the next loss, 0 if none
 * has arrived, or an error. */
void weir_simple_cnn_send_loss(struct weir_simple_cnn *cnn);
int weir_simple_cnn_receive_loss(struct weir_simple_cnn *cnn, double *loss, struct weir_err *err);
/* Waits for all queued work. 0, or the error of a queued call (-EIO, -ENOMEM). */
int weir_simple_cnn_finish(struct weir_simple_cnn *cnn, struct weir_err *err);

size_t weir_simple_cnn_parameters(const struct weir_simple_cnn *cnn);
/* Returns the backend's name, e.g. "cuBLAS 13.0, ...", valid until close. */
const char *weir_simple_cnn_engine(const struct weir_simple_cnn *cnn);
/* Returns the current loss scale, which is 1 without amp. */
double weir_simple_cnn_loss_scale(struct weir_simple_cnn *cnn);
/* Returns the backend, and its context in *self. */
const struct weir_compute_ops *weir_simple_cnn_ops(const struct weir_simple_cnn *cnn, void **self);

#endif
