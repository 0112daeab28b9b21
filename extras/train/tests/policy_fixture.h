/* policy_fixture.h: a small policy and batches that equal those of make_policy_fixture.py, and a comparison with
 * PyTorch's results. Each test compiles its own copy, because weir_real may differ. */
#ifndef WEIR_EXTRAS_TRAIN_TESTS_POLICY_FIXTURE_H
#define WEIR_EXTRAS_TRAIN_TESTS_POLICY_FIXTURE_H

#include "extras/train/policy.h"

/* Returns a number from -1 to 1, generated with splitmix64. */
double fixture_uniform(uint64_t *state);

/* A policy with two cameras of odd image sizes, for batches of at most three samples. */
struct weir_policy_config fixture_config(void);

struct fixture_batch {
    struct weir_policy_inputs inputs;
    float *images[WEIR_POLICY_CAMERAS_MAX], *state, *actions;
    uint8_t *is_pad;
};
/* Opens a batch of n samples. In sample 1 the last steps are padding. In sample 2 all steps except the first are
 * padding. */
void fixture_batch_open(struct fixture_batch *batch, const struct weir_policy_config *config, int n, uint64_t seed);
void fixture_batch_close(struct fixture_batch *batch);

/* Returns the gradients of the last forward and backward pass, with the names of their parameters. The caller frees
 * them. The policy's learning rate must be 0, so that the step that this function takes changes no parameter. The
 * moments must be zero, and are reset to zero. */
struct weir_policy_array *fixture_gradients(struct weir_policy *policy, int *n);
void fixture_gradients_free(struct weir_policy_array *gradients, int n);

/* Fails the test if losses, gradients or parameters over three steps differ from PyTorch's by more than tolerance,
 * relative to the norm of each array. */
void fixture_compare_with_torch(double tolerance);

#endif
