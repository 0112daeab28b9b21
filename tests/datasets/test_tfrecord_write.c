/* The TFRecord writer, called in the same way as from weir_convert: the data read back, and interrupted copies. */
#include "datasets/writer.h"
#include "pipeline/verify/verify.h"
#include "tests/fixtures/jpeg_encode.h"
#include "tests/fixtures/loader_fixture.h"
#include "tests/fixtures/png_fixture.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STEPS = 4, DIM = 3, SIDE = 16, EPISODES = 3 };
#define FILE_NAME "episodes-train.tfrecord-00000-of-00001"

static uint8_t *jpeg, *png;
static size_t jpeg_bytes, png_bytes;

static void open_all(void)
{
    fixture_open();
    jpeg = jpeg_encode(&(struct jpeg_encode){.width = SIDE, .height = SIDE, .quality = 80}, &jpeg_bytes);
    const struct pngfx_image image = {.kind = PNGFX_GRAY16, .width = SIDE, .height = SIDE};
    png = pngfx_write(&image, &png_bytes);
}

static void close_all(void)
{
    free(jpeg);
    free(png);
    fixture_close();
}

TestSuite(tfrecord_write, .init = open_all, .fini = close_all);

static const struct weir_copy copy = {
    .n_episodes = EPISODES,
    .n_cameras = 2,
    .cameras = {{.name = "depth_top", .kind = WEIR_FRAME_PNG16, .width = SIDE, .height = SIDE},
                {.name = "top", .kind = WEIR_FRAME_IMAGE, .width = SIDE, .height = SIDE}},
    .qpos_type = WEIR_F32,
    .action_type = WEIR_I64,
    .qpos_dim = DIM,
    .action_dim = 1,
};

static float qpos_of(int episode, int i)
{
    return (float)(episode * 100 + i) / 8;
}

static void write_episode(struct weir_writer *writer, int number)
{
    static const struct weir_copy_text all[] = {{"language_instruction", "pick up the \xc3\xa4 cup"},
                                                {"file_path", "/a/b"},
                                                {"weir_source", "not this"},
                                                {"observation/natural_language_instruction", "pick"}};
    struct weir_err err = WEIR_ERR_NONE;
    const struct weir_writer_ops *ops = &weir_writer_tfrecord;
    float qpos[STEPS * DIM];
    int64_t actions[STEPS] = {0, -1, INT64_MAX, number};
    for (int i = 0; i < STEPS * DIM; i++)
        qpos[i] = qpos_of(number, i);
    struct weir_copy_episode episode = {.number = number,
                                        .name = "source.hdf5",
                                        .steps = STEPS,
                                        .qpos = qpos,
                                        .actions = actions,
                                        .texts = all,
                                        .n_texts = number == 0 ? 2 : 4};
    cr_assert_eq(weir_writer_begin(writer, &episode, &err), 0, "%s", err.text);
    for (int c = 0; c < copy.n_cameras; c++)
        for (int t = 0; t < STEPS; t++)
            cr_assert_eq(ops->frame(writer, c, t, c ? jpeg : png, c ? jpeg_bytes : png_bytes, &err), 0, "%s", err.text);
    cr_assert_eq(ops->end(writer, &err), 0, "%s", err.text);
}

/* Opens a copy, checks the number of complete episodes, and writes the following ones up to, but excluding, `until`. */
static void *write_until(const struct weir_copy *of, const char *path, int expected, int until)
{
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_writer *writer;
    int complete = -1;
    cr_assert_eq(weir_writer_open(&writer, &weir_writer_tfrecord, of, path, &complete, &err), 0, "%s", err.text);
    cr_assert_eq(complete, expected);
    for (int e = complete; e < until; e++)
        write_episode(writer, e);
    return writer;
}

static void finish(struct weir_writer *writer)
{
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_writer_finish(&writer, &err), 0, "%s", err.text);
    cr_assert_null(writer);
}

static const char *data_file(const char *folder)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, FILE_NAME);
    return path;
}

static const char *text_of(const struct weir_dataset *dataset, int episode, const char *wanted)
{
    const char *key, *value;
    for (int i = 0; weir_dataset_text(dataset, episode, i, &key, &value); i++)
        if (strcmp(key, wanted) == 0)
            return value;
    return "none";
}

static void no_finding(void *user, const struct weir_finding *finding)
{
    (void)user;
    cr_assert(finding->kind == WEIR_FOUND_STILL || finding->kind == WEIR_FOUND_DIMENSION ||
                  finding->kind == WEIR_FOUND_OUTLIER, /* INT64_MAX is an outlier */
              "%s", finding->text);
}

Test(tfrecord_write, what_was_written_is_read)
{
    struct weir_copy swapped = copy;
    struct weir_dataset *dataset;
    struct weir_err err = WEIR_ERR_NONE;
    const char *path = fixture_path("copy");
    swapped.is_bgr = true;
    finish(write_until(&swapped, path, 0, EPISODES));
    struct weir_dataset_config config = {.size = sizeof config, .path = path, .depth = true};
    cr_assert_eq(weir_dataset_open(&dataset, &config, &err), 0, "%s", err.text);
    cr_assert_eq(weir_dataset_episodes(dataset), EPISODES);
    cr_assert_eq(weir_dataset_cameras(dataset), 2);
    cr_assert(weir_dataset_is_bgr(dataset));
    cr_assert_str_eq(weir_dataset_camera(dataset, 0)->name, "depth_top");
    cr_assert_eq(weir_dataset_camera(dataset, 0)->kind, WEIR_FRAME_PNG16);
    cr_assert_str_eq(weir_dataset_camera(dataset, 1)->name, "top");
    for (int e = 0; e < EPISODES; e++) {
        cr_assert_eq(weir_dataset_steps(dataset, e), STEPS);
        for (int i = 0; i < STEPS * DIM; i++)
            cr_assert_eq(weir_dataset_qpos(dataset, e)[i], qpos_of(e, i));
        cr_assert_eq(weir_dataset_actions(dataset, e)[1], -1);
        cr_assert_eq(weir_dataset_actions(dataset, e)[3], (float)e);
        cr_assert_str_eq(text_of(dataset, e, "language_instruction"), "pick up the \xc3\xa4 cup");
        cr_assert_str_eq(text_of(dataset, e, "file_path"), "/a/b");
        cr_assert_str_eq(text_of(dataset, e, "weir_source"), "source.hdf5");
        cr_assert_str_eq(text_of(dataset, e, "observation/natural_language_instruction"), e ? "pick" : "none");
    }
    struct weir_verify_totals totals = {0};
    struct weir_verify_config verify = {.workers = 1, .data = path, .found = no_finding};
    cr_assert_eq(weir_verify(dataset, &verify, &totals, &err), 0, "%s", err.text);
    cr_assert_eq(totals.frames, EPISODES * 2 * STEPS);
    weir_dataset_close(&dataset);
}

static uint8_t *whole_file(const char *path, size_t *n)
{
    FILE *file = fopen(path, "r");
    struct stat st;
    cr_assert(file && fstat(fileno(file), &st) == 0, "%s", path);
    uint8_t *bytes = malloc((size_t)st.st_size + 1);
    *n = fread(bytes, 1, (size_t)st.st_size, file);
    fclose(file);
    return bytes;
}

/* A copy that was cut at any byte, or whose last record did not reach the disk completely, is resumed after the last
 * complete episode. The result must be identical to an uninterrupted copy. */
Test(tfrecord_write, an_interrupted_copy_goes_on)
{
    size_t n, again, two;
    const char *whole = fixture_path("whole");
    struct weir_writer *writer = write_until(&copy, whole, 0, 2);
    struct stat st;
    cr_assert_eq(stat(data_file(whole), &st), 0);
    two = (size_t)st.st_size;
    weir_writer_close(&writer);
    finish(write_until(&copy, whole, 2, EPISODES));
    uint8_t *bytes = whole_file(data_file(whole), &n);
    const size_t cuts[] = {n, n - 1, two + 13, two + 5, two, two - 1, 20, 3, 0};
    const int complete[] = {3, 2, 2, 2, 2, 1, 0, 0, 0};
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        char name[16];
        snprintf(name, sizeof name, "part%zu", i);
        const char *part = fixture_path(name);
        writer = write_until(&copy, part, 0, complete[i]);
        weir_writer_close(&writer);
        FILE *file = fopen(data_file(part), "w");
        cr_assert(file && fwrite(bytes, 1, cuts[i], file) == cuts[i] && fclose(file) == 0);
        finish(write_until(&copy, part, complete[i], EPISODES));
        uint8_t *now = whole_file(data_file(part), &again);
        cr_assert(again == n && memcmp(now, bytes, n) == 0, "cut at %zu", cuts[i]);
        free(now);
    }
    bytes[n - 20] ^= 1;
    const char *part = fixture_path("part0");
    FILE *file = fopen(data_file(part), "w");
    cr_assert(file && fwrite(bytes, 1, n, file) == n && fclose(file) == 0);
    finish(write_until(&copy, part, 2, EPISODES));
    free(bytes);
}

Test(tfrecord_write, what_it_cannot_hold)
{
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_copy named = copy;
    struct weir_writer *writer;
    int complete;
    strcpy(named.cameras[1].name, "state");
    cr_assert_eq(weir_writer_open(&writer, &weir_writer_tfrecord, &named, fixture_path("state"), &complete, &err),
                 -EINVAL);
    cr_assert_null(writer);
    cr_assert_not_null(strstr(err.text, "camera state: "), "%s", err.text);
    err = (struct weir_err)WEIR_ERR_NONE;
    const char *path = fixture_path("large");
    writer = write_until(&copy, path, 0, 1);
    float values[STEPS * DIM] = {0};
    int64_t actions[STEPS] = {0};
    struct weir_copy_episode episode = {
        .number = 1, .name = "long.hdf5", .steps = STEPS, .qpos = values, .actions = actions};
    cr_assert_eq(weir_writer_begin(writer, &episode, &err), 0, "%s", err.text);
    cr_assert_eq(weir_writer_tfrecord.frame(writer, 0, 0, png, png_bytes, &err), 0, "%s", err.text);
    /* Fails before the bytes are read. */
    cr_assert_eq(weir_writer_tfrecord.frame(writer, 0, 1, png, INT32_MAX, &err), -EFBIG);
    cr_assert_not_null(strstr(err.text, FILE_NAME ": episode 1 (long.hdf5): over 2 GiB"), "%s", err.text);
    weir_writer_close(&writer);
    cr_assert_null(writer);
}
