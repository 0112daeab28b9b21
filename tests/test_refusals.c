/* What is refused before anything is read, and what must not be: cameras nobody asked for, odd first episodes, numbers
 * that are none. */
#include "tests/bad_input.h"
#include "tests/loader_fixture.h"

#include "pipeline/loader.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

TestSuite(refusals, .init = fixture_open, .fini = fixture_close, .timeout = 300);

enum { STEPS = 6 };

static const struct h5fx_episode act = {.steps = STEPS, .cameras = {{.name = "top"}, {.name = "wrist"}}};
static const struct h5fx_episode actpp = {
    .steps = STEPS, .cameras = {{.name = "top", .content = H5FX_PADDED}, {.name = "wrist", .content = H5FX_PADDED}}};

Test(refusals, numbers_that_are_none)
{
    const double odd[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        double values[STEPS * 4] = {0};
        values[2 * 4 + 1] = odd[i];
        const char *path = bad_input_episodes(&act), *bad = bad_input_episode(1);
        h5fx_put(bad, "/observations/qpos", "f32", 2, (uint64_t[]){STEPS, 4}, values);
        bad_input_try("state", path, bad_leaves_out_one(-EBADMSG, bad, "/observations/qpos[2][1]: is ", "repair it"));
    }
    double values[STEPS * 3] = {[STEPS * 3 - 1] = NAN};
    const char *path = bad_input_episodes(&act), *bad = bad_input_episode(2);
    h5fx_put(bad, "/action", "f64", 2, (uint64_t[]){STEPS, 3}, values);
    bad_input_try("actions", path, bad_leaves_out_one(-EBADMSG, bad, "/action[5][2]: is ", NULL));
}

Test(refusals, an_odd_first_episode_does_not_win)
{
    struct h5fx_episode odd = act;
    odd.qpos_dim = 5;
    const char *path = bad_input_episodes(&act);
    h5fx_write(bad_input_episode(0), &odd);
    bad_input_try("two of three differ from the first", path,
                  bad_stops(-EBADMSG, "state and actions have 4 and 3 dimensions", bad_input_episode(0)));
}

static int open_with(const char *path, const char *cameras, struct weir_err *err)
{
    struct weir_dataset *dataset;
    struct weir_dataset_config config = {.path = path, .cameras = cameras};
    int rc = weir_dataset_open(&dataset, &config, err);
    int n = rc == 0 ? weir_dataset_cameras(dataset) : 0;
    weir_dataset_close(&dataset);
    return rc < 0 ? rc : n;
}

Test(refusals, cameras_nobody_asked_for_are_not_looked_at)
{
    struct weir_err err = WEIR_ERR_NONE;
    const char *path = bad_input_episodes(&act);
    for (int i = 0; i < 3; i++)
        h5fx_put(bad_input_episode(i), "/observations/images/odd", "f32", 1, (uint64_t[]){3}, (double[]){1, 2, 3});
    cr_assert_eq(open_with(path, "top", &err), 1, "%s", err.text);
    cr_assert_eq(open_with(path, "wrist,top", &err), 2, "%s", err.text);
    cr_assert_eq(open_with(path, NULL, &err), -EBADMSG);
    cr_assert(strstr(err.text, "/observations/images/odd"), "%s", err.text);
    err = WEIR_ERR_NONE;
    cr_assert_eq(open_with(path, "none", &err), -EINVAL);
    cr_assert(strstr(err.text, "no camera \"none\"; it has odd, top, wrist"), "%s", err.text);
    err = WEIR_ERR_NONE;
    cr_assert_eq(open_with(path, "top,", &err), -EINVAL);
    cr_assert(strstr(err.text, "empty name"), "%s", err.text);
    path = bad_input_episodes(&actpp);
    double lengths[2 * STEPS] = {[0 ... STEPS - 1] = 100, [STEPS... 2 * STEPS - 1] = 1e9};
    h5fx_put(bad_input_episode(1), "/compress_len", "f32", 2, (uint64_t[]){2, STEPS}, lengths);
    err = WEIR_ERR_NONE;
    cr_assert_eq(open_with(path, "top", &err), 1, "%s", err.text);
    cr_assert_eq(open_with(path, "wrist", &err), -EBADMSG);
}

Test(refusals, depth_beside_raw_images_is_passed_over)
{
    struct weir_err err = WEIR_ERR_NONE;
    const char *path = bad_input_episodes(&act);
    double depth[STEPS * 2 * 2] = {0};
    for (int i = 0; i < 3; i++)
        h5fx_put(bad_input_episode(i), "/observations/images/top_depth", "i16", 3, (uint64_t[]){STEPS, 2, 2}, depth);
    cr_assert_eq(open_with(path, NULL, &err), 2, "%s", err.text);
}

Test(refusals, names_too_long_to_keep)
{
    struct weir_err err = WEIR_ERR_NONE;
    char key[128] = "/observations/images/";
    memset(key + strlen(key), 'x', 64);
    const char *path = bad_input_episodes(&act);
    h5fx_put(bad_input_episode(0), key, "u8", 1, (uint64_t[]){1}, (double[]){1});
    cr_assert_eq(open_with(path, NULL, &err), -ENAMETOOLONG);
    cr_assert(strstr(err.text, "/observations/images") && strstr(err.text, "63 bytes"), "%s", err.text);
}

Test(refusals, the_index_is_counted)
{
    struct weir_dataset *dataset;
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_dataset_config config = {.path = bad_input_episodes(&act)};
    cr_assert_eq(weir_dataset_open(&dataset, &config, &err), 0, "%s", err.text);
    size_t state = 3 * STEPS * (4 + 3) * sizeof(float), names = 3 * 2 * WEIR_NAME_MAX;
    cr_assert_gt(weir_dataset_index_bytes(dataset), state + names);
    weir_dataset_close(&dataset);
}
