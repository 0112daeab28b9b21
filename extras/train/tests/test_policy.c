/* Tests the policy as programs use it: float results compared with PyTorch's, padding, gradient accumulation, seeds,
 * errors, and that the policy learns. */
#include "extras/common/compute_ops.h"
#include "extras/train/tests/policy_fixture.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct weir_policy *open_policy(const struct weir_policy_config *config)
{
    struct weir_policy *policy;
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_policy_open(&policy, config, &err), 0, "%s", err.text);
    return policy;
}

static size_t count_of(const struct weir_policy_array *array)
{
    size_t count = 1;
    for (int i = 0; i < array->ndim; i++)
        count *= (size_t)array->shape[i];
    return count;
}

/* Returns the largest difference between two lists of arrays. */
static double difference(const struct weir_policy_array *a, const struct weir_policy_array *b, int n)
{
    double largest = 0;
    for (int i = 0; i < n; i++)
        for (size_t j = 0; j < count_of(&a[i]); j++)
            largest = fmax(largest, fabs((double)a[i].data[j] - (double)b[i].data[j]));
    return largest;
}

Test(policy, is_that_of_torch)
{
    fixture_compare_with_torch(2e-4);
}

Test(policy, names_its_arrays)
{
    struct weir_policy_config config = fixture_config();
    struct weir_policy *policy = open_policy(&config);
    struct weir_policy_array *arrays;
    int n;
    uint64_t numbers = 0;
    cr_assert_eq(weir_policy_arrays(policy, false, &arrays, &n), 0);
    cr_assert_eq(n, 2 * 8 + 2 + 6);
    cr_assert_str_eq(arrays[0].name, "encoder.top.conv1.weight");
    cr_assert_eq(arrays[0].ndim, 4);
    cr_assert_eq(arrays[0].shape[0], 16);
    cr_assert_eq(arrays[0].shape[1], 3);
    cr_assert_str_eq(arrays[n - 1].name, "head.4.bias");
    for (int i = 0; i < n; i++)
        numbers += count_of(&arrays[i]);
    cr_assert_eq(weir_policy_parameters(policy), numbers);
    free(arrays);
    cr_assert_eq(weir_policy_arrays(policy, true, &arrays, &n), 0);
    cr_assert_eq(n, 3 * (2 * 8 + 2 + 6));
    cr_assert_str_eq(arrays[n - 1].name, "optimizer.exp_avg_sq.head.4.bias");
    free(arrays);
    cr_assert(strstr(weir_policy_engine(policy), "2 threads"), "%s", weir_policy_engine(policy));
    weir_policy_close(&policy);
    cr_assert_null(policy);
    weir_policy_close(&policy);
}

Test(policy, has_the_same_parameters_for_the_same_seed)
{
    struct weir_policy_config config = fixture_config();
    struct weir_policy *policies[3];
    struct weir_policy_array *arrays[3];
    int n;
    for (int i = 0; i < 3; i++) {
        config.seed = i < 2 ? 11 : 12;
        policies[i] = open_policy(&config);
        cr_assert_eq(weir_policy_arrays(policies[i], false, &arrays[i], &n), 0);
    }
    cr_assert_eq(difference(arrays[0], arrays[1], n), 0);
    cr_assert_gt(difference(arrays[0], arrays[2], n), 0.1);
    for (int i = 0; i < 3; i++) {
        free(arrays[i]);
        weir_policy_close(&policies[i]);
    }
}

Test(policy, padding_counts_for_nothing)
{
    struct weir_policy_config config = fixture_config();
    struct weir_policy *policy = open_policy(&config);
    struct fixture_batch batch;
    fixture_batch_open(&batch, &config, 3, 5);
    weir_policy_forward(policy, &batch.inputs);
    double loss = weir_policy_loss(policy), sum = 0;
    int values = 0;
    for (int i = 0; i < 3 * config.chunk * config.action_dim; i++)
        if (!batch.is_pad[i / config.action_dim]) {
            sum += fabs((double)weir_policy_prediction(policy)[i] - (double)batch.actions[i]);
            values++;
        }
    cr_assert_float_eq(loss, sum / values, 1e-6);
    for (int i = 0; i < 3 * config.chunk * config.action_dim; i++)
        if (batch.is_pad[i / config.action_dim])
            batch.actions[i] = 1e6f;
    weir_policy_forward(policy, &batch.inputs);
    cr_assert_eq(weir_policy_loss(policy), loss);
    batch.inputs.is_pad = NULL;
    weir_policy_forward(policy, &batch.inputs);
    cr_assert_gt(weir_policy_loss(policy), 1e4);
    fixture_batch_close(&batch);
    weir_policy_close(&policy);
}

Test(policy, nothing_but_padding_has_no_loss_and_no_gradient)
{
    struct weir_policy_config config = fixture_config();
    config.learning_rate = 0;
    struct weir_policy *policy = open_policy(&config);
    struct fixture_batch batch;
    fixture_batch_open(&batch, &config, 2, 5);
    memset(batch.is_pad, 1, 2 * (size_t)config.chunk);
    weir_policy_forward(policy, &batch.inputs);
    cr_assert_eq(weir_policy_loss(policy), 0);
    weir_policy_backward(policy);
    int n;
    struct weir_policy_array *gradients = fixture_gradients(policy, &n);
    for (int i = 0; i < n; i++)
        for (size_t j = 0; j < count_of(&gradients[i]); j++)
            cr_assert_eq(gradients[i].data[j], 0);
    fixture_gradients_free(gradients, n);
    fixture_batch_close(&batch);
    weir_policy_close(&policy);
}

static uint64_t steps_of(struct weir_policy *policy)
{
    struct weir_policy_progress done;
    weir_policy_progress(policy, &done);
    return done.steps;
}

/* Compares three batches of one sample with one batch of three samples, without padding. At this image size the encoder
 * processes two images at a time. */
Test(policy, accumulated_parts_are_a_whole)
{
    struct weir_policy_config config = fixture_config();
    struct fixture_batch batch;
    config.learning_rate = 0;
    config.cameras[0].height = config.cameras[0].width = 480;
    fixture_batch_open(&batch, &config, 3, 5);
    batch.inputs.is_pad = NULL;
    struct weir_policy *whole = open_policy(&config);
    weir_policy_forward(whole, &batch.inputs);
    weir_policy_backward(whole);
    config.accumulation = 3;
    struct weir_policy *parts = open_policy(&config);
    int outputs = config.chunk * config.action_dim, n;
    for (int i = 0; i < 3; i++) {
        struct weir_policy_inputs part = batch.inputs;
        part.n = 1;
        for (int c = 0; c < config.n_cameras; c++)
            part.images[c].data += (size_t)i * part.images[c].sample_floats;
        part.state += i * config.state_dim;
        part.actions += i * outputs;
        weir_policy_forward(parts, &part);
        for (int j = 0; j < outputs; j++)
            cr_assert_float_eq(weir_policy_prediction(parts)[j], weir_policy_prediction(whole)[i * outputs + j], 1e-5);
        weir_policy_backward(parts);
        if (i < 2)
            weir_policy_step(parts); /* only counts, and keeps the gradients */
    }
    cr_assert_eq(steps_of(parts), 0);
    struct weir_policy_array *a = fixture_gradients(whole, &n), *b = fixture_gradients(parts, &n);
    cr_assert_eq(steps_of(parts), 1);
    cr_assert_float_eq(difference(a, b, n), 0, 1e-5);
    fixture_gradients_free(a, n);
    fixture_gradients_free(b, n);
    fixture_batch_close(&batch);
    weir_policy_close(&whole);
    weir_policy_close(&parts);
}

/* Resuming needs nothing except parameters, moments and the step count. */
Test(policy, goes_on_from_its_arrays)
{
    struct weir_policy_config config = fixture_config();
    struct weir_policy *first = open_policy(&config);
    config.seed = 99;
    struct weir_policy *second = open_policy(&config);
    struct fixture_batch batch;
    struct weir_policy_array *from, *to;
    int n;
    fixture_batch_open(&batch, &config, 3, 5);
    for (int step = 0; step < 4; step++) {
        weir_policy_forward(first, &batch.inputs);
        weir_policy_backward(first);
        weir_policy_step(first);
        if (step != 1) {
            if (step < 1)
                continue;
            weir_policy_forward(second, &batch.inputs);
            weir_policy_backward(second);
            weir_policy_step(second);
            continue;
        }
        cr_assert_eq(weir_policy_arrays(first, true, &from, &n), 0);
        cr_assert_eq(weir_policy_arrays(second, true, &to, &n), 0);
        for (int i = 0; i < n; i++)
            memcpy(to[i].data, from[i].data, count_of(&to[i]) * sizeof *to[i].data);
        struct weir_policy_progress done;
        weir_policy_set_arrays(second);
        weir_policy_progress(first, &done);
        weir_policy_set_progress(second, &done);
    }
    cr_assert_eq(difference(from, to, n), 0);
    free(from);
    free(to);
    fixture_batch_close(&batch);
    weir_policy_close(&first);
    weir_policy_close(&second);
}

/* Losses arrive in order, and only if they were sent. */
Test(policy, sends_its_losses)
{
    struct weir_policy_config config = fixture_config();
    struct fixture_batch batch;
    double losses[3], loss;
    fixture_batch_open(&batch, &config, 3, 4);
    struct weir_policy *policy = open_policy(&config);
    cr_assert_eq(weir_policy_receive_loss(policy, true, &loss, NULL), 0);
    for (int i = 0; i < 3; i++) {
        batch.inputs.n = 1 + i;
        weir_policy_forward(policy, &batch.inputs);
        losses[i] = weir_policy_loss(policy);
        weir_policy_send_loss(policy);
    }
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(weir_policy_receive_loss(policy, true, &loss, NULL), 1);
        cr_assert_eq(loss, losses[i]);
    }
    cr_assert_neq(losses[0], losses[1]);
    cr_assert_eq(weir_policy_receive_loss(policy, false, &loss, NULL), 0);
    cr_assert_eq(weir_policy_finish(policy, NULL), 0);
    fixture_batch_close(&batch);
    weir_policy_close(&policy);
}

/* Without flushing, a decaying mean would stop at a subnormal number, because 0.9 * 4 * 2^-149 is rounded up to 4 *
 * 2^-149. CPUs compute slowly with subnormal numbers. */
Test(policy, moments_that_fade_become_zeros)
{
    const struct weir_compute_ops *ops = &weir_compute_cpu;
    enum { NUMBERS = 40 };
    void *self;
    cr_assert_eq(ops->open(&self, &(struct weir_compute_config){.threads = 2}, NULL), 0);
    weir_real *arrays[4];
    for (int i = 0; i < 4; i++)
        arrays[i] = ops->allocate(self, NUMBERS);
    for (int i = 0; i < NUMBERS; i++) {
        arrays[2][i] = i % 2 ? 1e-36f : -1e-36f;
        arrays[3][i] = 1.18e-38f;
    }
    for (uint64_t step = 1; step <= 100; step++)
        ops->adamw(self, &(struct weir_adamw){1e-3, 0, 0.9, 0.999, 1e-8, step}, NUMBERS, arrays[0], arrays[1],
                   arrays[2], arrays[3]);
    for (int i = 0; i < NUMBERS; i++) {
        cr_assert_eq(arrays[2][i], 0, "mean %g", (double)arrays[2][i]);
        cr_assert_eq(arrays[3][i], 0, "variance %g", (double)arrays[3][i]);
    }
    for (int i = 0; i < 4; i++)
        ops->release(self, arrays[i]);
    ops->close(self);
}

/* ---- refusals ---- */

static void refused(const struct weir_policy_config *config, int code, const char *words)
{
    struct weir_policy *policy = (struct weir_policy *)(uintptr_t)8;
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_policy_open(&policy, config, &err), code, "%s: %s", words, err.text);
    cr_assert_null(policy);
    cr_assert(strstr(err.text, words), "\"%s\" is missing in: %s", words, err.text);
}

Test(policy, refuses_sizes_out_of_range)
{
    struct weir_policy_config good = fixture_config(), bad = good;
    bad.n_cameras = 0;
    refused(&bad, -EINVAL, "number of cameras is 0");
    bad = good;
    bad.n_cameras = WEIR_POLICY_CAMERAS_MAX + 1;
    refused(&bad, -EINVAL, "number of cameras is 17");
    bad = good;
    bad.state_dim = -1;
    refused(&bad, -EINVAL, "state dimension is -1");
    bad = good;
    bad.chunk = 1 << 16;
    bad.action_dim = 1 << 16;
    refused(&bad, -EINVAL, "chunk size x action dimension is 4294967296");
    bad = good;
    bad.batch_max = 0;
    refused(&bad, -EINVAL, "batch size is 0");
    bad = good;
    bad.accumulation = 0;
    refused(&bad, -EINVAL, "accumulation is 0");
    bad = good;
    bad.cameras[1].width = 0;
    refused(&bad, -EINVAL, "camera wrist: the policy's image width is 0");
    bad = good;
    bad.cameras[1].name = "a camera name that is far too long to be part of a parameter name";
    refused(&bad, -EINVAL, "a camera name that");
}

Test(policy, refuses_what_no_memory_holds)
{
    struct weir_policy_config config = fixture_config();
    config.cameras[0].height = config.cameras[0].width = 1 << 14;
    config.batch_max = 1 << 14;
    config.memory_bytes = (uint64_t)1536 << 20;
    refused(&config, -ENOMEM, "but only 1.5 GiB is free");
    config.memory_bytes = (uint64_t)1023 << 20;
    refused(&config, -ENOMEM, "but only 1023 MiB is free");
}

/* Replaces dlopen at link time, to simulate a machine without BLAS. */
static bool no_libraries;
void *__real_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags)
{
    return no_libraries ? NULL : __real_dlopen(name, flags);
}

Test(policy, names_the_package_that_it_lacks)
{
    struct weir_policy_config config = fixture_config();
    no_libraries = true;
    refused(&config, -ENOENT, "apt install libopenblas0-pthread");
}

/* ---- learning ---- */

/* The actions are a linear function of the state. The images are constant noise. */
Test(policy, learns_a_linear_task)
{
    struct weir_policy_config config = fixture_config();
    enum { SAMPLES = 16 };
    config.cameras[0].height = config.cameras[0].width = config.cameras[1].height = config.cameras[1].width = 16;
    config.batch_max = SAMPLES;
    config.hidden_dim = config.feedforward_dim = 64;
    config.learning_rate = 3e-3;
    config.weight_decay = 0;
    struct weir_policy *policy = open_policy(&config);
    struct fixture_batch batch;
    fixture_batch_open(&batch, &config, SAMPLES, 5);
    batch.inputs.is_pad = NULL;
    for (int i = 0; i < SAMPLES; i++)
        for (int j = 0; j < config.chunk * config.action_dim; j++) {
            uint64_t state = (uint64_t)j;
            float *action = &batch.actions[i * config.chunk * config.action_dim + j];
            *action = 0;
            for (int k = 0; k < config.state_dim; k++)
                *action += (float)fixture_uniform(&state) * batch.state[i * config.state_dim + k];
        }
    double first = 0;
    for (int step = 0; step < 600; step++) {
        weir_policy_forward(policy, &batch.inputs);
        first = step == 0 ? weir_policy_loss(policy) : first;
        weir_policy_backward(policy);
        weir_policy_step(policy);
    }
    weir_policy_forward(policy, &batch.inputs);
    cr_assert_lt(weir_policy_loss(policy), first / 10, "from %g to %g", first, weir_policy_loss(policy));
    fixture_batch_close(&batch);
    weir_policy_close(&policy);
}
