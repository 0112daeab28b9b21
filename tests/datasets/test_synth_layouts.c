#include "datasets/hdf5/h5_write.h"
#include "tests/fixtures/h5_fixture.h"
#include "tests/fixtures/loader_fixture.h"
#include "weir/dataset.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <hdf5.h>

enum { EPISODES = 3, STEPS = 5, WIDTH = 96, HEIGHT = 80, FRAME_BYTES = WIDTH * HEIGHT * 3 };

TestSuite(synth_layouts, .init = fixture_open, .fini = fixture_close);

static const char *write_data(const char *format, const char *cameras)
{
    return fixture_synth(format, format, EPISODES, STEPS, WIDTH, HEIGHT, cameras);
}

static hid_t fine(hid_t id)
{
    cr_assert_geq(id, 0);
    return id;
}

static hid_t open_file(const char *data, const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", data, name);
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    cr_assert_geq(file, 0, "%s", path);
    return file;
}

/* ---- contents of a file ---- */

enum storage { CONTIGUOUS, ROW_CHUNKS, GZIP };

struct object {
    const char *name, *type; /* type: f4 f8 u1 u2 i8, "u1*" = variable length, S = string */
    int rank;
    hsize_t dims[4];
    enum storage storage;
};

static void type_name(hid_t type, char name[16])
{
    static const struct {
        H5T_class_t class;
        char letter;
    } letters[] = {{H5T_FLOAT, 'f'}, {H5T_INTEGER, 'i'}, {H5T_STRING, 'S'}};
    char letter = '?';
    for (size_t i = 0; i < sizeof letters / sizeof letters[0]; i++)
        letter = H5Tget_class(type) == letters[i].class ? letters[i].letter : letter;
    if (H5Tget_class(type) == H5T_VLEN) {
        hid_t element = H5Tget_super(type);
        type_name(element, name);
        strcat(name, "*");
        H5Tclose(element);
        return;
    }
    if (letter == 'i' && H5Tget_sign(type) == H5T_SGN_NONE)
        letter = 'u';
    if (letter == 'S')
        snprintf(name, 16, "S");
    else
        snprintf(name, 16, "%c%zu", letter, H5Tget_size(type));
}

static void expect_gzip(hid_t plist, const char *name)
{
    unsigned flags, level = 0, filter_config;
    size_t n = 1;
    cr_assert_eq(H5Pget_nfilters(plist), 1, "%s", name);
    H5Z_filter_t filter = H5Pget_filter2(plist, 0, &flags, &n, &level, 0, NULL, &filter_config);
    cr_expect(filter == H5Z_FILTER_DEFLATE && level == 4, "%s: filter %d, %u", name, filter, level);
}

static void expect_storage(hid_t set, const struct object *object, const char *name)
{
    hid_t plist = fine(H5Dget_create_plist(set)), type = fine(H5Dget_type(set));
    hsize_t chunk[4];
    uint64_t dims[4], wanted[4];
    H5D_layout_t layout = H5Pget_layout(plist);
    cr_assert_eq(layout, object->storage == CONTIGUOUS ? H5D_CONTIGUOUS : H5D_CHUNKED, "%s", name);
    if (object->storage == CONTIGUOUS || object->storage == ROW_CHUNKS)
        cr_expect_eq(H5Pget_nfilters(plist), 0, "%s", name);
    else
        expect_gzip(plist, name);
    for (int i = 0; i < object->rank; i++)
        wanted[i] = dims[i] = object->dims[i];
    wanted[0] = 1;
    if (object->storage == GZIP)
        weir_chunk_guess(dims, object->rank, H5Tget_size(type), wanted);
    if (object->storage != CONTIGUOUS)
        cr_assert_eq(H5Pget_chunk(plist, 4, chunk), object->rank);
    for (int i = 0; i < object->rank && object->storage != CONTIGUOUS; i++)
        cr_expect_eq(chunk[i], wanted[i], "%s: chunk %d is %llu", name, i, (unsigned long long)chunk[i]);
    H5Tclose(type);
    H5Pclose(plist);
}

static void expect_object(hid_t file, const char *prefix, const struct object *object)
{
    char name[256], type[16];
    hsize_t dims[8] = {0};
    snprintf(name, sizeof name, "%s%s", prefix, object->name);
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
    cr_assert_geq(set, 0, "%s is missing", name);
    hid_t space = fine(H5Dget_space(set)), stored = fine(H5Dget_type(set));
    type_name(stored, type);
    cr_expect_str_eq(type, object->type, "%s: %s", name, type);
    cr_assert_eq(H5Sget_simple_extent_dims(space, dims, NULL), object->rank, "%s", name);
    for (int i = 0; i < object->rank; i++)
        cr_expect_eq(dims[i], object->dims[i], "%s: dimension %d is %llu", name, i, (unsigned long long)dims[i]);
    expect_storage(set, object, name);
    H5Tclose(stored);
    H5Sclose(space);
    H5Dclose(set);
}

static herr_t count_set(hid_t file, const char *name, const H5O_info_t *info, void *user)
{
    (void)file;
    (void)name;
    *(int *)user += info->type == H5O_TYPE_DATASET;
    return 0;
}

/* Expects these datasets, and no others below `prefix` ("" = the whole file). */
#define EXPECT_OBJECTS(file, prefix, objects)                                                                          \
    expect_objects(file, prefix, objects, (int)(sizeof(objects) / sizeof(objects)[0]))

static void expect_objects(hid_t file, const char *prefix, const struct object *objects, int n)
{
    int sets = 0;
    for (int i = 0; i < n; i++)
        expect_object(file, prefix, &objects[i]);
    cr_assert_geq(
        H5Ovisit_by_name(file, *prefix ? prefix : "/", H5_INDEX_NAME, H5_ITER_INC, count_set, &sets, H5P_DEFAULT), 0);
    cr_expect_eq(sets, n, "%s has %d datasets", prefix, sets);
}

static int64_t integer(hid_t file, const char *group, const char *name)
{
    int64_t value = -1;
    hid_t attribute = H5Aopen_by_name(file, group, name, H5P_DEFAULT, H5P_DEFAULT);
    cr_assert_geq(attribute, 0, "%s: %s", group, name);
    fine(H5Aread(attribute, H5T_NATIVE_INT64, &value));
    H5Aclose(attribute);
    return value;
}

/* Reads a boolean attribute, stored as h5py stores a bool. */
static bool boolean(hid_t file, const char *group, const char *name)
{
    int8_t value = -1, yes = -1;
    hid_t attribute = H5Aopen_by_name(file, group, name, H5P_DEFAULT, H5P_DEFAULT);
    cr_assert_geq(attribute, 0, "%s: %s", group, name);
    hid_t type = H5Aget_type(attribute);
    cr_assert(H5Tget_class(type) == H5T_ENUM && H5Tget_size(type) == 1);
    fine(H5Tenum_valueof(type, "TRUE", &yes));
    fine(H5Aread(attribute, type, &value));
    H5Tclose(type);
    H5Aclose(attribute);
    return value == yes;
}

static void expect_text(hid_t file, const char *group, const char *name, const char *part)
{
    char *text = NULL;
    hid_t attribute = H5Aopen_by_name(file, group, name, H5P_DEFAULT, H5P_DEFAULT);
    cr_assert_geq(attribute, 0, "%s: %s", group, name);
    hid_t type = H5Aget_type(attribute);
    cr_assert(H5Tis_variable_str(type) > 0 && H5Tget_cset(type) == H5T_CSET_UTF8);
    fine(H5Aread(attribute, type, &text));
    cr_expect_not_null(strstr(text, part), "%s: %s", name, text);
    H5free_memory(text);
    H5Tclose(type);
    H5Aclose(attribute);
}

/* ---- values ---- */

/* Reads a whole dataset. With type < 0, values keep their stored type. The caller frees the result. */
static void *read_all(hid_t file, const char *name, hid_t type)
{
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
    cr_assert_geq(set, 0, "%s", name);
    hid_t space = fine(H5Dget_space(set)), stored = fine(H5Dget_type(set)), memory = type < 0 ? stored : type;
    void *data = malloc((size_t)H5Sget_simple_extent_npoints(space) * H5Tget_size(memory));
    cr_assert_geq(H5Dread(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, data), 0, "%s", name);
    H5Tclose(stored);
    H5Sclose(space);
    H5Dclose(set);
    return data;
}

static double *numbers(hid_t file, const char *name)
{
    return read_all(file, name, H5T_NATIVE_DOUBLE);
}

static double furthest(const double *a, const double *b, int n)
{
    double most = 0;
    for (int i = 0; i < n; i++)
        most = fmax(most, fabs(a[i] - b[i]));
    return most;
}

static void expect_jpeg(const void *bytes, size_t length)
{
    int width, height;
    uint8_t *pixels = h5fx_pixels(bytes, length, false, &width, &height);
    cr_assert_not_null(pixels);
    cr_expect(width == WIDTH && height == HEIGHT);
    free(pixels);
}

/* Checks the depth at the centre of each frame, in millimetres. The camera is about a metre above the table. */
static void expect_table_depth(const uint16_t *depth)
{
    for (int t = 0; t < STEPS; t++) {
        int middle = depth[t * WIDTH * HEIGHT + HEIGHT / 2 * WIDTH + WIDTH / 2];
        cr_expect(middle > 500 && middle < 1800, "%d mm", middle);
    }
}

/* Returns the checksum lines of a run over these cameras. Each line is cut off before `until` if it is not NULL. The
 * caller frees the result. */
static char *checksums(const char *data, const char *cameras, const char *until)
{
    struct weir_loader_config config;
    struct weir_err err;
    int rc;
    weir_loader_config_default(&config);
    config.data = data;
    config.cameras = cameras;
    config.num_workers = 2;
    char *text = fixture_checksums(&config, &rc, &err), *to = text;
    cr_assert_eq(rc, 0, "%s", err.text);
    cr_assert(*text);
    for (const char *from = text, *end; until && *from; from = end + 1) {
        const char *cut = strstr(from, until);
        end = strchr(from, '\n');
        cr_assert(end && cut && cut < end);
        to = (char *)memmove(to, from, (size_t)(cut - from)) + (cut - from);
        *to = '\0';
    }
    return text;
}

/* ---- reading with weir ---- */

struct reading {
    char format[16], layout[16];
    int cameras, qpos, actions;
};

static struct reading readings[] = {
    {"act", "act", 2, 14, 14},
    {"act-jpeg", "act-plus-plus", 2, 14, 14},
    {"act-jpeg-nolen", "act-plus-plus", 2, 14, 14},
    {"agilex", "agilex", 3, 14, 14},
    {"astrobench", "astrobench", 4, 28, 28},
    {"robotwin", "robotwin", 4, 14, 14},
    {"robomind", "robomind", 3, 14, 14},
    {"robomimic", "robomimic", 2, 32, 14},
    {"robomimic-gzip", "robomimic", 2, 32, 14},
    {"libero", "libero", 2, 21, 7},
    {"isaaclab", "isaaclab", 2, 34, 14},
};

ParameterizedTestParameters(synth_layouts, recognised)
{
    return cr_make_param_array(struct reading, readings, sizeof readings / sizeof readings[0]);
}

ParameterizedTest(struct reading *expected, synth_layouts, recognised)
{
    struct weir_dataset *dataset;
    const char *data = write_data(expected->format, NULL);
    const struct weir_dataset_config config = {.size = sizeof config, .path = data};
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_dataset_open(&dataset, &config, &err), 0, "%s", err.text);
    cr_assert_eq(weir_dataset_episodes(dataset), EPISODES);
    for (int i = 0; i < EPISODES; i++) {
        cr_expect_str_eq(weir_dataset_layout(dataset, i), expected->layout);
        cr_expect_eq(weir_dataset_steps(dataset, i), STEPS);
    }
    cr_expect_eq(weir_dataset_cameras(dataset), expected->cameras);
    cr_expect_eq(weir_dataset_qpos_dim(dataset), expected->qpos);
    cr_expect_eq(weir_dataset_action_dim(dataset), expected->actions);
    struct weir_storage_kind kind;
    for (int c = 0; c < expected->cameras; c++)
        for (int k = 0; weir_dataset_storage(dataset, c, k, &kind); k++)
            cr_expect(!kind.library, "camera %d: %s is read through the library", c, kind.text);
    weir_dataset_close(&dataset);
    free(checksums(data, NULL, NULL));
}

static void expect_same_run(const char *a, const char *b, const char *cameras, const char *until)
{
    char *x = checksums(a, cameras, until), *y = checksums(b, cameras, until);
    cr_expect_str_eq(x, y);
    free(x);
    free(y);
}

Test(synth_layouts, storage_changes_no_value)
{
    expect_same_run(write_data("act-jpeg", NULL), write_data("act-jpeg-nolen", NULL), NULL, NULL);
    expect_same_run(write_data("robomimic", NULL), write_data("robomimic-gzip", NULL), NULL, NULL);
    /* Depth is stored raw in one dataset and as PNG in the other. Actions differ, so they are not compared. */
    expect_same_run(write_data("agilex", "top,left_wrist"), write_data("robomind", "top,left_wrist"),
                    "depth_top,depth_left_wrist", " actions");
}

/* ---- the layouts ---- */

Test(synth_layouts, act_jpeg_nolen)
{
    static const char camera[] = "/observations/images/top";
    hid_t with = open_file(write_data("act-jpeg", "top"), "episode_1.hdf5"),
          without = open_file(write_data("act-jpeg-nolen", "top"), "episode_1.hdf5");
    cr_expect(boolean(without, "/", "sim") && boolean(without, "/", "compress"));
    cr_expect_gt(H5Lexists(with, "/compress_len", H5P_DEFAULT), 0);
    cr_expect_eq(H5Lexists(without, "/compress_len", H5P_DEFAULT), 0);
    hsize_t dims[2];
    hid_t set = fine(H5Dopen2(without, camera, H5P_DEFAULT)), space = H5Dget_space(set);
    cr_assert_eq(H5Sget_simple_extent_dims(space, dims, NULL), 2);
    uint8_t *a = read_all(with, camera, -1), *b = read_all(without, camera, -1);
    cr_expect_eq(memcmp(a, b, dims[0] * dims[1]), 0);
    for (hsize_t t = 0; t < STEPS; t++)
        expect_jpeg(b + t * dims[1], dims[1]);
    free(a);
    free(b);
    H5Sclose(space);
    H5Dclose(set);
    H5Fclose(with);
    H5Fclose(without);
}

Test(synth_layouts, agilex)
{
    static const struct object objects[] = {
        {"/action", "f4", 2, {STEPS, 14}, CONTIGUOUS},
        {"/base_action", "f4", 2, {STEPS, 2}, CONTIGUOUS},
        {"/observations/qpos", "f4", 2, {STEPS, 14}, CONTIGUOUS},
        {"/observations/qvel", "f4", 2, {STEPS, 14}, CONTIGUOUS},
        {"/observations/effort", "f4", 2, {STEPS, 14}, CONTIGUOUS},
        {"/observations/images/cam_high", "u1", 4, {STEPS, HEIGHT, WIDTH, 3}, ROW_CHUNKS},
        {"/observations/images/cam_left_wrist", "u1", 4, {STEPS, HEIGHT, WIDTH, 3}, ROW_CHUNKS},
        {"/observations/images/cam_right_wrist", "u1", 4, {STEPS, HEIGHT, WIDTH, 3}, ROW_CHUNKS},
        {"/observations/images_depth/cam_high", "u2", 3, {STEPS, HEIGHT, WIDTH}, ROW_CHUNKS},
        {"/observations/images_depth/cam_left_wrist", "u2", 3, {STEPS, HEIGHT, WIDTH}, ROW_CHUNKS},
        {"/observations/images_depth/cam_right_wrist", "u2", 3, {STEPS, HEIGHT, WIDTH}, ROW_CHUNKS},
    };
    hid_t file = open_file(write_data("agilex", NULL), "episode_2.hdf5");
    EXPECT_OBJECTS(file, "", objects);
    cr_expect_not(boolean(file, "/", "sim"));
    cr_expect_not(boolean(file, "/", "compress"));
    uint16_t *depth = read_all(file, "/observations/images_depth/cam_high", H5T_NATIVE_UINT16);
    expect_table_depth(depth);
    free(depth);
    H5Fclose(file);
}

/* Expects strings as long as the longest frame, padded with zeros. Returns the number of zeros inside the JPEGs. */
static int expect_strings(hid_t file, const char *name)
{
    hid_t set = fine(H5Dopen2(file, name, H5P_DEFAULT)), type = fine(H5Dget_type(set));
    cr_assert(H5Tget_class(type) == H5T_STRING && !H5Tis_variable_str(type));
    cr_expect_eq(H5Tget_strpad(type), H5T_STR_NULLPAD);
    cr_expect_eq(H5Tget_cset(type), H5T_CSET_ASCII);
    size_t bytes = H5Tget_size(type), longest = 0;
    uint8_t *rows = read_all(file, name, -1);
    int zeros = 0;
    for (size_t t = 0; t < STEPS; t++) {
        const uint8_t *row = rows + t * bytes;
        size_t length = bytes;
        while (length > 2 && row[length - 1] == 0)
            length--;
        cr_expect(row[length - 2] == 0xff && row[length - 1] == 0xd9);
        expect_jpeg(row, length);
        for (size_t i = 0; i < length; i++)
            zeros += row[i] == 0;
        longest = length > longest ? length : longest;
    }
    cr_expect_eq(longest, bytes);
    free(rows);
    H5Tclose(type);
    H5Dclose(set);
    return zeros;
}

Test(synth_layouts, robotwin)
{
    static const struct object objects[] = {
        {"/joint_action/left_arm", "f8", 2, {STEPS, 6}, CONTIGUOUS},
        {"/joint_action/left_gripper", "f8", 1, {STEPS}, CONTIGUOUS},
        {"/joint_action/right_arm", "f8", 2, {STEPS, 6}, CONTIGUOUS},
        {"/joint_action/right_gripper", "f8", 1, {STEPS}, CONTIGUOUS},
        {"/joint_action/vector", "f8", 2, {STEPS, 14}, CONTIGUOUS},
        {"/observation/head_camera/rgb", "S", 1, {STEPS}, CONTIGUOUS},
        {"/observation/left_camera/rgb", "S", 1, {STEPS}, CONTIGUOUS},
        {"/observation/right_camera/rgb", "S", 1, {STEPS}, CONTIGUOUS},
        {"/observation/front_camera/rgb", "S", 1, {STEPS}, CONTIGUOUS},
    };
    hid_t file = open_file(write_data("robotwin", NULL), "data/episode1.hdf5");
    EXPECT_OBJECTS(file, "", objects);
    for (size_t i = 5; i < sizeof objects / sizeof objects[0]; i++)
        cr_expect_gt(expect_strings(file, objects[i].name), 10 * STEPS, "too few zeros to test a reader");
    static const struct {
        const char *name;
        int at, width;
    } parts[] = {{"/joint_action/left_arm", 0, 6},
                 {"/joint_action/left_gripper", 6, 1},
                 {"/joint_action/right_arm", 7, 6},
                 {"/joint_action/right_gripper", 13, 1}};
    double *vector = numbers(file, "/joint_action/vector");
    for (size_t p = 0; p < sizeof parts / sizeof parts[0]; p++) {
        double *part = numbers(file, parts[p].name);
        for (int t = 0; t < STEPS; t++)
            cr_expect_eq(furthest(vector + 14 * t + parts[p].at, part + t * parts[p].width, parts[p].width), 0.0);
        free(part);
    }
    free(vector);
    H5Fclose(file);
}

Test(synth_layouts, robomind)
{
    static const struct object objects[] = {
        {"/master/joint_position_left", "f8", 2, {STEPS, 7}, CONTIGUOUS},
        {"/master/joint_position_right", "f8", 2, {STEPS, 7}, CONTIGUOUS},
        {"/puppet/joint_position_left", "f8", 2, {STEPS, 7}, CONTIGUOUS},
        {"/puppet/joint_position_right", "f8", 2, {STEPS, 7}, CONTIGUOUS},
        {"/puppet/end_effector_left", "f8", 2, {STEPS, 6}, CONTIGUOUS},
        {"/puppet/end_effector_right", "f8", 2, {STEPS, 6}, CONTIGUOUS},
        {"/observations/rgb_images/camera_front", "u1*", 1, {STEPS}, CONTIGUOUS},
        {"/observations/rgb_images/camera_left_wrist", "u1*", 1, {STEPS}, CONTIGUOUS},
        {"/observations/rgb_images/camera_right_wrist", "u1*", 1, {STEPS}, CONTIGUOUS},
        {"/observations/depth_images/camera_front", "u1*", 1, {STEPS}, CONTIGUOUS},
        {"/observations/depth_images/camera_left_wrist", "u1*", 1, {STEPS}, CONTIGUOUS},
        {"/observations/depth_images/camera_right_wrist", "u1*", 1, {STEPS}, CONTIGUOUS},
    };
    hid_t file = open_file(write_data("robomind", NULL), "success_episodes/train/0002/data/trajectory.hdf5");
    EXPECT_OBJECTS(file, "", objects);
    cr_expect_not(boolean(file, "/", "sim"));
    cr_expect(boolean(file, "/", "compress"));
    hvl_t *jpegs = read_all(file, "/observations/rgb_images/camera_front", -1);
    for (int t = 0; t < STEPS; t++) {
        expect_jpeg(jpegs[t].p, jpegs[t].len);
        H5free_memory(jpegs[t].p);
    }
    free(jpegs);
    /* The puppet follows the master one step later. */
    double *master = numbers(file, "/master/joint_position_left"),
           *puppet = numbers(file, "/puppet/joint_position_left");
    cr_expect_lt(furthest(master, puppet + 7, 7 * (STEPS - 1)), 0.002);
    cr_expect_gt(furthest(master, puppet, 7 * STEPS), 0.002);
    free(master);
    free(puppet);
    H5Fclose(file);
}

/* Row t of next_obs must equal row t + 1 of obs, for all rows except the last. */
static void expect_shifted(hid_t file, const char *obs, const char *next_obs, int width)
{
    double *now = numbers(file, obs), *next = numbers(file, next_obs);
    cr_expect_eq(furthest(now + width, next, width * (STEPS - 1)), 0.0, "%s", next_obs);
    cr_expect_gt(furthest(now, next, width * STEPS), 0.0, "%s does not move", obs);
    free(now);
    free(next);
}

static void expect_names(hid_t file, const char *name, int n, const char *const *names)
{
    hid_t set = fine(H5Dopen2(file, name, H5P_DEFAULT)), type = fine(H5Dget_type(set));
    size_t bytes = H5Tget_size(type);
    char *text = read_all(file, name, -1);
    for (int i = 0; i < n; i++)
        cr_expect(strlen(names[i]) == bytes && memcmp(text + (size_t)i * bytes, names[i], bytes) == 0, "%s[%d]", name,
                  i);
    free(text);
    H5Tclose(type);
    H5Dclose(set);
}

static void expect_robomimic(const char *data, enum storage storage)
{
    const struct object objects[] = {
        {"/actions", "f8", 2, {STEPS, 14}, storage},
        {"/states", "f8", 2, {STEPS, 29}, storage},
        {"/rewards", "f8", 1, {STEPS}, storage},
        {"/dones", "i8", 1, {STEPS}, storage},
        {"/obs/agentview_image", "u1", 4, {STEPS, HEIGHT, WIDTH, 3}, storage},
        {"/obs/robot0_eye_in_hand_image", "u1", 4, {STEPS, HEIGHT, WIDTH, 3}, storage},
        {"/obs/robot0_joint_pos", "f8", 2, {STEPS, 7}, storage},
        {"/obs/robot0_eef_pos", "f8", 2, {STEPS, 3}, storage},
        {"/obs/robot0_eef_quat", "f8", 2, {STEPS, 4}, storage},
        {"/obs/robot0_gripper_qpos", "f8", 2, {STEPS, 2}, storage},
        {"/obs/robot1_joint_pos", "f8", 2, {STEPS, 7}, storage},
        {"/obs/robot1_eef_pos", "f8", 2, {STEPS, 3}, storage},
        {"/obs/robot1_eef_quat", "f8", 2, {STEPS, 4}, storage},
        {"/obs/robot1_gripper_qpos", "f8", 2, {STEPS, 2}, storage},
        {"/next_obs/robot0_joint_pos", "f8", 2, {STEPS, 7}, storage},
        {"/next_obs/robot0_eef_pos", "f8", 2, {STEPS, 3}, storage},
        {"/next_obs/robot0_eef_quat", "f8", 2, {STEPS, 4}, storage},
        {"/next_obs/robot0_gripper_qpos", "f8", 2, {STEPS, 2}, storage},
        {"/next_obs/robot1_joint_pos", "f8", 2, {STEPS, 7}, storage},
        {"/next_obs/robot1_eef_pos", "f8", 2, {STEPS, 3}, storage},
        {"/next_obs/robot1_eef_quat", "f8", 2, {STEPS, 4}, storage},
        {"/next_obs/robot1_gripper_qpos", "f8", 2, {STEPS, 2}, storage},
    };
    static const struct object masks[] = {{"/train", "S", 1, {2}, CONTIGUOUS}, {"/valid", "S", 1, {1}, CONTIGUOUS}};
    hid_t file = open_file(data, "demos.hdf5");
    EXPECT_OBJECTS(file, "/data/demo_0", objects);
    EXPECT_OBJECTS(file, "/data/demo_2", objects);
    EXPECT_OBJECTS(file, "/mask", masks);
    expect_names(file, "/mask/train", 2, (const char *[]){"demo_0", "demo_1"});
    expect_names(file, "/mask/valid", 1, (const char *[]){"demo_2"});
    cr_expect_eq(integer(file, "/data", "total"), EPISODES * STEPS);
    cr_expect_eq(integer(file, "/data/demo_2", "num_samples"), STEPS);
    expect_text(file, "/data", "env_args", "\"env_name\": ");
    expect_text(file, "/data/demo_0", "model_file", "<mujoco");
    expect_shifted(file, "/data/demo_1/obs/robot0_joint_pos", "/data/demo_1/next_obs/robot0_joint_pos", 7);
    expect_shifted(file, "/data/demo_1/obs/robot1_eef_quat", "/data/demo_1/next_obs/robot1_eef_quat", 4);
    double *done = numbers(file, "/data/demo_1/dones");
    for (int t = 0; t < STEPS; t++)
        cr_expect_eq(done[t], t == STEPS - 1 ? 1.0 : 0.0);
    free(done);
    H5Fclose(file);
}

Test(synth_layouts, robomimic)
{
    expect_robomimic(write_data("robomimic", NULL), CONTIGUOUS);
    expect_robomimic(write_data("robomimic-gzip", NULL), GZIP);
}

Test(synth_layouts, one_demo_is_for_training)
{
    hid_t file = open_file(fixture_synth("one", "robomimic", 1, 1, 16, 16, NULL), "demos.hdf5");
    static const struct object masks[] = {{"/train", "S", 1, {1}, CONTIGUOUS}, {"/valid", "S", 1, {0}, CONTIGUOUS}};
    EXPECT_OBJECTS(file, "/mask", masks);
    expect_names(file, "/mask/train", 1, (const char *[]){"demo_0"});
    H5Fclose(file);
}

/* Actions are movements of the gripper, scaled and clipped to -1..1. A long episode contains large movements in both
 * directions. */
Test(synth_layouts, robomimic_actions)
{
    enum { LONG = 200 };
    hid_t file = open_file(fixture_synth("long", "robomimic", 1, LONG, 16, 16, "agentview"), "demos.hdf5");
    double *actions = numbers(file, "/data/demo_0/actions"), least = 0, most = 0;
    double *place = numbers(file, "/data/demo_0/obs/robot0_eef_pos");
    for (int i = 0; i < 14 * LONG; i++) {
        least = fmin(least, actions[i]);
        most = fmax(most, actions[i]);
    }
    cr_expect(least >= -1 && most <= 1 && least < -0.1 && most > 0.1, "%g to %g", least, most);
    for (int t = 0; t + 1 < LONG; t++)
        for (int i = 0; i < 3; i++) {
            double moved = place[3 * (t + 1) + i] - place[3 * t + i];
            cr_expect_lt(fabs(moved - 0.05 * actions[14 * t + i]), 0.003, "step %d, axis %d", t, i);
        }
    free(actions);
    free(place);
    H5Fclose(file);
}

Test(synth_layouts, libero)
{
    static const struct object objects[] = {
        {"/actions", "f8", 2, {STEPS, 7}, CONTIGUOUS},
        {"/states", "f8", 2, {STEPS, 29}, CONTIGUOUS},
        {"/robot_states", "f8", 2, {STEPS, 9}, CONTIGUOUS},
        {"/rewards", "u1", 1, {STEPS}, CONTIGUOUS},
        {"/dones", "u1", 1, {STEPS}, CONTIGUOUS},
        {"/obs/agentview_rgb", "u1", 4, {STEPS, HEIGHT, WIDTH, 3}, CONTIGUOUS},
        {"/obs/eye_in_hand_rgb", "u1", 4, {STEPS, HEIGHT, WIDTH, 3}, CONTIGUOUS},
        {"/obs/gripper_states", "f8", 2, {STEPS, 2}, CONTIGUOUS},
        {"/obs/joint_states", "f8", 2, {STEPS, 7}, CONTIGUOUS},
        {"/obs/ee_states", "f8", 2, {STEPS, 6}, CONTIGUOUS},
        {"/obs/ee_pos", "f8", 2, {STEPS, 3}, CONTIGUOUS},
        {"/obs/ee_ori", "f8", 2, {STEPS, 3}, CONTIGUOUS},
    };
    hid_t file = open_file(write_data("libero", NULL), "demo.hdf5");
    EXPECT_OBJECTS(file, "/data/demo_0", objects);
    EXPECT_OBJECTS(file, "/data/demo_2", objects);
    cr_expect_eq(integer(file, "/data", "total"), EPISODES * STEPS);
    cr_expect_eq(integer(file, "/data", "num_demos"), EPISODES);
    cr_expect_eq(integer(file, "/data/demo_1", "num_samples"), STEPS);
    expect_text(file, "/data", "macros_image_convention", "opencv");
    expect_text(file, "/data", "bddl_file_name", ".bddl");
    expect_text(file, "/data", "problem_info", "\"language_instruction\": ");
    double *pose = numbers(file, "/data/demo_1/obs/ee_states"), *place = numbers(file, "/data/demo_1/obs/ee_pos"),
           *turn = numbers(file, "/data/demo_1/obs/ee_ori");
    for (int t = 0; t < STEPS; t++)
        cr_expect(furthest(pose + 6 * t, place + 3 * t, 3) == 0 && furthest(pose + 6 * t + 3, turn + 3 * t, 3) == 0);
    free(pose);
    free(place);
    free(turn);
    H5Fclose(file);
}

Test(synth_layouts, isaaclab)
{
    static const struct object objects[] = {
        {"/actions", "f4", 2, {STEPS, 14}, GZIP},
        {"/obs/joint_pos", "f4", 2, {STEPS, 14}, GZIP},
        {"/obs/joint_vel", "f4", 2, {STEPS, 14}, GZIP},
        {"/obs/policy/left_eef_pos", "f4", 2, {STEPS, 3}, GZIP},
        {"/obs/policy/right_eef_pos", "f4", 2, {STEPS, 3}, GZIP},
        {"/obs/policy/table_cam", "u1", 4, {STEPS, HEIGHT, WIDTH, 3}, GZIP},
        {"/obs/policy/wrist_cam", "u1", 4, {STEPS, HEIGHT, WIDTH, 3}, GZIP},
        {"/initial_state/articulation/robot/joint_position", "f4", 2, {1, 14}, GZIP},
        {"/initial_state/articulation/robot/joint_velocity", "f4", 2, {1, 14}, GZIP},
        {"/initial_state/articulation/robot/root_pose", "f4", 2, {1, 7}, GZIP},
        {"/initial_state/articulation/robot/root_velocity", "f4", 2, {1, 6}, GZIP},
        {"/states/articulation/robot/joint_position", "f4", 2, {STEPS, 14}, GZIP},
        {"/states/articulation/robot/joint_velocity", "f4", 2, {STEPS, 14}, GZIP},
        {"/states/articulation/robot/root_pose", "f4", 2, {STEPS, 7}, GZIP},
        {"/states/articulation/robot/root_velocity", "f4", 2, {STEPS, 6}, GZIP},
    };
    hid_t file = open_file(write_data("isaaclab", NULL), "dataset.hdf5");
    EXPECT_OBJECTS(file, "/data/demo_0", objects);
    EXPECT_OBJECTS(file, "/data/demo_2", objects);
    cr_expect_eq(integer(file, "/data", "total"), EPISODES * STEPS);
    cr_expect_eq(integer(file, "/data/demo_1", "num_samples"), STEPS);
    cr_expect_eq(integer(file, "/data/demo_1", "seed"), 1);
    cr_expect(boolean(file, "/data/demo_1", "success"));
    expect_text(file, "/data", "env_args", "\"type\": 2");
    double *first = numbers(file, "/data/demo_1/initial_state/articulation/robot/joint_position"),
           *states = numbers(file, "/data/demo_1/states/articulation/robot/joint_position"),
           *actions = numbers(file, "/data/demo_1/actions");
    cr_expect_eq(furthest(first, states, 14), 0.0);
    cr_expect_lt(furthest(actions, states + 14, 14 * (STEPS - 1)), 0.002);
    free(first);
    free(states);
    free(actions);
    H5Fclose(file);
}
