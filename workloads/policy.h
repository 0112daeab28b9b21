/* policy.h: a small imitation-learning policy that trains: an encoder per camera, the state fused with what they give,
 * a head that predicts a chunk of actions. Masked L1 loss, AdamW.
 *
 *     struct weir_policy *policy;
 *     weir_policy_open(&policy, &config, &err);
 *     for each batch: weir_policy_forward, weir_policy_backward, weir_policy_step; weir_policy_loss
 *     weir_policy_close(&policy);
 *
 * weir_real is float, except in tests of the gradients. One thread uses a policy. */
#ifndef WEIR_WORKLOADS_POLICY_H
#define WEIR_WORKLOADS_POLICY_H

#include "base/err.h"
#include "workloads/real.h"

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
};

/* A batch in the host's memory: float32, images dense in themselves. */
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
 * until weir_policy_backward returns. */
void weir_policy_forward(struct weir_policy *policy, const struct weir_policy_inputs *inputs);
/* Adds the gradients of the last forward's loss, divided by accumulation. */
void weir_policy_backward(struct weir_policy *policy);
/* AdamW, each accumulation-th call; gradients are zero afterwards. */
void weir_policy_step(struct weir_policy *policy);
/* Of the last forward. */
double weir_policy_loss(const struct weir_policy *policy);
/* [n, chunk, action_dim] of the last forward, lent until the next. */
const weir_real *weir_policy_prediction(const struct weir_policy *policy);

uint64_t weir_policy_parameters(const struct weir_policy *policy); /* how many numbers */
/* "OpenBLAS 0.3.21, 2 threads": for the program's first lines. */
const char *weir_policy_engine(const struct weir_policy *policy);

/* Parameters and, when optimiser is true, AdamW's moments, as named arrays: what a checkpoint holds. data is lent until
 * close; writing to it changes the policy. */
struct weir_policy_array {
    char name[96]; /* "encoder.top.conv1.weight", "optimizer.exp_avg.head.2.bias" */
    int ndim;
    int64_t shape[4];
    weir_real *data;
};
/* 0 or -ENOMEM. The caller frees *arrays with free. */
int weir_policy_arrays(struct weir_policy *policy, bool optimiser, struct weir_policy_array **arrays, int *n);
/* The AdamW step count, which bias correction needs. */
uint64_t weir_policy_steps(const struct weir_policy *policy);
void weir_policy_set_steps(struct weir_policy *policy, uint64_t steps);

#endif
