/* policy_fixture.h: a small policy and batches, equal to those of make_policy_fixture.py, and a comparison with torch's
 * results. Compiled into each test that uses it, because weir_real may differ. */
#ifndef WEIR_EXTRAS_TRAIN_TESTS_POLICY_FIXTURE_H
#define WEIR_EXTRAS_TRAIN_TESTS_POLICY_FIXTURE_H

#include "extras/train/policy.h"

/* splitmix64: from -1 to 1. */
double fixture_uniform(uint64_t *state);

/* Two cameras of odd sizes, at most three samples. */
struct weir_policy_config fixture_config(void);

struct fixture_batch {
    struct weir_policy_inputs inputs;
    float *images[WEIR_POLICY_CAMERAS_MAX], *state, *actions;
    uint8_t *is_pad;
};
/* n samples. The last steps of the second are padding, and all but the first of the third. */
void fixture_batch_open(struct fixture_batch *batch, const struct weir_policy_config *config, int n, uint64_t seed);
void fixture_batch_close(struct fixture_batch *batch);

/* The gradients of the last forward and backward, with the names of the parameters; owned by the caller. The policy's
 * learning rate must be 0, so that its step changes nothing; its moments are zero before and after. */
struct weir_policy_array *fixture_gradients(struct weir_policy *policy, int *n);
void fixture_gradients_free(struct weir_policy_array *gradients, int n);

/* Fails the test if the policy's losses, gradients and parameters over three steps differ from torch's by more than
 * tolerance, relative to the norm of the tensor. */
void fixture_compare_with_torch(double tolerance);

#endif
