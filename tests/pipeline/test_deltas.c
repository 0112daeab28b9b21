/* Samples with any steps of their episode (config.delta_indices), compared with the frames and rows that samples have
 * alone. */
#include "tests/fixtures/loader_fixture.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { EPISODES = 3, STEPS = 9, CAMERAS = 3, DIM_MAX = 32 };
static const char *const cameras[CAMERAS] = {"a", "b", "c"};

TestSuite(window, .init = fixture_open, .fini = fixture_close);

/* The image of each camera, the state and the action of every step. */
struct alone {
    size_t image_bytes;
    int qpos_dim, action_dim;
    uint8_t *images[EPISODES][STEPS];
    float qpos[EPISODES][STEPS][DIM_MAX], actions[EPISODES][STEPS][DIM_MAX];
};

static const struct weir_tensor *tensor_named(const struct weir_batch *batch, const char *name)
{
    for (int i = 0; i < batch->n_tensors; i++)
        if (strcmp(batch->tensors[i].name, name) == 0)
            return &batch->tensors[i];
    cr_assert_fail("no tensor %s", name);
    return NULL;
}

static const void *row_of(const struct weir_batch *batch, const char *name, int i)
{
    const struct weir_tensor *tensor = tensor_named(batch, name);
    return (const uint8_t *)tensor->data + (size_t)i * tensor->sample_bytes;
}

static struct weir_loader_config config_for(const char *data, const char *image_keys)
{
    struct weir_loader_config config;
    weir_loader_config_default(&config);
    config.data = data;
    config.image_keys = image_keys;
    config.train_split = 1;
    config.raw_state = true;
    config.chunk_size = 1;
    return config;
}

static void keep_sample(struct alone *alone, const struct weir_batch *batch, int i)
{
    int e = batch->samples[i].episode, t = batch->samples[i].t;
    alone->image_bytes = tensor_named(batch, "images")->sample_bytes / CAMERAS;
    alone->images[e][t] = malloc(alone->image_bytes * CAMERAS);
    memcpy(alone->images[e][t], row_of(batch, "images", i), alone->image_bytes * CAMERAS);
    memcpy(alone->qpos[e][t], row_of(batch, "qpos", i), tensor_named(batch, "qpos")->sample_bytes);
    memcpy(alone->actions[e][t], row_of(batch, "actions", i), tensor_named(batch, "actions")->sample_bytes);
    alone->qpos_dim = (int)(tensor_named(batch, "qpos")->sample_bytes / sizeof(float));
    alone->action_dim = (int)(tensor_named(batch, "actions")->sample_bytes / sizeof(float));
}

static struct alone *read_alone(const char *data, const char *image_keys)
{
    struct weir_loader_config config = config_for(data, image_keys);
    struct alone *alone = calloc(1, sizeof *alone);
    struct weir_loader *loader = fixture_loader(&config);
    struct weir_batch *batch;
    struct weir_err err = WEIR_ERR_NONE;
    while (weir_loader_next(loader, &batch, &err) > 0) {
        for (int i = 0; i < batch->n; i++)
            keep_sample(alone, batch, i);
        weir_loader_release(loader, batch);
    }
    weir_loader_close(&loader);
    return alone;
}

static void free_alone(struct alone *alone)
{
    for (int e = 0; e < EPISODES; e++)
        for (int t = 0; t < STEPS; t++)
            free(alone->images[e][t]);
    free(alone);
}

/* ---- comparison ---- */

struct window {
    int n, offsets[8];
};

struct windows {
    const char *text;
    struct window cameras[CAMERAS], qpos, actions;
};

static int clamped(int t)
{
    return t < 0 ? 0 : t >= STEPS ? STEPS - 1 : t;
}

static void compare_pads(const struct weir_batch *batch, int i, const char *name, const struct window *window)
{
    const uint8_t *is_pad = row_of(batch, name, i);
    for (int k = 0; k < window->n; k++) {
        int t = batch->samples[i].t + window->offsets[k];
        cr_assert_eq(is_pad[k], t < 0 || t >= STEPS, "%s[%d]", name, k);
    }
}

static void compare_camera(const struct alone *alone, const struct weir_batch *batch, int i, int c,
                           const struct window *window)
{
    char images[32], is_pad[32];
    snprintf(images, sizeof images, "images/%s", cameras[c]);
    snprintf(is_pad, sizeof is_pad, "is_pad/%s", cameras[c]);
    const uint8_t *row = row_of(batch, images, i);
    struct weir_sample of = batch->samples[i];
    cr_assert_eq(tensor_named(batch, images)->sample_bytes, (size_t)window->n * alone->image_bytes);
    for (int k = 0; k < window->n; k++) {
        int t = clamped(of.t + window->offsets[k]);
        const uint8_t *want = alone->images[of.episode][t] + (size_t)c * alone->image_bytes;
        cr_assert_eq(memcmp(row + (size_t)k * alone->image_bytes, want, alone->image_bytes), 0,
                     "episode %d, t %d, camera %d, position %d", of.episode, of.t, c, k);
    }
    compare_pads(batch, i, is_pad, window);
}

static void compare_rows(const struct weir_batch *batch, int i, const char *name, const struct window *window,
                         const float (*rows)[DIM_MAX], int dim)
{
    const float *got = row_of(batch, name, i);
    for (int k = 0; k < window->n; k++)
        cr_assert_eq(
            memcmp(got + k * dim, rows[clamped(batch->samples[i].t + window->offsets[k])], (size_t)dim * sizeof *got),
            0, "%s[%d]", name, k);
}

static void compare(const struct alone *alone, const struct weir_batch *batch, const struct windows *windows)
{
    for (int i = 0; i < batch->n; i++) {
        int e = batch->samples[i].episode;
        for (int c = 0; c < CAMERAS; c++)
            compare_camera(alone, batch, i, c, &windows->cameras[c]);
        compare_rows(batch, i, "qpos", &windows->qpos, alone->qpos[e], alone->qpos_dim);
        compare_rows(batch, i, "actions", &windows->actions, alone->actions[e], alone->action_dim);
        compare_pads(batch, i, "is_pad/qpos", &windows->qpos);
        compare_pads(batch, i, "is_pad", &windows->actions);
    }
}

static void run(const struct weir_loader_config *config, const struct alone *alone, const struct windows *windows)
{
    struct weir_loader *loader = fixture_loader(config);
    struct weir_batch *batch;
    struct weir_err err = WEIR_ERR_NONE;
    int rc, samples = 0;
    while ((rc = weir_loader_next(loader, &batch, &err)) > 0) {
        compare(alone, batch, windows);
        samples += batch->n;
        weir_loader_release(loader, batch);
    }
    cr_assert_eq(rc, 0, "%s", err.text);
    cr_assert_eq(samples, EPISODES * STEPS * config->num_epochs);
    weir_loader_close(&loader);
}

static const struct windows forms[] = {
    {"a=-3,0,2;b=0:4;c=1;qpos=-1,0;actions=-1:3",
     {{3, {-3, 0, 2}}, {4, {0, 1, 2, 3}}, {1, {1}}},
     {2, {-1, 0}},
     {4, {-1, 0, 1, 2}}},
    {"actions=5,-5,5;qpos=0;c=0,0,0;b=-100,100;a=7,-7", /* not sorted, repeated, outside */
     {{2, {7, -7}}, {2, {-100, 100}}, {3, {0, 0, 0}}},
     {1, {0}},
     {3, {5, -5, 5}}},
    {"a=3:6;b=-6,-4;c=2;observation.state=4;action=2", /* no step of its own */
     {{3, {3, 4, 5}}, {2, {-6, -4}}, {1, {2}}},
     {1, {4}},
     {1, {2}}},
};

Test(window, every_step_is_the_one_that_comes_alone)
{
    static const struct {
        const char *name, *image_keys;
    } formats[] = {{"act", NULL},
                   {"act-jpeg", NULL},
                   {"robomimic-gzip", "a=obs/a_image,b=obs/b_image,c=obs/c_image"}}; /* chunks of five frames */
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
        const char *data = fixture_synth(formats[f].name, formats[f].name, EPISODES, STEPS, 32, 24, "a,b,c");
        struct alone *alone = read_alone(data, formats[f].image_keys);
        for (size_t i = 0; i < 2 * sizeof forms / sizeof *forms; i++) {
            struct weir_loader_config config = config_for(data, formats[f].image_keys);
            config.delta_indices = forms[i / 2].text;
            config.batch_size = i % 2 ? 7 : 1;
            config.num_workers = (int)i % 3;
            config.num_epochs = 2;
            config.prefetch = 1 + 4 * (int)(i % 2);
            config.decode_cache_bytes = i % 2 ? 20000 : 0; /* room for some frames */
            run(&config, alone, &forms[i / 2]);
        }
        free_alone(alone);
    }
}

/* Keys that are not named keep obs_history and chunk_size, and have no mask but that of the actions. */
Test(window, other_keys_stay_as_they_were)
{
    struct weir_loader_config config = config_for(fixture_synth("d", "act", EPISODES, STEPS, 32, 24, "a,b,c"), NULL);
    config.delta_indices = "b=-1,0";
    config.obs_history = 3;
    config.chunk_size = 4;
    struct weir_loader *loader = fixture_loader(&config);
    struct weir_batch *batch;
    struct weir_err err = WEIR_ERR_NONE;
    static const struct {
        const char *name;
        int window;
    } want[] = {{"images/a", 3}, {"images/b", 2}, {"images/c", 3}, {"qpos", 3},
                {"actions", 4},  {"is_pad", 4},   {"is_pad/b", 2}};
    cr_assert_gt(weir_loader_next(loader, &batch, &err), 0, "%s", err.text);
    cr_assert_eq(batch->n_tensors, 7);
    for (int i = 0; i < batch->n_tensors; i++) {
        cr_assert_str_eq(batch->tensors[i].name, want[i].name);
        cr_assert_eq(batch->tensors[i].shape[1], want[i].window, "%s", want[i].name);
    }
    weir_loader_release(loader, batch);
    weir_loader_close(&loader);
}

Test(window, bad_lists_are_refused)
{
    static const char *const bad[] = {"a",     "a=",       "a=x",  "a=1,",          "a=1,,2",  "a=1 2", "d=1",
                                      "a=5:5", "a=0:5000", "a=0:", "a=1000001",     "a=1;a=2", "=1",    "a= 1",
                                      "a=1.5", "a=0:2:4",  "a=:3", "a=99999999999", "a=1;;b=2"};
    struct weir_loader_config config = config_for(fixture_synth("d", "act", 1, 2, 32, 24, "a,b,c"), NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct weir_loader *loader;
        struct weir_err err = WEIR_ERR_NONE;
        config.delta_indices = bad[i];
        cr_expect_eq(weir_loader_open(&loader, &config, &err), -EINVAL, "%s", bad[i]);
        cr_expect(strstr(err.text, "delta indices") != NULL, "%s: %s", bad[i], err.text);
    }
}
