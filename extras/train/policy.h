/* policy.h: a small trainable imitation-learning policy. One encoder per camera and a linear layer for the state
 * produce features, from which a head predicts a chunk of actions. It trains with a masked L1 loss and AdamW.
 *
 *     struct weir_policy *policy;
 *     weir_policy_open(&policy, &config, &err);
 *     for each batch: weir_policy_forward, weir_policy_backward, weir_policy_step; weir_policy_loss
 *     weir_policy_close(&policy);
 *
 * weir_real is float, except in tests of the gradients. A policy must be used by one thread only. */
#ifndef WEIR_EXTRAS_TRAIN_POLICY_H
#define WEIR_EXTRAS_TRAIN_POLICY_H

#include "extras/common/real.h"
#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_compute_ops; /* extras/common/compute_ops.h */

enum { WEIR_POLICY_CAMERAS_MAX = 16 };

struct weir_policy_camera {
    const char *name;  /* 1 to 48 bytes, part of parameter names in a checkpoint; not used after weir_policy_open */
    int height, width; /* size of its images, which have three channels */
};

struct weir_policy_config {
    int n_cameras; /* 1 .. WEIR_POLICY_CAMERAS_MAX */
    struct weir_policy_camera cameras[WEIR_POLICY_CAMERAS_MAX];
    int state_dim, action_dim, chunk; /* at least 1, except that state_dim may be 0 */
    int hidden_dim, feedforward_dim;
    double learning_rate, weight_decay;     /* for AdamW with betas 0.9 and 0.999, and eps 1e-8 */
    uint64_t seed;                          /* seed of the initial parameters */
    int batch_max;                          /* maximum number of samples per forward pass */
    int accumulation;                       /* weir_policy_step calls per update, at least 1 */
    int threads;                            /* CPU threads; 0 means 1 */
    uint64_t memory_bytes;                  /* memory that the policy may use on the CPU; 0: unknown */
    const struct weir_compute_ops *gpu_ops; /* the GPU's backend; NULL: train on the CPU and ignore the rest */
    int gpu;                                /* GPU index, from 0 */
    void *stream;                           /* cudaStream_t for all work; NULL: the policy creates one */
    bool amp;                               /* mixed precision: float16 products and a dynamic loss scale */
};

/* A camera's images as dense float32, in host memory or, with gpu_ops, in that GPU's memory. */
struct weir_policy_images {
    const float *data;    /* [3, height, width] per sample, from 0 to 1 */
    size_t sample_floats; /* distance between consecutive samples, in floats */
};

struct weir_policy_inputs {
    int n; /* number of samples, 1 .. batch_max */
    struct weir_policy_images images[WEIR_POLICY_CAMERAS_MAX];
    const float *state;    /* [n, state_dim] */
    const float *actions;  /* [n, chunk, action_dim] */
    const uint8_t *is_pad; /* [n, chunk]; steps with a nonzero value are excluded from the loss. NULL: no padding */
};

struct weir_policy;

/* Allocates all memory for training and initialises the parameters from the seed. 0, -EINVAL (a size is out of range),
 * -ENOMEM (also if the policy would exceed the free memory), -EAGAIN (cannot start threads) or -ENOENT (no BLAS
 * library; err names the package to install). */
int weir_policy_open(struct weir_policy **out, const struct weir_policy_config *config, struct weir_err *err);
/* Accepts a pointer to NULL, and sets the pointer to NULL. */
void weir_policy_close(struct weir_policy **policy);

/* Computes the prediction and its loss, which is the mean over all values that are not padding (0 if all values are
 * padding). Inputs must stay valid until weir_policy_backward returns, and on a GPU until the queued work has finished.
 */
void weir_policy_forward(struct weir_policy *policy, const struct weir_policy_inputs *inputs);
/* Adds the gradients of the last forward pass's loss, divided by accumulation. */
void weir_policy_backward(struct weir_policy *policy);
/* In every accumulation-th call, updates the parameters with AdamW and sets the gradients to 0. Other calls only count.
 */
void weir_policy_step(struct weir_policy *policy);
/* Waits for the last forward pass and returns its loss. */
double weir_policy_loss(const struct weir_policy *policy);
/* Transfer losses without waiting for each, which would leave a GPU idle. weir_policy_send_loss queues a copy of the
 * last forward pass's loss to the host. weir_policy_receive_loss gets these losses in order. It returns 1 and the next
 * loss, 0 if none is in flight or (without wait) none has arrived, or an error like weir_policy_finish. At most
 * WEIR_POLICY_LOSSES losses may be in flight. */
enum { WEIR_POLICY_LOSSES = 64 };
void weir_policy_send_loss(struct weir_policy *policy);
int weir_policy_receive_loss(struct weir_policy *policy, bool wait, double *loss, struct weir_err *err);
/* Waits for all queued work. Returns 0, -EIO or -ENOMEM. After an error, all results since the failed call are invalid.
 */
int weir_policy_finish(struct weir_policy *policy, struct weir_err *err);
/* Returns the prediction of the last forward pass, [n, chunk, action_dim], in device memory. Valid until the next
 * forward pass. */
const weir_real *weir_policy_prediction(const struct weir_policy *policy);

uint64_t weir_policy_parameters(const struct weir_policy *policy); /* number of parameters */
/* Returns the name of the backend, such as "OpenBLAS 0.3.21, 2 threads". */
const char *weir_policy_engine(const struct weir_policy *policy);

/* A parameter, or one of AdamW's moments, as a named array in host memory, for checkpoints. data is valid until close.
 * It is the policy's own memory, or on a GPU a copy. After writing to data, call weir_policy_set_arrays. */
struct weir_policy_array {
    char name[96]; /* e.g. "encoder.top.conv1.weight" or "optimizer.exp_avg.head.2.bias" */
    int ndim;
    int64_t shape[4];
    weir_real *data;
};
/* Lists the parameters and, with optimiser, AdamW's moments. 0 or -ENOMEM. The caller frees *arrays with free. */
int weir_policy_arrays(struct weir_policy *policy, bool optimiser, struct weir_policy_array **arrays, int *n);
void weir_policy_set_arrays(struct weir_policy *policy);

/* The state that a checkpoint needs in addition to the arrays. */
struct weir_policy_progress {
    uint64_t steps;           /* AdamW's steps, including steps skipped because of a non-finite gradient */
    double loss_scale;        /* 1 without amp */
    uint64_t growth, skipped; /* steps since the scale last changed; number of skipped steps */
};
/* Get and set this state. weir_policy_progress waits for queued work. */
void weir_policy_progress(struct weir_policy *policy, struct weir_policy_progress *progress);
void weir_policy_set_progress(struct weir_policy *policy, const struct weir_policy_progress *progress);

#endif
