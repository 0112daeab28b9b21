/* Zarr v2 replay buffers: reading valid ones from folders and archives, and errors for invalid ones. */
#include "datasets/chunks/filters.h"
#include "datasets/zarr/zip_index.h"
#include "pipeline/samples/fetch.h"
#include "tests/fixtures/loader_fixture.h"
#include "tests/fixtures/zarr_fixture.h"

#include "weir/dataset.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SIDE = 4, FRAME = SIDE * SIDE * 3 };

static struct zfx store;
static struct weir_dataset *dataset;
static struct weir_err err;

static void open_all(void)
{
    fixture_open();
    store = (struct zfx){0};
    err = (struct weir_err)WEIR_ERR_NONE;
    dataset = NULL;
}

static void close_all(void)
{
    weir_dataset_close(&dataset);
    zfx_free(&store);
    fixture_close();
}

TestSuite(zarr, .init = open_all, .fini = close_all);

static int open_it(const char *path)
{
    struct weir_dataset_config config = {.size = sizeof config, .path = path};
    weir_dataset_close(&dataset);
    return weir_dataset_open(&dataset, &config, &err);
}

/* Returns a new path that ends with this name. */
static const char *new_path(const char *end)
{
    static int paths;
    char name[64];
    snprintf(name, sizeof name, "d%d%s", paths++, end);
    return fixture_path(name);
}

static const char *as_folder(void)
{
    const char *path = new_path(".zarr");
    zfx_folder(&store, path);
    return path;
}

static const char *as_zip(const struct zfx_zip *how)
{
    const char *path = new_path(".zarr.zip");
    zfx_zip(&store, path, how);
    return path;
}

static void open_fetcher(struct weir_fetcher *fetcher, struct weir_file_set **files)
{
    cr_assert_eq(weir_fetch_files(dataset, files), 0);
    cr_assert_eq(weir_fetcher_open(fetcher, dataset, *files, "pread", &err), 0, "%s", err.text);
}

static void read_frame(int episode, int t, uint8_t frame[FRAME])
{
    struct weir_file_set *files;
    struct weir_fetcher fetcher;
    const uint8_t *bytes;
    size_t length;
    open_fetcher(&fetcher, &files);
    int rc = weir_fetch_frame(&fetcher, episode, 0, t, NULL, 0, &bytes, &length);
    cr_assert_eq(rc, 0, "%s", fetcher.reason);
    cr_assert_eq(length, FRAME);
    memcpy(frame, bytes, FRAME);
    weir_fetcher_close(&fetcher);
    weir_file_set_close(&files);
}

/* Compares every frame and every row with the data that zfx_replay wrote. */
static void check_replay(const char *path)
{
    static const int steps[] = {3, 5};
    uint8_t frame[FRAME];
    cr_assert_eq(open_it(path), 0, "%s", err.text);
    cr_assert_eq(weir_dataset_episodes(dataset), 2);
    cr_assert_eq(weir_dataset_cameras(dataset), 1);
    cr_assert_str_eq(weir_dataset_layout(dataset, 0), "diffusion-policy");
    cr_assert_str_eq(weir_dataset_camera(dataset, 0)->name, "img");
    for (int e = 0, row = 0; e < 2; e++) {
        cr_assert_eq(weir_dataset_steps(dataset, e), steps[e]);
        for (int t = 0; t < steps[e]; t++, row++) {
            cr_assert_eq(weir_dataset_qpos(dataset, e)[2 * t + 1], (float)(10 * row + 1));
            cr_assert_eq(weir_dataset_actions(dataset, e)[2 * t], (float)(10 * row));
            read_frame(e, t, frame);
            for (int i = 0; i < FRAME; i++)
                cr_assert_eq(frame[i], 20 * row, "%s: frame %d, byte %d: %d", path, row, i, frame[i]);
        }
    }
}

/* Most chunk sizes do not divide the episodes' lengths; for example, with chunks of 2 the second episode (row 3) starts
 * inside a chunk. */
Test(zarr, folders_and_archives)
{
    for (int chunk = 1; chunk <= 9; chunk++) {
        zfx_free(&store);
        zfx_replay(&store, SIDE, chunk);
        check_replay(as_folder());
        check_replay(as_zip(NULL));
    }
}

Test(zarr, archives_as_they_come)
{
    zfx_replay(&store, SIDE, 2);
    zfx_put(&store, "data/img/1.0.0.0", "an earlier one", 14);
    zfx_free(&store);
    zfx_put(&store, "data/img/1.0.0.0", "an earlier one", 14); /* if a name occurs twice, the last member counts */
    zfx_replay(&store, SIDE, 2);
    check_replay(as_zip(NULL));
    check_replay(as_zip(&(struct zfx_zip){.zip64 = true}));
    check_replay(as_zip(&(struct zfx_zip){.before = 1000}));
    check_replay(as_zip(&(struct zfx_zip){.before = 7, .zip64 = true, .comment = "a comment"}));
}

/* The path may be the folder above the buffer, and the buffer's name need not end in .zarr. */
Test(zarr, where_it_is_found)
{
    char inner[700];
    const char *above = new_path("above");
    mkdir(above, 0777);
    snprintf(inner, sizeof inner, "%s/replay_buffer", above);
    zfx_replay(&store, SIDE, 1);
    zfx_folder(&store, inner);
    check_replay(above);
    cr_assert_str_eq(weir_dataset_episode_path(dataset, 1), inner);
    check_replay(inner);
    cr_assert_eq(weir_dataset_files(dataset), 1);
}

Test(zarr, a_chunk_that_was_never_written)
{
    uint8_t frame[FRAME];
    for (int chunk = 1; chunk <= 2; chunk++) {
        zfx_free(&store);
        zfx_replay(&store, SIDE, chunk);
        zfx_drop(&store, chunk == 1 ? "data/img/4.0.0.0" : "data/img/2.0.0.0");
        zfx_drop(&store, "data/img/.zarray");
        zfx_text(&store, "data/img/.zarray",
                 chunk == 1 ? "{\"zarr_format\": 2, \"shape\": [8, 4, 4, 3], \"chunks\": [1, 4, 4, 3], \"dtype\": "
                              "\"|u1\", \"fill_value\": 7}"
                            : "{\"zarr_format\": 2, \"shape\": [8, 4, 4, 3], \"chunks\": [2, 4, 4, 3], \"dtype\": "
                              "\"|u1\", \"fill_value\": 7}");
        for (int zip = 0; zip < 2; zip++) {
            cr_assert_eq(open_it(zip ? as_zip(NULL) : as_folder()), 0, "%s", err.text);
            read_frame(1, 1, frame);
            cr_assert(frame[0] == 7 && frame[FRAME - 1] == 7, "%d", frame[0]);
            read_frame(1, 0, frame);
            cr_assert_eq(frame[0], 60);
        }
    }
}

/* Another process may write into the folder while it is open. */
Test(zarr, a_changed_chunk_is_noticed)
{
    zfx_replay(&store, SIDE, 1);
    const char *path = as_folder();
    char chunk[700];
    uint8_t frame[FRAME] = {0};
    struct weir_file_set *files;
    struct weir_fetcher fetcher;
    const uint8_t *bytes;
    size_t length;
    cr_assert_eq(open_it(path), 0, "%s", err.text);
    snprintf(chunk, sizeof chunk, "%s/data/img/2.0.0.0", path);
    unlink(chunk);
    int fd = open(chunk, O_WRONLY | O_CREAT, 0666);
    cr_assert_eq(write(fd, frame, FRAME - 1), FRAME - 1);
    close(fd);
    open_fetcher(&fetcher, &files);
    cr_assert_eq(weir_fetch_frame(&fetcher, 0, 0, 1, NULL, 0, &bytes, &length), 0);
    cr_assert_eq(weir_fetch_frame(&fetcher, 0, 0, 2, NULL, 0, &bytes, &length), -ESTALE);
    weir_fetcher_close(&fetcher);
    weir_file_set_close(&files);
}

Test(zarr, umi_has_no_action)
{
    static const char *const names[] = {"robot0_demo_start_pose", "robot0_eef_pos", "robot0_eef_rot_axis_angle",
                                        "robot0_gripper_width"};
    float row[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    zfx_replay(&store, SIDE, 1);
    zfx_drop(&store, "data/action/.zarray");
    zfx_drop(&store, "data/state/.zarray");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char name[64], chunk[80];
        snprintf(name, sizeof name, "data/%s", names[i]);
        snprintf(chunk, sizeof chunk, "%s/0.0", name);
        zfx_array(&store, name, "[8, 1]", "[8, 1]", "<f4", "null");
        for (int t = 0; t < 8; t++)
            row[t] = (float)(100 * i) + (float)t;
        zfx_put(&store, chunk, row, sizeof row);
    }
    cr_assert_eq(open_it(as_folder()), 0, "%s", err.text);
    cr_assert_eq(weir_dataset_qpos_dim(dataset), 4);
    cr_assert_eq(weir_dataset_action_dim(dataset), 3);
    cr_assert_eq(weir_dataset_qpos(dataset, 1)[0], 3.0f);
    cr_assert_eq(weir_dataset_actions(dataset, 1)[2], 303.0f);
}

/* ---- invalid stores ---- */

static void refused(const char *path, int code, const char *what)
{
    err = (struct weir_err)WEIR_ERR_NONE;
    cr_assert_eq(open_it(path), code, "wanted %s: %s", what, err.text);
    cr_assert_not_null(strstr(err.text, what), "wanted %s: %s", what, err.text);
    cr_assert_not_null(strstr(err.text, path), "%s", err.text);
    cr_assert_null(strchr(err.text, '\n'));
}

/* Replaces one member in the JSON of img/.zarray, and expects an error. */
static void refused_array(const char *member, int code, const char *what)
{
    char text[1024];
    zfx_free(&store);
    zfx_replay(&store, SIDE, 1);
    zfx_drop(&store, "data/img/.zarray");
    /* If a JSON key occurs twice, the last value counts. */
    snprintf(text, sizeof text,
             "{\"zarr_format\": 2, \"shape\": [8, 4, 4, 3], \"chunks\": [1, 4, 4, 3], \"dtype\": \"|u1\", "
             "\"compressor\": null, \"fill_value\": 0, \"order\": \"C\", \"filters\": null, %s}",
             member);
    zfx_text(&store, "data/img/.zarray", text);
    refused(as_folder(), code, what);
}

/* The error for oversized arrays must be -EFBIG, not -ENOMEM. */
Test(zarr, arrays_that_are_too_large)
{
    refused_array("\"shape\": [8, 20000, 20000, 3], \"chunks\": [1, 20000, 20000, 3]", -EFBIG,
                  "data/img: each chunk takes 1144 MiB of memory");
    /* Refused before the files of so many chunks are searched. */
    refused_array("\"shape\": [8, 1024, 1024, 3], \"chunks\": [1, 1, 1, 3]", -EFBIG,
                  "its shape requires 8388608 chunks");
    refused_array("\"shape\": [8, 1024, 1024, 3], \"chunks\": [1, 1, 1, 3], \"dimension_separator\": \"/\"", -EFBIG,
                  "its shape requires 8388608 chunks");
}

/* ---- modified archives ---- */

static void replace_in_file(const char *path, const char *find, size_t skip, const char *with)
{
    static uint8_t bytes[1 << 16];
    int fd = open(path, O_RDWR | O_CLOEXEC);
    ssize_t n = read(fd, bytes, sizeof bytes);
    cr_assert(fd >= 0 && n > 0 && n < (ssize_t)sizeof bytes);
    /* The first match is in a local header, which precedes the directory. */
    uint8_t *at = memmem(bytes, (size_t)n, find, strlen(find));
    cr_assert_not_null(at, "%s", find);
    cr_assert_eq(pwrite(fd, with, strlen(with), at - bytes + (off_t)skip), (ssize_t)strlen(with));
    close(fd);
}

static int count_damage(void *user, const char *part, const char *why)
{
    int *n = user;
    cr_assert_str_eq(part, "data/img/3.0.0.0");
    cr_assert_not_null(strstr(why, "does not match its checksum"), "%s", why);
    return ++*n, 0;
}

Test(zarr, archives_that_were_altered)
{
    static const struct {
        const char *find, *with;
        size_t skip;
        const char *says;
    } of[] = {
        {"data/action/0.0", "S", 5, "data/action/0.0: its header in the archive belongs to another member"},
        {"data/img/2.0.0.0", "9", 9, "data/img/2.0.0.0: its header in the archive belongs to another member"},
        {"data/action/0.0", "x", 15 + 3, "data/action: chunk 0: does not match its checksum"},
        {"data/img/.zarray", " ", 16 + 1, "data/img/.zarray: does not match its checksum"},
    };
    zfx_replay(&store, SIDE, 1);
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        const char *path = as_zip(NULL);
        cr_assert_eq(open_it(path), 0, "%s", err.text);
        replace_in_file(path, of[i].find, of[i].skip, of[i].with);
        refused(path, -EBADMSG, of[i].says);
    }
    const char *path = as_zip(NULL);
    replace_in_file(path, "data/img/3.0.0.0", 16 + 5, "x");
    cr_assert_eq(open_it(path), 0, "%s", err.text); /* opening does not read frames, so it succeeds */
    int n = 0;
    cr_assert_eq(weir_dataset_check_file(dataset, 0, count_damage, &n, &err), 0, "%s", err.text);
    cr_assert_eq(n, 1);
}

/* A sparse file that ends like an archive of 90 million members. */
struct holes {
    uint8_t end[22 + 20 + 56];
    uint64_t size, read;
};

static int read_holes(void *user, uint64_t offset, void *buffer, size_t n)
{
    struct holes *holes = user;
    uint64_t end = holes->size - sizeof holes->end;
    holes->read += n;
    memset(buffer, 0, n);
    for (uint64_t at = offset < end ? end : offset; at < offset + n; at++)
        ((uint8_t *)buffer)[at - offset] = holes->end[at - end];
    return 0;
}

Test(zarr, a_directory_is_read_as_far_as_it_is_one)
{
    const uint64_t bytes = 4000000000, entries = 86000000;
    struct holes holes = {.end = {'P', 'K', 6, 6, 44}, .size = bytes + sizeof holes.end};
    for (int i = 0; i < 8; i++) {
        holes.end[32 + i] = (uint8_t)(entries >> 8 * i);
        holes.end[40 + i] = (uint8_t)(bytes >> 8 * i);
    }
    memcpy(holes.end + 56, "PK\6\7", 4);
    holes.end[56 + 16] = 1;
    memcpy(holes.end + 76, "PK\5\6", 4);
    struct weir_raw_file raw = {read_holes, &holes, 0, holes.size};
    struct weir_zip zip;
    cr_assert_eq(weir_zip_open(&zip, &raw, &err), -EBADMSG);
    cr_assert_not_null(strstr(err.text, "an entry of its directory is invalid"), "%s", err.text);
    cr_assert_lt(holes.read, 2 << 20);
}

/* Attributes specify the colour order of a copy. If unreadable ones were ignored, red and blue could be swapped. */
Test(zarr, attributes_that_cannot_be_read)
{
    static const char *const broken[] = {"{\"weir\": {\"color\": \"bgr\"}", "", "[\"bgr\"]"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        zfx_free(&store);
        zfx_replay(&store, SIDE, 1);
        zfx_text(&store, ".zattrs", broken[i]);
        refused(as_folder(), -EBADMSG, ".zattrs: not a JSON object");
    }
}

/* A damaged "bgr" must not be treated as "rgb". */
Test(zarr, colours_that_are_neither_rgb_nor_bgr)
{
    static const char *const broken[] = {"{\"weir\": {\"color\": \"bgs\"}}", "{\"weir\": {\"color\": 1}}"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        zfx_free(&store);
        zfx_replay(&store, SIDE, 1);
        zfx_text(&store, ".zattrs", broken[i]);
        refused(as_folder(), -EBADMSG, ".zattrs: weir.color must be rgb or bgr");
    }
}

Test(zarr, arrays_that_cannot_be_read)
{
    refused_array("\"zarr_format\": 3", -EBADMSG, "data/img: .zarray: its zarr_format is not 2");
    refused_array("\"order\": \"F\"", -ENOTSUP, "data/img: its order is F");
    refused_array("\"dtype\": \"<c8\"", -ENOTSUP, "elements of type \"<c8\" are not supported");
    refused_array("\"dtype\": [[\"a\", \"<f4\"]]", -ENOTSUP, "elements of type struct");
    refused_array("\"compressor\": {\"id\": \"lzma\"}", -ENOTSUP, "its compressor lzma is not supported");
    refused_array("\"compressor\": {\"level\": 1}", -EBADMSG, "its compressor has no id");
    refused_array("\"compressor\": {\"id\": \"imagecodecs_jpegls\"}", -ENOTSUP, "imagecodecs_jpegls");
    refused_array("\"filters\": [{\"id\": \"delta\"}]", -ENOTSUP, "it has the filter delta");
    refused_array("\"shape\": [8, -4, 4, 3]", -EBADMSG, "shape has an invalid number");
    refused_array("\"shape\": [8, 4, 4.5, 3]", -EBADMSG, "shape has an invalid number");
    refused_array("\"chunks\": [1, 4, 4]", -EBADMSG, "chunks must be a list of 4 numbers");
    refused_array("\"chunks\": [0, 4, 4, 3]", -EBADMSG, "chunks has an invalid number");
    refused_array("\"shape\": [4000000000, 4, 4, 3]", -EBADMSG, "an implausible number of chunks");
    refused_array("\"shape\": [90000000, 4, 4, 3]", -EFBIG, "few of them exist");
    refused_array("\"dimension_separator\": \"-\"", -EBADMSG, "dimension_separator");
    refused_array("\"fill_value\": \"x\"", -EBADMSG, "fill_value");
    refused_array("\"shape\": [7, 4, 4, 3]", -EBADMSG, "data/img: has 7 rows, but meta/episode_ends ends at 8");
    refused_array("\"compressor\": {\"id\": \"imagecodecs_jpeg\"}, \"chunks\": [2, 4, 4, 3]", -ENOTSUP,
                  "must contain exactly one frame");
    zfx_drop(&store, "data/img/.zarray");
    zfx_text(&store, "data/img/.zarray", "{\"zarr_format\": 2, ");
    refused(as_folder(), -EBADMSG, "data/img: .zarray: not a JSON object");
}

Test(zarr, episodes_that_make_no_sense)
{
    static const int64_t wrong[][2] = {{3, 3}, {5, 4}, {0, 8}, {-1, 8}, {3, INT64_MAX}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        zfx_free(&store);
        zfx_replay(&store, SIDE, 1);
        zfx_drop(&store, "meta/episode_ends/0");
        zfx_put(&store, "meta/episode_ends/0", wrong[i], sizeof wrong[i]);
        refused(as_folder(), -EBADMSG, "ends must increase");
    }
    zfx_drop(&store, "meta/episode_ends/0");
    zfx_put(&store, "meta/episode_ends/0", wrong, 15);
    refused(as_folder(), -EBADMSG, "meta/episode_ends: chunk 0: its chunk contains fewer bytes");
    zfx_drop(&store, "meta/episode_ends/.zarray");
    refused(as_folder(), -ENOENT, "has no array meta/episode_ends");
    zfx_drop(&store, ".zgroup");
    refused(as_folder(), -EBADMSG, "has no .zgroup");
    zfx_text(&store, "zarr.json", "{}");
    refused(as_folder(), -ENOTSUP, "is Zarr version 3");
}

Test(zarr, archives_that_cannot_be_read)
{
    zfx_replay(&store, SIDE, 1);
    refused(as_zip(&(struct zfx_zip){.method = 8}), -ENOTSUP, "is compressed in the archive (method 8, deflate)");
    refused(as_zip(&(struct zfx_zip){.no_end = true}), -EBADMSG, "not a complete zip archive: it has no end record");
    zfx_drop(&store, ".zgroup");
    refused(as_zip(NULL), -EBADMSG, "has no .zgroup at its top");
    zfx_free(&store);
    refused(as_zip(&(struct zfx_zip){.no_end = true}), -EBADMSG, "the file is too short");
}

/* Damages and cuts the archive throughout. Opening must fail with a message or succeed, but never crash. Sanitizers
 * detect invalid accesses. */
Test(zarr, damaged_archives)
{
    zfx_replay(&store, SIDE, 8);
    const char *path = as_zip(&(struct zfx_zip){.zip64 = true});
    struct stat st;
    cr_assert_eq(stat(path, &st), 0);
    for (off_t at = 0; at < st.st_size; at += 3) {
        uint8_t byte = 0, other;
        int fd = open(path, O_RDWR);
        cr_assert_eq(pread(fd, &byte, 1, at), 1);
        other = (uint8_t)(byte ^ 0xFF);
        cr_assert_eq(pwrite(fd, &other, 1, at), 1);
        if (open_it(path) < 0)
            cr_assert(strlen(err.text) > 0 && !strchr(err.text, '\n'));
        cr_assert_eq(pwrite(fd, &byte, 1, at), 1);
        close(fd);
    }
    for (off_t n = st.st_size - 1; n >= 0; n -= 7) {
        cr_assert_eq(truncate(path, n), 0);
        cr_assert_lt(open_it(path), 0);
    }
}

/* ---- floats as pixels ---- */

Test(zarr, floats_become_pixels)
{
    static const float to_one[] = {0, 1, 0.5f, -1, 2, 1 / 255.0f, 0.0f / 0.0f};
    static const uint8_t right[] = {0, 255, 128, 0, 255, 1, 0};
    uint8_t out[7];
    weir_floats_to_pixels(4 | WEIR_FLOATS_TO_ONE, (const uint8_t *)to_one, 7, out);
    cr_assert_arr_eq(out, right, 7);
    /* 100, 1, infinity, a subnormal number. */
    static const uint8_t big_halfs[] = {0x56, 0x40, 0x3C, 0x00, 0x7C, 0x00, 0x00, 0x01};
    static const uint8_t right_halfs[] = {100, 1, 255, 0};
    weir_floats_to_pixels(2 | WEIR_FLOATS_BIG_ENDIAN, big_halfs, 4, out);
    cr_assert_arr_eq(out, right_halfs, 4);
}

static void put_floats(float white)
{
    static float pixels[8 * FRAME];
    for (int i = 0; i < 8 * FRAME; i++)
        pixels[i] = white * (float)(20 * (i / FRAME)) / 255;
    zfx_free(&store);
    zfx_replay(&store, SIDE, 8);
    zfx_array(&store, "data/img", "[8, 4, 4, 3]", "[8, 4, 4, 3]", "<f4", "null");
    zfx_drop(&store, "data/img/0.0.0.0");
    zfx_put(&store, "data/img/0.0.0.0", pixels, sizeof pixels);
}

Test(zarr, pixels_stored_as_floats)
{
    put_floats(255);
    check_replay(as_folder());
    put_floats(1);
    check_replay(as_zip(NULL));
    put_floats(-1);
    refused(as_folder(), -ENOTSUP, "float pixels are from");
    put_floats(0);
    refused(as_folder(), -ENOTSUP, "it is unknown whether white is 1 or 255");
}

/* ---- channels in any order ---- */

enum { HEIGHT = 9, WIDTH = 8, ROWS = 8, CHANNELS_MAX = 4, PIXELS = HEIGHT * WIDTH };

static uint8_t value_of(int t, int y, int x, int c)
{
    return (uint8_t)(1 + t * 29 + y * 17 + x * 5 + c * 71);
}

struct order {
    const char *shape; /* shape of a frame, as in JSON */
    int channels;
    bool is_planar;
};

/* Writes data/NAME as one chunk with all rows. With `floats`, values are 0 to 1 instead of bytes. */
static void put_camera(const char *name, const struct order *order, bool floats)
{
    static uint8_t bytes[ROWS * PIXELS * CHANNELS_MAX];
    static float numbers[ROWS * PIXELS * CHANNELS_MAX];
    char array[64], shape[64], chunk[80];
    size_t n = 0;
    for (int t = 0; t < ROWS; t++)
        for (int i = 0; i < PIXELS * order->channels; i++, n++) {
            int c = order->is_planar ? i / PIXELS : i % order->channels;
            int pixel = order->is_planar ? i % PIXELS : i / order->channels;
            bytes[n] = value_of(t, pixel / WIDTH, pixel % WIDTH, c);
            numbers[n] = (float)bytes[n] / 255;
        }
    snprintf(array, sizeof array, "data/%s", name);
    snprintf(shape, sizeof shape, "[%d, %s]", ROWS, order->shape);
    snprintf(chunk, sizeof chunk, "%s/0.0.0%s", array, strlen(order->shape) > 6 ? ".0" : "");
    zfx_array(&store, array, shape, shape, floats ? "<f4" : "|u1", "null");
    zfx_put(&store, chunk, floats ? (void *)numbers : bytes, n * (floats ? sizeof(float) : 1));
}

static void check_camera(int camera, int channels)
{
    struct weir_file_set *files;
    struct weir_fetcher fetcher;
    const uint8_t *bytes;
    size_t length;
    open_fetcher(&fetcher, &files);
    for (int e = 0, row = 0; e < 2; e++)
        for (int t = 0; t < weir_dataset_steps(dataset, e); t++, row++) {
            int rc = weir_fetch_frame(&fetcher, e, camera, t, NULL, 0, &bytes, &length);
            cr_assert_eq(rc, 0, "%s", fetcher.reason);
            cr_assert_eq(length, 3 * PIXELS);
            for (int i = 0; i < 3 * PIXELS; i++)
                cr_assert_eq(bytes[i], value_of(row, i / 3 / WIDTH, i / 3 % WIDTH, channels == 1 ? 0 : i % 3),
                             "row %d, value %d", row, i);
        }
    weir_fetcher_close(&fetcher);
    weir_file_set_close(&files);
}

/* No camera is skipped or mistaken for state values. */
Test(zarr, channels_in_any_order)
{
    static const struct order orders[] = {{"9, 8, 3", 3, false}, {"3, 9, 8", 3, true}, {"9, 8, 4", 4, false},
                                          {"4, 9, 8", 4, true},  {"9, 8", 1, false},   {"9, 8, 1", 1, false},
                                          {"1, 9, 8", 1, true}};
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++)
        for (int floats = 0; floats < (orders[i].channels > 1 ? 2 : 1); floats++) {
            zfx_free(&store);
            zfx_replay(&store, SIDE, 1);
            put_camera("front", &orders[i], floats);
            cr_assert_eq(open_it(as_folder()), 0, "%s: %s", orders[i].shape, err.text);
            cr_assert_eq(weir_dataset_cameras(dataset), 2, "%s", orders[i].shape);
            cr_assert_str_eq(weir_dataset_camera(dataset, 0)->name, "front");
            cr_assert_eq(weir_dataset_qpos_dim(dataset), 2);
            check_camera(0, orders[i].channels);
        }
}

static bool note_has(const char *what)
{
    char note[1024];
    for (int i = 0; weir_dataset_left_out(dataset, i, note, sizeof note); i++)
        if (strstr(note, what))
            return true;
    return false;
}

Test(zarr, cameras_that_cannot_be_read)
{
    static const struct {
        const char *shape, *dtype, *said;
    } others[] = {{"[8, 9, 8, 3]", "<u2", "uint16 (steps, 9, 8, 3)"},
                  {"[8, 3, 9, 8]", "|i1", "int8 (steps, 3, 9, 8)"},
                  {"[8, 9, 8, 3]", "|i1", "int8 (steps, 9, 8, 3)"},
                  {"[8, 9, 8]", "<i4", "int32 (steps, 9, 8)"},
                  {"[8, 32, 40]", "<f4", "float32 (steps, 32, 40)"}};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        char named[128], left_out[128];
        zfx_free(&store);
        zfx_replay(&store, SIDE, 1);
        zfx_array(&store, "data/front", others[i].shape, others[i].shape, others[i].dtype, "null");
        const char *path = as_folder();
        check_replay(path);
        cr_assert_eq(weir_dataset_qpos_dim(dataset), 2, "%s", others[i].said);
        snprintf(left_out, sizeof left_out, "camera front is left out: %s; images are read from uint8", others[i].said);
        cr_assert(note_has(left_out), "%s", left_out);
        snprintf(named, sizeof named, "camera front cannot be read: %s", others[i].said);
        struct weir_dataset_config config = {.size = sizeof config, .path = path, .cameras = "img,front"};
        struct weir_dataset *wanted;
        cr_assert_eq(weir_dataset_open(&wanted, &config, &err), -ENOTSUP);
        cr_assert_not_null(strstr(err.text, named), "%s", err.text);
        err = (struct weir_err)WEIR_ERR_NONE;
        config.cameras = "img";
        cr_assert_eq(weir_dataset_open(&wanted, &config, &err), 0, "%s", err.text);
        weir_dataset_close(&wanted);
    }
}

/* An array that does not have the shape of images is used as state. */
Test(zarr, keypoints_are_no_images)
{
    float points[ROWS * 9 * 2] = {0};
    zfx_replay(&store, SIDE, 1);
    zfx_array(&store, "data/keypoint", "[8, 9, 2]", "[8, 9, 2]", "<f4", "null");
    zfx_put(&store, "data/keypoint/0.0.0", points, sizeof points);
    cr_assert_eq(open_it(as_folder()), 0, "%s", err.text);
    cr_assert_eq(weir_dataset_qpos_dim(dataset), 2 + 18);
    cr_assert_not(note_has("keypoint"));
}

Test(zarr, rows_after_the_last_episode)
{
    static const int64_t ends[] = {2, 5};
    zfx_replay(&store, SIDE, 1);
    zfx_drop(&store, "meta/episode_ends/0");
    zfx_put(&store, "meta/episode_ends/0", ends, sizeof ends);
    cr_assert_eq(open_it(as_folder()), 0, "%s", err.text);
    cr_assert_eq(weir_dataset_steps(dataset, 1), 3);
    cr_assert(note_has("3 rows are left out: they come after the last of meta/episode_ends, 5"));
}

/* Notes about skipped arrays are stored in the index file, too. */
Test(zarr, left_out_again_from_the_index)
{
    static const struct order gray = {"9, 8", 1, false};
    zfx_replay(&store, SIDE, 1);
    put_camera("front", &gray, false);
    zfx_array(&store, "data/wrist", "[8, 9, 8, 3]", "[8, 9, 8, 3]", "<u2", "null");
    const char *path = as_zip(NULL); /* index files never describe folders */
    struct weir_dataset_config config = {.size = sizeof config, .path = path, .index = new_path(".index")};
    for (int i = 0; i < 2; i++) {
        weir_dataset_close(&dataset);
        cr_assert_eq(weir_dataset_open(&dataset, &config, &err), 0, "%s", err.text);
        cr_assert_eq(weir_dataset_files_from_index(dataset), i);
        cr_assert(note_has("camera wrist is left out"));
        check_camera(0, 1);
    }
}
