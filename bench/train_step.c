/* train_step: what the parts of one training step of the policy take on the CPU, with made-up batches. It prints the
 * engine, and then, for each line on its standard input, does one step and prints forward, backward and optimiser in
 * ms: so another program (train_torch.py) can take turns with it. */
#include "base/clock.h"
#include "bench/series.h"
#include "cli/options.h"
#include "workloads/policy.h"

#include <stdio.h>
#include <stdlib.h>

enum { STATE = 14, ACTION = 14, CHUNK = 20, HIDDEN = 512, FEEDFORWARD = 3200 };

struct step_options {
    int batch_size, cameras, height, width, threads;
};

static const struct weir_opt step_opts[] = {
    {"batch-size", WEIR_OPT_INT, .offset = offsetof(struct step_options, batch_size), "N", "4", "samples of a batch", 1,
     4096},
    {"cameras", WEIR_OPT_INT, .offset = offsetof(struct step_options, cameras), "N", "2", "cameras of a sample", 1,
     WEIR_POLICY_CAMERAS_MAX},
    {"height", WEIR_OPT_INT, .offset = offsetof(struct step_options, height), "N", "480", "rows of an image", 1, 4096},
    {"width", WEIR_OPT_INT, .offset = offsetof(struct step_options, width), "N", "640", "columns of an image", 1, 4096},
    {"threads", WEIR_OPT_INT, .offset = offsetof(struct step_options, threads), "N", "2", "threads that compute", 1,
     1024},
};

static const char *const names[WEIR_POLICY_CAMERAS_MAX] = {"c0", "c1", "c2",  "c3",  "c4",  "c5",  "c6",  "c7",
                                                           "c8", "c9", "c10", "c11", "c12", "c13", "c14", "c15"};

/* Numbers from 0 to 1 that repeat after a while; NULL without memory. */
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

static void steps(struct weir_policy *policy, const struct weir_policy_inputs *inputs)
{
    printf("%s\n", weir_policy_engine(policy));
    fflush(stdout);
    for (int c; (c = getchar()) != EOF;) {
        if (c != '\n')
            continue;
        uint64_t at = weir_clock_monotonic_ns();
        weir_policy_forward(policy, inputs);
        double forward = ms_since(&at);
        weir_policy_backward(policy);
        double backward = ms_since(&at);
        weir_policy_step(policy);
        printf("%.3f %.3f %.3f\n", forward, backward, ms_since(&at));
        fflush(stdout);
    }
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
                                        .threads = o.threads};
    size_t image = 3 * (size_t)o.height * (size_t)o.width, batch = (size_t)o.batch_size;
    float *pixels = numbers(image * batch), *values = numbers(batch * CHUNK * ACTION);
    struct weir_policy_inputs inputs = {.n = o.batch_size, .state = values, .actions = values};
    for (int i = 0; i < o.cameras; i++) {
        config.cameras[i] = (struct weir_policy_camera){names[i], o.height, o.width};
        inputs.images[i] = (struct weir_policy_images){pixels, image};
    }
    struct weir_policy *policy = NULL;
    struct weir_err err = WEIR_ERR_NONE;
    if (!pixels || !values)
        weir_err_set(&err, -1, "out of memory");
    else if (weir_policy_open(&policy, &config, &err) == 0)
        steps(policy, &inputs);
    if (err.code)
        fprintf(stderr, "train_step: %s\n", err.text);
    weir_policy_close(&policy);
    free(pixels);
    free(values);
    return err.code ? 1 : 0;
}

static const struct weir_command command = {
    .name = "train_step",
    .summary = "times a training step of the policy, one for each line on standard input",
    .opts = step_opts,
    .n_opts = sizeof step_opts / sizeof step_opts[0],
    .run = run,
};

int main(int argc, char **argv)
{
    return command.run(&command, argc, argv);
}
