/* TFRecord files of RLDS datasets: reading valid files, and errors for invalid ones. */
#include "base/hash.h"
#include "datasets/tfrecord/example.h"
#include "pipeline/verify/verify.h"
#include "tests/fixtures/jpeg_encode.h"
#include "tests/fixtures/loader_fixture.h"
#include "tests/fixtures/png_fixture.h"
#include "tests/fixtures/tfrecord_fixture.h"

#include "weir/dataset.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STEPS = 5, DIM = 7, SIDE = 16 };

static uint8_t *jpeg;
static size_t jpeg_bytes;
static struct tffx_bytes file;

static void open_all(void)
{
    fixture_open();
    jpeg = jpeg_encode(&(struct jpeg_encode){.width = SIDE, .height = SIDE, .quality = 80}, &jpeg_bytes);
    file = (struct tffx_bytes){0};
}

static void close_all(void)
{
    free(jpeg);
    free(file.bytes);
    fixture_close();
}

TestSuite(tfrecord, .init = open_all, .fini = close_all);

static const char *features_json; /* written to the next folder, next to the data file; NULL = no such file */

/* Creates a new folder with the data file in it. */
static const char *folder(const char *name)
{
    char beside[600];
    static int folders;
    static char path[512], number[16];
    snprintf(number, sizeof number, "data%d", folders++);
    const char *folder = fixture_path(number);
    mkdir(folder, 0777);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    tffx_write(&file, path);
    snprintf(beside, sizeof beside, "%s/features.json", folder);
    if (features_json) {
        tffx_put(&file, features_json, strlen(features_json));
        tffx_write(&file, beside);
    }
    features_json = NULL;
    return folder;
}

static void keep_finding(void *user, const struct weir_finding *finding)
{
    char *text = user;
    size_t n = strlen(text);
    snprintf(text + n, 4096 - n, "%s\n", finding->text);
}

static int open_it(struct weir_dataset **dataset, const char *path, bool tolerant, struct weir_err *err)
{
    struct weir_dataset_config config = {.size = sizeof config, .path = path, .tolerant = tolerant};
    return weir_dataset_open(dataset, &config, err);
}

/* Test vectors of RFC 3720, B.4. */
Test(tfrecord, checksums)
{
    uint8_t bytes[32] = {0};
    cr_assert_eq(weir_crc32c(0, bytes, 32), 0x8A9136AAu);
    memset(bytes, 0xFF, 32);
    cr_assert_eq(weir_crc32c(0, bytes, 32), 0x62A8AB43u);
    for (int i = 0; i < 32; i++)
        bytes[i] = (uint8_t)i;
    cr_assert_eq(weir_crc32c(0, bytes, 32), 0x46DD794Eu);
    cr_assert_eq(weir_crc32c(weir_crc32c(0, bytes, 13), bytes + 13, 19), 0x46DD794Eu);
}

Test(tfrecord, an_episode_a_record)
{
    struct weir_dataset *dataset;
    struct weir_err err = WEIR_ERR_NONE;
    for (int i = 0; i < 3; i++)
        tffx_episode(&file, STEPS + (size_t)i, jpeg, jpeg_bytes);
    cr_assert_eq(open_it(&dataset, folder("a-train.tfrecord-00000-of-00001"), false, &err), 0, "%s", err.text);
    cr_assert_eq(weir_dataset_episodes(dataset), 3);
    cr_assert_eq(weir_dataset_cameras(dataset), 1);
    cr_assert_str_eq(weir_dataset_layout(dataset, 0), "rlds");
    cr_assert_str_eq(weir_dataset_camera(dataset, 0)->name, "image_0");
    for (int e = 0; e < 3; e++) {
        cr_assert_eq(weir_dataset_steps(dataset, e), STEPS + e);
        const float *state = weir_dataset_qpos(dataset, e), *actions = weir_dataset_actions(dataset, e);
        for (int i = 0; i < (STEPS + e) * DIM; i++)
            cr_assert(state[i] == (float)i / 8 && actions[i] == (float)i / 8, "episode %d, value %d", e, i);
        struct weir_location location;
        cr_assert_eq(weir_locate(dataset, e, 0, STEPS - 1, &location), WEIR_HOW_EXTENT);
        cr_assert_eq(location.length, jpeg_bytes);
    }
    weir_dataset_close(&dataset);
}

/* The loader decodes all frames. */
Test(tfrecord, frames_are_decoded)
{
    tffx_episode(&file, STEPS, jpeg, jpeg_bytes);
    tffx_episode(&file, STEPS, jpeg, jpeg_bytes);
    struct weir_loader_config config;
    struct weir_err err = WEIR_ERR_NONE;
    int rc;
    weir_loader_config_default(&config);
    config.data = folder("a.tfrecord");
    config.num_epochs = 1;
    config.train_split = 1;
    config.batch_size = 2;
    char *sums = fixture_checksums(&config, &rc, &err);
    cr_assert_eq(rc, 0, "%s", err.text);
    cr_assert(strlen(sums) > 0);
    free(sums);
}

static void refused(const char *name, int code, const char *what)
{
    struct weir_dataset *dataset = NULL;
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(open_it(&dataset, folder(name), false, &err), code, "%s", err.text);
    cr_assert_not_null(strstr(err.text, what), "%s", err.text);
    cr_assert_not_null(strstr(err.text, name), "%s", err.text);
}

Test(tfrecord, damaged_files)
{
    tffx_episode(&file, STEPS, jpeg, jpeg_bytes);
    file.bytes[3] ^= 1;
    refused("a.tfrecord", -EBADMSG, "record 0, at byte 0: the checksum of its length is wrong");
    tffx_episode(&file, STEPS, jpeg, jpeg_bytes);
    tffx_episode(&file, STEPS, jpeg, jpeg_bytes);
    file.n -= 1;
    refused("a.tfrecord", -EBADMSG, "record 1, at byte");
    tffx_put(&file, "\x1f\x8b\x08\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
    refused("a.tfrecord.gz", -ENOTSUP, "gunzip");
    tffx_raw_record(&file, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11);
    refused("a.tfrecord", -EBADMSG, "record 0: a number in it has more than ten bytes");
    refused("a.tfrecord", -EBADMSG, "has no records");
}

/* A file that consists of zeros after its first bytes. */
struct holes {
    struct tffx_bytes begin;
    uint64_t read;
};

static int read_holes(void *user, uint64_t offset, void *buffer, size_t n)
{
    struct holes *holes = user;
    memset(buffer, 0, n);
    for (uint64_t at = offset; at < holes->begin.n && at - offset < n; at++)
        ((uint8_t *)buffer)[at - offset] = holes->begin.bytes[at];
    holes->read += n;
    return 0;
}

/* Opens a length-delimited field whose `left` bytes reach the end of the record. */
static void open_field(struct tffx_bytes *to, uint8_t field, uint64_t left)
{
    tffx_put(to, &(uint8_t){(uint8_t)(field << 3 | 2)}, 1);
    tffx_varint(to, left);
}

Test(tfrecord, holes_are_not_walked)
{
    static const uint64_t bytes = 5000000000;
    struct holes holes = {0};
    struct weir_raw_file source = {.read = read_holes, .user = &holes};
    struct weir_example example;
    const char *reason = NULL;
    cr_assert_eq(weir_example_walk(&example, &source, 0, bytes, &reason), -EBADMSG);
    cr_assert_str_eq(reason, "not a protocol buffers message");
    cr_assert_leq(holes.read, 1 << 16);
    open_field(&holes.begin, 1, bytes);      /* the features */
    open_field(&holes.begin, 1, bytes - 10); /* a map entry */
    open_field(&holes.begin, 2, bytes - 20); /* its value */
    open_field(&holes.begin, 3, bytes - 30); /* a list of integers */
    open_field(&holes.begin, 1, bytes - 40); /* its packed values */
    holes.read = 0;
    cr_assert_eq(weir_example_walk(&example, &source, 0, bytes + 10, &reason), -EBADMSG);
    cr_assert_str_eq(reason, "its integers exceed 1 GiB");
    cr_assert_lt(holes.read, 200 << 20);
    free(holes.begin.bytes);
}

Test(tfrecord, examples_that_are_no_episode)
{
    struct tffx_bytes features = {0};
    float values[STEPS * DIM + 1] = {0};
    int64_t first[STEPS] = {1};
    tffx_floats(&features, "x", values, STEPS, true);
    tffx_record(&file, &features);
    refused("a.tfrecord", -EBADMSG, "record 0: not an RLDS episode");
    tffx_integers(&features, "steps/is_first", first, STEPS, false);
    tffx_floats(&features, "steps/observation/state", values, STEPS * DIM + 1, true);
    tffx_record(&file, &features);
    refused("a.tfrecord", -EBADMSG, "36 values do not divide into 5 steps");
}

static int open_split(struct weir_dataset **dataset, const char *path, const char *split, struct weir_err *err)
{
    struct weir_dataset_config config = {.size = sizeof config, .path = path, .split = split};
    return weir_dataset_open(dataset, &config, err);
}

Test(tfrecord, one_split_of_a_folder)
{
    struct weir_dataset *dataset;
    struct weir_err err = WEIR_ERR_NONE;
    char file_path[600];
    const char *path = fixture_path("splits");
    mkdir(path, 0777);
    static const char *const names[] = {"a_b-c-train.tfrecord-00000-of-00002", "a_b-c-train.tfrecord-00001-of-00002",
                                        "a_b-c-val.tfrecord-00000-of-00001"};
    for (int i = 0; i < 3; i++) {
        snprintf(file_path, sizeof file_path, "%s/%s", path, names[i]);
        tffx_episode(&file, STEPS, jpeg, jpeg_bytes);
        tffx_write(&file, file_path);
    }
    cr_assert_eq(open_split(&dataset, path, NULL, &err), -EINVAL);
    cr_assert_not_null(strstr(err.text, "has the splits train, val; choose one with --split"), "%s", err.text);
    err = (struct weir_err)WEIR_ERR_NONE;
    cr_assert_eq(open_split(&dataset, path, "test", &err), -EINVAL);
    cr_assert_not_null(strstr(err.text, "has no split test; it has train, val"), "%s", err.text);
    static const struct {
        const char *split;
        int episodes;
    } right[] = {{"train", 2}, {"val", 1}, {"all", 3}};
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(open_split(&dataset, path, right[i].split, &err), 0, "%s", err.text);
        cr_assert_eq(weir_dataset_episodes(dataset), right[i].episodes);
        weir_dataset_close(&dataset);
    }
    unlink(strcat(strcpy(file_path, path), "/a_b-c-train.tfrecord-00000-of-00002"));
    err = (struct weir_err)WEIR_ERR_NONE;
    cr_assert_eq(open_split(&dataset, path, "train", &err), -ENOENT);
    cr_assert_not_null(
        strstr(err.text, "/a_b-c-train.tfrecord-00000-of-00002: the shard is missing (1 of 2 are present)"), "%s",
        err.text);
    cr_assert_eq(open_split(&dataset, path, "val", &err), 0, "another split is complete");
    weir_dataset_close(&dataset);
    struct weir_dataset_config tolerant = {.size = sizeof tolerant, .path = path, .split = "train", .tolerant = true};
    cr_assert_eq(weir_dataset_open(&dataset, &tolerant, &err), 0, "%s", err.text);
    cr_assert_not_null(strstr(weir_dataset_bad_episode(dataset, 0), "the shard is missing"));
    weir_dataset_close(&dataset);
}

Test(tfrecord, versions_of_a_dataset_are_not_mixed)
{
    static const char *const paths[] = {"kuka", "kuka/0.1.0", "kuka/1.0.0", "cube", "cube/2.0.0"};
    struct weir_dataset *dataset;
    struct weir_err err = WEIR_ERR_NONE;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        mkdir(fixture_path(paths[i]), 0777);
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"cube/2.0.0/cube-train.tfrecord-00000-of-00001",
                                            "kuka/0.1.0/kuka-train.tfrecord-00000-of-00001",
                                            "kuka/1.0.0/kuka-train.tfrecord-00000-of-00001"};
        tffx_episode(&file, STEPS, jpeg, jpeg_bytes);
        tffx_write(&file, fixture_path(names[i]));
        int rc = open_it(&dataset, fixture_path("."), false, &err);
        cr_assert_eq(rc, i < 2 ? 0 : -EBADMSG, "%s", err.text);
        weir_dataset_close(&dataset);
    }
    cr_assert_not_null(strstr(err.text, "version of kuka: 1.0.0 instead of 0.1.0"), "%s", err.text);
}

Test(tfrecord, a_bad_record_is_left_out)
{
    struct weir_dataset *dataset;
    struct weir_err err = WEIR_ERR_NONE;
    tffx_episode(&file, STEPS, jpeg, jpeg_bytes);
    tffx_raw_record(&file, "\x0b", 1);
    tffx_episode(&file, STEPS, jpeg, jpeg_bytes);
    cr_assert_eq(open_it(&dataset, folder("a.tfrecord"), true, &err), 0, "%s", err.text);
    cr_assert_eq(weir_dataset_episodes(dataset), 2);
    cr_assert_eq(weir_dataset_bad_episodes(dataset), 1);
    cr_assert_not_null(strstr(weir_dataset_bad_episode(dataset, 0), "record 1"));
    weir_dataset_close(&dataset);
}

/* Runs weir_verify and collects one line per finding. Returns the number of wrong checksums. */
static uint64_t wrong_checksums(const char *path, bool fast, char text[4096])
{
    struct weir_dataset *dataset;
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_verify_totals totals = {0};
    struct weir_verify_config config = {.workers = 2, .fast = fast, .data = path, .found = keep_finding, .user = text};
    text[0] = '\0';
    cr_assert_eq(open_it(&dataset, path, true, &err), 0, "%s", err.text);
    cr_assert_eq(weir_verify(dataset, &config, &totals, &err), 0, "%s", err.text);
    weir_dataset_close(&dataset);
    return totals.found[WEIR_FOUND_CHECKSUM];
}

/* Changes two bytes that do not affect decoding: one in an instruction, and one in the last checksum. */
Test(tfrecord, verify_checks_the_data)
{
    static char text[4096];
    const char *data;
    size_t ends[3];
    for (int i = 0; i < 3; i++) {
        tffx_episode(&file, STEPS, jpeg, jpeg_bytes);
        ends[i] = file.n;
    }
    struct tffx_bytes whole = {0};
    tffx_put(&whole, file.bytes, file.n);
    data = folder("a.tfrecord");
    cr_assert_eq(wrong_checksums(data, false, text), 0, "%s", text);
    tffx_put(&file, whole.bytes, whole.n);
    file.bytes[ends[1] - 8] ^= 1;
    file.bytes[ends[2] - 1] ^= 1;
    data = folder("a.tfrecord");
    cr_assert_eq(wrong_checksums(data, true, text), 0, "%s", text);
    cr_assert_eq(wrong_checksums(data, false, text), 2, "%s", text);
    cr_assert_not_null(strstr(text, "a.tfrecord: record 1: the checksum of its data is wrong; "), "%s", text);
    cr_assert_not_null(strstr(text, "a.tfrecord: record 2: the checksum"), "%s", text);
    free(whole.bytes);
}

/* Returns "key=value;" for each string of an episode. */
static const char *texts_of(const struct weir_dataset *dataset, int episode)
{
    static char all[1024];
    const char *key, *value;
    all[0] = '\0';
    for (int i = 0; weir_dataset_text(dataset, episode, i, &key, &value); i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s=%s;", key, value);
    return all;
}

static void put_described_episode(struct tffx_bytes *to, const char *instruction)
{
    struct tffx_bytes features = {0};
    float values[STEPS * DIM] = {0};
    tffx_floats(&features, "steps/observation/state", values, STEPS * DIM, true);
    tffx_floats(&features, "steps/action", values, STEPS * DIM, true);
    tffx_images(&features, "steps/observation/image_0", jpeg, jpeg_bytes, STEPS);
    tffx_images(&features, "steps/observation/note", "\xc3\xa4 cup", 6, STEPS);
    tffx_images(&features, "steps/observation/empty", "", 0, STEPS);
    tffx_images(&features, "steps/language_instruction", instruction, strlen(instruction), STEPS);
    tffx_images(&features, "steps/two_of_each", "no", 2, 2 * STEPS);
    tffx_images(&features, "episode_metadata/file_path", "/a/b.npy", 8, 1);
    tffx_images(&features, "episode_metadata/bytes", "\0\1", 2, 1);
    tffx_record(to, &features);
}

/* Strings belong to the episode and are not mistaken for cameras, even if the index comes from a file. */
Test(tfrecord, texts)
{
    static const char others[] = "file_path=/a/b.npy;language_instruction=%s;"
                                 "observation/note=\xc3\xa4 cup;";
    struct weir_err err = WEIR_ERR_NONE;
    char expected[512], index[512];
    put_described_episode(&file, "pick it up");
    put_described_episode(&file, "put it down");
    struct weir_dataset_config config = {.size = sizeof config, .path = folder("a.tfrecord"), .index = index};
    snprintf(index, sizeof index, "%s", fixture_path("index"));
    for (int again = 0; again < 2; again++) {
        struct weir_dataset *dataset;
        cr_assert_eq(weir_dataset_open(&dataset, &config, &err), 0, "%s", err.text);
        cr_assert_eq(weir_dataset_files_from_index(dataset), again);
        cr_assert_eq(weir_dataset_cameras(dataset), 1);
        snprintf(expected, sizeof expected, others, "pick it up");
        cr_assert_str_eq(texts_of(dataset, 0), expected);
        snprintf(expected, sizeof expected, others, "put it down");
        cr_assert_str_eq(texts_of(dataset, 1), expected);
        weir_dataset_close(&dataset);
    }
}

/* ---- features.json ---- */

/* Returns a features.json with the given dimensions of state and action ("-1" = any) and additional features. */
static const char *stated(const char *state, const char *action, const char *more)
{
    static char json[2048];
    static const char *const tensor =
        "{\"pythonClassName\": \"Tensor\", \"tensor\": {\"shape\": {\"dimensions\": [%s]}, \"dtype\": \"float32\"}}";
    char tensors[2][256];
    snprintf(tensors[0], sizeof tensors[0], tensor, state);
    snprintf(tensors[1], sizeof tensors[1], tensor, action);
    snprintf(
        json, sizeof json,
        "{\"featuresDict\": {\"features\": {\"steps\": {\"sequence\": {\"feature\": {\"featuresDict\": "
        "{\"features\": {\"action\": %s, \"observation\": {\"featuresDict\": {\"features\": {\"state\": %s%s}}}}}}, "
        "\"length\": \"-1\"}}}}}",
        tensors[1], tensors[0], more);
    return json;
}

Test(tfrecord, shapes_of_features_json)
{
    static const char *const agree[][2] = {{"\"7\"", "\"7\""}, {"7", "\"7\", 1"}, {"\"-1\"", "\"-1\", \"7\""}};
    struct weir_dataset *dataset;
    struct weir_err err = WEIR_ERR_NONE;
    for (size_t i = 0; i < sizeof agree / sizeof agree[0]; i++) {
        tffx_episode(&file, STEPS, jpeg, jpeg_bytes);
        features_json = stated(agree[i][0], agree[i][1], "");
        cr_assert_eq(open_it(&dataset, folder("a.tfrecord"), false, &err), 0, "%s", err.text);
        cr_assert_eq(weir_dataset_action_dim(dataset), DIM);
        weir_dataset_close(&dataset);
    }
    tffx_episode(&file, STEPS, jpeg, jpeg_bytes);
    features_json = stated("\"7\"", "\"5\"", "");
    refused("a.tfrecord", -EBADMSG,
            "/steps/action: 35 values in 5 steps, but features.json declares 5 per step; repair features.json or move "
            "it away");
    tffx_episode(&file, STEPS, jpeg, jpeg_bytes);
    features_json = stated("\"2\", \"7\"", "\"7\"", "");
    refused("a.tfrecord", -EBADMSG,
            "/steps/observation/state: 35 values in 5 steps, but features.json declares 14 per step");
}

Test(tfrecord, damaged_features_json)
{
    static const struct {
        const char *text, *what;
    } wrong[] = {
        {"", "features.json beside it: not a JSON object"},
        {"{\"featuresDict\": ", "features.json beside it: not a JSON object"},
        {"[1, 2]", "features.json beside it: not a JSON object"},
        {"{\"featuresDict\": {\"features\": 3}}", "features.json beside it lacks tensorflow_datasets' featuresDict"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        tffx_episode(&file, STEPS, jpeg, jpeg_bytes);
        features_json = wrong[i].text;
        refused("a.tfrecord", -EBADMSG, wrong[i].what);
    }
}

/* A feature declared as text is a string even if its bytes start like an image, and vice versa. */
Test(tfrecord, features_json_knows_texts)
{
    struct weir_dataset *dataset;
    struct weir_err err = WEIR_ERR_NONE;
    put_described_episode(&file, "pick it up");
    features_json =
        stated("\"7\"", "\"7\"",
               ", \"image_0\": {\"text\": {}}, \"note\": {\"image\": {\"shape\": {}, \"dtype\": \"uint8\"}}");
    cr_assert_eq(open_it(&dataset, folder("a.tfrecord"), false, &err), 0, "%s", err.text);
    cr_assert_eq(weir_dataset_cameras(dataset), 1);
    cr_assert_str_eq(weir_dataset_camera(dataset, 0)->name, "note");
    weir_dataset_close(&dataset);
}

/* ---- integers and PNGs ---- */

Test(tfrecord, integers_are_state_too)
{
    static const int64_t values[STEPS * 2] = {0, -1, 127, 128, INT32_MAX, INT32_MIN, 1, 2, 3, -300};
    struct weir_err err = WEIR_ERR_NONE;
    for (int packed = 0; packed < 2; packed++) {
        struct weir_dataset *dataset;
        struct tffx_bytes features = {0};
        tffx_integers(&features, "steps/observation/state", values, STEPS * 2, packed);
        tffx_integers(&features, "steps/action", values, STEPS, packed);
        tffx_images(&features, "steps/observation/image_0", jpeg, jpeg_bytes, STEPS);
        tffx_record(&file, &features);
        cr_assert_eq(open_it(&dataset, folder("a.tfrecord"), false, &err), 0, "%s", err.text);
        cr_assert_eq(weir_dataset_qpos_dim(dataset), 2);
        cr_assert_eq(weir_dataset_action_dim(dataset), 1);
        for (int i = 0; i < STEPS * 2; i++)
            cr_assert_eq(weir_dataset_qpos(dataset, 0)[i], (float)values[i], "value %d", i);
        weir_dataset_close(&dataset);
    }
}

Test(tfrecord, images_may_be_png)
{
    size_t bytes;
    const struct pngfx_image image = {.kind = PNGFX_RGB8, .width = SIDE, .height = SIDE, .filter = PNGFX_MIXED};
    uint8_t *png = pngfx_write(&image, &bytes);
    struct weir_loader_config config;
    struct weir_err err = WEIR_ERR_NONE;
    int rc;
    tffx_episode(&file, STEPS, png, bytes);
    weir_loader_config_default(&config);
    config.data = folder("a.tfrecord");
    config.num_epochs = 1;
    config.train_split = 1;
    config.batch_size = STEPS;
    char *sums = fixture_checksums(&config, &rc, &err);
    cr_assert_eq(rc, 0, "%s", err.text);
    free(sums);
    free(png);
}

/* ---- cameras without exactly one image per step ---- */

/* Adds state and actions, all zero, and the camera image_0. */
static void add_plain(struct tffx_bytes *features)
{
    float numbers[STEPS * DIM] = {0};
    tffx_floats(features, "steps/observation/state", numbers, STEPS * DIM, true);
    tffx_floats(features, "steps/action", numbers, STEPS * DIM, true);
    tffx_images(features, "steps/observation/image_0", jpeg, jpeg_bytes, STEPS);
}

/* Writes a record of STEPS steps with image_0, and with a camera "wrist" that has `images` images. */
static void put_wrist(size_t images)
{
    struct tffx_bytes features = {0};
    int64_t first[STEPS] = {1};
    tffx_integers(&features, "steps/is_first", first, STEPS, true);
    add_plain(&features);
    tffx_images(&features, "steps/observation/wrist", jpeg, jpeg_bytes, images);
    tffx_record(&file, &features);
}

Test(tfrecord, one_image_more_or_fewer_than_steps)
{
    static const size_t images[] = {STEPS - 1, STEPS + 1, 1};
    for (size_t i = 0; i < sizeof images / sizeof images[0]; i++) {
        char said[128];
        struct weir_dataset *dataset = NULL;
        struct weir_err err = WEIR_ERR_NONE;
        put_wrist(images[i]);
        const char *path = folder("a.tfrecord");
        snprintf(said, sizeof said, "record 0/steps/observation/wrist has %zu frames", images[i]);
        cr_assert_eq(open_it(&dataset, path, false, &err), -EBADMSG, "%zu images", images[i]);
        cr_assert_not_null(strstr(err.text, said), "%s", err.text);
        err = (struct weir_err)WEIR_ERR_NONE;
        struct weir_dataset_config config = {.size = sizeof config, .path = path, .allow_ragged = true};
        cr_assert_eq(weir_dataset_open(&dataset, &config, &err), 0, "%s", err.text);
        cr_assert_eq(weir_dataset_cameras(dataset), 2);
        cr_assert_eq(weir_dataset_steps(dataset, 0), images[i] < STEPS ? (int)images[i] : STEPS);
        weir_dataset_close(&dataset);
        config = (struct weir_dataset_config){
            .size = sizeof(struct weir_dataset_config), .path = path, .cameras = "image_0"};
        cr_assert_eq(weir_dataset_open(&dataset, &config, &err), 0, "%s", err.text);
        cr_assert_eq(weir_dataset_steps(dataset, 0), STEPS);
        weir_dataset_close(&dataset);
    }
}

Test(tfrecord, several_images_a_step)
{
    char note[1024];
    struct weir_dataset *dataset = NULL;
    struct weir_err err = WEIR_ERR_NONE;
    put_wrist(2 * STEPS);
    const char *path = folder("a.tfrecord");
    cr_assert_eq(open_it(&dataset, path, false, &err), 0, "%s", err.text);
    cr_assert_eq(weir_dataset_cameras(dataset), 1);
    cr_assert(weir_dataset_left_out(dataset, 0, note, sizeof note));
    cr_assert_not_null(strstr(note, "camera wrist is left out: bytes of any length (steps, 2)"), "%s", note);
    weir_dataset_close(&dataset);
    struct weir_dataset_config config = {.size = sizeof config, .path = path, .cameras = "wrist"};
    cr_assert_eq(weir_dataset_open(&dataset, &config, &err), -ENOTSUP);
    cr_assert_not_null(strstr(err.text, "camera wrist cannot be read"), "%s", err.text);
}

/* Images stored as integer tensors, in the way of tfds.features.Tensor. */
Test(tfrecord, pixels_as_integers)
{
    enum { PIXELS = 32 * 32 * 3 };
    static int64_t pixels[STEPS * PIXELS];
    char note[1024];
    struct tffx_bytes features = {0};
    struct weir_dataset *dataset = NULL;
    struct weir_err err = WEIR_ERR_NONE;
    add_plain(&features);
    tffx_integers(&features, "steps/observation/front", pixels, STEPS * PIXELS, true);
    tffx_record(&file, &features);
    cr_assert_eq(open_it(&dataset, folder("a.tfrecord"), false, &err), 0, "%s", err.text);
    cr_assert(weir_dataset_left_out(dataset, 0, note, sizeof note));
    cr_assert_not_null(strstr(note, "camera front is left out: int64 (steps, 3072)"), "%s", note);
    weir_dataset_close(&dataset);
}

/* tensorflow_datasets stores images of floats as PNGs of 4 channels, and encoded tensors as bytes. */
Test(tfrecord, numbers_stored_as_bytes)
{
    static const char *const image = ", \"front\": {\"image\": {\"shape\": {\"dimensions\": [\"48\", \"64\", \"1\"]}, "
                                     "\"dtype\": \"float32\"}}";
    char note[1024];
    struct tffx_bytes features = {0};
    struct weir_dataset *dataset = NULL;
    struct weir_err err = WEIR_ERR_NONE;
    add_plain(&features);
    tffx_images(&features, "steps/observation/front", jpeg, jpeg_bytes, STEPS);
    tffx_record(&file, &features);
    features_json = stated("7", "7", image);
    cr_assert_eq(open_it(&dataset, folder("a.tfrecord"), false, &err), 0, "%s", err.text);
    cr_assert_eq(weir_dataset_cameras(dataset), 1);
    cr_assert(weir_dataset_left_out(dataset, 0, note, sizeof note));
    cr_assert_not_null(strstr(note, "camera front is left out: float32 (steps, 48, 64, 1)"), "%s", note);
    weir_dataset_close(&dataset);
    tffx_images(&features, "steps/observation/state", jpeg, 4, STEPS);
    tffx_images(&features, "steps/action", jpeg, 4, STEPS);
    tffx_images(&features, "steps/observation/image_0", jpeg, jpeg_bytes, STEPS);
    tffx_record(&file, &features);
    features_json = stated("1", "1", "");
    refused("a.tfrecord", -ENOTSUP, "/steps/observation/state: its numbers are stored as bytes");
}

/* A damaged "bgr" must not be treated as "rgb". */
Test(tfrecord, colours_that_are_neither_rgb_nor_bgr)
{
    static const struct {
        const char *value;
        int rc;
    } colours[] = {{"rgb", 0}, {"bgr", 1}, {"bgs", -EBADMSG}, {"a text that is longer than any colour", -EBADMSG}};
    for (size_t i = 0; i < sizeof colours / sizeof colours[0]; i++) {
        struct tffx_bytes features = {0};
        struct weir_dataset *dataset = NULL;
        struct weir_err err = WEIR_ERR_NONE;
        add_plain(&features);
        tffx_images(&features, "episode_metadata/weir_color", colours[i].value, strlen(colours[i].value), 1);
        tffx_record(&file, &features);
        int rc = open_it(&dataset, folder("a.tfrecord"), false, &err);
        cr_assert_eq(rc < 0 ? rc : (int)weir_dataset_is_bgr(dataset), colours[i].rc, "%s", colours[i].value);
        cr_assert(rc == 0 || strstr(err.text, "weir_color must be rgb or bgr"), "%s", err.text);
        weir_dataset_close(&dataset);
    }
}
