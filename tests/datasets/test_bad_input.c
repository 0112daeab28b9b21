/* Invalid folders, files and file structures. */
#include "tests/fixtures/bad_input.h"
#include "tests/fixtures/loader_fixture.h"

#include "weir/loader.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

TestSuite(bad_input, .init = fixture_open, .fini = fixture_close);

enum { STEPS = 6 };

static const struct h5fx_episode act = {.steps = STEPS, .cameras = {{.name = "top"}, {.name = "wrist"}}};
static const struct h5fx_episode actpp = {
    .steps = STEPS, .cameras = {{.name = "top", .content = H5FX_PADDED}, {.name = "wrist", .content = H5FX_PADDED}}};
static const struct h5fx_episode bench = {
    .steps = STEPS,
    .astrobench = true,
    .cameras = {{.name = "left", .content = H5FX_VLEN}, {.name = "main", .content = H5FX_VLEN}}};

/* ---- paths ---- */

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    fputs(text, file);
    fclose(file);
}

Test(bad_input, paths)
{
    mkdir(fixture_path("empty"), 0777);
    bad_input_try("an empty folder", fixture_path("empty"),
                  bad_stops(-ENOENT, "/empty: no episode files", "choose the folder"));
    mkdir(fixture_path("others"), 0777);
    write_text(fixture_path("others/episode_0.npz"), "PK");
    write_text(fixture_path("others/data-00000-of-00001.arrow"), "ARROW1");
    bad_input_try("other formats", fixture_path("others"),
                  bad_stops(-ENOENT, "in this folder, but files *.arrow, .npz; convert them", NULL));
    mkdir(fixture_path("empty/x.hdf5"), 0777);
    bad_input_try("a folder named like a file", fixture_path("empty/x.hdf5"),
                  bad_stops(-ENOENT, "/empty/x.hdf5: no episode files", NULL));
    bad_input_try("no such folder", fixture_path("none"),
                  bad_stops(-ENOENT, "/none: No such file or directory", "specify the folder"));
    bad_input_try("an empty name", "", bad_stops(-ENOENT, "the path is empty", NULL));
    write_text(fixture_path("text"), "hello\n");
    bad_input_try("a text file", fixture_path("text"), bad_stops(-EBADMSG, "/text: not an HDF5 file", NULL));
    bad_input_try("a path through a file", fixture_path("text/x"), bad_stops(-ENOTDIR, "/text/x: ", NULL));
    cr_assert_eq(mkfifo(fixture_path("fifo.hdf5"), 0666), 0);
    bad_input_try("a FIFO", fixture_path("fifo.hdf5"), bad_stops(-EINVAL, "fifo.hdf5: not a regular file", NULL));
    bad_input_try("a device", "/dev/zero", bad_stops(-EINVAL, "/dev/zero: not a regular file", NULL));
    cr_assert_eq(symlink("loop.hdf5", fixture_path("loop.hdf5")), 0);
    bad_input_try("a link to itself", fixture_path("loop.hdf5"), bad_stops(-ELOOP, "/loop.hdf5: ", NULL));
}

Test(bad_input, files_that_are_no_episodes)
{
    static const struct {
        const char *about, *link;
        int code;
        const char *part;
    } rows[] = {{"dangling", "nowhere", -ENOENT, "No such file"},
                {"circle", "episode_1.hdf5", -ELOOP, "symbolic links"}};
    const char *path = bad_input_episodes(&act), *bad = bad_input_episode(1);
    struct bad_expect expect = bad_leaves_out_one(-EBADMSG, bad, "not an HDF5 file", NULL);
    write_text(bad, "");
    bad_input_try("no bytes", path, expect);
    write_text(bad, "these are no frames\n");
    bad_input_try("text", path, expect);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cr_assert_eq(unlink(bad), 0);
        cr_assert_eq(symlink(rows[i].link, bad), 0);
        expect = bad_leaves_out_one(rows[i].code, bad, rows[i].part, NULL);
        bad_input_try(rows[i].about, path, expect);
    }
    for (int i = 0; i < 3; i++) {
        unlink(bad_input_episode(i));
        write_text(bad_input_episode(i), "\x89HDF");
    }
    bad_input_try("none is good", path, bad_stops(-EBADMSG, bad_input_episode(0), "not an HDF5 file"));
}

Test(bad_input, files_that_git_lfs_has_not_fetched)
{
    static const char *const names[] = {"a.hdf5", "a.tfrecord", "a.zarr.zip", "a.weir", "a.mdb"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        write_text(fixture_path(names[i]), "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n");
        bad_input_try(names[i], fixture_path(names[i]), bad_stops(-ENODATA, names[i], "is a Git LFS pointer; fetch"));
    }
}

Test(bad_input, truncated_files)
{
    static const struct h5fx_episode *const kinds[] = {&act, &actpp, &bench};
    char about[64];
    for (int k = 0; k < 3; k++) {
        const char *path = bad_input_episodes(kinds[k]), *bad = bad_input_episode(1);
        off_t whole = (off_t)h5fx_file_bytes(bad);
        const off_t lengths[] = {whole - 1, whole - whole / 10, whole / 2, 2048, 800, 96, 9, 8, 1};
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
            cr_assert_eq(truncate(bad, lengths[i]), 0);
            snprintf(about, sizeof about, "kind %d, %ld of %ld bytes", k, (long)lengths[i], (long)whole);
            bad_input_try(about, path, bad_leaves_out_one(-EBADMSG, bad, "HDF5", NULL));
        }
    }
}

Test(bad_input, a_file_that_may_not_be_read)
{
    const char *path = bad_input_episodes(&act), *bad = bad_input_episode(1);
    chmod(fixture_path("."), 0755);
    cr_assert_eq(chmod(bad, 0), 0);
    struct weir_dataset *dataset;
    struct weir_dataset_config config = {.size = sizeof config, .path = path};
    struct weir_err err = WEIR_ERR_NONE;
    bool root = geteuid() == 0;
    cr_assert(!root || seteuid(65534) == 0);
    int rc = weir_dataset_open(&dataset, &config, &err);
    cr_assert(!root || seteuid(0) == 0);
    cr_assert_eq(rc, -EACCES);
    cr_assert(strstr(err.text, bad) && strstr(err.text, "permissions"), "%s", err.text);
    const char *arguments[] = {"run", path, NULL};
    char *text;
    int status = bad_input_program(arguments, root, NULL, &text);
    if (status < 0)
        return;
    /* The user "nobody" may be unable to execute the program. */
    cr_assert(status == 1 || text[0] == '\0', "%d: %s", status, text);
    cr_assert(status != 1 || (strstr(text, bad) && strstr(text, "permissions")), "%s", text);
    free(text);
}

/* ---- datasets that are missing or of the wrong type ---- */

struct change {
    const char *about, *key, *type; /* type: NULL removes the dataset */
    int rank;
    uint64_t dims[10];
    const char *parts[2];
    int code; /* expected error; 0 = -EBADMSG */
};

/* Returns zeros for a dataset of at most a million numbers. Returns NULL for larger datasets, images and strings, whose
 * values are never written. */
static double *zeros(const struct change *c)
{
    bool camera = strstr(c->key, "images") || strstr(c->key, "rgb_");
    uint64_t n = 1;
    for (int i = 0; i < c->rank && n <= 1000000; i++)
        n *= c->dims[i] < 1000001 ? c->dims[i] : 1000001;
    return camera || n > 1000000 || !c->type || strcmp(c->type, "str") == 0 ? NULL : calloc(n + 1, sizeof(double));
}

/* Applies each change to the second episode. The error message must contain the file's path. */
static void try_changes(const struct h5fx_episode *episode, const struct change *changes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct change *c = &changes[i];
        const char *path = bad_input_episodes(episode), *bad = bad_input_episode(1);
        double *values = zeros(c);
        h5fx_put(bad, c->key, c->type, c->rank, c->dims, values);
        free(values);
        struct bad_expect expect = bad_leaves_out_one(c->code ? c->code : -EBADMSG, bad, c->parts[0], c->parts[1]);
        bad_input_try(c->about, path, expect);
    }
}

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const struct change act_changes[] = {
    {"no qpos", "/observations/qpos", NULL, 0, {0}, {"/observations/qpos: missing dataset"}, -ENOENT},
    {"no action", "/action", NULL, 0, {0}, {"/action: missing dataset"}, -ENOENT},
    {"no camera", "/observations/images/top", NULL, 0, {0}, {"no camera \"top\"; it has wrist"}, -ENOKEY},
    {"no images",
     "/observations/images",
     NULL,
     0,
     {0},
     {"no known layout", "observations/qpos (4); for example: weir run"},
     0},
    {"no observations", "/observations", NULL, 0, {0}, {"no known layout", "action (3)"}, 0},
    {"images are numbers", "/observations/images", "u8", 1, {3}, {"/observations/images", "not a group"}, 0},
    {"qpos rank 1", "/observations/qpos", "f32", 1, {STEPS}, {"/observations/qpos: has rank 1", "(steps, dim"}, 0},
    {"qpos rank 3", "/observations/qpos", "f32", 3, {STEPS, 2, 2}, {"/observations/qpos: has rank 3"}, 0},
    {"qpos rank 9", "/observations/qpos", "f32", 9, {6, 1, 1, 1, 1, 1, 1, 1, 1}, {"/observations/qpos: has rank 9"}, 0},
    {"action rank 0", "/action", "f64", 0, {0}, {"/action: has rank 0"}, 0},
    {"qpos text", "/observations/qpos", "str", 2, {STEPS, 4}, {"/observations/qpos: contains no numbers"}, 0},
    {"action text", "/action", "str", 2, {STEPS, 3}, {"/action: contains no numbers"}, 0},
    {"no steps", "/observations/qpos", "f32", 2, {0, 4}, {"/observations/qpos: has 0 steps", "--on-error skip"}, 0},
    {"no actions", "/action", "f32", 2, {0, 3}, {"/action: has 0 steps"}, 0},
    {"no dimensions", "/action", "f32", 2, {STEPS, 0}, {"/action: its shape (6, 0)"}, 0},
    {"fewer actions", "/action", "f32", 2, {STEPS - 1, 3}, {"has 6 steps, but /action has 5", "same length"}, 0},
    {"more states", "/observations/qpos", "f32", 2, {STEPS + 1, 4}, {"has 7 steps, but /action has 6"}, 0},
    {"other states", "/observations/qpos", "f32", 2, {STEPS, 5}, {"5 and 3 dimensions", "4 and 3"}, 0},
    {"other actions", "/action", "f32", 2, {STEPS, 2}, {"4 and 2 dimensions", "4 and 3"}, 0},
    {"images rank 3", "/observations/images/top", "u8", 3, {STEPS, 16, 24}, {"images/top: has rank 3"}, 0},
    {"images rank 5", "/observations/images/top", "u8", 5, {6, 1, 16, 24, 3}, {"images/top: has rank 5"}, 0},
    {"images rank 1", "/observations/images/top", "u8", 1, {STEPS}, {"images/top: has rank 1"}, 0},
    {"floats", "/observations/images/top", "f32", 4, {6, 16, 24, 3}, {"images/top: ", "uint8 (steps, height"}, 0},
    {"16 bits", "/observations/images/top", "i16", 4, {6, 16, 24, 3}, {"top: ", "int16 (steps, 16, 24, 3)"}, 0},
    {"4 channels", "/observations/images/top", "u8", 4, {6, 16, 24, 4}, {"images/top: ", "uint8 (steps, height"}, 0},
    {"no height",
     "/observations/images/top",
     "u8",
     4,
     {6, 0, 24, 3},
     {"images/top: the frame size is invalid (24x0)"},
     0},
    {"no frames", "/observations/images/top", "u8", 4, {0, 16, 24, 3}, {"images/top: has 0 frames"}, 0},
    {"fewer frames", "/observations/images/top", "u8", 4, {5, 16, 24, 3}, {"images/top has 5 frames", "6 steps"}, 0},
    {"more frames", "/observations/images/top", "u8", 4, {7, 16, 24, 3}, {"images/top has 7 frames", "6 steps"}, 0},
    {"another size", "/observations/images/top", "u8", 4, {6, 16, 32, 3}, {"frames of 32x16, but in ", "24x16"}, 0},
    /* exceeds the maximum */
    {"endless states", "/observations/qpos", "f32", 2, {1ull << 40, 1 << 20}, {"/observations/qpos: its shape"}, 0},
    {"big states",
     "/observations/qpos",
     "f32",
     2,
     {90000000, 4},
     {"/observations/qpos: ", "larger than 1 GiB"},
     -EFBIG},
    {"many states", "/observations/qpos", "f32", 2, {200000000, 1}, {"/observations/qpos: its shape"}, 0},
    {"wide states", "/action", "f32", 2, {STEPS, 70000}, {"/action: its shape (6, 70000)"}, 0},
    {"endless frames",
     "/observations/images/top",
     "u8",
     4,
     {1ull << 40, 16, 24, 3},
     {"images/top: has 1099511627776"},
     0},
    {"tall",
     "/observations/images/top",
     "u8",
     4,
     {6, 70000, 8, 3},
     {"images/top: the frame size is invalid (8x70000)"},
     0},
    {"huge", "/observations/images/top", "u8", 4, {6, 65000, 65000, 3}, {"images/top: a frame has over 2 GiB"}, -EFBIG},
};

Test(bad_input, act)
{
    try_changes(&act, act_changes, COUNT(act_changes));
}

Test(bad_input, actpp)
{
    static const struct change changes[] = {
        {"no qpos", "/observations/qpos", NULL, 0, {0}, {"/observations/qpos: missing dataset"}, -ENOENT},
        {"no action", "/action", NULL, 0, {0}, {"/action: missing dataset"}, -ENOENT},
        {"no images", "/observations/images", NULL, 0, {0}, {"/observations/images: is not a group"}, 0},
        {"no camera", "/observations/images/top", NULL, 0, {0}, {"no camera \"top\"; it has wrist"}, -ENOKEY},
        {"rank 1",
         "/observations/images/top",
         "u8",
         1,
         {STEPS},
         {"images/top: has rank 1", "or from JPEGs in rows"},
         0},
        {"rank 3",
         "/observations/images/top",
         "u8",
         3,
         {6, 10, 10},
         {"images/top: has rank 3", "or from JPEGs in rows"},
         0},
        {"16 bits", "/observations/images/top", "i16", 2, {6, 500}, {"images/top: ", "int16 (steps, 500)"}, 0},
        {"floats", "/observations/images/top", "f32", 2, {6, 500}, {"images/top: ", "float32 (steps, 500)"}, 0},
        {"fewer frames", "/observations/images/wrist", "u8", 2, {5, 500}, {"images/wrist has 5 frames", "6 steps"}, 0},
        {"empty rows", "/observations/images/top", "u8", 2, {6, 0}, {"images/top: its rows are empty"}, 0},
        {"huge rows",
         "/observations/images/top",
         "u8",
         2,
         {6, 1ull << 40},
         {"images/top: a frame has over 2 GiB"},
         -EFBIG},
        {"no steps", "/observations/qpos", "f32", 2, {0, 4}, {"/observations/qpos: has 0 steps"}, 0},
    };
    try_changes(&actpp, changes, COUNT(changes));
}

Test(bad_input, astrobench)
{
    static const struct change changes[] = {
        {"no joint_pos", "/observations/joint_pos", NULL, 0, {0}, {"/observations/joint_pos: missing"}, -ENOENT},
        {"no actions", "/action/joint_positions", NULL, 0, {0}, {"/action/joint_positions: missing"}, -ENOENT},
        {"no action", "/action", NULL, 0, {0}, {"/action/joint_positions: missing"}, -ENOENT},
        {"no camera", "/observations/rgb_main", NULL, 0, {0}, {"no camera \"rgb_main\"; it has rgb_left"}, -ENOKEY},
        {"numbers",
         "/observations/rgb_main",
         "u8",
         1,
         {STEPS},
         {"/observations/rgb_main: has rank 1", "or from JPEGs"},
         0},
        {"joint_pos rank 1", "/observations/joint_pos", "f32", 1, {STEPS}, {"/observations/joint_pos: has rank 1"}, 0},
        {"more steps",
         "/observations/joint_pos",
         "f32",
         2,
         {7, 4},
         {"has 7 steps, but /action/joint_positions has 6"},
         0},
    };
    try_changes(&bench, changes, COUNT(changes));
    const char *path = bad_input_episodes(&bench), *bad = bad_input_episode(1);
    const uint64_t dims[2] = {5, 4}, action_dims[2] = {5, 3};
    const double values[20] = {0};
    h5fx_put(bad, "/observations/joint_pos", "f32", 2, dims, values);
    h5fx_put(bad, "/action/joint_positions", "f32", 2, action_dims, values);
    struct bad_expect expect = bad_leaves_out_one(-EBADMSG, bad, "rgb_left has 6 frames", "has 5 steps");
    bad_input_try("fewer states than frames", path, expect);
    h5fx_put(bad, "/observations/rgb_left", NULL, 0, dims, NULL);
    h5fx_put(bad, "/observations/rgb_main", NULL, 0, dims, NULL);
    expect = bad_leaves_out_one(-EBADMSG, bad, "no camera \"rgb_left\"; it has no cameras", NULL);
    bad_input_try("no cameras", path, expect);
}

/* The dataset has space for numbers, but none were written, as in an interrupted recording. */
Test(bad_input, numbers_that_were_never_written)
{
    static const struct {
        const char *key;
        uint64_t dims[2];
    } rows[] = {{"/observations/qpos", {STEPS, 4}}, {"/action", {STEPS, 3}}};
    for (int i = 0; i < 2; i++) {
        const char *path = bad_input_episodes(&actpp), *bad = bad_input_episode(1);
        h5fx_put(bad, rows[i].key, "f32", 2, rows[i].dims, NULL);
        bad_input_try(rows[i].key, path, bad_leaves_out_one(-EBADMSG, bad, rows[i].key, "was never written"));
    }
}

Test(bad_input, layouts_that_do_not_mix)
{
    const char *path = bad_input_episodes(&act), *bad = bad_input_episode(1);
    h5fx_write(bad, &bench);
    struct bad_expect expect = bad_leaves_out_one(-EBADMSG, bad, "no camera \"top\"; it has rgb_left, rgb_main", NULL);
    bad_input_try("other cameras", path, expect);
}

/* ---- names ---- */

Test(bad_input, names_that_would_steer_a_terminal)
{
    mkdir(fixture_path("d"), 0777);
    write_text(fixture_path("d/a\nweir run: fine\x1b[2K.hdf5"), "no");
    bad_input_try("a file's name", fixture_path("d"),
                  bad_stops(-EBADMSG, "d/a?weir run: fine?[2K.hdf5: not an HDF5 file", NULL));
    struct h5fx_episode episode = {.steps = STEPS,
                                   .cameras = {{.name = "to\x1b[31mp\n", .content = H5FX_PADDED},
                                               {.name = "\xe2\x80\xae\xff", .content = H5FX_PADDED}}};
    fixture_close();
    fixture_open();
    const char *path = bad_input_episodes(&episode);
    fixture_damage(path, 1, 0, 3, FIXTURE_ZEROED);
    struct bad_expect expect = {-EBADMSG, {bad_input_episode(1), "images/to?[31mp?[3]"}, BAD_LOSES, 0, 1, 1, 1, 0,
                                true};
    bad_input_try("a camera's name", path, expect);
}
