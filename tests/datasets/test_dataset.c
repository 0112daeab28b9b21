/* Datasets from the user's point of view: the episodes and cameras found and their order. On real data, every frame
 * must match the output of H5Dread and libjpeg-turbo. */
#include "pipeline/samples/fetch.h"
#include "pipeline/samples/probe.h"
#include "tests/fixtures/h5_fixture.h"
#include "tests/fixtures/loader_fixture.h"
#include "weir/dataset.h"
#include "weir/decoder.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

TestSuite(dataset, .init = fixture_open, .fini = fixture_close);

static struct weir_dataset *open_dataset(const char *path, const char *cameras, bool tolerant)
{
    struct weir_dataset *dataset;
    struct weir_dataset_config config = {.size = sizeof config, .path = path, .cameras = cameras, .tolerant = tolerant};
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_dataset_open(&dataset, &config, &err), 0, "%s", err.text);
    return dataset;
}

/* ---- real data ---- */

struct reading {
    struct weir_dataset *dataset;
    struct weir_file_set *files;
    struct weir_fetcher fetcher;
    struct weir_decoder *decoders[8];
    struct weir_camera_probe probes[WEIR_CAMERAS_MAX];
};

static struct weir_pixel_format format_of(int i)
{
    return (struct weir_pixel_format){.color = (enum weir_color)(i & 1),
                                      .dtype = (enum weir_dtype)(i >> 1 & 1),
                                      .layout = (enum weir_image_layout)(i >> 2 & 1)};
}

static void begin(struct reading *r, const char *path, const char *engine)
{
    struct weir_err err = WEIR_ERR_NONE;
    memset(r, 0, sizeof *r);
    r->dataset = open_dataset(path, NULL, false);
    cr_assert_eq(weir_fetch_files(r->dataset, &r->files), 0);
    cr_assert_eq(weir_fetcher_open(&r->fetcher, r->dataset, r->files, engine, &err), 0, "%s", err.text);
    cr_assert_eq(weir_probe_cameras(r->dataset, false, -1, r->probes, &err), 0, "%s", err.text);
    for (int f = 0; f < 8; f++) {
        struct weir_pixel_format format = format_of(f);
        cr_assert_eq(weir_decoder_open(&r->decoders[f], "turbo", &format, 4096, &err), 0, "%s", err.text);
    }
}

static void end(struct reading *r)
{
    for (int f = 0; f < 8; f++)
        weir_decoder_close(&r->decoders[f]);
    weir_fetcher_close(&r->fetcher);
    weir_file_set_close(&r->files);
    weir_dataset_close(&r->dataset);
}

/* Compares the used part of a padded row. The rest of the row must be zeros. */
static void compare_frame(struct reading *r, int episode, int camera, int t, const char *key, bool pixels,
                          const uint8_t *theirs, size_t want)
{
    const char *path = weir_dataset_episode_path(r->dataset, episode);
    const struct weir_camera_probe *probe = &r->probes[camera];
    size_t got;
    const uint8_t *bytes;
    int width = probe->width, height = probe->height;
    cr_assert_eq(weir_fetch_frame(&r->fetcher, episode, camera, t, NULL, 0, &bytes, &got), 0, "%s", r->fetcher.reason);
    cr_assert_leq(got, want);
    cr_assert_eq(memcmp(bytes, theirs, got), 0, "%s: %s[%d]", path, key, t);
    for (size_t i = got; i < want; i++)
        cr_assert_eq(theirs[i], 0, "%s: %s[%d]: cut too early", path, key, t);
    if (!pixels)
        return;
    uint8_t *decoded = probe->kind == WEIR_FRAME_RAW ? NULL : h5fx_pixels(theirs, want, false, &width, &height);
    const uint8_t *rgb = probe->kind == WEIR_FRAME_RAW ? theirs : decoded;
    cr_assert_not_null(rgb);
    cr_assert(width == probe->width && height == probe->height);
    void *image = malloc((size_t)width * (size_t)height * 3 * sizeof(float));
    /* Every fourth frame checks all formats. Other frames check one format each. */
    for (int f = t % 4 ? t % 8 : 0; f < (t % 4 ? t % 8 + 1 : 8); f++) {
        struct weir_frame frame = {probe->kind, bytes, got, width, height, NULL};
        cr_assert_eq(weir_decode(r->decoders[f], &frame, image), 0, "%s", weir_decoder_reason(r->decoders[f]));
        cr_assert(h5fx_pixels_agree(image, format_of(f), rgb, (size_t)width * (size_t)height), "%s: %s[%d], format %d",
                  path, key, t, f);
    }
    free(image);
    free(decoded);
}

static void compare_camera(struct reading *r, int episode, int camera, const char *key, bool pixels)
{
    enum { AT_ONCE = 32 };
    uint8_t *rows[AT_ONCE];
    size_t lengths[AT_ONCE];
    int steps = weir_dataset_steps(r->dataset, episode);
    for (int from = 0; from < steps; from += AT_ONCE) {
        int n = steps - from < AT_ONCE ? steps - from : AT_ONCE;
        h5fx_read_rows(weir_dataset_episode_path(r->dataset, episode), key, from, n, rows, lengths);
        for (int i = 0; i < n; i++) {
            compare_frame(r, episode, camera, from + i, key, pixels, rows[i], lengths[i]);
            free(rows[i]);
        }
    }
}

static void compare_state(const struct weir_dataset *dataset, int episode)
{
    for (int actions = 0; actions < 2; actions++) {
        int rows, columns;
        const char *key = actions ? weir_dataset_action_key(dataset, episode) : weir_dataset_qpos_key(dataset, episode);
        double *theirs = h5fx_read_doubles(weir_dataset_episode_path(dataset, episode), key, &rows, &columns);
        const float *ours = actions ? weir_dataset_actions(dataset, episode) : weir_dataset_qpos(dataset, episode);
        cr_assert_eq(rows, weir_dataset_steps(dataset, episode));
        cr_assert_eq(columns, actions ? weir_dataset_action_dim(dataset) : weir_dataset_qpos_dim(dataset));
        for (int i = 0; i < rows * columns; i++)
            cr_assert_eq(ours[i], (float)theirs[i], "%s, %d", key, i);
        free(theirs);
    }
}

static bool close_to(double a, double b)
{
    return fabs(a - b) <= 1e-9 * (1 + fabs(b));
}

/* The reference: sum, and sum of squared deviations from the mean, as long double over all listed episodes. */
static void compare_stats(const struct weir_dataset *dataset, const int *episodes, int n, bool actions)
{
    int dim = actions ? weir_dataset_action_dim(dataset) : weir_dataset_qpos_dim(dataset);
    double mean[64], std[64];
    cr_assert_leq(dim, 64);
    cr_assert_eq(weir_dataset_stats(dataset, episodes, n, actions, mean, std), 0);
    for (int d = 0; d < dim; d++) {
        long double sum = 0, squares = 0, count = 0;
        for (int pass = 0; pass < 2; pass++)
            for (int i = 0; i < n; i++) {
                const float *x =
                    actions ? weir_dataset_actions(dataset, episodes[i]) : weir_dataset_qpos(dataset, episodes[i]);
                for (int t = 0; t < weir_dataset_steps(dataset, episodes[i]); t++) {
                    long double value = x[t * dim + d];
                    if (pass == 0) {
                        sum += value;
                        count++;
                    } else {
                        squares += (value - sum / count) * (value - sum / count);
                    }
                }
            }
        cr_assert(close_to(mean[d], (double)(sum / count)), "mean of %d", d);
        cr_assert(close_to(std[d], count > 1 ? (double)sqrtl(squares / (count - 1)) : 0), "std of %d", d);
    }
}

static void key_of(const char *layout, const char *camera, char *key, size_t size)
{
    snprintf(key, size, strcmp(layout, "astrobench") == 0 ? "/observations/%s" : "/observations/images/%s", camera);
}

static void compare_all(const char *name, const char *layout, int episodes, int cameras, const char *engine)
{
    const char *path = fixture_real(name);
    if (!path)
        return;
    struct reading r;
    begin(&r, path, engine);
    cr_assert_eq(weir_dataset_episodes(r.dataset), episodes);
    cr_assert_eq(weir_dataset_cameras(r.dataset), cameras);
    int *all = malloc(sizeof *all * (size_t)episodes);
    for (int e = 0; e < episodes; e++) {
        all[e] = e;
        cr_assert_str_eq(weir_dataset_layout(r.dataset, e), layout);
        compare_state(r.dataset, e);
        for (int c = 0; c < cameras; c++) {
            char key[128];
            key_of(layout, weir_dataset_camera(r.dataset, c)->name, key, sizeof key);
            compare_camera(&r, e, c, key, strcmp(engine, "pread") == 0);
        }
    }
    cr_assert_eq(r.fetcher.fallbacks, 0, "some frames are not read by extent");
    for (int actions = 0; actions < 2; actions++) {
        compare_stats(r.dataset, all, episodes, actions);
        compare_stats(r.dataset, all + episodes / 2, 1, actions);
        compare_stats(r.dataset, all, (episodes + 1) / 2, actions);
    }
    free(all);
    end(&r);
}

static const char *const engines[] = {"pread", "null"};

Test(dataset, real_act)
{
    for (int e = 0; e < 2; e++)
        compare_all("act_raw", "act", 8, 3, engines[e]);
}

Test(dataset, real_actpp)
{
    for (int e = 0; e < 2; e++) {
        compare_all("actpp_jpeg", "act-plus-plus", 25, 3, engines[e]);
        compare_all("actpp_jpeg_512x384", "act-plus-plus", 1, 3, engines[e]);
    }
}

Test(dataset, real_astrobench)
{
    for (int e = 0; e < 2; e++) {
        compare_all("astrobench", "astrobench", 25, 3, engines[e]);
        compare_all("astrobench_512x384", "astrobench", 1, 3, engines[e]);
    }
}

/* ---- episode files ---- */

static void write_episode(const char *name, const struct h5fx_episode *episode)
{
    char path[1024];
    snprintf(path, sizeof path, "%s", fixture_path(name));
    for (char *at = strchr(path + 6, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        mkdir(path, 0777);
        *at = '/';
    }
    h5fx_write(path, episode);
}

Test(dataset, episodes_are_found_in_folders_and_sorted_by_number)
{
    static const char *const names[] = {"d/episode_10.hdf5", "d/episode_9.hdf5", "d/episode_100.h5",
                                        "d/episode_0.HDF5",  "d/a/b/x.h5",       "d/.hidden.hdf5"};
    static const char *const order[] = {"d/a/b/x.h5", "d/episode_0.HDF5", "d/episode_9.hdf5", "d/episode_10.hdf5",
                                        "d/episode_100.h5"};
    struct h5fx_episode episode = {.steps = 2, .cameras = {{.name = "top"}}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        write_episode(names[i], &episode);
    for (const char *const *other = (const char *const[]){"d/readme.txt", "d/x.hdf5.bak", "d/hdf5", NULL}; *other;
         other++)
        fclose(fopen(fixture_path(*other), "w"));
    mkdir(fixture_path("d/folder.hdf5"), 0777); /* folders are searched, even if named like a file */
    struct weir_dataset *dataset = open_dataset(fixture_path("d"), NULL, false);
    cr_assert_eq(weir_dataset_episodes(dataset), 5);
    for (int e = 0; e < 5; e++)
        cr_assert_str_eq(weir_dataset_episode_path(dataset, e), fixture_path(order[e]));
    weir_dataset_close(&dataset);
}

Test(dataset, one_file_is_a_dataset_whatever_its_name)
{
    struct h5fx_episode episode = {.steps = 3, .cameras = {{.name = "top"}}};
    write_episode("recording.bin", &episode);
    struct weir_dataset *dataset = open_dataset(fixture_path("recording.bin"), NULL, false);
    cr_assert_eq(weir_dataset_episodes(dataset), 1);
    cr_assert_eq(weir_dataset_steps(dataset, 0), 3);
    weir_dataset_close(&dataset);
    cr_assert_null(dataset);
}

Test(dataset, symbolic_links_are_followed_and_circles_are_not)
{
    struct h5fx_episode episode = {.steps = 2, .cameras = {{.name = "top"}}};
    write_episode("real/e.hdf5", &episode);
    write_episode("d/a.hdf5", &episode);
    cr_assert_eq(symlink("../real", fixture_path("d/linked")), 0);
    cr_assert_eq(symlink("../real/e.hdf5", fixture_path("d/b.hdf5")), 0);
    cr_assert_eq(symlink(".", fixture_path("d/self")), 0);
    cr_assert_eq(symlink("..", fixture_path("d/up")), 0);
    struct weir_dataset *dataset = open_dataset(fixture_path("d"), NULL, false);
    int n = weir_dataset_episodes(dataset);
    cr_assert(n >= 3 && n < 10, "%d", n);
    weir_dataset_close(&dataset);
}

/* ---- cameras ---- */

static void expect_cameras(const char *path, const char *wanted, int n, const char *const *names)
{
    struct weir_dataset *dataset = open_dataset(path, wanted, false);
    cr_assert_eq(weir_dataset_cameras(dataset), n);
    for (int c = 0; c < n; c++)
        cr_assert_str_eq(weir_dataset_camera(dataset, c)->name, names[c]);
    weir_dataset_close(&dataset);
}

Test(dataset, cameras_by_name_and_in_the_order_asked_for)
{
    struct h5fx_episode episode = {.steps = 2,
                                   .astrobench = true,
                                   .cameras = {{.name = "under", .content = H5FX_VLEN, .width = 40},
                                               {.name = "main", .content = H5FX_VLEN, .width = 32},
                                               {.name = "left", .content = H5FX_VLEN, .width = 24}}};
    write_episode("d/0.h5", &episode);
    /* Cameras created in a different order, and one additional camera. */
    struct h5fx_episode second = {.steps = 3,
                                  .astrobench = true,
                                  .cameras = {{.name = "aaa", .content = H5FX_VLEN, .width = 16},
                                              {.name = "left", .content = H5FX_VLEN, .width = 24},
                                              {.name = "under", .content = H5FX_VLEN, .width = 40},
                                              {.name = "main", .content = H5FX_VLEN, .width = 32}}};
    write_episode("d/1.h5", &second);
    const char *path = fixture_path("d");
    expect_cameras(path, NULL, 3, (const char *const[]){"rgb_left", "rgb_main", "rgb_under"});
    expect_cameras(path, "", 3, (const char *const[]){"rgb_left", "rgb_main", "rgb_under"});
    expect_cameras(path, "under,left", 2, (const char *const[]){"rgb_under", "rgb_left"});
    expect_cameras(path, "main", 1, (const char *const[]){"rgb_main"});
    expect_cameras(path, "rgb_main,under", 2, (const char *const[]){"rgb_main", "rgb_under"});
    struct weir_dataset *dataset = open_dataset(path, "under,main", false);
    struct weir_camera_probe probes[2];
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_probe_cameras(dataset, false, -1, probes, &err), 0, "%s", err.text);
    cr_assert_eq(probes[0].width, 40);
    cr_assert_eq(probes[1].width, 32);
    for (int e = 0; e < 2; e++)
        for (int c = 0; c < 2; c++) {
            char name[1024];
            weir_frame_name(dataset, e, c, 1, name, sizeof name);
            cr_assert_not_null(strstr(name, c ? "/observations/rgb_main[1]" : "/observations/rgb_under[1]"), "%s",
                               name);
        }
    weir_dataset_close(&dataset);
}

Test(dataset, cameras_that_are_not_there_or_named_twice)
{
    static const struct {
        const char *cameras, *part;
    } rows[] = {{"tip", "no camera \"tip\"; it has top, wrist"},
                {"top,", "empty name"},
                {",top", "empty name"},
                {"top,top", "top"},
                {"wrist,tip", "tip"}};
    struct h5fx_episode episode = {.steps = 2, .cameras = {{.name = "top"}, {.name = "wrist"}}};
    write_episode("e.hdf5", &episode);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int tolerant = 0; tolerant < 2; tolerant++) {
            struct weir_dataset *dataset;
            struct weir_err err = WEIR_ERR_NONE;
            struct weir_dataset_config config = {.size = sizeof config,
                                                 .path = fixture_path("e.hdf5"),
                                                 .cameras = rows[i].cameras,
                                                 .tolerant = tolerant};
            cr_assert_eq(weir_dataset_open(&dataset, &config, &err), -EINVAL);
            cr_assert_null(dataset);
            cr_assert_not_null(strstr(err.text, rows[i].part), "%s", err.text);
        }
}

/* ---- sizes and progress ---- */

static void count(void *user, int done, int total)
{
    int *seen = user;
    cr_assert_eq(done, ++seen[0]);
    seen[1] = total;
}

Test(dataset, progress_counts_every_file_and_the_index_counts_its_memory)
{
    char name[64];
    for (int i = 0; i < 7; i++) {
        struct h5fx_episode episode = {.steps = 2 + i, .cameras = {{.name = "top", .storage = H5FX_CHUNK_ONE}}};
        snprintf(name, sizeof name, "d/episode_%d.hdf5", i);
        write_episode(name, &episode);
    }
    int seen[2] = {0, 0};
    struct weir_dataset *dataset;
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_dataset_config config = {
        .size = sizeof config, .path = fixture_path("d"), .progress = count, .user = seen};
    cr_assert_eq(weir_dataset_open(&dataset, &config, &err), 0, "%s", err.text);
    cr_assert(seen[0] == 7 && seen[1] == 7);
    size_t steps = 2 + 3 + 4 + 5 + 6 + 7 + 8;
    cr_assert_geq(weir_dataset_index_bytes(dataset), steps * (7 * sizeof(float) + sizeof(uint64_t)));
    cr_assert_lt(weir_dataset_index_bytes(dataset), 64 * 1024);
    int none = 0;
    double mean[4], std[4];
    cr_assert_eq(weir_dataset_stats(dataset, &none, 0, false, mean, std), -EINVAL);
    weir_dataset_close(&dataset);
}
