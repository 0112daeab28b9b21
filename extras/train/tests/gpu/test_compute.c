/* Compares the policy on a GPU with the policy on the CPU: losses, gradients, and parameters after training; with and
 * without cuDNN, and with mixed precision. Also checks that the same training gives the same bits, and the loss scale.
 * The CPU side requires a BLAS library; without one the exit status is 77. */
#include "extras/common/compute_ops.h"
#include "extras/train/policy.h"
#include "prof/gpu/cuda_module.h"
#include "tests/gpu/gpu_fixture.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct gpufx fx;

enum { STEPS = 6 };

static struct weir_policy_config small_config(void)
{
    return (struct weir_policy_config){.n_cameras = 2,
                                       .cameras = {{"top", 61, 80}, {"wrist", 24, 33}},
                                       .state_dim = 5,
                                       .action_dim = 3,
                                       .chunk = 4,
                                       .hidden_dim = 48,
                                       .feedforward_dim = 96,
                                       .learning_rate = 1e-3,
                                       .weight_decay = 0.1,
                                       .seed = 7,
                                       .batch_max = 5,
                                       .accumulation = 1,
                                       .threads = 1};
}

/* The same batch in host memory and in GPU memory. */
struct batches {
    struct weir_policy_inputs host, gpu;
    void *memory[WEIR_POLICY_CAMERAS_MAX + 3], *copies[WEIR_POLICY_CAMERAS_MAX + 3];
    int n;
};

static void *both(struct batches *b, size_t bytes, void **copy)
{
    uint8_t *memory = malloc(bytes);
    gpufx_check(memory != NULL, "out of memory");
    b->memory[b->n] = memory;
    b->copies[b->n++] = *copy = gpufx_alloc(&fx, bytes);
    return memory;
}

static float *numbers(struct batches *b, size_t n, double least, void **copy)
{
    float *memory = both(b, n * sizeof *memory, copy);
    for (size_t i = 0; i < n; i++)
        memory[i] = (float)(least + (1 - least) * rand() / RAND_MAX);
    gpufx_copy_in(&fx, *copy, memory, n * sizeof *memory);
    return memory;
}

/* The images of consecutive samples are not contiguous, as when cameras with the same image size share a tensor. */
static void batches_open(struct batches *b, const struct weir_policy_config *config, int n)
{
    *b = (struct batches){.host.n = n, .gpu.n = n};
    size_t samples = (size_t)n, rows = samples * (size_t)config->chunk;
    void *copy;
    for (int i = 0; i < config->n_cameras; i++) {
        size_t stride = 3 * (size_t)config->cameras[i].height * (size_t)config->cameras[i].width + 7;
        b->host.images[i] = (struct weir_policy_images){numbers(b, samples * stride, 0, &copy), stride};
        b->gpu.images[i] = (struct weir_policy_images){copy, stride};
    }
    b->host.state = numbers(b, samples * (size_t)config->state_dim, -1, &copy);
    b->gpu.state = copy;
    float *actions = numbers(b, rows * (size_t)config->action_dim, -1, &copy);
    for (size_t i = 0; i < rows * (size_t)config->action_dim; i++)
        actions[i] +=
            actions[i] < 0 ? -9.0f : 9.0f; /* keeps actions away from predictions, so rounding cannot change a sign */
    gpufx_copy_in(&fx, copy, actions, rows * (size_t)config->action_dim * sizeof *actions);
    b->host.actions = actions;
    b->gpu.actions = copy;
    uint8_t *is_pad = both(b, rows, &copy);
    for (size_t i = 0; i < rows; i++)
        is_pad[i] = rand() % 4 == 0;
    gpufx_copy_in(&fx, copy, is_pad, rows);
    b->host.is_pad = is_pad;
    b->gpu.is_pad = copy;
}

static void batches_close(struct batches *b)
{
    for (int i = 0; i < b->n; i++) {
        free(b->memory[i]);
        gpufx_free(&fx, b->copies[i]);
    }
}

static struct weir_policy *open_policy(const struct weir_policy_config *config)
{
    struct weir_policy *policy;
    struct weir_err err = WEIR_ERR_NONE;
    int rc = weir_policy_open(&policy, config, &err);
    if (rc == -ENOENT) {
        printf("test_compute: %s\n", err.text);
        exit(77);
    }
    gpufx_fine(rc, &err);
    return policy;
}

static const struct weir_compute_ops *cuda_ops;

static struct weir_policy_config on_gpu(const struct weir_policy_config *config, bool amp)
{
    struct weir_policy_config gpu = *config;
    gpu.gpu_ops = cuda_ops;
    gpu.stream = fx.stream;
    gpu.amp = amp;
    return gpu;
}

static void fine(struct weir_policy *policy)
{
    struct weir_err err = WEIR_ERR_NONE;
    gpufx_fine(weir_policy_finish(policy, &err), &err);
}

static size_t count_of(const struct weir_policy_array *array)
{
    size_t count = 1;
    for (int i = 0; i < array->ndim; i++)
        count *= (size_t)array->shape[i];
    return count;
}

/* Returns the largest distance between arrays of two policies, relative to the array's norm. Only arrays whose names
 * start with "begin" count. */
static double distance_of(struct weir_policy *a, struct weir_policy *b, const char *begin, bool print, char worst[96])
{
    struct weir_policy_array *x, *y;
    int n;
    double most = 0;
    gpufx_check(weir_policy_arrays(a, true, &x, &n) == 0 && weir_policy_arrays(b, true, &y, &n) == 0, "out of memory");
    for (int i = 0; i < n; i++) {
        double norm = 0, off = 0;
        for (size_t j = 0; j < count_of(&x[i]); j++) {
            double difference = (double)x[i].data[j] - y[i].data[j];
            norm += (double)x[i].data[j] * x[i].data[j];
            off += difference * difference;
        }
        double part = norm > 0 ? sqrt(off / norm) : sqrt(off);
        if (strncmp(x[i].name, begin, strlen(begin)) != 0)
            continue;
        if (print)
            printf("    %-48s norm %-10.3g difference %.2g\n", x[i].name, sqrt(norm), part);
        if (!(part <= most)) {
            most = part;
            snprintf(worst, 96, "%s", x[i].name);
        }
    }
    free(x);
    free(y);
    return most;
}

static double distance(struct weir_policy *a, struct weir_policy *b, const char *begin, char worst[96])
{
    return distance_of(a, b, begin, false, worst);
}

static void one_step(struct weir_policy *policy, const struct weir_policy_inputs *inputs)
{
    weir_policy_forward(policy, inputs);
    weir_policy_backward(policy);
    weir_policy_step(policy);
}

/* Compares gradients through AdamW's first moment after one step, and the losses of a few steps. */
static void compare(const char *what, bool amp, double tolerance)
{
    struct weir_policy_config config = small_config(), gpu_config = on_gpu(&config, amp);
    struct weir_policy *cpu = open_policy(&config), *gpu = open_policy(&gpu_config);
    struct batches b[2];
    char worst[96] = "";
    batches_open(&b[0], &config, 5);
    batches_open(&b[1], &config, 3);
    printf("%s: %s\n", what, weir_policy_engine(gpu));
    gpufx_check(distance(cpu, gpu, "", worst) == 0, "%s: the initial parameters differ in %s", what, worst);
    for (int i = 0; i < STEPS; i++) {
        one_step(cpu, &b[i % 2].host);
        one_step(gpu, &b[i % 2].gpu);
        double want = weir_policy_loss(cpu), have = weir_policy_loss(gpu);
        fine(gpu);
        gpufx_check(fabs(want - have) <= tolerance * want, "%s: the loss of step %d is %.7f, but the CPU's is %.7f",
                    what, i + 1, have, want);
        if (i > 0)
            continue;
        double off = distance(cpu, gpu, "optimizer.exp_avg.", worst);
        if (!(off <= 3 * tolerance))
            distance_of(cpu, gpu, "optimizer.exp_avg.", true, worst);
        gpufx_check(off <= 3 * tolerance, "%s: the gradient of %s differs by %.2g", what, worst, off);
        printf("  largest relative difference of a gradient: %.2g (%s)\n", off, worst);
    }
    printf("  after %d steps: parameters differ by %.2g\n", STEPS, distance(cpu, gpu, "", worst));
    batches_close(&b[0]);
    batches_close(&b[1]);
    weir_policy_close(&cpu);
    weir_policy_close(&gpu);
}

/* Training gives the same bits when repeated, and when resumed in the middle from the contents of a checkpoint. */
static void repeat(bool amp)
{
    struct weir_policy_config config = small_config(), gpu_config = on_gpu(&config, amp);
    struct weir_policy *first = open_policy(&gpu_config), *second = open_policy(&gpu_config), *third;
    struct weir_policy_array *from, *to;
    struct weir_policy_progress done;
    struct batches b;
    char worst[96] = "";
    int n;
    batches_open(&b, &config, 5);
    gpu_config.seed = 8;
    third = open_policy(&gpu_config);
    for (int i = 0; i < STEPS; i++) {
        one_step(first, &b.gpu);
        one_step(second, &b.gpu);
        if (i == STEPS / 2) {
            gpufx_check(weir_policy_arrays(first, true, &from, &n) == 0 &&
                            weir_policy_arrays(third, true, &to, &n) == 0,
                        "out of memory");
            for (int j = 0; j < n; j++)
                memcpy(to[j].data, from[j].data, count_of(&to[j]) * sizeof *to[j].data);
            weir_policy_set_arrays(third);
            weir_policy_progress(first, &done);
            weir_policy_set_progress(third, &done);
            free(from);
            free(to);
        } else if (i > STEPS / 2)
            one_step(third, &b.gpu);
    }
    fine(first);
    gpufx_check(distance(first, second, "", worst) == 0, "repeating the training changed %s", worst);
    gpufx_check(distance(first, third, "", worst) == 0, "resuming the training changed %s", worst);
    printf("training repeats bit for bit%s\n", amp ? ", with mixed precision" : "");
    batches_close(&b);
    weir_policy_close(&first);
    weir_policy_close(&second);
    weir_policy_close(&third);
}

/* A non-finite gradient skips the step and halves the scale. */
static void scale_is_halved(void)
{
    struct weir_policy_config config = small_config(), gpu_config = on_gpu(&config, true);
    struct weir_policy *policy = open_policy(&gpu_config), *untouched = open_policy(&gpu_config);
    struct weir_policy_progress before, after;
    struct batches b;
    char worst[96] = "";
    batches_open(&b, &config, 5);
    weir_policy_progress(policy, &before);
    if (before.loss_scale == 1) { /* the fake GPU has no loss scale */
        batches_close(&b);
        weir_policy_close(&policy);
        weir_policy_close(&untouched);
        return;
    }
    const float infinite = INFINITY;
    gpufx_copy_in(&fx, (void *)b.gpu.actions, &infinite, sizeof infinite);
    b.host.is_pad = NULL;
    b.gpu.is_pad = NULL;
    float state = INFINITY;
    gpufx_copy_in(&fx, (void *)b.gpu.state, &state, sizeof state);
    one_step(policy, &b.gpu);
    weir_policy_progress(policy, &after);
    gpufx_check(after.loss_scale == before.loss_scale / 2 && after.skipped == 1 && after.steps == 1,
                "the scale is %g instead of half of %g, or %llu steps were skipped instead of 1", after.loss_scale,
                before.loss_scale, (unsigned long long)after.skipped);
    gpufx_check(distance(untouched, policy, "", worst) == 0, "a skipped step changed %s", worst);
    printf("non-finite gradient: scale %g before, %g after\n", before.loss_scale, after.loss_scale);
    batches_close(&b);
    weir_policy_close(&policy);
    weir_policy_close(&untouched);
}

/* Losses arrive in order, and receiving without wait returns immediately. */
static void losses_are_sent(void)
{
    struct weir_policy_config config = small_config(), gpu_config = on_gpu(&config, false);
    struct weir_policy *policy = open_policy(&gpu_config);
    struct batches b[2];
    double loss, wanted[2] = {0};
    batches_open(&b[0], &config, 5);
    batches_open(&b[1], &config, 2);
    for (int i = 0; i < 2 * WEIR_POLICY_LOSSES; i++) {
        weir_policy_forward(policy, &b[i % 2].gpu);
        weir_policy_send_loss(policy);
        if (i < 2)
            wanted[i] = weir_policy_loss(policy);
        if (i % 16 != 15)
            continue;
        for (int j = 0; j < 16; j++) {
            gpufx_check(weir_policy_receive_loss(policy, true, &loss, NULL) == 1, "loss %d did not arrive", i - 15 + j);
            gpufx_check(loss == wanted[j % 2], "loss %d is %g instead of %g", i - 15 + j, loss, wanted[j % 2]);
        }
        gpufx_check(weir_policy_receive_loss(policy, false, &loss, NULL) == 0, "received a loss that was not sent");
    }
    batches_close(&b[0]);
    batches_close(&b[1]);
    weir_policy_close(&policy);
    printf("losses arrive in order\n");
}

int main(void)
{
    gpufx_open(&fx);
    struct weir_err err = WEIR_ERR_NONE;
    cuda_ops = weir_cuda_module_extra("compute", &err);
    gpufx_check(cuda_ops != NULL, "%s", err.text);
    srand(3);
    setenv("WEIR_CUDNN", "0", 1);
    compare("matrix products", false, 1e-4);
    compare("matrix products, mixed precision", true, 2e-2);
    repeat(false);
    unsetenv("WEIR_CUDNN");
    compare("cuDNN", false, 3e-3); /* because TF32 has only 10 bits of mantissa */
    compare("cuDNN, mixed precision", true, 2e-2);
    repeat(false);
    repeat(true);
    scale_is_halved();
    losses_are_sent();
    gpufx_close(&fx);
    printf("fine\n");
    return 0;
}
