/* The contents of batches, compared with a simple reader of the same files that uses H5Dread and libjpeg, one sample at
 * a time. */
#include "tests/fixtures/loader_fixture.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <hdf5.h>
#include <jpeglib.h>

enum { WIDTH = 64, HEIGHT = 48, CAMERAS_MAX = 4, EPISODES_MAX = 8 };

TestSuite(samples, .init = fixture_open, .fini = fixture_close);

/* ---- the reference ---- */

struct picture {
    int width, height;
    uint8_t *rgb;
};

struct episode {
    int steps;
    float *qpos, *actions;
    struct picture *pictures[CAMERAS_MAX]; /* one per step */
};

struct reference {
    int n, dim, action_dim, n_cameras;
    char cameras[CAMERAS_MAX][64]; /* sorted by name */
    struct episode episodes[EPISODES_MAX];
};

static float *read_floats(hid_t file, const char *name, int *rows, int *columns)
{
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT), space = H5Dget_space(set);
    hsize_t dims[2];
    cr_assert_eq(H5Sget_simple_extent_dims(space, dims, NULL), 2, "%s", name);
    float *values = malloc(dims[0] * dims[1] * sizeof *values);
    cr_assert_geq(H5Dread(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), 0);
    *rows = (int)dims[0];
    *columns = (int)dims[1];
    H5Sclose(space);
    H5Dclose(set);
    return values;
}

static struct picture decode(const uint8_t *bytes, size_t size)
{
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&jpeg);
    jpeg_mem_src(&jpeg, bytes, size);
    jpeg_read_header(&jpeg, TRUE);
    jpeg.out_color_space = JCS_RGB;
    jpeg_start_decompress(&jpeg);
    struct picture picture = {.width = (int)jpeg.output_width, .height = (int)jpeg.output_height};
    picture.rgb = malloc((size_t)picture.width * (size_t)picture.height * 3);
    while (jpeg.output_scanline < jpeg.output_height) {
        JSAMPROW row = picture.rgb + (size_t)jpeg.output_scanline * (size_t)picture.width * 3;
        jpeg_read_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_decompress(&jpeg);
    jpeg_destroy_decompress(&jpeg);
    return picture;
}

/* Reads all frames of a camera: raw (T, H, W, 3), padded rows (T, n), or variable length (T). */
static struct picture *read_camera(hid_t file, const char *name, int steps)
{
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT), space = H5Dget_space(set);
    hsize_t dims[4] = {0};
    int rank = H5Sget_simple_extent_dims(space, dims, NULL);
    cr_assert_eq((int)dims[0], steps);
    struct picture *pictures = calloc((size_t)steps, sizeof *pictures);
    if (rank == 1) {
        hid_t type = H5Tvlen_create(H5T_NATIVE_UINT8);
        hvl_t *rows = calloc((size_t)steps, sizeof *rows);
        cr_assert_geq(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, rows), 0);
        for (int t = 0; t < steps; t++)
            pictures[t] = decode(rows[t].p, rows[t].len);
        H5Dvlen_reclaim(type, space, H5P_DEFAULT, rows);
        free(rows);
        H5Tclose(type);
    } else {
        size_t row = rank == 2 ? dims[1] : dims[1] * dims[2] * dims[3];
        uint8_t *bytes = malloc((size_t)steps * row);
        cr_assert_geq(H5Dread(set, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes), 0);
        for (int t = 0; t < steps; t++) {
            if (rank == 2) {
                pictures[t] = decode(bytes + (size_t)t * row, row);
                continue;
            }
            pictures[t] = (struct picture){(int)dims[2], (int)dims[1], malloc(row)};
            memcpy(pictures[t].rgb, bytes + (size_t)t * row, row);
        }
        free(bytes);
    }
    H5Sclose(space);
    H5Dclose(set);
    return pictures;
}

static struct reference *read_reference(const char *data, const char *format, int n, const char *const *cameras)
{
    bool astrobench = strcmp(format, "astrobench") == 0;
    struct reference *ref = calloc(1, sizeof *ref);
    ref->n = n;
    for (int e = 0; e < n; e++) {
        struct episode *episode = &ref->episodes[e];
        int rows;
        hid_t file = H5Fopen(fixture_episode(data, format, e), H5F_ACC_RDONLY, H5P_DEFAULT);
        cr_assert_geq(file, 0);
        episode->qpos = read_floats(file, astrobench ? "/observations/joint_pos" : "/observations/qpos",
                                    &episode->steps, &ref->dim);
        episode->actions =
            read_floats(file, astrobench ? "/action/joint_positions" : "/action", &rows, &ref->action_dim);
        cr_assert_eq(rows, episode->steps);
        for (ref->n_cameras = 0; cameras[ref->n_cameras]; ref->n_cameras++) {
            char name[128];
            const char *camera = cameras[ref->n_cameras];
            snprintf(name, sizeof name, astrobench ? "/observations/rgb_%s" : "/observations/images/%s", camera);
            snprintf(ref->cameras[ref->n_cameras], 64, "%s%s", astrobench ? "rgb_" : "", camera);
            episode->pictures[ref->n_cameras] = read_camera(file, name, episode->steps);
        }
        H5Fclose(file);
    }
    return ref;
}

static void free_reference(struct reference *ref)
{
    for (int e = 0; e < ref->n; e++) {
        for (int c = 0; c < ref->n_cameras; c++) {
            for (int t = 0; t < ref->episodes[e].steps; t++)
                free(ref->episodes[e].pictures[c][t].rgb);
            free(ref->episodes[e].pictures[c]);
        }
        free(ref->episodes[e].qpos);
        free(ref->episodes[e].actions);
    }
    free(ref);
}

/* Computes the mean and the unbiased standard deviation of one dimension over the listed episodes. The deviation is
 * clipped as in ACT. */
static void norm_of(const struct reference *ref, const int *episodes, int n, bool actions, int d, double *mean,
                    double *std)
{
    int dim = actions ? ref->action_dim : ref->dim;
    double sum = 0, squares = 0, count = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < n; i++) {
            const struct episode *e = &ref->episodes[episodes[i]];
            for (int t = 0; t < e->steps; t++) {
                double x = (actions ? e->actions : e->qpos)[t * dim + d];
                sum += pass ? 0 : x;
                count += pass ? 0 : 1;
                squares += pass ? (x - *mean) * (x - *mean) : 0;
            }
        }
        *mean = sum / count;
    }
    *std = fmax(sqrt(squares / (count - 1)), 1e-2);
}

/* ---- comparison ---- */

struct expectation {
    const struct reference *ref;
    const struct weir_loader_config *config;
    double qpos_mean[64], qpos_std[64], action_mean[64], action_std[64];
    int clipped; /* number of dimensions whose standard deviation was raised to 1e-2 */
};

static void expect_close(float got, double want, const char *what, int i)
{
    cr_assert(fabs(got - want) <= 2e-5 * (1 + fabs(want)), "%s %d: %.9g instead of %.9g", what, i, (double)got, want);
}

static int before(int t, int steps_back)
{
    return t > steps_back ? t - steps_back : 0;
}

static void check_qpos(const struct expectation *x, struct weir_sample of, const float *got)
{
    int history = x->config->obs_history, dim = x->ref->dim;
    for (int h = 0; h < history; h++)
        for (int d = 0; d < dim; d++) {
            double raw = x->ref->episodes[of.episode].qpos[before(of.t, history - 1 - h) * dim + d];
            expect_close(got[h * dim + d], (raw - x->qpos_mean[d]) / x->qpos_std[d], "qpos", h * dim + d);
        }
}

static void check_actions(const struct expectation *x, struct weir_sample of, const float *got, const uint8_t *is_pad)
{
    const struct episode *e = &x->ref->episodes[of.episode];
    int dim = x->ref->action_dim, first = of.t + x->config->action_offset;
    first = first < 0 ? 0 : first;
    for (int i = 0; i < x->config->chunk_size; i++) {
        bool pad = first + i >= e->steps;
        cr_assert_eq(is_pad[i], pad, "is_pad of %d at t %d", i, of.t);
        for (int d = 0; d < dim; d++) {
            double raw = e->actions[(pad ? e->steps - 1 : first + i) * dim + d];
            raw = pad && x->config->pad == WEIR_PAD_ZERO ? 0 : raw;
            expect_close(got[i * dim + d], (raw - x->action_mean[d]) / x->action_std[d], "action", i * dim + d);
        }
    }
}

/* Compares each pixel, converted to the output format, at its position in the tensor. */
static void check_picture(const struct weir_pixel_format *format, const struct picture *want, const void *got)
{
    size_t w = (size_t)want->width, h = (size_t)want->height;
    for (size_t y = 0; y < h; y++)
        for (size_t x = 0; x < w; x++)
            for (size_t c = 0; c < 3; c++) {
                uint8_t value = want->rgb[(y * w + x) * 3 + (format->color == WEIR_COLOR_BGR ? 2 - c : c)];
                size_t at = format->layout == WEIR_LAYOUT_NCHW ? (c * h + y) * w + x : (y * w + x) * 3 + c;
                if (format->dtype == WEIR_DTYPE_U8)
                    cr_assert_eq(((const uint8_t *)got)[at], value, "(%zu, %zu, %zu)", y, x, c);
                else
                    cr_assert(((const float *)got)[at] == (float)value / 255.0f, "(%zu, %zu, %zu)", y, x, c);
            }
}

static const uint8_t *row_of(const struct weir_tensor *tensor, int i)
{
    return (const uint8_t *)tensor->data + (size_t)i * tensor->sample_bytes;
}

static void check_images(const struct expectation *x, const struct weir_batch *batch, int sample, bool grouped)
{
    const struct reference *ref = x->ref;
    struct weir_sample of = batch->samples[sample];
    const uint8_t *at = row_of(&batch->tensors[0], sample);
    for (int c = 0; c < ref->n_cameras; c++) {
        if (!grouped)
            at = row_of(&batch->tensors[c], sample);
        for (int h = 0; h < x->config->obs_history; h++) {
            int t = before(of.t, x->config->obs_history - 1 - h);
            const struct picture *want = &ref->episodes[of.episode].pictures[c][t];
            check_picture(&x->config->format, want, at);
            at += weir_image_bytes(&x->config->format, want->width, want->height);
        }
    }
}

static void check_shape(const struct weir_tensor *tensor, const char *name, enum weir_dtype dtype, const int *dims)
{
    size_t bytes = dtype == WEIR_DTYPE_F32 ? 4 : 1;
    cr_assert_str_eq(tensor->name, name);
    cr_assert_eq(tensor->dtype, dtype);
    int n = 0;
    for (; dims[n]; n++) {
        cr_assert_eq(tensor->shape[n], dims[n], "%s[%d]: %d", name, n, (int)tensor->shape[n]);
        bytes *= n > 0 ? (size_t)dims[n] : 1;
    }
    cr_assert_eq(tensor->ndim, n);
    cr_assert_eq(tensor->sample_bytes, bytes);
    cr_assert_not_null(tensor->data);
}

/* Stores the zero-terminated dimensions of an image tensor. A history of 1 and a camera count of 0 have no dimension.
 */
static void image_dims(int dims[8], const struct expectation *x, int n, int cameras, const struct picture *picture)
{
    bool planar = x->config->format.layout == WEIR_LAYOUT_NCHW;
    int k = 0;
    dims[k++] = n;
    if (cameras)
        dims[k++] = cameras;
    if (x->config->obs_history > 1)
        dims[k++] = x->config->obs_history;
    if (planar)
        dims[k++] = 3;
    dims[k++] = picture->height;
    dims[k++] = picture->width;
    if (!planar)
        dims[k++] = 3;
    dims[k] = 0;
}

static void check_shapes(const struct expectation *x, const struct weir_batch *batch, bool grouped)
{
    int n_images = grouped ? 1 : x->ref->n_cameras, dims[8], history = x->config->obs_history;
    cr_assert_eq(batch->n_tensors, n_images + 3);
    for (int i = 0; i < n_images; i++) {
        char name[80];
        snprintf(name, sizeof name, grouped ? "images" : "images/%s", x->ref->cameras[i]);
        image_dims(dims, x, batch->n, grouped ? x->ref->n_cameras : 0, &x->ref->episodes[0].pictures[i][0]);
        check_shape(&batch->tensors[i], name, x->config->format.dtype, dims);
    }
    const struct weir_tensor *rest = &batch->tensors[n_images];
    check_shape(&rest[0], "qpos", WEIR_DTYPE_F32,
                history > 1 ? (int[]){batch->n, history, x->ref->dim, 0} : (int[]){batch->n, x->ref->dim, 0});
    check_shape(&rest[1], "actions", WEIR_DTYPE_F32, (int[]){batch->n, x->config->chunk_size, x->ref->action_dim, 0});
    check_shape(&rest[2], "is_pad", WEIR_DTYPE_U8, (int[]){batch->n, x->config->chunk_size, 0});
}

static void check_norm(struct expectation *x, const struct weir_loader *loader)
{
    int n;
    const int *train = weir_sampler_episodes(weir_loader_sampler(loader), WEIR_SPLIT_TRAIN, &n);
    for (int d = 0; d < x->ref->dim; d++)
        norm_of(x->ref, train, n, false, d, &x->qpos_mean[d], &x->qpos_std[d]);
    for (int d = 0; d < x->ref->action_dim; d++)
        norm_of(x->ref, train, n, true, d, &x->action_mean[d], &x->action_std[d]);
    const float *mean, *std;
    weir_loader_norm(loader, false, &mean, &std);
    for (int d = 0; d < x->ref->dim; d++) {
        expect_close(mean[d], x->qpos_mean[d], "mean of qpos", d);
        expect_close(std[d], x->qpos_std[d], "std of qpos", d);
        x->clipped += std[d] == (float)1e-2;
    }
    weir_loader_norm(loader, true, &mean, &std);
    for (int d = 0; d < x->ref->action_dim; d++) {
        expect_close(mean[d], x->action_mean[d], "mean of actions", d);
        expect_close(std[d], x->action_std[d], "std of actions", d);
    }
}

/* Runs the whole configuration and compares every sample. Returns their number. clipped can be NULL. */
static int check_run(const struct reference *ref, const struct weir_loader_config *config, int *clipped)
{
    struct expectation x = {.ref = ref, .config = config};
    struct weir_loader *loader = fixture_loader(config);
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_batch *batch;
    int rc, count = 0;
    bool grouped = true;
    for (int c = 1; c < ref->n_cameras; c++)
        grouped &= ref->episodes[0].pictures[c][0].width == ref->episodes[0].pictures[0][0].width;
    check_norm(&x, loader);
    while ((rc = weir_loader_next(loader, &batch, &err)) > 0) {
        check_shapes(&x, batch, grouped);
        const struct weir_tensor *rest = &batch->tensors[batch->n_tensors - 3];
        for (int i = 0; i < batch->n; i++) {
            check_images(&x, batch, i, grouped);
            check_qpos(&x, batch->samples[i], (const float *)row_of(&rest[0], i));
            check_actions(&x, batch->samples[i], (const float *)row_of(&rest[1], i), row_of(&rest[2], i));
        }
        count += batch->n;
        weir_loader_release(loader, batch);
    }
    cr_assert_eq(rc, 0, "%s", err.text);
    weir_loader_close(&loader);
    if (clipped)
        *clipped = x.clipped;
    return count;
}

static struct weir_loader_config config_for(const char *data)
{
    struct weir_loader_config config;
    weir_loader_config_default(&config);
    config.data = data;
    config.num_workers = 2;
    config.batch_size = 5;
    config.train_split = 0.7;
    return config;
}

/* ---- tests ---- */

enum { EPISODES = 4, STEPS = 9 };
static const char *const two[] = {"top", "wrist", NULL};

static void every_setting(const char *format)
{
    const char *data = fixture_synth("d", format, EPISODES, STEPS, WIDTH, HEIGHT, "top,wrist");
    struct reference *ref = read_reference(data, format, EPISODES, two);
    static const struct {
        int history, chunk, offset;
        enum weir_pad pad;
        struct weir_pixel_format format;
    } settings[] = {
        {1, 4, 0, WEIR_PAD_ZERO, {.color = WEIR_COLOR_RGB, .dtype = WEIR_DTYPE_U8, .layout = WEIR_LAYOUT_NHWC}},
        {3, 20, 0, WEIR_PAD_ZERO, {.color = WEIR_COLOR_RGB, .dtype = WEIR_DTYPE_U8, .layout = WEIR_LAYOUT_NCHW}},
        {1, 20, -1, WEIR_PAD_LAST, {.color = WEIR_COLOR_BGR, .dtype = WEIR_DTYPE_U8, .layout = WEIR_LAYOUT_NHWC}},
        {3, 4, 3, WEIR_PAD_LAST, {.color = WEIR_COLOR_RGB, .dtype = WEIR_DTYPE_F32, .layout = WEIR_LAYOUT_NHWC}},
        {1, 1, 3, WEIR_PAD_ZERO, {.color = WEIR_COLOR_RGB, .dtype = WEIR_DTYPE_F32, .layout = WEIR_LAYOUT_NCHW}},
        {12, 9, -20, WEIR_PAD_ZERO, {.color = WEIR_COLOR_BGR, .dtype = WEIR_DTYPE_F32, .layout = WEIR_LAYOUT_NCHW}},
        {2, 3, 30, WEIR_PAD_LAST, {.color = WEIR_COLOR_BGR, .dtype = WEIR_DTYPE_U8, .layout = WEIR_LAYOUT_NCHW}},
    };
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        struct weir_loader_config config = config_for(data);
        config.obs_history = settings[i].history;
        config.chunk_size = settings[i].chunk;
        config.action_offset = settings[i].offset;
        config.pad = settings[i].pad;
        config.format = settings[i].format;
        config.seed = i;
        cr_assert_eq(check_run(ref, &config, NULL), EPISODES * STEPS, "%s, setting %zu", format, i);
    }
    free_reference(ref);
}

Test(samples, act_is_what_the_library_reads)
{
    every_setting("act");
}

Test(samples, act_jpeg_is_what_the_libraries_read)
{
    every_setting("act-jpeg");
}

Test(samples, astrobench_is_what_the_libraries_read)
{
    every_setting("astrobench");
}

Test(samples, episode_sampling_serves_the_same_samples)
{
    const char *data = fixture_synth("d", "act-jpeg", EPISODES, STEPS, WIDTH, HEIGHT, "top,wrist");
    struct reference *ref = read_reference(data, "act-jpeg", EPISODES, two);
    struct weir_loader_config config = config_for(data);
    config.sampling = WEIR_SAMPLING_EPISODE;
    config.num_epochs = 10;
    cr_assert_eq(check_run(ref, &config, NULL), 10 * EPISODES);
    free_reference(ref);
}

Test(samples, cameras_come_as_they_are_asked_for)
{
    const char *data = fixture_synth("d", "act", EPISODES, STEPS, WIDTH, HEIGHT, "a,b,c");
    struct reference *ref = read_reference(data, "act", EPISODES, (const char *const[]){"c", "a", NULL});
    struct weir_loader_config config = config_for(data);
    config.cameras = "c,a";
    cr_assert_eq(check_run(ref, &config, NULL), EPISODES * STEPS);
    free_reference(ref);
}

/* Adds the first camera of another dataset, with a different image size, to each file. */
static void add_camera(const char *data, const char *other, const char *format, const char *from, const char *to)
{
    for (int e = 0; e < EPISODES; e++) {
        hid_t source = H5Fopen(fixture_episode(other, format, e), H5F_ACC_RDONLY, H5P_DEFAULT);
        hid_t target = H5Fopen(fixture_episode(data, format, e), H5F_ACC_RDWR, H5P_DEFAULT);
        cr_assert_geq(H5Ocopy(source, from, target, to, H5P_DEFAULT, H5P_DEFAULT), 0);
        H5Fclose(target);
        H5Fclose(source);
    }
}

static void mixed_sizes(const char *format, const char *from, const char *to)
{
    const char *data = fixture_synth("d", format, EPISODES, STEPS, WIDTH, HEIGHT, "top,wrist");
    const char *other = fixture_synth("o", format, EPISODES, STEPS, 32, 80, "small");
    add_camera(data, other, format, from, to);
    struct reference *ref =
        read_reference(data, format, EPISODES, (const char *const[]){"small", "top", "wrist", NULL});
    for (int history = 1; history <= 3; history += 2) {
        struct weir_loader_config config = config_for(data);
        config.obs_history = history;
        config.format.dtype = history == 3 ? WEIR_DTYPE_F32 : WEIR_DTYPE_U8;
        config.format.layout = history == 3 ? WEIR_LAYOUT_NCHW : WEIR_LAYOUT_NHWC;
        cr_assert_eq(check_run(ref, &config, NULL), EPISODES * STEPS);
    }
    free_reference(ref);
}

Test(samples, raw_cameras_of_several_sizes_are_tensors_of_their_own)
{
    mixed_sizes("act", "/observations/images/small", "/observations/images/small");
}

Test(samples, jpeg_cameras_of_several_sizes_are_tensors_of_their_own)
{
    mixed_sizes("astrobench", "/observations/rgb_small", "/observations/rgb_small");
}

/* The values of a joint that never moves must not be divided by zero. */
Test(samples, a_constant_joint_is_normalised_with_the_least_std)
{
    const char *data = fixture_synth("d", "act", EPISODES, STEPS, WIDTH, HEIGHT, "top,wrist");
    for (int e = 0; e < EPISODES; e++) {
        hid_t file = H5Fopen(fixture_episode(data, "act", e), H5F_ACC_RDWR, H5P_DEFAULT);
        int rows, columns;
        float *qpos = read_floats(file, "/observations/qpos", &rows, &columns);
        for (int t = 0; t < rows; t++) {
            qpos[t * columns + 3] = 0.75f;
            qpos[t * columns + 4] = 0.5f + 1e-3f * (float)t; /* its standard deviation is below the limit */
        }
        hid_t set = H5Dopen2(file, "/observations/qpos", H5P_DEFAULT);
        cr_assert_geq(H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, qpos), 0);
        H5Dclose(set);
        H5Fclose(file);
        free(qpos);
    }
    struct reference *ref = read_reference(data, "act", EPISODES, two);
    struct weir_loader_config config = config_for(data);
    int clipped;
    cr_assert_eq(check_run(ref, &config, &clipped), EPISODES * STEPS);
    cr_assert_geq(clipped, 2);
    free_reference(ref);
}
