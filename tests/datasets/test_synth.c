#include "base/text.h"
#include "datasets/synth/synth.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hdf5.h>
#include <jpeglib.h>
#include <png.h>

static char folder[64];

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

static void make_folder(void)
{
    snprintf(folder, sizeof folder, "/tmp/weir-synth-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
}

static void remove_folder(void)
{
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

TestSuite(synth, .init = make_folder, .fini = remove_folder);

static const char *below(const char *name)
{
    static char path[4][512];
    static int next;
    char *out = path[next++ % 4];
    snprintf(out, sizeof path[0], "%s/%s", folder, name);
    return out;
}

static struct weir_synth_config small(const char *format, const char *name)
{
    struct weir_synth_config config;
    weir_synth_config_default(&config);
    config.format = format;
    config.out = below(name);
    config.episodes = 2;
    config.steps = 5;
    config.width = 96;
    config.height = 80;
    return config;
}

static void write_or_fail(const struct weir_synth_config *config)
{
    struct weir_err err = WEIR_ERR_NONE;
    int rc = weir_synth_write(config, &err);
    cr_assert_eq(rc, 0, "%s", err.text);
}

static char *slurp(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    cr_assert_not_null(file, "%s: %s", path, strerror(errno));
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    char *bytes = malloc(*size + 1);
    cr_assert_eq(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

static bool same_bytes(const char *a, const char *b)
{
    size_t na, nb;
    char *x = slurp(a, &na), *y = slurp(b, &nb);
    bool same = na == nb && memcmp(x, y, na) == 0;
    free(x);
    free(y);
    return same;
}

static const char *episode_path(const struct weir_synth_config *config, int episode)
{
    static char path[4][1024];
    static int next;
    char *out = path[next++ % 4], name[128];
    bool astrobench = strcmp(config->format, "astrobench") == 0;
    snprintf(name, sizeof name,
             astrobench ? "data/synthetic/diffuse/episode_00_%04d_expert_diffuse.h5" : "episode_%d.hdf5", episode);
    snprintf(out, sizeof path[0], "%s/%s", config->out, name);
    return out;
}

enum { FILES_MAX = 8 };

static char found[FILES_MAX][1024];
static int n_found;

static int find_file(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)ftw;
    if (flag == FTW_F) {
        cr_assert_lt(n_found, FILES_MAX);
        snprintf(found[n_found++], sizeof found[0], "%s", path);
    }
    return 0;
}

/* Collects all files below the folder in `found`, sorted by name. */
static int find_files(const char *path)
{
    n_found = 0;
    nftw(path, find_file, 16, FTW_PHYS);
    qsort(found, (size_t)n_found, sizeof found[0], weir_compare_text);
    return n_found;
}

/* ---- reading back ---- */

struct picture {
    uint8_t *rgb;
    int width, height;
};

static struct picture decode_jpeg(const uint8_t *bytes, size_t size)
{
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&jpeg);
    jpeg_mem_src(&jpeg, bytes, size);
    jpeg_read_header(&jpeg, TRUE);
    cr_assert_eq(jpeg.num_components, 3);
    cr_assert(jpeg.comp_info[0].h_samp_factor == 2 && jpeg.comp_info[0].v_samp_factor == 2);
    cr_assert(jpeg.comp_info[1].h_samp_factor == 1 && jpeg.comp_info[1].v_samp_factor == 1);
    jpeg.out_color_space = JCS_RGB;
    jpeg_start_decompress(&jpeg);
    struct picture picture = {.width = (int)jpeg.output_width, .height = (int)jpeg.output_height};
    picture.rgb = malloc((size_t)picture.width * (size_t)picture.height * 3);
    while (jpeg.output_scanline < jpeg.output_height) {
        JSAMPROW row = picture.rgb + (size_t)jpeg.output_scanline * (size_t)picture.width * 3;
        jpeg_read_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_decompress(&jpeg);
    cr_assert_eq(errors.num_warnings, 0);
    jpeg_destroy_decompress(&jpeg);
    return picture;
}

static void *read_all(hid_t file, const char *name, hid_t type, size_t bytes)
{
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
    cr_assert_geq(set, 0, "%s", name);
    void *data = malloc(bytes);
    cr_assert_geq(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data), 0, "%s", name);
    H5Dclose(set);
    return data;
}

static int dims_of(hid_t file, const char *name, hsize_t dims[8])
{
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
    cr_assert_geq(set, 0, "%s", name);
    hid_t space = H5Dget_space(set);
    int rank = H5Sget_simple_extent_dims(space, dims, NULL);
    H5Sclose(space);
    H5Dclose(set);
    return rank;
}

static void expect_dims(hid_t file, const char *name, int rank, const hsize_t *expected)
{
    hsize_t dims[8] = {0};
    cr_assert_eq(dims_of(file, name, dims), rank, "%s", name);
    for (int i = 0; i < rank; i++)
        cr_assert_eq(dims[i], expected[i], "%s: dimension %d is %llu", name, i, (unsigned long long)dims[i]);
}

static bool bool_attribute(hid_t file, const char *name)
{
    hid_t attribute = H5Aopen(file, name, H5P_DEFAULT);
    cr_assert_geq(attribute, 0, "%s", name);
    hid_t type = H5Aget_type(attribute);
    cr_assert_eq(H5Tget_class(type), H5T_ENUM);
    cr_assert_eq(H5Tget_size(type), 1);
    int8_t value = -1, yes = -1;
    cr_assert_geq(H5Tenum_valueof(type, "TRUE", &yes), 0);
    H5Aread(attribute, type, &value);
    H5Tclose(type);
    H5Aclose(attribute);
    return value == yes;
}

/* ---- same seed, same bytes ---- */

struct name {
    char text[16];
};

static struct name format_rows[] = {
    {"act"},      {"act-jpeg"},  {"act-jpeg-nolen"}, {"agilex"}, {"astrobench"}, {"robotwin"},
    {"robomind"}, {"robomimic"}, {"robomimic-gzip"}, {"libero"}, {"isaaclab"},
};

Test(synth, formats_have_names)
{
    enum { N = sizeof format_rows / sizeof format_rows[0] };
    char all[256] = "";
    for (int i = 0; i < N; i++) {
        cr_expect_str_eq(weir_synth_format_name(i), format_rows[i].text);
        cr_expect_not_null(weir_synth_format_cameras(i));
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? "|" : "", format_rows[i].text);
    }
    cr_expect_str_eq(weir_synth_format_names, all);
    cr_expect_null(weir_synth_format_name(N));
    cr_expect_null(weir_synth_format_name(-1));
    cr_expect_null(weir_synth_format_cameras(N));
}

ParameterizedTestParameters(synth, reproducible)
{
    return cr_make_param_array(struct name, format_rows, sizeof format_rows / sizeof format_rows[0]);
}

ParameterizedTest(struct name *format, synth, reproducible)
{
    struct weir_synth_config one = small(format->text, "one"), many = small(format->text, "many"),
                             other = small(format->text, "other");
    one.threads = 1;
    many.threads = 7;
    one.seed = many.seed = 42;
    other.seed = 43;
    write_or_fail(&one);
    write_or_fail(&many);
    write_or_fail(&other);
    char twin[1100];
    int files = find_files(one.out);
    cr_assert(files == 1 || files == 2);
    for (int i = 0; i < files; i++) {
        snprintf(twin, sizeof twin, "%s/%s", many.out, found[i] + strlen(one.out) + 1);
        cr_expect(same_bytes(found[i], twin), "%s", found[i]);
        snprintf(twin, sizeof twin, "%s/%s", other.out, found[i] + strlen(one.out) + 1);
        cr_expect_not(same_bytes(found[i], twin), "%s", found[i]);
    }
    if (files == 2)
        cr_expect_not(same_bytes(found[0], found[1]));
}

/* ---- size and content of frames ---- */

static double mean_jpeg(int quality, int width, int height, const char *name)
{
    struct weir_synth_stats stats;
    struct weir_synth_config config = small("act-jpeg", name);
    config.cameras = "top,left_wrist,right,low";
    config.width = width;
    config.height = height;
    config.quality = quality;
    config.stats = &stats;
    write_or_fail(&config);
    cr_assert_eq(stats.jpeg_frames, 2 * 5 * 4);
    return (double)stats.jpeg_bytes / (double)stats.jpeg_frames;
}

Test(synth, frames_weigh_what_camera_frames_do)
{
    double fine = mean_jpeg(95, 640, 480, "fine"), coarse = mean_jpeg(50, 640, 480, "coarse");
    cr_expect(fine > 90e3 && fine < 125e3, "quality 95: %.0f bytes", fine);
    cr_expect(coarse > 17e3 && coarse < 25e3, "quality 50: %.0f bytes", coarse);
    double square = mean_jpeg(95, 512, 512, "square") / (512 * 512);
    cr_expect(square > 0.28 && square < 0.42, "%.3f bytes per pixel", square);
    double tiny = mean_jpeg(95, 64, 64, "tiny") / (64 * 64);
    cr_expect(tiny > 0.4 && tiny < 1.2, "%.3f bytes per pixel", tiny);
}

static uint8_t *raw_frames(const char *name, int steps)
{
    struct weir_synth_config config = small("act", name);
    config.episodes = 1;
    config.steps = steps;
    config.cameras = "top";
    config.seed = 5;
    write_or_fail(&config);
    hid_t file = H5Fopen(episode_path(&config, 0), H5F_ACC_RDONLY, H5P_DEFAULT);
    uint8_t *frames = read_all(file, "/observations/images/top", H5T_NATIVE_UINT8, (size_t)steps * 96 * 80 * 3);
    H5Fclose(file);
    return frames;
}

/* Returns the largest change in the mean of an 8x8 block. Noise hardly changes the mean, but moving objects do. */
static double largest_change(const uint8_t *a, const uint8_t *b)
{
    double most = 0;
    for (int by = 0; by < 80; by += 8) {
        for (int bx = 0; bx < 96; bx += 8) {
            int sum = 0;
            for (int i = 0; i < 64; i++) {
                size_t at = (size_t)((by + i / 8) * 96 + bx + i % 8) * 3 + 1;
                sum += a[at] - b[at];
            }
            most = abs(sum) / 64.0 > most ? abs(sum) / 64.0 : most;
        }
    }
    return most;
}

Test(synth, things_move_smoothly)
{
    uint8_t *frames = raw_frames("moving", 40);
    size_t bytes = 96 * 80 * 3;
    double step = largest_change(frames, frames + bytes), far = largest_change(frames, frames + 39 * bytes);
    cr_expect_gt(far, 25.0);
    cr_expect_lt(step, far / 2);
    cr_expect_neq(memcmp(frames, frames + bytes, bytes), 0);
    free(frames);
}

static double distance(const uint8_t *a, const uint8_t *b, bool swapped)
{
    double sum = 0;
    for (int i = 0; i < 96 * 80; i++)
        for (int c = 0; c < 3; c++)
            sum += abs(a[3 * i + c] - b[3 * i + (swapped ? 2 - c : c)]);
    return sum / (96 * 80 * 3);
}

Test(synth, jpegs_show_true_colours)
{
    uint8_t *raw = raw_frames("raw", 5);
    struct weir_synth_config config = small("act-jpeg", "jpeg");
    config.episodes = 1;
    config.cameras = "top";
    config.seed = 5;
    write_or_fail(&config);
    hid_t file = H5Fopen(episode_path(&config, 0), H5F_ACC_RDONLY, H5P_DEFAULT);
    hsize_t dims[8];
    cr_assert_eq(dims_of(file, "/observations/images/top", dims), 2);
    uint8_t *rows = read_all(file, "/observations/images/top", H5T_NATIVE_UINT8, dims[0] * dims[1]);
    struct picture picture = decode_jpeg(rows + 3 * dims[1], dims[1]);
    cr_assert(picture.width == 96 && picture.height == 80);
    const uint8_t *frame = raw + 3 * 96 * 80 * 3;
    cr_expect_lt(distance(frame, picture.rgb, false), 6.0);
    cr_expect_gt(distance(frame, picture.rgb, true), 15.0);
    free(picture.rgb);
    free(rows);
    free(raw);
    H5Fclose(file);
}

/* ---- the layouts ---- */

Test(synth, act_layout)
{
    struct weir_synth_config config = small("act", "act");
    config.cameras = "cam_high,cam_left_wrist";
    write_or_fail(&config);
    hid_t file = H5Fopen(episode_path(&config, 1), H5F_ACC_RDONLY, H5P_DEFAULT);
    cr_assert_geq(file, 0);
    cr_expect(bool_attribute(file, "sim"));
    cr_expect_eq(H5Aexists(file, "compress"), 0);
    expect_dims(file, "/observations/images/cam_high", 4, (hsize_t[]){5, 80, 96, 3});
    expect_dims(file, "/action", 2, (hsize_t[]){5, 14});
    expect_dims(file, "/observations/qpos", 2, (hsize_t[]){5, 14});
    expect_dims(file, "/observations/qvel", 2, (hsize_t[]){5, 14});
    hid_t set = H5Dopen2(file, "/observations/images/cam_left_wrist", H5P_DEFAULT), plist = H5Dget_create_plist(set);
    hsize_t chunk[4];
    cr_assert_eq(H5Pget_chunk(plist, 4, chunk), 4);
    cr_expect(chunk[0] == 1 && chunk[1] == 80 && chunk[2] == 96 && chunk[3] == 3);
    cr_expect_eq(H5Pget_nfilters(plist), 0);
    H5Pclose(plist);
    H5Dclose(set);
    H5Fclose(file);
}

static void check_rows(hid_t file, const char *name, const float *lengths, hsize_t steps)
{
    hsize_t dims[8];
    cr_assert_eq(dims_of(file, name, dims), 2);
    cr_assert_eq(dims[0], steps);
    uint8_t *rows = read_all(file, name, H5T_NATIVE_UINT8, dims[0] * dims[1]);
    float longest = 0;
    for (hsize_t t = 0; t < steps; t++) {
        const uint8_t *row = rows + t * dims[1];
        size_t length = (size_t)lengths[t];
        cr_assert_leq(length, dims[1]);
        cr_expect(row[length - 2] == 0xff && row[length - 1] == 0xd9);
        for (size_t i = length; i < dims[1]; i++)
            cr_assert_eq(row[i], 0);
        free(decode_jpeg(row, length).rgb);
        longest = lengths[t] > longest ? lengths[t] : longest;
    }
    cr_expect_eq((hsize_t)longest, dims[1]);
    free(rows);
}

Test(synth, act_jpeg_layout)
{
    struct weir_synth_config config = small("act-jpeg", "jpeg");
    config.cameras = "zed_wrist,alpha,Mid";
    write_or_fail(&config);
    hid_t file = H5Fopen(episode_path(&config, 0), H5F_ACC_RDONLY, H5P_DEFAULT);
    cr_assert_geq(file, 0);
    cr_expect(bool_attribute(file, "sim"));
    cr_expect(bool_attribute(file, "compress"));
    expect_dims(file, "/compress_len", 2, (hsize_t[]){3, 5});
    float *lengths = read_all(file, "/compress_len", H5T_NATIVE_FLOAT, 15 * sizeof *lengths);
    /* Cameras are sorted by name, not in the option's order. */
    check_rows(file, "/observations/images/Mid", lengths, 5);
    check_rows(file, "/observations/images/alpha", lengths + 5, 5);
    check_rows(file, "/observations/images/zed_wrist", lengths + 10, 5);
    free(lengths);
    H5Fclose(file);
}

struct memory {
    const uint8_t *bytes;
    size_t left;
};

static void read_memory(png_structp png, png_bytep to, png_size_t n)
{
    struct memory *memory = png_get_io_ptr(png);
    cr_assert_leq(n, memory->left);
    memcpy(to, memory->bytes, n);
    memory->bytes += n;
    memory->left -= n;
}

/* Returns the depth at the centre of the image, in millimetres. */
static int depth_in_the_middle(const hvl_t *element, int width, int height)
{
    struct memory memory = {.bytes = element->p, .left = element->len};
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    cr_assert_eq(setjmp(png_jmpbuf(png)), 0, "the PNG is broken");
    png_set_read_fn(png, &memory, read_memory);
    png_read_png(png, info, PNG_TRANSFORM_IDENTITY, NULL);
    cr_expect_eq(png_get_bit_depth(png, info), 16);
    cr_expect_eq(png_get_color_type(png, info), PNG_COLOR_TYPE_GRAY);
    cr_assert(png_get_image_width(png, info) == (png_uint_32)width &&
              png_get_image_height(png, info) == (png_uint_32)height);
    const uint8_t *at = png_get_rows(png, info)[height / 2] + 2 * (width / 2);
    int depth = at[0] << 8 | at[1];
    png_destroy_read_struct(&png, &info, NULL);
    return depth;
}

static hvl_t *read_vlen(hid_t file, const char *name, size_t steps)
{
    hid_t type = H5Tvlen_create(H5T_NATIVE_UINT8);
    hvl_t *elements = read_all(file, name, type, steps * sizeof *elements);
    H5Tclose(type);
    return elements;
}

static void free_vlen(hvl_t *elements, size_t steps)
{
    for (size_t t = 0; t < steps; t++)
        H5free_memory(elements[t].p);
    free(elements);
}

Test(synth, astrobench_layout)
{
    struct weir_synth_config config = small("astrobench", "astro");
    config.cameras = "rgb_main,under";
    write_or_fail(&config);
    hid_t file = H5Fopen(episode_path(&config, 1), H5F_ACC_RDONLY, H5P_DEFAULT);
    cr_assert_geq(file, 0);
    hvl_t *jpegs = read_vlen(file, "/observations/rgb_main", 5),
          *depths = read_vlen(file, "/observations/depth_main", 5);
    for (int t = 0; t < 5; t++) {
        struct picture picture = decode_jpeg(jpegs[t].p, jpegs[t].len);
        cr_expect(picture.width == 96 && picture.height == 80);
        free(picture.rgb);
        /* The camera is about a metre from the table. */
        int depth = depth_in_the_middle(&depths[t], 96, 80);
        cr_expect(depth > 500 && depth < 1800, "%d mm", depth);
    }
    free_vlen(jpegs, 5);
    free_vlen(depths, 5);
    expect_dims(file, "/observations/rgb_under", 1, (hsize_t[]){5});
    expect_dims(file, "/observations/joint_pos", 2, (hsize_t[]){5, 28});
    expect_dims(file, "/observations/base_pose", 2, (hsize_t[]){5, 7});
    expect_dims(file, "/observations/ee_pose", 2, (hsize_t[]){5, 14});
    expect_dims(file, "/observations/grasp_success", 1, (hsize_t[]){5});
    expect_dims(file, "/action/joint_positions", 2, (hsize_t[]){5, 28});
    expect_dims(file, "/action/gripper_command", 2, (hsize_t[]){5, 2});
    expect_dims(file, "/action/cartesian_target_pose", 2, (hsize_t[]){5, 16});
    expect_dims(file, "/metadata/target_quat", 1, (hsize_t[]){4});
    hid_t set = H5Dopen2(file, "/observations/joint_pos", H5P_DEFAULT), plist = H5Dget_create_plist(set);
    cr_expect_eq(H5Pget_nfilters(plist), 1);
    int64_t id = -1;
    hid_t attribute = H5Aopen_by_name(file, "/metadata", "episode_id", H5P_DEFAULT, H5P_DEFAULT);
    H5Aread(attribute, H5T_NATIVE_INT64, &id);
    cr_expect_eq(id, 1);
    H5Aclose(attribute);
    H5Pclose(plist);
    H5Dclose(set);
    H5Fclose(file);
}

Test(synth, actions_lead_by_a_step)
{
    enum { STEPS = 300, DIM = 14 };
    struct weir_synth_config config = small("act-jpeg", "path");
    config.episodes = 1;
    config.steps = STEPS;
    config.width = config.height = 16;
    write_or_fail(&config);
    hid_t file = H5Fopen(episode_path(&config, 0), H5F_ACC_RDONLY, H5P_DEFAULT);
    float *qpos = read_all(file, "/observations/qpos", H5T_NATIVE_FLOAT, STEPS * DIM * sizeof *qpos);
    float *qvel = read_all(file, "/observations/qvel", H5T_NATIVE_FLOAT, STEPS * DIM * sizeof *qvel);
    float *action = read_all(file, "/action", H5T_NATIVE_FLOAT, STEPS * DIM * sizeof *action);
    double worst_lead = 0, worst_velocity = 0;
    float least[DIM], most[DIM];
    for (int j = 0; j < DIM; j++) {
        least[j] = most[j] = qpos[j];
        for (int t = 0; t + 2 < STEPS; t++) {
            double lead = fabs((double)qpos[(t + 1) * DIM + j] - action[t * DIM + j]);
            double velocity = (double)(action[(t + 1) * DIM + j] - qpos[t * DIM + j]) * 25;
            double off = fabs(velocity - qvel[(t + 1) * DIM + j]);
            worst_lead = lead > worst_lead ? lead : worst_lead;
            worst_velocity = off > worst_velocity ? off : worst_velocity;
            least[j] = qpos[t * DIM + j] < least[j] ? qpos[t * DIM + j] : least[j];
            most[j] = qpos[t * DIM + j] > most[j] ? qpos[t * DIM + j] : most[j];
        }
        cr_expect_gt(most[j] - least[j], 0.03f, "joint %d hardly moves", j);
    }
    cr_expect_lt(worst_lead, 0.001);
    cr_expect_lt(worst_velocity, 0.05);
    free(qpos);
    free(qvel);
    free(action);
    H5Fclose(file);
}

Test(synth, odd_sizes)
{
    static const int sizes[][2] = {{16, 16}, {17, 33}, {333, 16}, {16, 257}};
    for (int f = 0; weir_synth_format_name(f); f++) {
        for (int i = 0; i < 4; i++) {
            char name[32];
            snprintf(name, sizeof name, "odd-%d-%d", f, i);
            struct weir_synth_config config = small(weir_synth_format_name(f), name);
            config.width = sizes[i][0];
            config.height = sizes[i][1];
            config.episodes = config.steps = 1;
            write_or_fail(&config);
        }
    }
}

/* ---- refusals ---- */

static void expect_refused(const struct weir_synth_config *config, int code, const char *text)
{
    struct weir_err err = WEIR_ERR_NONE;
    cr_expect_eq(weir_synth_write(config, &err), code, "%s", text);
    cr_expect_not_null(strstr(err.text, text), "'%s' does not contain '%s'", err.text, text);
    cr_expect_null(strchr(err.text, '\n'));
}

Test(synth, refuses_a_folder_in_use)
{
    struct weir_synth_config config = small("act", "used");
    cr_assert_eq(mkdir(config.out, 0777), 0);
    char path[600];
    snprintf(path, sizeof path, "%s/mine", config.out);
    close(open(path, O_CREAT | O_WRONLY, 0666));
    expect_refused(&config, -ENOTEMPTY, "is not empty (it contains mine)");
    config.out = path;
    expect_refused(&config, -ENOTDIR, "mine");
    config.out = "";
    expect_refused(&config, -EINVAL, "no name specified");
    config.out = NULL;
    expect_refused(&config, -EINVAL, "no output folder");
    snprintf(path, sizeof path, "%s/a/b/c", folder);
    config.out = path;
    write_or_fail(&config);
}

Test(synth, refuses_bad_cameras)
{
    static const char *const cases[][2] = {
        {"", "1 to 63 characters"},
        {"a,,b", "1 to 63 characters"},
        {"a,", "1 to 63 characters"},
        {"a,b,a", "'a' is named twice"},
        {"a/b", "letters, digits"},
        {"..", "letters, digits"},
        {"k\xc3\xa4se", "letters, digits"},
        {"a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q", "more than 16"},
        {"a123456789012345678901234567890123456789012345678901234567890123", "1 to 63 characters"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir_synth_config config = small("act", "cameras");
        config.cameras = cases[i][0];
        expect_refused(&config, -EINVAL, cases[i][1]);
    }
    struct weir_synth_config config = small("astrobench", "cameras");
    config.cameras = "rgb_main,main";
    expect_refused(&config, -EINVAL, "'main' is named twice");
    config = small("libero", "cameras");
    config.cameras = "agentview,agentview_rgb";
    expect_refused(&config, -EINVAL, "'agentview' is named twice");
    cr_expect_eq(access(config.out, F_OK), -1, "a folder was created despite the error");
}

Test(synth, refuses_numbers_out_of_bounds)
{
    struct weir_synth_config good = small("act", "numbers"), bad = good;
    bad.episodes = 0;
    expect_refused(&bad, -EINVAL, "episodes is 0");
    bad = good;
    bad.steps = 1000001;
    expect_refused(&bad, -EINVAL, "steps is 1000001");
    bad = good;
    bad.width = 15;
    expect_refused(&bad, -EINVAL, "width is 15");
    bad = good;
    bad.height = 8193;
    expect_refused(&bad, -EINVAL, "height is 8193");
    bad = good;
    bad.quality = 101;
    expect_refused(&bad, -EINVAL, "quality is 101");
    bad = good;
    bad.threads = -1;
    expect_refused(&bad, -EINVAL, "threads is -1");
    bad = good;
    bad.format = "lerobot";
    expect_refused(&bad, -EINVAL, "unknown format 'lerobot'");
}

/* ---- interrupted writing ---- */

ParameterizedTestParameters(synth, full_disk)
{
    return cr_make_param_array(struct name, format_rows, sizeof format_rows / sizeof format_rows[0]);
}

ParameterizedTest(struct name *format, synth, full_disk)
{
    struct rlimit before, tight;
    getrlimit(RLIMIT_FSIZE, &before);
    tight = before;
    tight.rlim_cur = 128 * 1024;
    signal(SIGXFSZ, SIG_IGN);
    struct weir_synth_config config = small(format->text, "full");
    config.steps = 40;
    setrlimit(RLIMIT_FSIZE, &tight);
    struct weir_err err = WEIR_ERR_NONE;
    int rc = weir_synth_write(&config, &err);
    setrlimit(RLIMIT_FSIZE, &before);
    cr_expect_eq(rc, -EFBIG, "%d", rc);
    cr_expect_not_null(strstr(err.text, "File too large"), "%s", err.text);
    cr_expect_eq(find_files(config.out), 0);
}

static void die_in_the_second(void *user, int done, int total)
{
    int *frames = user;
    (void)total;
    if (done == 1 && ++*frames == 4)
        raise(SIGKILL);
}

Test(synth, killed_in_the_middle_leaves_no_half_episode)
{
    struct weir_synth_config config = small("act-jpeg", "killed");
    int frames = 0, status = 0;
    config.progress = die_in_the_second;
    config.user = &frames;
    pid_t child = fork();
    if (child == 0) {
        struct weir_err err = WEIR_ERR_NONE;
        weir_synth_write(&config, &err);
        _exit(0);
    }
    waitpid(child, &status, 0);
    cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    int visible = 0;
    for (int i = find_files(config.out); i-- > 0;)
        visible += strrchr(found[i], '/')[1] != '.';
    cr_expect_eq(visible, 1);
    hid_t file = H5Fopen(episode_path(&config, 0), H5F_ACC_RDONLY, H5P_DEFAULT);
    cr_expect_geq(file, 0);
    H5Fclose(file);
    cr_expect_eq(access(episode_path(&config, 1), F_OK), -1);
}

struct seen {
    int calls, last_done;
    bool backwards;
    const struct weir_synth_stats *stats;
    uint64_t last_frames;
};

static void on_progress(void *user, int done, int total)
{
    struct seen *seen = user;
    cr_assert_eq(total, 2);
    seen->calls++;
    seen->backwards |= done < seen->last_done || seen->stats->frames < seen->last_frames;
    seen->last_done = done;
    seen->last_frames = seen->stats->frames;
}

Test(synth, progress_and_stats)
{
    struct weir_synth_stats stats;
    struct seen seen = {.stats = &stats};
    struct weir_synth_config config = small("astrobench", "stats");
    config.cameras = "main,left";
    config.stats = &stats;
    config.progress = on_progress;
    config.user = &seen;
    write_or_fail(&config);
    cr_expect_eq(seen.calls, 2 * 5 * 2 + 2);
    cr_expect_eq(seen.last_done, 2);
    cr_expect_not(seen.backwards);
    cr_expect_eq(stats.episodes, 2);
    cr_expect_eq(stats.frames, 20);
    cr_expect_eq(stats.jpeg_frames, 20);
    struct stat a, b;
    cr_assert_eq(stat(episode_path(&config, 0), &a), 0);
    cr_assert_eq(stat(episode_path(&config, 1), &b), 0);
    cr_expect_eq(stats.bytes, (uint64_t)(a.st_size + b.st_size));
    cr_expect_lt(stats.jpeg_bytes, stats.bytes);
}
