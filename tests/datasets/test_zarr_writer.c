/* Zarr copies: written, interrupted at any frame, resumed, and read back. */
#include "datasets/writer.h"
#include "pipeline/samples/fetch.h"
#include "tests/fixtures/loader_fixture.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { EPISODES = 3, WIDTH = 5, HEIGHT = 3, FRAME = WIDTH * HEIGHT * 3, DIM = 2, STEPS_MAX = 6 };

static const int steps[EPISODES] = {4, 1, 6};
static const struct weir_writer_ops *const ops = &weir_writer_zarr;

TestSuite(zarr_writer, .init = fixture_open, .fini = fixture_close);

static struct weir_copy copy_of(int chunk_frames)
{
    struct weir_copy copy = {.n_episodes = EPISODES,
                             .n_cameras = 2,
                             .qpos_type = WEIR_F64,
                             .action_type = WEIR_I32,
                             .qpos_dim = DIM,
                             .action_dim = DIM,
                             .chunk_frames = chunk_frames,
                             .is_bgr = true};
    copy.cameras[0] =
        (struct weir_copy_camera){.name = "main", .kind = WEIR_FRAME_RAW, .width = WIDTH, .height = HEIGHT};
    copy.cameras[1] =
        (struct weir_copy_camera){.name = "depth_main", .kind = WEIR_FRAME_RAW16, .width = WIDTH, .height = HEIGHT};
    return copy;
}

static uint8_t byte_of(int episode, int camera, int t, int i)
{
    return (uint8_t)(100 * episode + 50 * camera + 7 * t + i);
}

static int write_frame(struct weir_writer *writer, int episode, int camera, int t, struct weir_err *err)
{
    uint8_t bytes[FRAME];
    for (int i = 0; i < FRAME; i++)
        bytes[i] = byte_of(episode, camera, t, i);
    return ops->frame(writer, camera, t, bytes, camera ? WIDTH * HEIGHT * 2 : FRAME, err);
}

/* Writes the episode, or only its first `most` frames if `most` is not negative. Returns false if it stopped early. */
static bool write_episode(struct weir_writer *writer, int episode, int most)
{
    static const struct weir_copy_text text = {"instruction", "put \"it\" there"};
    double qpos[STEPS_MAX][DIM];
    int32_t actions[STEPS_MAX][DIM];
    struct weir_err err = WEIR_ERR_NONE;
    for (int t = 0; t < steps[episode]; t++)
        for (int d = 0; d < DIM; d++) {
            qpos[t][d] = 100 * episode + t + d / 4.0;
            actions[t][d] = 1000 * episode + 10 * t + d;
        }
    struct weir_copy_episode of = {.number = episode,
                                   .name = "the source",
                                   .steps = steps[episode],
                                   .qpos = qpos,
                                   .actions = actions,
                                   .texts = &text,
                                   .n_texts = 1};
    cr_assert_eq(weir_writer_begin(writer, &of, &err), 0, "%s", err.text);
    for (int i = 0; i < 2 * steps[episode]; i++) {
        if (i == most)
            return false;
        int rc = write_frame(writer, episode, i / steps[episode], i % steps[episode], &err);
        cr_assert_eq(rc, 0, "%s", err.text);
    }
    cr_assert_eq(ops->end(writer, &err), 0, "%s", err.text);
    return true;
}

static void check_frame(struct weir_fetcher *fetcher, int episode, int camera, int t)
{
    const uint8_t *bytes;
    size_t length;
    int rc = weir_fetch_frame(fetcher, episode, camera, t, NULL, 0, &bytes, &length);
    cr_assert_eq(rc, 0, "%s", fetcher->reason);
    cr_assert_eq(length, (size_t)(camera ? WIDTH * HEIGHT * 2 : FRAME));
    for (size_t i = 0; i < length; i++)
        cr_assert_eq(bytes[i], byte_of(episode, camera, t, (int)i), "episode %d, camera %d, t %d", episode, camera, t);
}

static void check_copy(const char *path)
{
    struct weir_dataset_config config = {.size = sizeof config, .path = path, .cameras = "main,depth_main"};
    struct weir_dataset *dataset;
    struct weir_file_set *files;
    struct weir_fetcher fetcher;
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_dataset_open(&dataset, &config, &err), 0, "%s", err.text);
    cr_assert_eq(weir_dataset_episodes(dataset), EPISODES);
    cr_assert(weir_dataset_is_bgr(dataset));
    cr_assert_str_eq(weir_dataset_layout(dataset, 0), "diffusion-policy");
    cr_assert_eq(weir_dataset_kind(dataset, 0, 1), WEIR_FRAME_RAW16);
    const char *key = "", *value = "";
    for (int i = 0; weir_dataset_text(dataset, 1, i, &key, &value) && strcmp(key, "instruction") != 0; i++)
        continue;
    cr_assert(strcmp(key, "instruction") == 0 && strcmp(value, "put \"it\" there") == 0, "%s: %s", key, value);
    cr_assert_eq(weir_fetch_files(dataset, &files), 0);
    cr_assert_eq(weir_fetcher_open(&fetcher, dataset, files, "pread", &err), 0, "%s", err.text);
    for (int e = 0; e < EPISODES; e++) {
        cr_assert_eq(weir_dataset_steps(dataset, e), steps[e]);
        for (int t = 0; t < steps[e]; t++) {
            cr_assert_eq(weir_dataset_qpos(dataset, e)[t * DIM + 1], (float)(100 * e + t) + 0.25f);
            cr_assert_eq(weir_dataset_actions(dataset, e)[t * DIM + 1], (float)(1000 * e + 10 * t + 1));
            check_frame(&fetcher, e, 0, t);
            check_frame(&fetcher, e, 1, t);
        }
    }
    weir_fetcher_close(&fetcher);
    weir_file_set_close(&files);
    weir_dataset_close(&dataset);
}

/* Interrupts a copy after `frames` frames of an episode, resumes it, and checks the result. */
static void interrupt(int chunk_frames, int episode, int frames, const char *path)
{
    struct weir_copy copy = copy_of(chunk_frames);
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_writer *writer;
    int complete = -1;
    cr_assert_eq(weir_writer_open(&writer, ops, &copy, path, &complete, &err), 0, "%s", err.text);
    cr_assert_eq(complete, 0);
    for (int e = 0; e < episode; e++)
        cr_assert(write_episode(writer, e, -1));
    write_episode(writer, episode, frames);
    weir_writer_close(&writer);
    cr_assert_eq(weir_writer_open(&writer, ops, &copy, path, &complete, &err), 0, "%s", err.text);
    cr_assert_eq(complete, episode);
    for (int e = complete; e < EPISODES; e++)
        cr_assert(write_episode(writer, e, -1));
    cr_assert_eq(weir_writer_finish(&writer, &err), 0, "%s", err.text);
    cr_assert_null(writer);
    check_copy(path);
}

Test(zarr_writer, interrupted_anywhere)
{
    for (int chunk_frames = 0, n = 0; chunk_frames <= 4; chunk_frames += 2)
        for (int e = 0; e < EPISODES; e++)
            for (int frames = 0; frames < 2 * steps[e]; frames += 3) {
                char name[32];
                snprintf(name, sizeof name, "copy%d.zarr", n++);
                interrupt(chunk_frames, e, frames, fixture_path(name));
            }
}

Test(zarr_writer, names_that_it_cannot_give)
{
    static const char *const names[] = {"state", "action", "a/b", ".a"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct weir_copy copy = copy_of(1);
        struct weir_err err = WEIR_ERR_NONE;
        struct weir_writer *writer;
        int complete;
        snprintf(copy.cameras[0].name, sizeof copy.cameras[0].name, "%s", names[i]);
        cr_assert_eq(weir_writer_open(&writer, ops, &copy, fixture_path("no.zarr"), &complete, &err), -EINVAL);
        cr_assert_not_null(strstr(err.text, names[i]), "%s", err.text);
        cr_assert_null(writer);
    }
}
