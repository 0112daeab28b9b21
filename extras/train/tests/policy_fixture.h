/* policy_fixture.h: a small policy and batches for it that make_policy_fixture.py makes too, and comparing with what
 * torch computed of them. Compiled into each test that uses it, because weir_real may differ. */
#ifndef WEIR_EXTRAS_TRAIN_TESTS_POLICY_FIXTURE_H
#define WEIR_EXTRAS_TRAIN_TESTS_POLICY_FIXTURE_H

#include "extras/train/policy.h"

/* splitmix64: from -1 to 1. */
double fixture_uniform(uint64_t *state);

/* Two cameras of odd sizes, three samples at most. */
struct weir_policy_config fixture_config(void);

struct fixture_batch {
    struct weir_policy_inputs inputs;
    float *images[WEIR_POLICY_CAMERAS_MAX], *state, *actions;
    uint8_t *is_pad;
};
/* n samples; of the second the last steps are padding, of the third all but the first. */
void fixture_batch_open(struct fixture_batch *batch, const struct weir_policy_config *config, int n, uint64_t seed);
void fixture_batch_close(struct fixture_batch *batch);

/* The gradients of the last forward and backward, named as the parameters are; owned by the caller. The policy's step
 * must change nothing by a learning rate of 0; its moments are zeros before and after. */
struct weir_policy_array *fixture_gradients(struct weir_policy *policy, int *n);
void fixture_gradients_free(struct weir_policy_array *gradients, int n);

/* Fails the test where the policy's losses, gradients and parameters over three steps differ from torch's by more than
 * tolerance, relative to the norm of the tensor. */
void fixture_compare_with_torch(double tolerance);

#endif
