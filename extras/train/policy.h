/* policy.h: a small trainable imitation-learning policy: one encoder per camera, fused with the state, and a head that
 * predicts a chunk of actions. Masked L1 loss, AdamW.
 *
 *     struct weir_policy *policy;
 *     weir_policy_open(&policy, &config, &err);
 *     for each batch: weir_policy_forward, weir_policy_backward, weir_policy_step; weir_policy_loss
 *     weir_policy_close(&policy);
 *
 * weir_real is float, except in tests of the gradients. One thread uses a policy. */
#ifndef WEIR_EXTRAS_TRAIN_POLICY_H
#define WEIR_EXTRAS_TRAIN_POLICY_H

#include "extras/common/real.h"
#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WEIR_POLICY_CAMERAS_MAX = 16 };

struct weir_policy_camera {
    const char *name;  /* names its parameters in a checkpoint: 1 to 48 bytes; read by weir_policy_open */
    int height, width; /* of its images, which have three channels */
};

struct weir_policy_config {
    int n_cameras; /* 1 .. WEIR_POLICY_CAMERAS_MAX */
    struct weir_policy_camera cameras[WEIR_POLICY_CAMERAS_MAX];
    int state_dim, action_dim, chunk; /* at least 1; state_dim may be 0 */
    int hidden_dim, feedforward_dim;
    double learning_rate, weight_decay; /* for AdamW with betas 0.9 and 0.999, eps 1e-8 */
    uint64_t seed;                      /* of the initial parameters */
    int batch_max;                      /* maximum samples per forward */
    int accumulation;                   /* calls of weir_policy_step per update, at least 1 */
    int threads;                        /* CPU threads; 0 means 1 */
    bool on_gpu;                        /* false: the CPU, and the next three are ignored */
    int gpu;                            /* index, from 0 */
    void *stream;                       /* its stream (cudaStream_t) for all work; NULL: the policy's own */
    bool amp;                           /* mixed precision: float16 products, with a dynamic loss scale */
};

/* A camera's images: dense float32, in host memory or in the memory of the GPU that computes. */
struct weir_policy_images {
    const float *data;    /* [3, height, width] per sample, 0..1 */
    size_t sample_floats; /* distance between samples */
};

struct weir_policy_inputs {
    int n; /* samples: 1 .. batch_max */
    struct weir_policy_images images[WEIR_POLICY_CAMERAS_MAX];
    const float *state;    /* [n, state_dim] */
    const float *actions;  /* [n, chunk, action_dim] */
    const uint8_t *is_pad; /* [n, chunk]; nonzero values are excluded from the loss. NULL: none */
};

struct weir_policy;

/* Allocates all memory for training and initialises the parameters from the seed. 0, -EINVAL (a size out of range),
 * -ENOMEM (also if it exceeds the free memory), -EAGAIN (threads) or -ENOENT (no BLAS library; err names the package).
 */
int weir_policy_open(struct weir_policy **out, const struct weir_policy_config *config, struct weir_err *err);
/* Accepts NULL, and sets it to NULL. */
void weir_policy_close(struct weir_policy **policy);

/* Predicts, and computes the loss: the mean over all values that are not padding (0 if all are). Inputs must be valid
 * until weir_policy_backward returns; on a GPU, until the queued work has finished. */
void weir_policy_forward(struct weir_policy *policy, const struct weir_policy_inputs *inputs);
/* Adds the gradients of the last forward's loss, divided by accumulation. */
void weir_policy_backward(struct weir_policy *policy);
/* Updates the parameters by AdamW in every accumulation-th call, and resets the gradients. */
void weir_policy_step(struct weir_policy *policy);
/* Waits for the last forward and returns its loss. */
double weir_policy_loss(const struct weir_policy *policy);
/* On a GPU, waiting for each loss would leave the GPU idle. weir_policy_send_loss queues a copy of the last forward's
 * loss to the host; weir_policy_receive_loss returns the losses in order: 1 with the next one, 0 if none has arrived or
 * none was sent, or an error as weir_policy_finish. With wait it waits. At most WEIR_POLICY_LOSSES may be in flight. */
enum { WEIR_POLICY_LOSSES = 64 };
void weir_policy_send_loss(struct weir_policy *policy);
int weir_policy_receive_loss(struct weir_policy *policy, bool wait, double *loss, struct weir_err *err);
/* Waits for queued work. 0, -EIO or -ENOMEM: a queued call failed, and all later results are invalid. */
int weir_policy_finish(struct weir_policy *policy, struct weir_err *err);
/* Prediction of the last forward, [n, chunk, action_dim], in the backend's memory; lent until the next forward. */
const weir_real *weir_policy_prediction(const struct weir_policy *policy);

uint64_t weir_policy_parameters(const struct weir_policy *policy); /* number of parameters */
/* Name of the backend, such as "OpenBLAS 0.3.21, 2 threads". */
const char *weir_policy_engine(const struct weir_policy *policy);

/* Parameters and, with optimiser, AdamW's moments, as named arrays in host memory, for checkpoints. data is lent until
 * close. On a GPU it is a copy, otherwise the policy's own memory; call weir_policy_set_arrays after writing to it. */
struct weir_policy_array {
    char name[96]; /* "encoder.top.conv1.weight", "optimizer.exp_avg.head.2.bias" */
    int ndim;
    int64_t shape[4];
    weir_real *data;
};
/* 0 or -ENOMEM. The caller frees *arrays with free. */
int weir_policy_arrays(struct weir_policy *policy, bool optimiser, struct weir_policy_array **arrays, int *n);
void weir_policy_set_arrays(struct weir_policy *policy);

/* Further state of a checkpoint. */
struct weir_policy_progress {
    uint64_t steps;           /* AdamW's steps, including those that amp skipped */
    double loss_scale;        /* 1 without amp */
    uint64_t growth, skipped; /* steps since the scale changed; skipped steps */
};
/* Waits for queued work. */
void weir_policy_progress(struct weir_policy *policy, struct weir_policy_progress *progress);
void weir_policy_set_progress(struct weir_policy *policy, const struct weir_policy_progress *progress);

#endif
