/* LeRobot datasets: the pictures, rows and texts of valid ones, and errors for datasets whose files disagree. */
#include "datasets/open_dataset.h"
#include "tests/fixtures/lerobot_fixture.h"
#include "tests/fixtures/loader_fixture.h"
#include "tests/fixtures/parquet_build.h"

#include "weir/dataset.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* ---- opening ---- */

static int open_columns(void)
{
    struct weir_dataset_config config = {.size = sizeof config, .path = lerobot_root, .columns = true};
    weir_dataset_close(&dataset);
    err = (struct weir_err)WEIR_ERR_NONE;
    return weir_dataset_open(&dataset, &config, &err);
}

static int open_with(bool tolerant, int threads)
{
    struct weir_dataset_config config = {
        .size = sizeof config, .path = lerobot_root, .tolerant = tolerant, .threads = threads};
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
    cr_assert_eq(weir_dataset_episodes(dataset), LEROBOT_EPISODES);
    cr_assert_eq(weir_dataset_cameras(dataset), 1);
    cr_assert_str_eq(weir_dataset_camera(dataset, 0)->name, "top");
    for (int e = 0; e < LEROBOT_EPISODES; e++) {
        const char *key, *value;
        int file;
        cr_assert_eq(weir_dataset_steps(dataset, e), LEROBOT_STEPS);
        cr_assert_not_null(weir_dataset_video(dataset, e, 0, &file));
        cr_assert(weir_dataset_text(dataset, e, 0, &key, &value));
        cr_assert_str_eq(key, "task");
        cr_assert_str_eq(value, e ? "close it" : "open the door");
        for (int t = 0; t < LEROBOT_STEPS; t++) {
            int row = e * LEROBOT_STEPS + t;
            cr_assert_float_eq(weir_dataset_qpos(dataset, e)[t * LEROBOT_DIM + 1], 10 * row + 1, 0);
            cr_assert_eq(weir_dataset_video_rank(dataset, e, 0, t), (uint32_t)(third ? row : t));
        }
    }
}

Test(lerobot, version_2_1)
{
    lerobot_write_2_1();
    expect_open();
    expect_episodes(false);
    struct weir_location location;
    struct weir_dataset_file file;
    char path[WEIR_READ_PATH_MAX];
    cr_assert_eq(weir_locate(dataset, 1, 0, 2, &location), WEIR_HOW_VIDEO);
    weir_dataset_read_file(dataset, location.file, &file, path);
    cr_assert_str_eq(file.path, lerobot_path(LEROBOT_VIDEO_1));
}

Test(lerobot, version_3_0)
{
    lerobot_write_3_0();
    expect_open();
    expect_episodes(true);
    cr_assert(!weir_dataset_can_have_index(dataset), "an index file is not advised");
}

static void expect_task(int64_t number, const char *text)
{
    const char *found = weir_dataset_task(dataset, 0, number);
    cr_assert(found == text || (found && text && strcmp(found, text) == 0), "%lld: %s", (long long)number, found);
}

Test(lerobot, tasks_have_the_numbers_of_their_column)
{
    static const char *const notes[] = {"b", "a", "c"}, *const texts[] = {"wipe", "open", "close"};
    int64_t numbers[] = {2, 0, 4};
    struct pq_column columns[] = {{.name = "note", .type = PQ_TEXT, .values = notes},
                                  {.name = "task_index", .type = PQ_I64, .values = numbers},
                                  {.name = "task", .type = PQ_TEXT, .values = texts}};
    lerobot_write_3_0();
    pq_write(lerobot_path("meta/tasks.parquet"), columns, 3, 3);
    cr_assert_eq(open_columns(), 0, "%s", err.text);
    for (int i = 0; i < 5; i++)
        expect_task(i, (const char *[]){"open", NULL, "wipe", NULL, "close"}[i]);
    columns[1].name = "other";
    pq_write(lerobot_path("meta/tasks.parquet"), columns, 3, 3);
    cr_assert_eq(open_columns(), 0, "%s", err.text);
    for (int i = 0; i < 3; i++)
        expect_task(i, texts[i]);
    columns[1].name = "task_index";
    numbers[1] = -1;
    pq_write(lerobot_path("meta/tasks.parquet"), columns, 3, 3);
    cr_assert_lt(open_columns(), 0);
    cr_assert(strstr(err.text, "meta/tasks.parquet") && strstr(err.text, "numbers must be from 0"), "%s", err.text);
}

Test(lerobot, videos_are_described)
{
    struct weir_video_facts facts;
    lerobot_write_2_1();
    expect_open();
    cr_assert_str_eq(weir_dataset_about(dataset), "LeRobot v2.1, 10 fps");
    cr_assert(weir_dataset_video_facts(dataset, 0, &facts));
    cr_assert_str_eq(facts.codec, "AV1");
    cr_assert_str_eq(facts.pixels, "yuv420p");
    cr_assert_float_eq(facts.fps, 10, 1e-9);
    cr_assert_eq(facts.videos, LEROBOT_EPISODES);
    cr_assert_eq(facts.group_median, 2);
    cr_assert_eq(facts.group_max, 2);
}

Test(lerobot, rows_between_pictures_use_the_nearest)
{
    lerobot_write_3_0();
    struct lerobot_rows rows = lerobot_rows_of(0, LEROBOT_ROWS);
    rows.times[1] = 0.14f; /* row 2 of episode 0 repeats its picture */
    rows.times[2] = 0.12f;
    rows.times[4] = 0.2f; /* episode 1 has no row for picture 4 */
    lerobot_write_rows(LEROBOT_DATA, &rows);
    expect_open();
    cr_assert_eq(weir_dataset_video_rank(dataset, 0, 0, 1), 1);
    cr_assert_eq(weir_dataset_video_rank(dataset, 0, 0, 2), 1);
    cr_assert_eq(weir_dataset_video_rank(dataset, 1, 0, 0), 3);
    cr_assert_eq(weir_dataset_video_rank(dataset, 1, 0, 1), 5);
}

static void write_3_0_with_fps(const char *fps)
{
    lerobot_write_3_0();
    lerobot_write_info(true, "fps", fps);
    expect_open();
}

/* An fps that is not that of the rows must not move them to other pictures. */
Test(lerobot, pictures_do_not_depend_on_the_rate)
{
    write_3_0_with_fps("5");
    for (int e = 0; e < LEROBOT_EPISODES; e++)
        for (int t = 0; t < LEROBOT_STEPS; t++)
            cr_assert_eq(weir_dataset_video_rank(dataset, e, 0, t), (uint32_t)(e * LEROBOT_STEPS + t));
    write_3_0_with_fps("7.5");
    for (int t = 0; t < LEROBOT_STEPS; t++)
        cr_assert_eq(weir_dataset_video_rank(dataset, 1, 0, t), (uint32_t)(LEROBOT_STEPS + t));
}

/* ---- forms that lerobot reads too ---- */

/* Writes the rows of an episode in version 2.1: a state by this name, times in lists of one, and another type of the
 * column task_index. */
static void write_other_rows(int episode, const char *state, bool has_lists, bool has_floats)
{
    struct lerobot_rows rows = lerobot_rows_of(episode, LEROBOT_STEPS);
    const struct pq_column columns[] = {
        {.name = state, .type = PQ_F32, .width = LEROBOT_DIM, .values = rows.state},
        {.name = "action", .type = PQ_F32, .width = LEROBOT_DIM, .values = rows.state},
        {.name = "timestamp", .type = PQ_F32, .width = has_lists, .values = rows.times},
        {.name = "episode_index", .type = PQ_I64, .values = rows.episode},
        {.name = "index", .type = PQ_I64, .values = rows.index},
        {.name = "task_index",
         .type = has_floats ? PQ_F32 : PQ_I64,
         .values = has_floats ? (void *)rows.reward : (void *)rows.task},
    };
    pq_write(lerobot_path(episode ? LEROBOT_DATA_1 : LEROBOT_DATA_0), columns, sizeof columns / sizeof *columns,
             LEROBOT_STEPS);
}

Test(lerobot, one_number_may_be_in_a_list)
{
    lerobot_write_2_1();
    for (int first = 0; first < 2; first++) {
        write_other_rows(0, "observation.state", first, false);
        write_other_rows(1, "observation.state", !first, false);
        cr_assert_eq(open_columns(), 0, "%s", err.text);
        for (int i = 0; i < weir_dataset_columns(dataset); i++) {
            float time = 0;
            struct weir_column_shape shape;
            if (strcmp(weir_dataset_column(dataset, i, &shape), "timestamp") != 0)
                continue;
            cr_assert_eq(shape.rank, first);
            weir_dataset_column_row(dataset, 1, i, 2, &time);
            cr_assert_float_eq(time, 0.2f, 0);
        }
    }
    write_other_rows(1, "observation.state", false, true);
    cr_assert_eq(open_columns(), -EBADMSG);
    cr_assert(strstr(err.text, ": episode 1: column task_index has another type or shape than in ") &&
                  strstr(err.text, ": episode 0, or is missing"),
              "%s", err.text);
}

Test(lerobot, states_and_actions_of_other_names)
{
    static const char features[] = "{\"" LEROBOT_CAMERA "\": {\"dtype\": \"video\", \"shape\": [48, 64, 3]},"
                                   "\"%s\": {\"dtype\": \"float32\", \"shape\": [2]},"
                                   "\"timestamp\": {\"dtype\": \"float32\", \"shape\": [1]}}";
    char text[512];
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "proprio" : "state";
        lerobot_write_2_1();
        snprintf(text, sizeof text, features, name);
        lerobot_write_info(false, "features", text);
        write_other_rows(0, name, false, false);
        write_other_rows(1, name, false, false);
        expect_error("episode 0", i ? "no state" : "no actions");
        cr_assert_eq(open_columns(), 0, "%s", err.text); /* every feature is a column */
        cr_assert_eq(weir_dataset_columns(dataset), 2);
        cr_assert_float_eq(weir_dataset_qpos(dataset, 1)[1], 31, 0);
    }
}

Test(lerobot, features_without_numbers_are_not_read)
{
    char text[512];
    lerobot_write_2_1();
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text,
                 "{\"" LEROBOT_CAMERA "\": {\"dtype\": \"video\", \"shape\": [48, %d, 3]},"
                 "\"observation.state\": {\"dtype\": \"float32\", \"shape\": [2]},"
                 "\"observation.target\": {\"dtype\": \"float32\", \"shape\": [0]},"
                 "\"action\": {\"dtype\": \"float32\", \"shape\": [2]}}",
                 i ? 0 : 64);
        lerobot_write_info(false, "features", text);
        if (i == 0) {
            cr_assert_eq(open_columns(), 0, "%s", err.text);
            cr_assert_eq(weir_dataset_columns(dataset), 2);
        } else {
            expect_error("the shape of feature " LEROBOT_CAMERA, "positive sizes");
        }
    }
}

Test(lerobot, no_cameras_are_needed)
{
    lerobot_write_3_0();
    lerobot_write_info(true, "features",
                       "{\"state\": {\"dtype\": \"float32\", \"shape\": [2]},"
                       "\"action\": {\"dtype\": \"float32\", \"shape\": [2]}}");
    struct lerobot_rows rows = lerobot_rows_of(0, LEROBOT_ROWS);
    pq_write(lerobot_path(LEROBOT_DATA),
             (struct pq_column[]){{.name = "state", .type = PQ_F32, .width = LEROBOT_DIM, .values = rows.state},
                                  {.name = "action", .type = PQ_F32, .width = LEROBOT_DIM, .values = rows.state}},
             2, LEROBOT_ROWS);
    expect_open();
    cr_assert_eq(weir_dataset_cameras(dataset), 0);
    cr_assert_float_eq(weir_dataset_qpos(dataset, 1)[1], 31, 0);
}

Test(lerobot, files_may_have_any_number)
{
    struct lerobot_list list = lerobot_plain_list;
    lerobot_write_3_0();
    list.zero[0] = list.zero[1] = 1; /* of the files, and of their folders */
    lerobot_write_list(&list);
    cr_assert_eq(rename(lerobot_path("meta/episodes/chunk-000/file-000.parquet"),
                        lerobot_path("meta/episodes/chunk-002/file-007.parquet")),
                 0);
    cr_assert_eq(rename(lerobot_path(LEROBOT_DATA), lerobot_path("data/chunk-001/file-001.parquet")), 0);
    cr_assert_eq(rename(lerobot_path(LEROBOT_VIDEO), lerobot_path("videos/" LEROBOT_CAMERA "/chunk-001/file-001.mp4")),
                 0);
    expect_open();
    expect_episodes(true);
    cr_assert_eq(unlink(lerobot_path("meta/episodes/chunk-002/file-007.parquet")), 0);
    expect_error("has no episodes in meta/episodes/*/*.parquet", "copy it completely");
}

Test(lerobot, unwanted_videos_are_not_opened)
{
    lerobot_write_2_1();
    cr_assert_eq(unlink(lerobot_path(LEROBOT_VIDEO_1)), 0);
    struct weir_dataset_config config = {.size = sizeof config, .path = lerobot_root, .episodes = "0"};
    cr_assert_eq(weir_dataset_open(&dataset, &config, &err), 0, "%s", err.text);
    cr_assert_eq(weir_dataset_episodes(dataset), 1);
}

enum { IMAGE = 900 };

/* A version 2.1 dataset with images of IMAGE characters in its rows. literal_bytes as in struct pq_column. */
static void write_images(char images[LEROBOT_STEPS][IMAGE + 1], int literal_bytes)
{
    const char *texts[LEROBOT_STEPS];
    for (int t = 0; t < LEROBOT_STEPS; t++) {
        for (int i = 0; i < IMAGE; i++)
            images[t][i] = (char)('a' + (i * 7 + t) % 26);
        images[t][IMAGE] = '\0';
        texts[t] = images[t];
    }
    lerobot_write_2_1();
    lerobot_write_info(false, "features",
                       "{\"" LEROBOT_CAMERA "\": {\"dtype\": \"image\", \"shape\": [16, 16, 3]},"
                       "\"observation.state\": {\"dtype\": \"float32\", \"shape\": [2]},"
                       "\"action\": {\"dtype\": \"float32\", \"shape\": [2]}}");
    for (int i = 0; i < LEROBOT_EPISODES; i++) {
        struct lerobot_rows rows = lerobot_rows_of(i, LEROBOT_STEPS);
        const struct pq_column columns[] = {
            {.name = LEROBOT_CAMERA, .type = PQ_TEXT, .leaf = "bytes", .values = texts, .literal_bytes = literal_bytes},
            {.name = "observation.state", .type = PQ_F32, .width = LEROBOT_DIM, .values = rows.state},
            {.name = "action", .type = PQ_F32, .width = LEROBOT_DIM, .values = rows.state}};
        pq_write(lerobot_path(i ? LEROBOT_DATA_1 : LEROBOT_DATA_0), columns, 3, LEROBOT_STEPS);
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

/* Asserts that the frame's extent contains the image, possibly compressed. */
static void expect_extent(int t, const char *image, bool is_packed)
{
    char path[WEIR_READ_PATH_MAX], bytes[LEROBOT_STEPS * (IMAGE + 64)], unpacked[sizeof bytes];
    struct weir_location location;
    struct weir_dataset_file file;
    const char *why = "";
    cr_assert_eq(weir_locate(dataset, 1, 0, t, &location), WEIR_HOW_EXTENT);
    cr_assert_leq(location.length, weir_dataset_extent_max(dataset));
    cr_assert(location.length <= sizeof bytes && location.unpacked_bytes <= sizeof unpacked);
    weir_dataset_read_file(dataset, location.file, &file, path);
    int fd = open(file.path, O_RDONLY | O_CLOEXEC);
    cr_assert_eq(pread(fd, bytes, location.length, (off_t)location.offset), (ssize_t)location.length);
    close(fd);
    cr_assert_eq(weir_unwrap(dataset, &location, (const uint8_t *)bytes, &why), 0);
    cr_assert_eq(location.payload_length, IMAGE);
    cr_assert_eq(location.unpacked_bytes > 0, is_packed);
    if (is_packed)
        cr_assert_eq(weir_unpack(&location, (const uint8_t *)bytes, (uint8_t *)unpacked, &why), 0, "%s", why);
    cr_assert_eq(memcmp((is_packed ? unpacked : bytes) + location.payload, image, IMAGE), 0);
}

Test(lerobot, images_become_extents_with_the_first_read)
{
    char images[LEROBOT_STEPS][IMAGE + 1];
    struct weir_location location;
    write_images(images, 0);
    cr_assert_eq(weir_locate(dataset, 1, 0, 1, &location), WEIR_HOW_LIBRARY);
    expect_fetched(2, images[2]);
    for (int t = 0; t < LEROBOT_STEPS; t++)
        expect_extent(t, images[t], false);
    size_t length;
    cr_assert_eq(weir_fetch(dataset, 0, 0, 0, images[0], 4, &length, &err), -ENOSPC);
    cr_assert_eq(length, IMAGE);
}

Test(lerobot, images_in_compressed_pages_become_extents)
{
    char images[LEROBOT_STEPS][IMAGE + 1];
    struct weir_location location;
    static const int literals[] = {IMAGE + 300, 100}; /* the first image is in one literal; all are in several */
    for (int i = 0; i < 2; i++) {
        write_images(images, literals[i]);
        cr_assert(weir_dataset_can_find_frames(dataset, 1, 0));
        cr_assert_eq(weir_locate(dataset, 1, 0, 1, &location), WEIR_HOW_LIBRARY);
        cr_assert_eq(weir_dataset_find_frames(dataset, 1, 0, &err), 1, "%s", err.text);
        cr_assert_eq(weir_dataset_find_frames(dataset, 1, 0, &err), 0);
        cr_assert_not(weir_dataset_can_find_frames(dataset, 1, 0));
        for (int t = 0; t < LEROBOT_STEPS; t++) {
            expect_extent(t, images[t], i > 0 || t > 0);
            expect_fetched(t, images[t]);
        }
    }
}

/* ---- meta/info.json ---- */

Test(lerobot, older_versions_are_refused_by_name)
{
    lerobot_write_2_1();
    lerobot_write_info(false, "codebase_version", "\"v2.0\"");
    expect_error("v2.0", "convert");
    lerobot_write_info(false, "codebase_version", "\"v1.6\"");
    expect_error("v1.6", "convert");
}

Test(lerobot, templates_stay_in_the_folder)
{
    lerobot_write_2_1();
    lerobot_write_info(false, "data_path", "\"../{episode_index}.parquet\"");
    expect_error("../", "leads out");
    lerobot_write_info(false, "data_path", "\"/etc/{episode_index}.parquet\"");
    expect_error("/etc/", "leads out");
    lerobot_write_info(false, "data_path", "\"data/{episode_index!r}.parquet\"");
    expect_error("{episode_index!r}", "field");
    lerobot_write_info(false, "data_path", "\"data/{episode_index:999d}.parquet\"");
    expect_error("999d", "field");
}

Test(lerobot, totals_agree_with_the_episodes)
{
    lerobot_write_2_1();
    lerobot_write_info(false, "total_frames", "7");
    expect_error("meta/info.json", "7 frames");
}

Test(lerobot, shapes_agree_with_the_columns)
{
    lerobot_write_2_1();
    lerobot_write_info(false, "features",
                       "{\"" LEROBOT_CAMERA "\": {\"dtype\": \"video\", \"shape\": [48, 64, 3]},"
                       "\"observation.state\": {\"dtype\": \"float32\", \"shape\": [3]},"
                       "\"action\": {\"dtype\": \"float32\", \"shape\": [2]}}");
    expect_error("episode 0", "observation.state has 2 numbers per row");
}

/* An info.json whose camera is depth, with these members of its info. */
static void write_depth(const char *scale)
{
    char features[512];
    snprintf(features, sizeof features,
             "{\"" LEROBOT_CAMERA
             "\": {\"dtype\": \"video\", \"shape\": [16, 16, 1], \"info\": {\"is_depth_map\": true%s}},"
             "\"observation.state\": {\"dtype\": \"float32\", \"shape\": [2]},"
             "\"action\": {\"dtype\": \"float32\", \"shape\": [2]}}",
             scale);
    lerobot_write_info(false, "features", features);
}

/* Only datasets that are opened with columns have values in millimetres. Without a scale, it is that of lerobot. */
Test(lerobot, depth_in_millimetres)
{
    static const struct {
        const char *scale;
        int code;
        float millimetres;
    } cases[] = {
        {"", 0, 10},
        {"", 1000, 1377},
        {"", 4095, 10000},
        {"", 65535, 10000},
        {", \"video.depth_min\": 1, \"video.depth_max\": 5, \"video.use_log\": false", 0, 1000},
        {", \"video.depth_min\": 1, \"video.depth_max\": 5, \"video.use_log\": false", 2048, 3000},
        {", \"video.depth_min\": 1, \"video.depth_max\": 100, \"video.use_log\": false", 4095, 65535},
    };
    lerobot_write_2_1();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int columns = 0; columns < 2; columns++) {
            struct weir_dataset_config config = {
                .size = sizeof config, .path = lerobot_root, .depth = true, .columns = columns};
            struct weir_dataset *opened;
            write_depth(cases[i].scale);
            cr_assert_eq(weir_dataset_open(&opened, &config, &err), 0, "%s", err.text);
            const struct weir_camera *camera = weir_dataset_camera(opened, 0);
            cr_assert_eq(camera->kind, WEIR_FRAME_VIDEO16);
            cr_assert_eq(camera->depth_values != NULL, columns);
            if (columns)
                cr_assert_eq(camera->depth_values[cases[i].code], cases[i].millimetres, "case %zu: %g", i,
                             (double)camera->depth_values[cases[i].code]);
            weir_dataset_close(&opened);
        }
}

Test(lerobot, scales_of_depth_are_checked)
{
    lerobot_write_2_1();
    write_depth(", \"video.shift\": \"x\"");
    expect_error(LEROBOT_CAMERA, "video.shift is not a number");
    write_depth(", \"video.depth_min\": 3, \"video.depth_max\": 3");
    expect_error(LEROBOT_CAMERA, "depth from 3 to 3 m");
    write_depth(", \"video.shift\": -0.5");
    expect_error(LEROBOT_CAMERA, "with a shift of -0.5 m");
}

Test(lerobot, unknown_types_and_structures_are_named)
{
    static const char *const types[][3] = {
        {"language", "its dtype in meta/info.json, language, is unknown;",
         "its dtype in meta/info.json, language, is unknown;"},
        {"float32", "it has strings, but meta/info.json describes numbers;", "it has structures;"},
        {"string", "it has lists of strings;", "it has structures;"}};
    char line[512], text[512], said[128];
    struct lerobot_rows rows = lerobot_rows_of(0, LEROBOT_ROWS);
    struct weir_dataset_config config = {.size = sizeof config, .path = lerobot_root, .columns = true};
    rows.notes = 3;
    lerobot_write_3_0();
    lerobot_write_rows(LEROBOT_DATA, &rows);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        snprintf(text, sizeof text,
                 "{\"" LEROBOT_CAMERA "\": {\"dtype\": \"video\", \"shape\": [48, 64, 3]},"
                 "\"observation.state\": {\"dtype\": \"float32\", \"shape\": [2]},"
                 "\"action\": {\"dtype\": \"float32\", \"shape\": [2]},"
                 "\"notes\": {\"dtype\": \"%s\", \"shape\": [1]}, \"pairs\": {\"dtype\": \"%s\", \"shape\": [1]}}",
                 types[i][0], i == 0 ? types[i][0] : "float32");
        lerobot_write_info(true, "features", text);
        cr_assert_eq(weir_dataset_open(&dataset, &config, &err), 0, "%s", err.text);
        for (int c = 0; c < 2; c++) {
            snprintf(said, sizeof said, "column %s is left out: %s", c ? "pairs" : "notes", types[i][1 + c]);
            cr_assert(weir_dataset_left_out(dataset, c, line, sizeof line));
            cr_assert(strstr(line, said), "not '%s': %s", said, line);
        }
        struct weir_column_shape shape;
        for (int c = 0; c < weir_dataset_columns(dataset); c++)
            cr_assert_str_neq(weir_dataset_column(dataset, c, &shape), "pairs");
        weir_dataset_close(&dataset);
    }
}

/* Without columns, other features than state and actions are not needed. */
Test(lerobot, columns_that_info_promises_exist)
{
    struct weir_dataset_config config = {.size = sizeof config, .path = lerobot_root, .columns = true};
    lerobot_write_3_0();
    cr_assert_eq(weir_dataset_open(&dataset, &config, &err), 0, "%s", err.text);
    static const char *const features[][2] = {{"next.done", "float32"}, {"next.reward", "string"}};
    for (int i = 0; i < 2; i++) {
        char text[512], name[64];
        snprintf(text, sizeof text,
                 "{\"" LEROBOT_CAMERA "\": {\"dtype\": \"video\", \"shape\": [48, 64, 3]},"
                 "\"observation.state\": {\"dtype\": \"float32\", \"shape\": [2]},"
                 "\"action\": {\"dtype\": \"float32\", \"shape\": [2]},"
                 "\"%s\": {\"dtype\": \"%s\", \"shape\": [1]}}",
                 features[i][0], features[i][1]);
        lerobot_write_info(true, "features", text);
        expect_open();
        weir_dataset_close(&dataset);
        snprintf(name, sizeof name, LEROBOT_DATA ": has no column %s", features[i][0]);
        cr_assert_lt(weir_dataset_open(&dataset, &config, &err), 0);
        cr_assert(strstr(err.text, name), "%s", err.text);
        err = (struct weir_err)WEIR_ERR_NONE;
    }
}

Test(lerobot, columns_that_cannot_be_read_are_named)
{
    char line[512];
    struct lerobot_rows rows = lerobot_rows_of(0, LEROBOT_ROWS);
    struct weir_dataset_config config = {.size = sizeof config, .path = lerobot_root, .columns = true};
    lerobot_write_3_0();
    expect_open();
    cr_assert(!weir_dataset_left_out(dataset, 0, line, sizeof line), "%s", line);
    rows.has_decimals = true;
    lerobot_write_rows(LEROBOT_DATA, &rows);
    for (int columns = 0; columns < 2; columns++) {
        config.columns = columns;
        weir_dataset_close(&dataset);
        cr_assert_eq(weir_dataset_open(&dataset, &config, &err), 0, "%s", err.text);
        cr_assert(weir_dataset_left_out(dataset, 0, line, sizeof line));
        cr_assert(strstr(line, "column task_index is left out: its type in the Parquet file is DECIMAL;"), "%s", line);
        cr_assert(strstr(line, "(in 2 of 2 episodes,"), "%s", line);
        cr_assert(!weir_dataset_left_out(dataset, 1, line, sizeof line), "%s", line);
    }
    weir_dataset_close(&dataset);
    config.qpos_keys = "task_index";
    cr_assert_eq(weir_dataset_open(&dataset, &config, &err), -EBADMSG);
    cr_assert(strstr(err.text, LEROBOT_DATA ": column task_index cannot be read: its type"), "%s", err.text);
}

Test(lerobot, a_display_matrix_is_told)
{
    char line[512];
    struct mp4_file video = mp4_plain();
    struct weir_dataset_config config = {.size = sizeof config, .path = lerobot_root};
    video.tkhd = MP4_TABLE(0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1 << 16, 0, (uint32_t)-65536, 0, 0, 0, 0, 1 << 30);
    lerobot_write_3_0();
    lerobot_write_video(LEROBOT_VIDEO, &video);
    cr_assert_eq(weir_dataset_open(&dataset, &config, &err), 0, "%s", err.text);
    cr_assert(weir_dataset_left_out(dataset, 0, line, sizeof line));
    cr_assert(strstr(line, "display matrix asks for a rotation by 90 degrees clockwise, which is left out"), "%s",
              line);
    cr_assert(strstr(line, "(in 2 of 2 episodes,"), "%s", line);
    cr_assert(!weir_dataset_left_out(dataset, 1, line, sizeof line), "%s", line);
}

Test(lerobot, the_cache_of_the_hub_is_read)
{
    static const char *const files[] = {"meta/info.json", "meta/episodes/chunk-000/file-000.parquet", LEROBOT_DATA,
                                        LEROBOT_VIDEO};
    char blob[600], target[64];
    lerobot_write_3_0();
    snprintf(blob, sizeof blob, "%s/../blobs", lerobot_root);
    cr_assert_eq(mkdir(blob, 0700), 0);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) { /* links such as ../../blobs/0 */
        *target = '\0';
        for (const char *at = files[i]; at; at = strchr(at + 1, '/'))
            strcat(target, "../");
        snprintf(target + strlen(target), 16, "blobs/%zu", i);
        snprintf(blob, sizeof blob, "%s/../blobs/%zu", lerobot_root, i);
        cr_assert_eq(rename(lerobot_path(files[i]), blob), 0);
        cr_assert_eq(symlink(target, lerobot_path(files[i])), 0);
    }
    expect_open();
    expect_episodes(true);
}

/* Moves the dataset that was written last to a folder, and makes the folder above it the dataset to open. */
static void move_to(const char *above, const char *name)
{
    static char to[600];
    snprintf(to, sizeof to, "%s", fixture_path(above));
    for (char *slash = strchr(to + 5, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(to, 0700);
        *slash = '/';
    }
    mkdir(to, 0700);
    snprintf(to + strlen(to), sizeof to - strlen(to), "/%s", name);
    cr_assert_eq(rename(lerobot_root, to), 0);
    snprintf(lerobot_root, sizeof lerobot_root, "%s", fixture_path(above));
}

Test(lerobot, the_revision_of_the_hub_is_the_main_one)
{
    lerobot_write_3_0();
    move_to("hub/datasets--a--b/snapshots", "0123");
    expect_open();
    expect_episodes(true);
    lerobot_write_3_0();
    move_to("hub/datasets--a--b/snapshots", "4567");
    snprintf(lerobot_root, sizeof lerobot_root, "%s", fixture_path("hub"));
    expect_error("/snapshots: contains 2 revisions of one dataset, and refs/main names none", ": 0123, 4567");
    lerobot_write_text("datasets--a--b/refs/main", "89ab");
    expect_error("contains 2 revisions", "0123");
    lerobot_write_text("datasets--a--b/refs/main", "4567\n");
    for (int i = 0; i < 3; i++) { /* the folder is that of the cache, of the dataset, or of the revisions */
        snprintf(lerobot_root, sizeof lerobot_root, "%s",
                 fixture_path((const char *[]){"hub", "hub/datasets--a--b", "hub/datasets--a--b/snapshots/"}[i]));
        expect_open();
        expect_episodes(true);
        cr_assert_not_null(strstr(weir_dataset_episode_path(dataset, 0), "/4567"));
    }
}

Test(lerobot, an_older_copy_is_not_loaded_with_the_newer)
{
    lerobot_write_3_0();
    move_to("pair", "cube");
    lerobot_write_2_1();
    move_to("pair", "cube_old");
    expect_error("pair/cube_old: its name is that of an older copy of ",
                 "pair/cube, so episodes could be loaded twice");
    cr_assert_eq(open_with(true, 2), 0, "%s", err.text);
    expect_episodes(true);
    cr_assert_eq(weir_dataset_bad_episodes(dataset), 1);
    cr_assert_eq(rename(lerobot_path("cube"), lerobot_path("cubes")), 0);
    expect_open();
    cr_assert_eq(weir_dataset_episodes(dataset), 2 * LEROBOT_EPISODES);
}

/* Writes a second dataset beside the first, with another list of features. */
static void write_beside(const char *fps, const char *state, const char *more)
{
    char text[1024];
    snprintf(text, sizeof text,
             "{\"" LEROBOT_CAMERA "\": {\"dtype\": \"video\", \"shape\": [48, 64, 3]},"
             "\"observation.state\": {\"dtype\": \"float32\", \"shape\": [2], \"names\": %s},"
             "\"action\": {\"dtype\": \"float32\", \"shape\": [2]}%s}",
             state, more);
    lerobot_write_3_0();
    lerobot_write_info(true, fps ? "fps" : "features", fps ? fps : text);
    move_to("both", "b");
}

Test(lerobot, datasets_that_differ_are_not_mixed)
{
    static const struct {
        const char *fps, *state, *more, *what;
    } cases[] = {
        {NULL, "[\"x\", \"y\"]", "", NULL},
        {NULL, "{\"motors\": [\"x\", \"y\"]}", "", NULL},
        {NULL, "null", "", NULL},
        {NULL, "[\"dim\"]", "", NULL},
        {NULL, "[\"x\", \"z\"]", "", "names of observation.state: ... z instead of ... y"},
        {NULL, "[\"y\", \"x\"]", "", "names of observation.state: y, x instead of x, y"},
        {NULL, "null", ", \"index\": {\"dtype\": \"int64\", \"shape\": [1]}", "it alone has feature index"},
        {"30", "null", "", "fps: 30 instead of 10"},
    };
    char folder[600];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_beside(NULL, "[\"x\", \"y\"]", "");
        cr_assert_eq(rename(lerobot_path("b"), lerobot_path("a")), 0);
        write_beside(cases[i].fps, cases[i].state, cases[i].more);
        if (!cases[i].what)
            expect_open();
        else
            expect_error("both/b: is not of the same dataset as ", cases[i].what);
        snprintf(folder, sizeof folder, "%s.%zu", lerobot_root, i);
        cr_assert_eq(rename(lerobot_root, folder), 0);
    }
}

Test(lerobot, incomplete_copies_are_named)
{
    lerobot_write_2_1();
    cr_assert_eq(unlink(lerobot_path("meta/info.json")), 0);
    expect_error("meta/info.json", "LeRobot");
}

Test(lerobot, damaged_info_is_an_error)
{
    lerobot_write_2_1();
    lerobot_write_text("meta/info.json", "{\"codebase_version\": \"v2.1\", ");
    expect_error("meta/info.json", "not a JSON object");
}

/* ---- files that are missing, truncated or of another episode ---- */

Test(lerobot, missing_and_truncated_files_are_named)
{
    lerobot_write_2_1();
    cr_assert_eq(truncate(lerobot_path(LEROBOT_DATA_1), 100), 0);
    expect_error("episode 1", LEROBOT_DATA_1);
    cr_assert_eq(unlink(lerobot_path(LEROBOT_DATA_1)), 0);
    expect_error("episode 1", LEROBOT_DATA_1);
    lerobot_write_2_1();
    cr_assert_eq(truncate(lerobot_path(LEROBOT_VIDEO_1), 200), 0);
    expect_error("episode 1", LEROBOT_VIDEO_1);
    cr_assert_eq(unlink(lerobot_path(LEROBOT_VIDEO_1)), 0);
    expect_error("episode 1", LEROBOT_VIDEO_1);
}

Test(lerobot, videos_that_were_never_encoded_are_named)
{
    lerobot_write_3_0();
    struct lerobot_list list = lerobot_plain_list;
    list.begin[1] = NAN;
    lerobot_write_list(&list);
    expect_error("meta/episodes/chunk-000/file-000.parquet: episode 1 has no video of observation.images.top",
                 "its from_timestamp is empty");
    list.begin[1] = -1;
    lerobot_write_list(&list);
    expect_error("episode 1 begins at an invalid time", "correct its from_timestamp");
}

Test(lerobot, files_that_git_lfs_has_not_fetched_are_named)
{
    const char *files[] = {LEROBOT_DATA, LEROBOT_VIDEO, "meta/episodes/chunk-000/file-000.parquet"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        lerobot_write_3_0();
        lerobot_write_text(files[i], "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n");
        expect_error(files[i], "a Git LFS pointer; fetch");
    }
}

Test(lerobot, bad_episodes_are_left_out)
{
    lerobot_write_2_1();
    cr_assert_eq(unlink(lerobot_path(LEROBOT_VIDEO_0)), 0);
    cr_assert_eq(open_with(true, 1), 0, "%s", err.text);
    cr_assert_eq(weir_dataset_episodes(dataset), 1);
    cr_assert_eq(weir_dataset_bad_episodes(dataset), 1);
    cr_assert(strstr(weir_dataset_bad_episode(dataset, 0), "episode 0"));
    cr_assert_float_eq(weir_dataset_qpos(dataset, 0)[0], 10 * LEROBOT_STEPS, 0);
}

/* Asserts that the second episode is left out, and why. */
static void expect_first_episode(const char *why)
{
    for (int columns = 0; columns < 2; columns++) {
        struct weir_dataset_config config = {
            .size = sizeof config, .path = lerobot_root, .tolerant = true, .columns = columns};
        weir_dataset_close(&dataset);
        err = (struct weir_err)WEIR_ERR_NONE;
        cr_assert_eq(weir_dataset_open(&dataset, &config, &err), 0, "%s", err.text);
        cr_assert_eq(weir_dataset_bad_episodes(dataset), 1);
        cr_assert(strstr(weir_dataset_bad_episode(dataset, 0), "episode 1: "));
        cr_assert(strstr(weir_dataset_bad_episode(dataset, 0), why), "%s", weir_dataset_bad_episode(dataset, 0));
        for (int t = 0; t < LEROBOT_STEPS; t++)
            cr_assert_float_eq(weir_dataset_qpos(dataset, 0)[t * LEROBOT_DIM], 10 * t, 0);
    }
}

Test(lerobot, damaged_rows_cost_their_episode_only)
{
    /* The page after an episode shows where its last list ends. */
    for (int row = LEROBOT_STEPS + 1; row < LEROBOT_ROWS; row++) {
        struct lerobot_rows rows = lerobot_rows_of(0, LEROBOT_ROWS);
        uint8_t bytes[8192];
        rows.has_many_pages = true;
        lerobot_write_3_0();
        lerobot_write_rows(LEROBOT_DATA, &rows);
        FILE *file = fopen(lerobot_path(LEROBOT_DATA), "r+b");
        size_t n = fread(bytes, 1, sizeof bytes, file), at = 0;
        while (at + 8 < n && memcmp(bytes + at, rows.state[row], 8) != 0)
            at++;
        cr_assert_lt(at + 8, n);
        memset(bytes + at - 4, 0xff, 4); /* levels */
        rewind(file);
        cr_assert_eq(fwrite(bytes, 1, n, file), n);
        cr_assert_eq(fclose(file), 0);
        expect_first_episode(LEROBOT_DATA ": column observation.state: the Parquet page before");
    }
}

Test(lerobot, rows_of_another_episode_are_an_error)
{
    lerobot_write_2_1();
    struct lerobot_rows rows = lerobot_rows_of(0, LEROBOT_STEPS);
    lerobot_write_rows(LEROBOT_DATA_1, &rows);
    expect_error("episode 1", "episode_index 0");
}

Test(lerobot, lengths_agree_with_the_rows)
{
    lerobot_write_2_1();
    struct lerobot_rows rows = lerobot_rows_of(1, LEROBOT_STEPS);
    rows.n = LEROBOT_STEPS - 1;
    lerobot_write_rows(LEROBOT_DATA_1, &rows);
    expect_error("episode 1", "2 of its rows");
}

Test(lerobot, joined_rows_agree_with_the_list)
{
    lerobot_write_3_0();
    struct lerobot_list list = lerobot_plain_list;
    list.to[0] = 4;
    lerobot_write_list(&list);
    expect_error("meta/episodes/chunk-000/file-000.parquet", "dataset_to_index");
    list = lerobot_plain_list;
    list.length[0] = list.to[0] = list.from[1] = 2;
    list.length[1] = 4;
    lerobot_write_list(&list);
    expect_error("episode 0", "its length is 2");
    lerobot_write_list(&lerobot_plain_list);
    struct lerobot_rows rows = lerobot_rows_of(0, LEROBOT_ROWS);
    rows.index[4] = 7;
    lerobot_write_rows(LEROBOT_DATA, &rows);
    expect_error("episode 1", "row 4");
    rows = lerobot_rows_of(0, LEROBOT_ROWS);
    rows.n = LEROBOT_ROWS - 1;
    lerobot_write_rows(LEROBOT_DATA, &rows);
    expect_error("episode 1", "2 of its rows");
}

/* ---- videos ---- */

Test(lerobot, videos_shorter_than_the_rows_are_an_error)
{
    lerobot_write_3_0();
    struct lerobot_list list = lerobot_plain_list;
    list.begin[1] = 0.5;
    lerobot_write_list(&list);
    expect_error("episode 1", LEROBOT_CAMERA "[1]: " LEROBOT_VIDEO " has no picture at 0.6 s");
}

Test(lerobot, times_must_not_go_back)
{
    lerobot_write_3_0();
    struct lerobot_rows rows = lerobot_rows_of(0, LEROBOT_ROWS);
    rows.times[5] = 0;
    lerobot_write_rows(LEROBOT_DATA, &rows);
    expect_error("episode 1", "timestamp[2]");
    rows.times[5] = 1e30f;
    lerobot_write_rows(LEROBOT_DATA, &rows);
    expect_error("episode 1", "timestamp[2]");
}

/* ---- the list of episodes ---- */

Test(lerobot, damaged_lists_name_their_line)
{
    lerobot_write_2_1();
    lerobot_write_text("meta/episodes.jsonl",
                       "{\"episode_index\": 0, \"tasks\": [], \"length\": 3}\n{\"episode_index\": 1\n");
    expect_error("meta/episodes.jsonl", "line 2");
    lerobot_write_text("meta/episodes.jsonl",
                       "{\"episode_index\": 0, \"tasks\": [], \"length\": 3}\n\n{\"episode_index\": 1\n");
    expect_error("meta/episodes.jsonl", "line 3"); /* empty lines count */
    lerobot_write_text("meta/episodes.jsonl", "{\"episode_index\": 0, \"tasks\": [], \"length\": 3}\n"
                                              "{\"episode_index\": 0, \"tasks\": [], \"length\": 3}\n");
    expect_error("episode 0 after 0", "increase");
    lerobot_write_text("meta/episodes.jsonl", "");
    expect_error("meta/episodes.jsonl", "no episodes");
}
