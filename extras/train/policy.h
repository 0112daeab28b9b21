/* policy.h: a small imitation-learning policy that trains: an encoder per camera, the state fused with what they give,
 * a head that predicts a chunk of actions. Masked L1 loss, AdamW.
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
    const char *name;  /* that of its parameters in a checkpoint: 1 to 48 bytes; read by weir_policy_open */
    int height, width; /* three channels */
};

struct weir_policy_config {
    int n_cameras; /* 1 .. WEIR_POLICY_CAMERAS_MAX */
    struct weir_policy_camera cameras[WEIR_POLICY_CAMERAS_MAX];
    int state_dim, action_dim, chunk; /* at least 1; state_dim may be 0 */
    int hidden_dim, feedforward_dim;
    double learning_rate, weight_decay; /* AdamW's; betas 0.9 and 0.999, eps 1e-8 */
    uint64_t seed;                      /* of the first parameters */
    int batch_max;                      /* samples of a forward at most */
    int accumulation;                   /* calls of weir_policy_step until it changes parameters; at least 1 */
    int threads;                        /* that compute on the CPU; 0: one */
    bool on_gpu;                        /* else on the CPU, and the next three are not looked at */
    int gpu;                            /* which one, from 0 */
    void *stream;                       /* of it, on which all is queued (cudaStream_t); NULL: one of its own */
    bool amp;                           /* mixed precision: float16 products, with a dynamic loss scale */
};

/* A batch in the memory of the host, or of the GPU that computes: float32, images dense in themselves. */
struct weir_policy_images {
    const float *data;    /* [3, height, width] of a sample, 0..1 */
    size_t sample_floats; /* from one sample to the next */
};

struct weir_policy_inputs {
    int n; /* samples: 1 .. batch_max */
    struct weir_policy_images images[WEIR_POLICY_CAMERAS_MAX];
    const float *state;    /* [n, state_dim] */
    const float *actions;  /* [n, chunk, action_dim] */
    const uint8_t *is_pad; /* [n, chunk]; not 0: no part of the loss. NULL: all count */
};

struct weir_policy;

/* Allocates everything that training needs and sets the first parameters, which depend on the seed only. 0; -EINVAL (a
 * size out of range), -ENOMEM (also when it would take more than is free), -EAGAIN (threads), -ENOENT (the BLAS library
 * is not there; err names the package). */
int weir_policy_open(struct weir_policy **out, const struct weir_policy_config *config, struct weir_err *err);
/* Accepts NULL, and sets it to NULL. */
void weir_policy_close(struct weir_policy **policy);

/* Predicts, and computes the loss: mean over all values that are not padding (0 when all are). The inputs are read
 * until weir_policy_backward returns; by a GPU until what it has queued is done. */
void weir_policy_forward(struct weir_policy *policy, const struct weir_policy_inputs *inputs);
/* Adds the gradients of the last forward's loss, divided by accumulation. */
void weir_policy_backward(struct weir_policy *policy);
/* AdamW, each accumulation-th call; gradients are zero afterwards. */
void weir_policy_step(struct weir_policy *policy);
/* Of the last forward; waits for it. */
double weir_policy_loss(const struct weir_policy *policy);
/* On a GPU waiting for each loss would leave it idle in between. The last forward's goes to the host behind what is
 * queued; weir_policy_receive_loss gives the losses in the order in which they were sent: 1 with the next one, 0 when
 * it is not there yet (or none is sent), or as weir_policy_finish. wait: for it. At most WEIR_POLICY_LOSSES are under
 * way. */
enum { WEIR_POLICY_LOSSES = 64 };
void weir_policy_send_loss(struct weir_policy *policy);
int weir_policy_receive_loss(struct weir_policy *policy, bool wait, double *loss, struct weir_err *err);
/* Waits for what a GPU has queued. 0, or -EIO or -ENOMEM: it failed, and what was computed since is worth nothing. */
int weir_policy_finish(struct weir_policy *policy, struct weir_err *err);
/* [n, chunk, action_dim] of the last forward, where the policy computes, lent until the next. */
const weir_real *weir_policy_prediction(const struct weir_policy *policy);

uint64_t weir_policy_parameters(const struct weir_policy *policy); /* how many numbers */
/* "OpenBLAS 0.3.21, 2 threads": for the program's first lines. */
const char *weir_policy_engine(const struct weir_policy *policy);

/* Parameters and, when optimiser is true, AdamW's moments, as named arrays in the host's memory: what a checkpoint
 * holds. data is lent until close. After writing to it weir_policy_set_arrays changes the policy; on a GPU it is a copy
 * of what is there now, else the policy's own. */
struct weir_policy_array {
    char name[96]; /* "encoder.top.conv1.weight", "optimizer.exp_avg.head.2.bias" */
    int ndim;
    int64_t shape[4];
    weir_real *data;
};
/* 0 or -ENOMEM. The caller frees *arrays with free. */
int weir_policy_arrays(struct weir_policy *policy, bool optimiser, struct weir_policy_array **arrays, int *n);
void weir_policy_set_arrays(struct weir_policy *policy);

/* What else a checkpoint holds. */
struct weir_policy_progress {
    uint64_t steps;           /* of AdamW, those that amp left out included */
    double loss_scale;        /* 1 without amp */
    uint64_t growth, skipped; /* steps since it changed; steps that were left out */
};
/* Waits for what a GPU has queued. */
void weir_policy_progress(struct weir_policy *policy, struct weir_policy_progress *progress);
void weir_policy_set_progress(struct weir_policy *policy, const struct weir_policy_progress *progress);

#endif
