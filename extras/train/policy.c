#include "extras/train/policy.h"
#include "extras/common/network.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Number of filters in each convolution of the encoder. */
static const int encoder_filters[] = {16, 32, 64, 64};
enum {
    ENCODER_LAYERS = sizeof encoder_filters / sizeof *encoder_filters,
    CAMERA_FEATURES = 64,
    STATE_FEATURES = 64,
    CAMERA_NAME_MAX = 48,
    SIDE_MAX = 1 << 14,
    DIMENSION_MAX = 1 << 16,
    OUTPUTS_MAX = 1 << 24, /* chunk * action_dim */
    BATCH_MAX = 1 << 14,
};

/* An array to allocate in device memory. */
struct array {
    weir_real **numbers;
    size_t count;
};

enum { FIXED_ARRAYS = 10, ARRAYS = FIXED_ARRAYS + WEIR_POLICY_CAMERAS_MAX };

struct weir_policy {
    struct weir_policy_config config; /* without the camera names */
    const struct weir_compute_ops *ops;
    void *self;
    struct weir_parameters parameters;
    struct weir_network encoders[WEIR_POLICY_CAMERAS_MAX], state, head;
    int features, outputs;       /* number of inputs and outputs of the head per sample */
    struct array arrays[ARRAYS]; /* the arrays below */
    weir_real *gradients[2];     /* shared by the networks */
    /* Arrays for batch_max samples. */
    weir_real *images[WEIR_POLICY_CAMERAS_MAX]; /* NULL if inputs are read in place */
    weir_real *states, *actions;                /* also NULL if inputs are read in place */
    weir_real *joined, *joined_gradients, *predicted, *predicted_gradients, *weights;
    weir_real *loss;
    weir_real *mirror; /* GPU only: host copies that weir_policy_arrays returns */
    /* The last forward pass: number of samples, inputs and targets. */
    int n;
    const weir_real *x[WEIR_POLICY_CAMERAS_MAX];
    size_t x_stride[WEIR_POLICY_CAMERAS_MAX];
    const weir_real *state_x, *wanted;
    int accumulated; /* weir_policy_step calls since the last update */
    uint64_t steps;
};

/* ---- open ---- */

static int check_range(const char *what, int64_t value, int64_t least, int64_t most, struct weir_err *err)
{
    if (value >= least && value <= most)
        return 0;
    return weir_err_set(err, -EINVAL, "the policy's %s is %lld; it must be from %lld to %lld", what, (long long)value,
                        (long long)least, (long long)most);
}

static int check_camera(const struct weir_policy_camera *camera, struct weir_err *err)
{
    if (!camera->name || !camera->name[0] || strlen(camera->name) > CAMERA_NAME_MAX)
        return weir_err_set(err, -EINVAL,
                            "camera \"%s\": the name must have 1 to %d bytes, because it is part of parameter names",
                            camera->name ? camera->name : "", CAMERA_NAME_MAX);
    int rc = check_range("image height", camera->height, 1, SIDE_MAX, err);
    rc = rc < 0 ? rc : check_range("image width", camera->width, 1, SIDE_MAX, err);
    if (rc < 0)
        weir_err_prefix(err, "camera %s", camera->name);
    return rc;
}

static int check_config(const struct weir_policy_config *config, struct weir_err *err)
{
    const struct {
        const char *what;
        int64_t value, least, most;
    } ranges[] = {
        {"number of cameras", config->n_cameras, 1, WEIR_POLICY_CAMERAS_MAX},
        {"state dimension", config->state_dim, 0, DIMENSION_MAX},
        {"action dimension", config->action_dim, 1, DIMENSION_MAX},
        {"chunk size", config->chunk, 1, DIMENSION_MAX},
        {"chunk size x action dimension", (int64_t)config->chunk * config->action_dim, 1, OUTPUTS_MAX},
        {"hidden dimension", config->hidden_dim, 1, DIMENSION_MAX},
        {"feed-forward dimension", config->feedforward_dim, 1, DIMENSION_MAX},
        {"batch size", config->batch_max, 1, BATCH_MAX},
        {"gradient accumulation", config->accumulation, 1, DIMENSION_MAX},
        {"number of threads", config->threads, 0, 1024},
    };
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof ranges / sizeof *ranges; i++)
        rc = check_range(ranges[i].what, ranges[i].value, ranges[i].least, ranges[i].most, err);
    for (int i = 0; rc == 0 && i < config->n_cameras; i++)
        rc = check_camera(&config->cameras[i], err);
    return rc;
}

static void build_encoder(struct weir_network *network, const struct weir_policy_camera *camera)
{
    int channels = 3, height = camera->height, width = camera->width;
    for (int i = 0; i < ENCODER_LAYERS; i++) {
        char name[WEIR_PARAMETER_NAME];
        snprintf(name, sizeof name, "encoder.%.*s.conv%c", CAMERA_NAME_MAX, camera->name, '1' + i);
        weir_network_add_convolution(network, name, channels, height, width, encoder_filters[i]);
        channels = encoder_filters[i];
        height = (height + 1) / 2;
        width = (width + 1) / 2;
    }
    weir_network_add_average_pool(network);
}

static void build(struct weir_policy *policy, const struct weir_policy_config *config)
{
    policy->parameters.ops = policy->ops;
    policy->parameters.self = policy->self;
    for (int i = 0; i < config->n_cameras; i++) {
        policy->encoders[i].parameters = &policy->parameters;
        build_encoder(&policy->encoders[i], &config->cameras[i]);
        policy->config.cameras[i].name = NULL;
    }
    policy->state.parameters = policy->head.parameters = &policy->parameters;
    if (config->state_dim > 0)
        weir_network_add_linear(&policy->state, "state", config->state_dim, STATE_FEATURES, false);
    policy->features = config->n_cameras * CAMERA_FEATURES + (config->state_dim > 0 ? STATE_FEATURES : 0);
    policy->outputs = config->chunk * config->action_dim;
    weir_network_add_linear(&policy->head, "head.0", policy->features, config->hidden_dim, true);
    weir_network_add_linear(&policy->head, "head.2", config->hidden_dim, config->feedforward_dim, true);
    weir_network_add_linear(&policy->head, "head.4", config->feedforward_dim, policy->outputs, false);
}

/* Returns whether the backend can read inputs in place, without converting them to weir_real. */
static bool in_place(void)
{
    return sizeof(weir_real) == sizeof(float);
}

static size_t image_numbers(const struct weir_policy *policy, int camera)
{
    const struct weir_policy_camera *of = &policy->config.cameras[camera];
    return 3 * (size_t)of->height * (size_t)of->width;
}

/* Chooses the group sizes of the networks. Returns the required length of each gradient buffer. */
static size_t plan_networks(struct weir_policy *policy)
{
    int batch = policy->config.batch_max;
    size_t most = weir_network_plan(&policy->head, batch);
    for (int i = 0; i < policy->config.n_cameras; i++) {
        size_t numbers = weir_network_plan(&policy->encoders[i], batch);
        most = numbers > most ? numbers : most;
    }
    policy->state.group = batch;
    return most;
}

static void list_arrays(struct weir_policy *policy)
{
    const struct weir_policy_config *config = &policy->config;
    size_t batch = (size_t)config->batch_max, gradients = plan_networks(policy);
    const struct array fixed[FIXED_ARRAYS] = {
        {&policy->gradients[0], gradients},
        {&policy->gradients[1], gradients},
        {&policy->states, in_place() ? 0 : batch * (size_t)config->state_dim},
        {&policy->joined, batch * (size_t)policy->features},
        {&policy->joined_gradients, batch * (size_t)policy->features},
        {&policy->predicted, batch * (size_t)policy->outputs},
        {&policy->predicted_gradients, batch * (size_t)policy->outputs},
        {&policy->actions, in_place() ? 0 : batch * (size_t)policy->outputs},
        {&policy->weights, batch * (size_t)config->chunk},
        {&policy->loss, 2},
    };
    memcpy(policy->arrays, fixed, sizeof fixed);
    for (int i = 0; i < config->n_cameras; i++)
        policy->arrays[FIXED_ARRAYS + i] =
            (struct array){&policy->images[i], in_place() ? 0 : batch * image_numbers(policy, i)};
}

struct size_text {
    char text[16]; /* such as "563 MiB" */
};

static struct size_text size_text(double bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
    struct size_text size;
    int unit = 0;
    for (; bytes >= 1023.5 && unit < 5; unit++)
        bytes /= 1024;
    snprintf(size.text, sizeof size.text, "%.*g %s", bytes < 999.5 ? 3 : 4, bytes, units[unit]);
    return size;
}

/* Refuses a policy that needs more than the available memory. No product overflows, because check_config has limited
 * all sizes. */
static int check_memory(const struct weir_policy *policy, struct weir_err *err)
{
    size_t batch = (size_t)policy->config.batch_max;
    uint64_t numbers = 4 * policy->parameters.numbers + batch * weir_network_numbers(&policy->head);
    for (int i = 0; i < ARRAYS; i++)
        numbers += policy->arrays[i].count;
    for (int i = 0; i < policy->config.n_cameras; i++)
        numbers += batch * weir_network_numbers(&policy->encoders[i]);
    uint64_t bytes = numbers * sizeof(weir_real), available = policy->ops->available_bytes(policy->self);
    if (available == 0 || bytes <= available)
        return 0;
    return weir_err_set(
        err, -ENOMEM,
        "the policy needs %s%s for a batch size of %d (%d cameras, %zu parameters), but only %s is free; "
        "use a smaller batch size or smaller images",
        size_text((double)bytes).text, policy->ops->host_memory ? "" : " of GPU memory", policy->config.batch_max,
        policy->config.n_cameras, policy->parameters.numbers, size_text((double)available).text);
}

static int allocate(struct weir_policy *policy, struct weir_err *err)
{
    const struct weir_policy_config *config = &policy->config;
    list_arrays(policy);
    int rc = check_memory(policy, err);
    if (rc < 0)
        return rc;
    for (int i = 0; rc == 0 && i < ARRAYS; i++) {
        const struct array *array = &policy->arrays[i];
        if (array->count > 0 && !(*array->numbers = policy->ops->allocate(policy->self, array->count)))
            rc = -ENOMEM;
    }
    rc = rc == 0 ? weir_parameters_allocate(&policy->parameters) : rc;
    for (int i = 0; rc == 0 && i < config->n_cameras; i++) {
        memcpy(policy->encoders[i].gradients, policy->gradients, sizeof policy->gradients);
        rc = weir_network_allocate(&policy->encoders[i], config->batch_max);
    }
    memcpy(policy->head.gradients, policy->gradients, sizeof policy->gradients);
    rc = rc == 0 ? weir_network_allocate(&policy->head, config->batch_max) : rc;
    rc = rc == 0 ? weir_parameters_initialise(&policy->parameters, config->seed) : rc;
    return rc < 0 ? weir_err_set(err, rc, "out of memory for the policy; use a smaller batch size") : 0;
}

int weir_policy_open(struct weir_policy **out, const struct weir_policy_config *config, struct weir_err *err)
{
    *out = NULL;
    int rc = check_config(config, err);
    if (rc < 0)
        return rc;
    struct weir_policy *policy = calloc(1, sizeof *policy);
    if (!policy)
        return weir_err_set(err, -ENOMEM, "out of memory");
    policy->config = *config;
    const struct weir_compute_config compute = {
        .threads = config->threads > 0 ? config->threads : 1,
        .gpu = config->gpu,
        .stream = config->stream,
        .amp = config->amp,
        .memory_bytes = config->memory_bytes,
    };
    policy->ops = config->gpu_ops ? config->gpu_ops : &weir_compute_cpu;
    rc = policy->ops->open(&policy->self, &compute, err);
    if (rc < 0) {
        free(policy);
        return rc;
    }
    build(policy, config);
    rc = allocate(policy, err);
    if (rc < 0)
        weir_policy_close(&policy);
    *out = policy;
    return rc;
}

void weir_policy_close(struct weir_policy **out)
{
    struct weir_policy *policy = *out;
    if (!policy)
        return;
    for (int i = 0; i < ARRAYS; i++)
        if (policy->arrays[i].numbers)
            policy->ops->release(policy->self, *policy->arrays[i].numbers);
    for (int i = 0; i < policy->config.n_cameras; i++)
        weir_network_release(&policy->encoders[i]);
    weir_network_release(&policy->head);
    weir_parameters_release(&policy->parameters);
    policy->ops->close(policy->self);
    free(policy->mirror);
    free(policy);
    *out = NULL;
}

/* ---- training ---- */

static const weir_real *as_real(const float *data)
{
    return (const weir_real *)(const void *)data;
}

/* Selects a camera's images as input, after converting them to weir_real if necessary. */
static void take_images(struct weir_policy *policy, const struct weir_policy_images *images, int camera)
{
    size_t numbers = image_numbers(policy, camera);
    if (in_place()) {
        policy->x[camera] = as_real(images->data);
        policy->x_stride[camera] = images->sample_floats;
        return;
    }
    for (int i = 0; i < policy->n; i++)
        policy->ops->copy_in(policy->self, policy->images[camera] + (size_t)i * numbers,
                             images->data + (size_t)i * images->sample_floats, numbers);
    policy->x[camera] = policy->images[camera];
    policy->x_stride[camera] = numbers;
}

/* Returns data as weir_real. If the numbers need conversion, they are converted into "copy". */
static const weir_real *take_numbers(struct weir_policy *policy, const float *data, size_t numbers, weir_real *copy)
{
    if (in_place())
        return as_real(data);
    policy->ops->copy_in(policy->self, copy, data, numbers);
    return copy;
}

static void take_targets(struct weir_policy *policy, const struct weir_policy_inputs *inputs)
{
    size_t rows = (size_t)policy->n * (size_t)policy->config.chunk;
    policy->wanted = take_numbers(policy, inputs->actions, rows * (size_t)policy->config.action_dim, policy->actions);
    if (inputs->is_pad)
        policy->ops->weigh(policy->self, rows, inputs->is_pad, policy->weights);
    else
        policy->ops->affine(policy->self, rows, 0, 1, 1, policy->weights);
}

void weir_policy_forward(struct weir_policy *policy, const struct weir_policy_inputs *inputs)
{
    const struct weir_policy_config *config = &policy->config;
    assert(inputs->n >= 1 && inputs->n <= config->batch_max);
    policy->n = inputs->n;
    size_t features = (size_t)policy->features, outputs = (size_t)policy->outputs;
    for (int i = 0; i < config->n_cameras; i++) {
        take_images(policy, &inputs->images[i], i);
        weir_network_forward(&policy->encoders[i], policy->n, policy->x[i], policy->x_stride[i],
                             policy->joined + i * CAMERA_FEATURES, features);
    }
    if (config->state_dim > 0) {
        size_t dim = (size_t)config->state_dim;
        policy->state_x = take_numbers(policy, inputs->state, (size_t)policy->n * dim, policy->states);
        weir_network_forward(&policy->state, policy->n, policy->state_x, dim,
                             policy->joined + config->n_cameras * CAMERA_FEATURES, features);
    }
    weir_network_forward(&policy->head, policy->n, policy->joined, features, policy->predicted, outputs);
    take_targets(policy, inputs);
    policy->ops->l1(policy->self, policy->n * config->chunk, config->action_dim, policy->predicted, policy->wanted,
                    policy->weights, policy->loss);
}

void weir_policy_backward(struct weir_policy *policy)
{
    const struct weir_policy_config *config = &policy->config;
    size_t features = (size_t)policy->features;
    policy->ops->l1_backward(policy->self, policy->n * config->chunk, config->action_dim, policy->predicted,
                             policy->wanted, policy->weights, policy->loss, 1.0 / config->accumulation,
                             policy->predicted_gradients);
    weir_network_backward(&policy->head, policy->n, policy->joined, features, policy->predicted_gradients,
                          (size_t)policy->outputs, policy->joined_gradients);
    if (config->state_dim > 0)
        weir_network_backward(&policy->state, policy->n, policy->state_x, (size_t)config->state_dim,
                              policy->joined_gradients + config->n_cameras * CAMERA_FEATURES, features, NULL);
    for (int i = 0; i < config->n_cameras; i++)
        weir_network_backward(&policy->encoders[i], policy->n, policy->x[i], policy->x_stride[i],
                              policy->joined_gradients + i * CAMERA_FEATURES, features, NULL);
}

void weir_policy_step(struct weir_policy *policy)
{
    if (++policy->accumulated < policy->config.accumulation)
        return;
    policy->accumulated = 0;
    policy->steps++;
    const struct weir_adamw adamw = {.learning_rate = policy->config.learning_rate,
                                     .weight_decay = policy->config.weight_decay,
                                     .beta1 = 0.9,
                                     .beta2 = 0.999,
                                     .eps = 1e-8,
                                     .step = policy->steps};
    struct weir_parameters *parameters = &policy->parameters;
    policy->ops->adamw(policy->self, &adamw, parameters->numbers, parameters->values, parameters->gradients,
                       parameters->mean, parameters->variance);
}

/* ---- results and state ---- */

double weir_policy_loss(const struct weir_policy *policy)
{
    weir_real loss = 0;
    policy->ops->copy_out(policy->self, &loss, policy->loss, 1);
    return loss;
}

void weir_policy_send_loss(struct weir_policy *policy)
{
    policy->ops->send(policy->self, policy->loss);
}

int weir_policy_receive_loss(struct weir_policy *policy, bool wait, double *loss, struct weir_err *err)
{
    weir_real number = 0;
    int rc = policy->ops->receive(policy->self, wait, &number, err);
    *loss = number;
    return rc;
}

int weir_policy_finish(struct weir_policy *policy, struct weir_err *err)
{
    return policy->ops->finish(policy->self, err);
}

const weir_real *weir_policy_prediction(const struct weir_policy *policy)
{
    return policy->predicted;
}

uint64_t weir_policy_parameters(const struct weir_policy *policy)
{
    return weir_parameters_count(&policy->parameters);
}

const char *weir_policy_engine(const struct weir_policy *policy)
{
    return policy->ops->describe(policy->self);
}

/* Number of kinds: parameters, means and variances. */
enum { KINDS = 3 };

/* Stores a host pointer to each kind's numbers. On a GPU these are copies in the mirror. Returns false if memory is
 * exhausted. */
static bool host_numbers(struct weir_policy *policy, weir_real *numbers[KINDS])
{
    const struct weir_parameters *parameters = &policy->parameters;
    weir_real *const kinds[KINDS] = {parameters->values, parameters->mean, parameters->variance};
    if (!policy->ops->host_memory && !policy->mirror)
        policy->mirror = malloc(KINDS * parameters->numbers * sizeof *policy->mirror);
    for (int i = 0; i < KINDS; i++) {
        numbers[i] = policy->ops->host_memory ? kinds[i] : policy->mirror + (size_t)i * parameters->numbers;
        if (!policy->ops->host_memory && policy->mirror)
            policy->ops->copy_out(policy->self, numbers[i], kinds[i], parameters->numbers);
    }
    return policy->ops->host_memory || policy->mirror;
}

int weir_policy_arrays(struct weir_policy *policy, bool optimiser, struct weir_policy_array **arrays, int *n)
{
    static const char *const prefixes[KINDS] = {"", "optimizer.exp_avg.", "optimizer.exp_avg_sq."};
    const struct weir_parameters *parameters = &policy->parameters;
    weir_real *numbers[KINDS];
    *n = 0;
    *arrays = NULL;
    if (!host_numbers(policy, numbers))
        return -ENOMEM;
    int count = parameters->n * (optimiser ? KINDS : 1);
    *arrays = calloc((size_t)count, sizeof **arrays);
    if (!*arrays)
        return -ENOMEM;
    *n = count;
    for (int i = 0; i < count; i++) {
        const struct weir_parameter *parameter = &parameters->list[i % parameters->n];
        struct weir_policy_array *array = &(*arrays)[i];
        snprintf(array->name, sizeof array->name, "%s%s", prefixes[i / parameters->n], parameter->name);
        array->ndim = parameter->ndim;
        memcpy(array->shape, parameter->shape, sizeof array->shape);
        array->data = numbers[i / parameters->n] + parameter->at;
    }
    return 0;
}

void weir_policy_set_arrays(struct weir_policy *policy)
{
    const struct weir_parameters *parameters = &policy->parameters;
    weir_real *const kinds[KINDS] = {parameters->values, parameters->mean, parameters->variance};
    for (int i = 0; i < KINDS && policy->mirror; i++)
        policy->ops->copy_in(policy->self, kinds[i],
                             (const float *)(const void *)(policy->mirror + (size_t)i * parameters->numbers),
                             parameters->numbers);
}

void weir_policy_progress(struct weir_policy *policy, struct weir_policy_progress *progress)
{
    struct weir_loss_scale scale;
    policy->ops->loss_scale(policy->self, &scale);
    *progress = (struct weir_policy_progress){policy->steps, scale.scale, scale.growth, scale.skipped};
}

void weir_policy_set_progress(struct weir_policy *policy, const struct weir_policy_progress *progress)
{
    const struct weir_loss_scale scale = {progress->loss_scale, progress->growth, progress->skipped};
    policy->steps = progress->steps;
    policy->ops->set_loss_scale(policy->self, &scale);
}
