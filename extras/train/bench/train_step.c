/* train_step: measures one training step of the policy with synthetic batches. First it prints the engine's name. Then,
 * for each line on stdin, it runs one step and prints the duration of forward, backward and optimiser in ms. On a GPU
 * it synchronises after each part, and also prints a fourth number: the time per step of several steps queued together.
 * Because it waits for a line, another program (train_torch.py) can interleave its own steps. */
#include "bench/bench_gpu.h"
#include "bench/series.h"
#include "cli/options.h"
#include "extras/train/policy.h"
#include "prof/gpu/cuda_module.h"
#include "weir/base.h"

#include <stdio.h>
#include <stdlib.h>

enum { STATE = 14, ACTION = 14, CHUNK = 20, HIDDEN = 512, FEEDFORWARD = 3200, IN_A_ROW = 20 };

struct step_options {
    int batch_size, cameras, height, width, threads;
    bool cuda, amp;
};

static const struct weir_opt step_opts[] = {
    {"batch-size", WEIR_OPT_INT, .offset = offsetof(struct step_options, batch_size), "N", "4", "samples per batch", 1,
     4096},
    {"cameras", WEIR_OPT_INT, .offset = offsetof(struct step_options, cameras), "N", "2", "cameras per sample", 1,
     WEIR_POLICY_CAMERAS_MAX},
    {"height", WEIR_OPT_INT, .offset = offsetof(struct step_options, height), "N", "480", "image height in pixels", 1,
     4096},
    {"width", WEIR_OPT_INT, .offset = offsetof(struct step_options, width), "N", "640", "image width in pixels", 1,
     4096},
    {"threads", WEIR_OPT_INT, .offset = offsetof(struct step_options, threads), "N", "2", "CPU threads of the policy",
     1, 1024},
    {"cuda", WEIR_OPT_FLAG, .offset = offsetof(struct step_options, cuda), NULL, NULL, "training on GPU 0"},
    {"amp", WEIR_OPT_FLAG, .offset = offsetof(struct step_options, amp), NULL, NULL, "mixed precision on a GPU"},
};

static const char *const names[WEIR_POLICY_CAMERAS_MAX] = {"c0", "c1", "c2",  "c3",  "c4",  "c5",  "c6",  "c7",
                                                           "c8", "c9", "c10", "c11", "c12", "c13", "c14", "c15"};

/* Returns n repeating numbers from 0 to 1; NULL if memory is exhausted. */
static float *numbers(size_t n)
{
    float *values = malloc(n * sizeof *values);
    for (size_t i = 0; values && i < n; i++)
        values[i] = (float)((uint32_t)(i * 2654435761u) >> 8) * 0x1p-24f;
    return values;
}

static double ms_since(uint64_t *last)
{
    uint64_t now = weir_clock_monotonic_ns(), before = *last;
    *last = now;
    return (double)(now - before) / 1e6;
}

static void step(struct weir_policy *policy, const struct weir_policy_inputs *inputs)
{
    weir_policy_forward(policy, inputs);
    weir_policy_backward(policy);
    weir_policy_step(policy);
}

static int steps(struct weir_policy *policy, const struct weir_policy_inputs *inputs, bool cuda, struct weir_err *err)
{
    printf("%s\n", weir_policy_engine(policy));
    fflush(stdout);
    for (int c; (c = getchar()) != EOF;) {
        if (c != '\n')
            continue;
        uint64_t at = weir_clock_monotonic_ns();
        weir_policy_forward(policy, inputs);
        weir_policy_finish(policy, err);
        double forward = ms_since(&at);
        weir_policy_backward(policy);
        weir_policy_finish(policy, err);
        double backward = ms_since(&at);
        weir_policy_step(policy);
        if (weir_policy_finish(policy, err) < 0)
            return err->code;
        printf("%.3f %.3f %.3f", forward, backward, ms_since(&at));
        for (int i = 0; i < IN_A_ROW && cuda; i++)
            step(policy, inputs);
        weir_policy_finish(policy, err);
        if (cuda)
            printf(" %.3f", ms_since(&at) / IN_A_ROW);
        putchar('\n');
        fflush(stdout);
    }
    return 0;
}

/* Copies n numbers to the GPU. Returns NULL after an error. */
static float *on_gpu(const struct weir_gpu_ops *ops, struct weir_gpu *gpu, const float *values, size_t n,
                     struct weir_err *err)
{
    void *memory = NULL, *stream = NULL, *event = NULL;
    int rc = ops->alloc(gpu, n * sizeof *values, &memory, err);
    if (rc == 0)
        rc = ops->stream_new(gpu, false, &stream, err);
    if (rc == 0)
        rc = ops->event_new(gpu, false, &event, err);
    if (rc == 0)
        rc = ops->copy_in(gpu, memory, values, n * sizeof *values, stream, err);
    if (rc == 0)
        rc = ops->record(gpu, event, stream, err);
    if (rc == 0)
        rc = ops->wait(gpu, event, err);
    ops->event_free(gpu, event);
    ops->stream_free(gpu, stream);
    return rc == 0 ? memory : NULL;
}

static int run(const struct weir_command *command, int argc, char **argv)
{
    struct step_options o;
    int n_args;
    enum weir_parse parsed = weir_options_parse(command, &o, sizeof o, argc, argv, NULL, &n_args);
    if (parsed != WEIR_PARSE_RUN)
        return parsed == WEIR_PARSE_HELP ? 0 : 2;
    struct weir_policy_config config = {.n_cameras = o.cameras,
                                        .state_dim = STATE,
                                        .action_dim = ACTION,
                                        .chunk = CHUNK,
                                        .hidden_dim = HIDDEN,
                                        .feedforward_dim = FEEDFORWARD,
                                        .learning_rate = 1e-5,
                                        .weight_decay = 1e-4,
                                        .batch_max = o.batch_size,
                                        .accumulation = 1,
                                        .threads = o.threads,
                                        .amp = o.amp};
    size_t image = 3 * (size_t)o.height * (size_t)o.width, batch = (size_t)o.batch_size;
    float *pixels = numbers(image * batch), *values = numbers(batch * CHUNK * ACTION);
    struct weir_err err = WEIR_ERR_NONE;
    const struct weir_gpu_ops *ops = NULL;
    struct weir_gpu *gpu = NULL;
    if (!pixels || !values)
        weir_err_set(&err, -1, "out of memory");
    else if (o.cuda && bench_gpu_open(&ops, &gpu, &err) == 0) {
        config.gpu_ops = weir_cuda_module_extra("compute", &err);
        float *made[2] = {pixels, values};
        pixels = on_gpu(ops, gpu, pixels, image * batch, &err);
        values = pixels ? on_gpu(ops, gpu, values, batch * CHUNK * ACTION, &err) : NULL;
        free(made[0]);
        free(made[1]);
    }
    struct weir_policy_inputs inputs = {.n = o.batch_size, .state = values, .actions = values};
    for (int i = 0; i < o.cameras; i++) {
        config.cameras[i] = (struct weir_policy_camera){names[i], o.height, o.width};
        inputs.images[i] = (struct weir_policy_images){pixels, image};
    }
    struct weir_policy *policy = NULL;
    if (!err.code && weir_policy_open(&policy, &config, &err) == 0)
        steps(policy, &inputs, o.cuda, &err);
    if (err.code)
        fprintf(stderr, "train_step: %s\n", err.text);
    weir_policy_close(&policy);
    if (gpu) {
        if (pixels)
            ops->free(gpu, pixels);
        if (values)
            ops->free(gpu, values);
        ops->close(&gpu);
    } else {
        free(pixels);
        free(values);
    }
    return err.code ? 1 : 0;
}

static const struct weir_command command = {
    .name = "train_step",
    .summary = "time one training step of the policy per line on standard input",
    .opts = step_opts,
    .n_opts = sizeof step_opts / sizeof step_opts[0],
    .run = run,
};

int main(int argc, char **argv)
{
    return command.run(&command, argc, argv);
}
