/* LeRobot datasets: the pictures, rows and texts of valid ones, and errors for datasets whose files disagree. */
#include "datasets/video_frames.h"
#include "tests/fixtures/loader_fixture.h"
#include "tests/fixtures/mp4_build.h"
#include "tests/fixtures/parquet_build.h"

#include "weir/dataset.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Every dataset has 2 episodes of 3 rows at 10 Hz. In version 2.1 each has a video of 6 pictures; in version 3.0 both
 * are in one video of 6. */
enum { EPISODES = 2, STEPS = 3, ROWS = EPISODES * STEPS, DIM = 2 };
#define CAMERA "observation.images.top"

static char root[512];
static struct weir_dataset *dataset;
static struct weir_err err;

static void open_all(void)
{
    fixture_open();
    err = (struct weir_err)WEIR_ERR_NONE;
    dataset = NULL;
}

static void close_all(void)
{
    weir_dataset_close(&dataset);
    fixture_close();
}

TestSuite(lerobot, .init = open_all, .fini = close_all);

/* ---- writing ---- */

static const char *in_root(const char *name)
{
    static char paths[4][1024];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", root, name);
    mkdir(root, 0777);
    for (char *slash = strchr(path + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0777);
        *slash = '/';
    }
    return path;
}

static void write_text(const char *name, const char *text)
{
    FILE *file = fopen(in_root(name), "w");
    cr_assert_not_null(file);
    cr_assert_geq(fputs(text, file), 0);
    cr_assert_eq(fclose(file), 0);
}

static void write_bytes(const char *name, const uint8_t *bytes, size_t n)
{
    FILE *file = fopen(in_root(name), "wb");
    cr_assert_not_null(file);
    cr_assert_eq(fwrite(bytes, 1, n, file), n);
    cr_assert_eq(fclose(file), 0);
}

static void write_video(const char *name, const struct mp4_file *video)
{
    size_t n;
    uint8_t *bytes = mp4_build(video, &n);
    write_bytes(name, bytes, n);
    free(bytes);
}

/* meta/info.json, with one member replaced if `name` is not NULL. */
static void write_info(bool third, const char *name, const char *value)
{
    const char *members[][2] = {
        {"codebase_version", third ? "\"v3.0\"" : "\"v2.1\""},
        {"fps", "10"},
        {"total_episodes", "2"},
        {"total_frames", "6"},
        {"chunks_size", "1000"},
        {"data_path", third ? "\"data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet\""
                            : "\"data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet\""},
        {"video_path", third ? "\"videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4\""
                             : "\"videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4\""},
        {"features", "{\"" CAMERA "\": {\"dtype\": \"video\", \"shape\": [16, 16, 3]},"
                     "\"observation.state\": {\"dtype\": \"float32\", \"shape\": [2]},"
                     "\"action\": {\"dtype\": \"float32\", \"shape\": [2]},"
                     "\"timestamp\": {\"dtype\": \"float32\", \"shape\": [1]},"
                     "\"episode_index\": {\"dtype\": \"int64\", \"shape\": [1]},"
                     "\"index\": {\"dtype\": \"int64\", \"shape\": [1]}}"},
    };
    char text[4096] = "{";
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s\"%s\": %s", i ? ", " : "", members[i][0],
                 name && strcmp(name, members[i][0]) == 0 ? value : members[i][1]);
    strcat(text, "}");
    write_text("meta/info.json", text);
}

/* The rows of a file. */
struct rows {
    int n;
    float state[ROWS][DIM], times[ROWS];
    int64_t episode[ROWS], index[ROWS];
};

/* The rows of episodes first .. first + n / STEPS - 1. */
static struct rows rows_of(int first, int n)
{
    struct rows rows = {.n = n};
    for (int row = 0; row < n; row++) {
        rows.episode[row] = first + row / STEPS;
        rows.index[row] = first * STEPS + row;
        rows.times[row] = (float)(row % STEPS) / 10;
        for (int d = 0; d < DIM; d++)
            rows.state[row][d] = (float)(10 * rows.index[row] + d);
    }
    return rows;
}

static void write_rows(const char *name, const struct rows *rows)
{
    const struct pq_column columns[] = {
        {.name = "observation.state", .type = PQ_F32, .width = DIM, .values = rows->state},
        {.name = "action", .type = PQ_F32, .width = DIM, .values = rows->state},
        {.name = "timestamp", .type = PQ_F32, .values = rows->times},
        {.name = "episode_index", .type = PQ_I64, .values = rows->episode},
        {.name = "index", .type = PQ_I64, .values = rows->index},
    };
    pq_write(in_root(name), columns, sizeof columns / sizeof *columns, rows->n);
}

/* The table of episodes of version 3.0. */
struct list {
    int64_t number[EPISODES], length[EPISODES], from[EPISODES], to[EPISODES], zero[EPISODES];
    double begin[EPISODES];
};

static const struct list plain_list = {{0, 1}, {STEPS, STEPS}, {0, STEPS}, {STEPS, ROWS}, {0, 0}, {0, 0.3}};

static void write_list(const struct list *list)
{
    const char *tasks[] = {"open the door", "close it"};
    const struct pq_column columns[] = {
        {.name = "episode_index", .type = PQ_I64, .values = list->number},
        {.name = "tasks", .type = PQ_TEXT, .width = 1, .values = tasks},
        {.name = "length", .type = PQ_I64, .values = list->length},
        {.name = "data/chunk_index", .type = PQ_I64, .values = list->zero},
        {.name = "data/file_index", .type = PQ_I64, .values = list->zero},
        {.name = "dataset_from_index", .type = PQ_I64, .values = list->from},
        {.name = "dataset_to_index", .type = PQ_I64, .values = list->to},
        {.name = "videos/" CAMERA "/chunk_index", .type = PQ_I64, .values = list->zero},
        {.name = "videos/" CAMERA "/file_index", .type = PQ_I64, .values = list->zero},
        {.name = "videos/" CAMERA "/from_timestamp", .type = PQ_F64, .values = list->begin},
    };
    pq_write(in_root("meta/episodes/chunk-000/file-000.parquet"), columns, sizeof columns / sizeof *columns, EPISODES);
}

#define DATA_0  "data/chunk-000/episode_000000.parquet"
#define DATA_1  "data/chunk-000/episode_000001.parquet"
#define VIDEO_0 "videos/chunk-000/" CAMERA "/episode_000000.mp4"
#define VIDEO_1 "videos/chunk-000/" CAMERA "/episode_000001.mp4"
#define DATA    "data/chunk-000/file-000.parquet"
#define VIDEO   "videos/" CAMERA "/chunk-000/file-000.mp4"

static void write_2_1(void)
{
    struct mp4_file video = mp4_plain();
    snprintf(root, sizeof root, "%s", fixture_path("two"));
    write_info(false, NULL, NULL);
    write_text("meta/episodes.jsonl", "{\"episode_index\": 0, \"tasks\": [\"open the door\"], \"length\": 3}\n"
                                      "{\"episode_index\": 1, \"tasks\": [\"close it\"], \"length\": 3}\n");
    write_text("meta/tasks.jsonl", "{\"task_index\": 0, \"task\": \"open the door\"}\n");
    for (int i = 0; i < EPISODES; i++) {
        struct rows rows = rows_of(i, STEPS);
        write_rows(i ? DATA_1 : DATA_0, &rows);
        write_video(i ? VIDEO_1 : VIDEO_0, &video);
    }
}

static void write_3_0(void)
{
    struct mp4_file video = mp4_plain();
    struct rows rows = rows_of(0, ROWS);
    snprintf(root, sizeof root, "%s", fixture_path("three"));
    write_info(true, NULL, NULL);
    write_list(&plain_list);
    write_rows(DATA, &rows);
    write_video(VIDEO, &video);
}

/* ---- opening ---- */

static int open_with(bool tolerant, int threads)
{
    struct weir_dataset_config config = {.size = sizeof config, .path = root, .tolerant = tolerant, .threads = threads};
    weir_dataset_close(&dataset);
    err = (struct weir_err)WEIR_ERR_NONE;
    return weir_dataset_open(&dataset, &config, &err);
}

static void expect_open(void)
{
    int rc = open_with(false, 2);
    cr_assert_eq(rc, 0, "%d %s", rc, err.text);
}

/* Asserts that opening fails with an error that contains both texts. */
static void expect_error(const char *where, const char *what)
{
    int rc = open_with(false, 2);
    cr_assert_lt(rc, 0);
    cr_assert(strstr(err.text, where) && strstr(err.text, what), "%s", err.text);
    cr_assert_null(strchr(err.text, '\n'));
}

/* ---- valid datasets ---- */

static void expect_episodes(bool third)
{
    cr_assert_eq(weir_dataset_episodes(dataset), EPISODES);
    cr_assert_eq(weir_dataset_cameras(dataset), 1);
    cr_assert_str_eq(weir_dataset_camera(dataset, 0)->name, "top");
    for (int e = 0; e < EPISODES; e++) {
        const char *key, *value;
        int file;
        cr_assert_eq(weir_dataset_steps(dataset, e), STEPS);
        cr_assert_not_null(weir_dataset_video(dataset, e, 0, &file));
        cr_assert(weir_dataset_text(dataset, e, 0, &key, &value));
        cr_assert_str_eq(key, "task");
        cr_assert_str_eq(value, e ? "close it" : "open the door");
        for (int t = 0; t < STEPS; t++) {
            int row = e * STEPS + t;
            cr_assert_float_eq(weir_dataset_qpos(dataset, e)[t * DIM + 1], 10 * row + 1, 0);
            cr_assert_eq(weir_dataset_video_rank(dataset, e, 0, t), (uint32_t)(third ? row : t));
        }
    }
}

Test(lerobot, version_2_1)
{
    write_2_1();
    expect_open();
    expect_episodes(false);
    struct weir_location location;
    struct weir_dataset_file file;
    char path[WEIR_READ_PATH_MAX];
    cr_assert_eq(weir_locate(dataset, 1, 0, 2, &location), WEIR_HOW_VIDEO);
    weir_dataset_read_file(dataset, location.file, &file, path);
    cr_assert_str_eq(file.path, in_root(VIDEO_1));
}

Test(lerobot, version_3_0)
{
    write_3_0();
    expect_open();
    expect_episodes(true);
}

Test(lerobot, videos_are_described)
{
    struct weir_video_facts facts;
    write_2_1();
    expect_open();
    cr_assert_str_eq(weir_dataset_about(dataset), "LeRobot v2.1, 10 fps");
    cr_assert(weir_dataset_video_facts(dataset, 0, &facts));
    cr_assert_str_eq(facts.codec, "AV1");
    cr_assert_str_eq(facts.pixels, "yuv420p");
    cr_assert_float_eq(facts.fps, 10, 1e-9);
    cr_assert_eq(facts.videos, EPISODES);
    cr_assert_eq(facts.group_median, 2);
    cr_assert_eq(facts.group_max, 2);
}

Test(lerobot, rows_between_pictures_use_the_nearest)
{
    write_3_0();
    struct rows rows = rows_of(0, ROWS);
    rows.times[1] = 0.14f; /* row 2 of episode 0 repeats its picture */
    rows.times[2] = 0.12f;
    rows.times[4] = 0.2f; /* episode 1 has no row for picture 4 */
    write_rows(DATA, &rows);
    expect_open();
    cr_assert_eq(weir_dataset_video_rank(dataset, 0, 0, 1), 1);
    cr_assert_eq(weir_dataset_video_rank(dataset, 0, 0, 2), 1);
    cr_assert_eq(weir_dataset_video_rank(dataset, 1, 0, 0), 3);
    cr_assert_eq(weir_dataset_video_rank(dataset, 1, 0, 1), 5);
}

Test(lerobot, unwanted_videos_are_not_opened)
{
    write_2_1();
    cr_assert_eq(unlink(in_root(VIDEO_1)), 0);
    struct weir_dataset_config config = {.size = sizeof config, .path = root, .episodes = "0"};
    cr_assert_eq(weir_dataset_open(&dataset, &config, &err), 0, "%s", err.text);
    cr_assert_eq(weir_dataset_episodes(dataset), 1);
}

enum { IMAGE = 900 };

/* A version 2.1 dataset with images of IMAGE characters in its rows. literal_bytes as in struct pq_column. */
static void write_images(char images[STEPS][IMAGE + 1], int literal_bytes)
{
    const char *texts[STEPS];
    for (int t = 0; t < STEPS; t++) {
        for (int i = 0; i < IMAGE; i++)
            images[t][i] = (char)('a' + (i * 7 + t) % 26);
        images[t][IMAGE] = '\0';
        texts[t] = images[t];
    }
    write_2_1();
    write_info(false, "features",
               "{\"" CAMERA "\": {\"dtype\": \"image\", \"shape\": [16, 16, 3]},"
               "\"observation.state\": {\"dtype\": \"float32\", \"shape\": [2]},"
               "\"action\": {\"dtype\": \"float32\", \"shape\": [2]}}");
    for (int i = 0; i < EPISODES; i++) {
        struct rows rows = rows_of(i, STEPS);
        const struct pq_column columns[] = {
            {.name = CAMERA, .type = PQ_TEXT, .leaf = "bytes", .values = texts, .literal_bytes = literal_bytes},
            {.name = "observation.state", .type = PQ_F32, .width = DIM, .values = rows.state},
            {.name = "action", .type = PQ_F32, .width = DIM, .values = rows.state}};
        pq_write(in_root(i ? DATA_1 : DATA_0), columns, 3, STEPS);
    }
    expect_open();
}

static void expect_fetched(int t, const char *image)
{
    char buffer[IMAGE];
    size_t length;
    cr_assert_eq(weir_fetch(dataset, 1, 0, t, buffer, sizeof buffer, &length, &err), 0, "%s", err.text);
    cr_assert(length == IMAGE && memcmp(buffer, image, IMAGE) == 0);
}

/* Asserts that the frame's extent contains the image. */
static void expect_extent(int t, const char *image)
{
    char path[WEIR_READ_PATH_MAX], bytes[IMAGE];
    struct weir_location location;
    struct weir_dataset_file file;
    cr_assert_eq(weir_locate(dataset, 1, 0, t, &location), WEIR_HOW_EXTENT);
    cr_assert_eq(location.length, IMAGE);
    cr_assert_leq(location.length, weir_dataset_extent_max(dataset));
    weir_dataset_read_file(dataset, location.file, &file, path);
    int fd = open(file.path, O_RDONLY | O_CLOEXEC);
    cr_assert_eq(pread(fd, bytes, IMAGE, (off_t)location.offset), IMAGE);
    close(fd);
    cr_assert_eq(memcmp(bytes, image, IMAGE), 0);
}

Test(lerobot, images_become_extents_with_the_first_read)
{
    char images[STEPS][IMAGE + 1];
    struct weir_location location;
    write_images(images, 0);
    cr_assert_eq(weir_locate(dataset, 1, 0, 1, &location), WEIR_HOW_LIBRARY);
    expect_fetched(2, images[2]);
    for (int t = 0; t < STEPS; t++)
        expect_extent(t, images[t]);
    size_t length;
    cr_assert_eq(weir_fetch(dataset, 0, 0, 0, images[0], 4, &length, &err), -ENOSPC);
    cr_assert_eq(length, IMAGE);
}

Test(lerobot, images_across_literals_are_joined)
{
    char images[STEPS][IMAGE + 1];
    struct weir_location location;
    write_images(images, IMAGE + 300); /* the first image is in one literal, the others in two */
    for (int t = 0; t < STEPS; t++)
        expect_fetched(t, images[t]);
    expect_extent(0, images[0]);
    cr_assert_eq(weir_locate(dataset, 1, 0, 1, &location), WEIR_HOW_LIBRARY);
}

Test(lerobot, images_in_compressed_pages_are_unpacked)
{
    char images[STEPS][IMAGE + 1];
    write_images(images, 100); /* too short for extents */
    for (int t = 0; t < STEPS; t++)
        expect_fetched(t, images[t]);
}

/* ---- meta/info.json ---- */

Test(lerobot, older_versions_are_refused_by_name)
{
    write_2_1();
    write_info(false, "codebase_version", "\"v2.0\"");
    expect_error("v2.0", "convert");
    write_info(false, "codebase_version", "\"v1.6\"");
    expect_error("v1.6", "convert");
}

Test(lerobot, templates_stay_in_the_folder)
{
    write_2_1();
    write_info(false, "data_path", "\"../{episode_index}.parquet\"");
    expect_error("../", "leads out");
    write_info(false, "data_path", "\"/etc/{episode_index}.parquet\"");
    expect_error("/etc/", "leads out");
    write_info(false, "data_path", "\"data/{episode_index!r}.parquet\"");
    expect_error("{episode_index!r}", "field");
    write_info(false, "data_path", "\"data/{episode_index:999d}.parquet\"");
    expect_error("999d", "field");
}

Test(lerobot, totals_agree_with_the_episodes)
{
    write_2_1();
    write_info(false, "total_frames", "7");
    expect_error("meta/info.json", "7 frames");
}

Test(lerobot, shapes_agree_with_the_columns)
{
    write_2_1();
    write_info(false, "features",
               "{\"" CAMERA "\": {\"dtype\": \"video\", \"shape\": [16, 16, 3]},"
               "\"observation.state\": {\"dtype\": \"float32\", \"shape\": [3]},"
               "\"action\": {\"dtype\": \"float32\", \"shape\": [2]}}");
    expect_error("episode 0", "observation.state has 2 numbers per row");
}

Test(lerobot, incomplete_copies_are_named)
{
    write_2_1();
    cr_assert_eq(unlink(in_root("meta/info.json")), 0);
    expect_error("meta/info.json", "LeRobot");
}

Test(lerobot, damaged_info_is_an_error)
{
    write_2_1();
    write_text("meta/info.json", "{\"codebase_version\": \"v2.1\", ");
    expect_error("meta/info.json", "not a JSON object");
}

/* ---- files that are missing, truncated or of another episode ---- */

Test(lerobot, missing_and_truncated_files_are_named)
{
    write_2_1();
    cr_assert_eq(truncate(in_root(DATA_1), 100), 0);
    expect_error("episode 1", DATA_1);
    cr_assert_eq(unlink(in_root(DATA_1)), 0);
    expect_error("episode 1", DATA_1);
    write_2_1();
    cr_assert_eq(truncate(in_root(VIDEO_1), 200), 0);
    expect_error("episode 1", VIDEO_1);
    cr_assert_eq(unlink(in_root(VIDEO_1)), 0);
    expect_error("episode 1", VIDEO_1);
}

Test(lerobot, bad_episodes_are_left_out)
{
    write_2_1();
    cr_assert_eq(unlink(in_root(VIDEO_0)), 0);
    cr_assert_eq(open_with(true, 1), 0, "%s", err.text);
    cr_assert_eq(weir_dataset_episodes(dataset), 1);
    cr_assert_eq(weir_dataset_bad_episodes(dataset), 1);
    cr_assert(strstr(weir_dataset_bad_episode(dataset, 0), "episode 0"));
    cr_assert_float_eq(weir_dataset_qpos(dataset, 0)[0], 10 * STEPS, 0);
}

Test(lerobot, rows_of_another_episode_are_an_error)
{
    write_2_1();
    struct rows rows = rows_of(0, STEPS);
    write_rows(DATA_1, &rows);
    expect_error("episode 1", "episode_index 0");
}

Test(lerobot, lengths_agree_with_the_rows)
{
    write_2_1();
    struct rows rows = rows_of(1, STEPS);
    rows.n = STEPS - 1;
    write_rows(DATA_1, &rows);
    expect_error("episode 1", "2 of its rows");
}

Test(lerobot, joined_rows_agree_with_the_list)
{
    write_3_0();
    struct list list = plain_list;
    list.to[0] = 4;
    write_list(&list);
    expect_error("meta/episodes/chunk-000/file-000.parquet", "dataset_to_index");
    list = plain_list;
    list.length[0] = list.to[0] = list.from[1] = 2;
    list.length[1] = 4;
    write_list(&list);
    expect_error("episode 0", "its length is 2");
    write_list(&plain_list);
    struct rows rows = rows_of(0, ROWS);
    rows.index[4] = 7;
    write_rows(DATA, &rows);
    expect_error("episode 1", "row 4");
    rows = rows_of(0, ROWS);
    rows.n = ROWS - 1;
    write_rows(DATA, &rows);
    expect_error("episode 1", "2 of its rows");
}

/* ---- videos ---- */

Test(lerobot, videos_shorter_than_the_rows_are_an_error)
{
    write_3_0();
    struct list list = plain_list;
    list.begin[1] = 0.5;
    write_list(&list);
    expect_error("episode 1", CAMERA "[1]: the video has no picture at 0.6 s");
}

Test(lerobot, times_must_not_go_back)
{
    write_3_0();
    struct rows rows = rows_of(0, ROWS);
    rows.times[5] = 0;
    write_rows(DATA, &rows);
    expect_error("episode 1", "timestamp[2]");
    rows.times[5] = 1e30f;
    write_rows(DATA, &rows);
    expect_error("episode 1", "timestamp[2]");
}

/* ---- the list of episodes ---- */

Test(lerobot, damaged_lists_name_their_line)
{
    write_2_1();
    write_text("meta/episodes.jsonl", "{\"episode_index\": 0, \"tasks\": [], \"length\": 3}\n{\"episode_index\": 1\n");
    expect_error("meta/episodes.jsonl", "line 2");
    write_text("meta/episodes.jsonl",
               "{\"episode_index\": 0, \"tasks\": [], \"length\": 3}\n\n{\"episode_index\": 1\n");
    expect_error("meta/episodes.jsonl", "line 3"); /* empty lines count */
    write_text("meta/episodes.jsonl", "{\"episode_index\": 0, \"tasks\": [], \"length\": 3}\n"
                                      "{\"episode_index\": 0, \"tasks\": [], \"length\": 3}\n");
    expect_error("episode 0 after 0", "increase");
    write_text("meta/episodes.jsonl", "");
    expect_error("meta/episodes.jsonl", "no episodes");
}
