#include "extras/train/tests/policy_fixture.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The same as in make_policy_fixture.py. */
enum { SAMPLES = 8, STEPS = 3 };
static const uint64_t projection_seed = 1000;

double fixture_uniform(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1;
}

struct weir_policy_config fixture_config(void)
{
    return (struct weir_policy_config){.n_cameras = 2,
                                       .cameras = {{"top", 37, 50}, {"wrist", 24, 33}},
                                       .state_dim = 5,
                                       .action_dim = 3,
                                       .chunk = 4,
                                       .hidden_dim = 16,
                                       .feedforward_dim = 24,
                                       .learning_rate = 1e-3,
                                       .weight_decay = 0.1,
                                       .seed = 7,
                                       .batch_max = 3,
                                       .accumulation = 1,
                                       .threads = 2};
}

static float *uniforms(size_t n, uint64_t seed, double least)
{
    float *values = malloc(n * sizeof *values);
    cr_assert(values);
    for (size_t i = 0; i < n; i++) {
        double value = fixture_uniform(&seed);
        values[i] = (float)(least < 0 ? value : (value + 1) / 2);
    }
    return values;
}

void fixture_batch_open(struct fixture_batch *batch, const struct weir_policy_config *config, int n, uint64_t seed)
{
    *batch = (struct fixture_batch){.inputs.n = n};
    size_t samples = (size_t)n, chunk = (size_t)config->chunk;
    for (int i = 0; i < config->n_cameras; i++) {
        size_t image = 3 * (size_t)config->cameras[i].height * (size_t)config->cameras[i].width;
        batch->images[i] = uniforms(samples * image, seed + (uint64_t)i, 0);
        batch->inputs.images[i] = (struct weir_policy_images){batch->images[i], image};
    }
    batch->state = uniforms(samples * (size_t)config->state_dim, seed + 100, -1);
    batch->actions = uniforms(samples * chunk * (size_t)config->action_dim, seed + 101, -1);
    batch->is_pad = calloc(samples, chunk);
    cr_assert(batch->is_pad);
    for (size_t step = 0; step < chunk; step++) {
        if (n > 1)
            batch->is_pad[chunk + step] = step >= chunk / 2;
        if (n > 2)
            batch->is_pad[2 * chunk + step] = step >= 1;
    }
    batch->inputs.state = batch->state;
    batch->inputs.actions = batch->actions;
    batch->inputs.is_pad = batch->is_pad;
}

void fixture_batch_close(struct fixture_batch *batch)
{
    for (int i = 0; i < WEIR_POLICY_CAMERAS_MAX; i++)
        free(batch->images[i]);
    free(batch->state);
    free(batch->actions);
    free(batch->is_pad);
}

static size_t count_of(const struct weir_policy_array *array)
{
    size_t count = 1;
    for (int i = 0; i < array->ndim; i++)
        count *= (size_t)array->shape[i];
    return count;
}

/* After one step from zero moments, the first moment is the gradient times 1 - 0.9. */
struct weir_policy_array *fixture_gradients(struct weir_policy *policy, int *n)
{
    struct weir_policy_array *arrays;
    int all;
    weir_policy_step(policy);
    cr_assert_eq(weir_policy_arrays(policy, true, &arrays, &all), 0);
    *n = all / 3;
    for (int i = 0; i < all; i++) {
        size_t count = count_of(&arrays[i]);
        if (i >= *n && i < 2 * *n) {
            weir_real *gradient = malloc(count * sizeof *gradient);
            cr_assert(gradient);
            for (size_t j = 0; j < count; j++)
                gradient[j] = arrays[i].data[j] / (weir_real)(1 - 0.9);
            arrays[i - *n].data = gradient;
        }
        if (i >= *n)
            memset(arrays[i].data, 0, count * sizeof *arrays[i].data);
    }
    return arrays;
}

void fixture_gradients_free(struct weir_policy_array *gradients, int n)
{
    for (int i = 0; i < n; i++)
        free(gradients[i].data);
    free(gradients);
}

/* ---- against torch ---- */

static double next_number(FILE *file, const char *what)
{
    double value;
    cr_assert_eq(fscanf(file, "%lf", &value), 1, "the fixture file ends before %s", what);
    return value;
}

static void compare_loss(FILE *file, const struct weir_policy *policy, double tolerance)
{
    double wanted = next_number(file, "a loss"), loss = weir_policy_loss(policy);
    cr_assert(fabs(loss - wanted) <= tolerance * fabs(wanted), "the loss is %.9g, but torch's is %.9g", loss, wanted);
}

/* Each line of the fixture contains an array's norm, its sum with random weights, and some of its values. */
static void compare_array(FILE *file, const char *kind, const struct weir_policy_array *array, double tolerance)
{
    char word[32], name[96];
    cr_assert_eq(fscanf(file, "%31s %95s", word, name), 2);
    cr_assert_str_eq(word, kind);
    cr_assert_str_eq(name, array->name);
    double norm = next_number(file, name), wanted = next_number(file, name), squares = 0, projection = 0;
    size_t count = count_of(array);
    uint64_t state = projection_seed;
    for (size_t i = 0; i < count; i++) {
        squares += (double)array->data[i] * array->data[i];
        projection += (double)array->data[i] * fixture_uniform(&state);
    }
    double allowed = tolerance * norm;
    cr_assert(fabs(sqrt(squares) - norm) <= allowed, "%s %s: the norm is %.9g, but torch's is %.9g", kind, name,
              sqrt(squares), norm);
    cr_assert(fabs(projection - wanted) <= allowed, "%s %s: the projection is %.9g, but torch's is %.9g", kind, name,
              projection, wanted);
    for (size_t i = 0; i < SAMPLES; i++) {
        double value = next_number(file, name);
        size_t at = i * count / SAMPLES;
        cr_assert(fabs(array->data[at] - value) <= allowed, "%s %s[%zu] is %.9g, but torch's is %.9g", kind, name, at,
                  (double)array->data[at], value);
    }
}

static FILE *open_fixture(void)
{
    char path[1024];
    const char *source = getenv("WEIR_SOURCE");
    snprintf(path, sizeof path, "%s/extras/train/tests/policy_torch.txt", source ? source : ".");
    FILE *file = fopen(path, "r");
    cr_assert(file, "%s cannot be opened", path);
    cr_assert_eq(fscanf(file, "#%*[^\n]"), 0);
    return file;
}

static void compare_gradients(FILE *file, double tolerance)
{
    struct weir_policy_config config = fixture_config();
    struct fixture_batch batch;
    struct weir_policy *policy;
    config.learning_rate = 0;
    cr_assert_eq(weir_policy_open(&policy, &config, NULL), 0);
    fixture_batch_open(&batch, &config, config.batch_max, 1);
    weir_policy_forward(policy, &batch.inputs);
    weir_policy_backward(policy);
    int n;
    struct weir_policy_array *gradients = fixture_gradients(policy, &n);
    for (int i = 0; i < n; i++)
        compare_array(file, "gradient", &gradients[i], tolerance);
    fixture_gradients_free(gradients, n);
    fixture_batch_close(&batch);
    weir_policy_close(&policy);
}

void fixture_compare_with_torch(double tolerance)
{
    FILE *file = open_fixture();
    compare_gradients(file, tolerance);
    struct weir_policy_config config = fixture_config();
    struct fixture_batch batch;
    struct weir_policy *policy;
    cr_assert_eq(weir_policy_open(&policy, &config, NULL), 0);
    fixture_batch_open(&batch, &config, config.batch_max, 1);
    for (int i = 0; i < STEPS; i++) {
        weir_policy_forward(policy, &batch.inputs);
        compare_loss(file, policy, tolerance);
        weir_policy_backward(policy);
        weir_policy_step(policy);
    }
    struct weir_policy_array *arrays;
    int n;
    cr_assert_eq(weir_policy_arrays(policy, false, &arrays, &n), 0);
    for (int i = 0; i < n; i++)
        compare_array(file, "parameter", &arrays[i], tolerance);
    free(arrays);
    fixture_batch_close(&batch);
    weir_policy_close(&policy);
    fclose(file);
}
