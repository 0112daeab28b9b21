/* Faults of LeRobot datasets that loading does not show, as weir_dataset_review reports them. */
#include "datasets/open_dataset.h"
#include "tests/fixtures/lerobot_fixture.h"
#include "tests/fixtures/loader_fixture.h"
#include "tests/fixtures/parquet_build.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TOP    "/" LEROBOT_CAMERA
#define STATE  "\"observation.state\""
#define NO_END "\"max\": [50, 51], \"mean\": [25, 26], \"std\": [17.078251, 17.078251], \"count\": [6]}}"

TestSuite(lerobot_review, .init = fixture_open, .fini = fixture_close);

static char found[4096]; /* one line per finding */

static int add(void *user, const struct weir_reviewed *reviewed)
{
    static const char *const names[WEIR_REVIEW_KINDS] = {"tables", "video", "numbers", "stats", "missing"};
    size_t n = strlen(found);
    (void)user;
    n += (size_t)snprintf(found + n, sizeof found - n, "%s %s", names[reviewed->kind],
                          reviewed->part ? reviewed->part : "-");
    if (reviewed->t >= 0)
        n += (size_t)snprintf(found + n, sizeof found - n, "[%d]", (int)reviewed->t);
    snprintf(found + n, sizeof found - n, ": %s\n", reviewed->why);
    cr_assert_null(strchr(reviewed->why, '\n'));
    return 0;
}

static void review(const char *episodes)
{
    struct weir_dataset *dataset;
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_dataset_config config = {
        .size = sizeof config, .path = lerobot_root, .tolerant = true, .episodes = episodes};
    char line[1024];
    found[0] = '\0';
    cr_assert_eq(weir_dataset_open(&dataset, &config, &err), 0, "%s", err.text);
    cr_assert_eq(weir_dataset_review(dataset, 0, episodes, add, NULL, &err), 0, "%s", err.text);
    bool drifts = strstr(found, "drift by more than") || strstr(found, "after the row before it") ||
                  strstr(found, "the episode begins at picture");
    cr_assert_eq(weir_dataset_drift(dataset, line, sizeof line), drifts, "opening judges as the review does: %s",
                 found);
    weir_dataset_close(&dataset);
}

/* Asserts that there are n findings, and that one of them begins with one text and contains the other. */
static void expect(int n, const char *begin, const char *text)
{
    int lines = 0;
    bool is_there = n == 0;
    review(NULL);
    for (const char *line = found, *end; (end = strchr(line, '\n')); line = end + 1) {
        const char *at = strstr(line, text);
        lines++;
        is_there = is_there || (strncmp(line, begin, strlen(begin)) == 0 && at && at < end);
    }
    cr_assert(lines == n && is_there, "expected %d with \"%s ... %s\", not\n%s", n, begin, text, found);
}

static void write_stats(const char *minimum)
{
    char text[512];
    snprintf(text, sizeof text, "{" STATE ": {\"min\": %s, " NO_END, minimum);
    lerobot_write_text("meta/stats.json", text);
}

static void write_joined(void)
{
    lerobot_write_3_0();
    write_stats("[0, 1]");
}

/* Version 2.1, with as many pictures as rows. */
static void write_single(void)
{
    struct mp4_file video = mp4_plain();
    lerobot_write_2_1();
    video.stts = MP4_TABLE(1, 3, 100);
    video.stss = MP4_TABLE(2, 1, 3);
    video.stsz = MP4_TABLE(0, 3, 10, 11, 12);
    video.stsc = MP4_TABLE(1, 1, 3, 1);
    video.stco = MP4_TABLE(1, 0);
    lerobot_write_video(LEROBOT_VIDEO_0, &video);
    lerobot_write_video(LEROBOT_VIDEO_1, &video);
    lerobot_write_text("meta/episodes_stats.jsonl",
                       "{\"episode_index\": 0, \"stats\": {" STATE ": {\"mean\": [10, 11], \"count\": [3]}}}\n"
                       "{\"episode_index\": 1, \"stats\": {" STATE ": {\"mean\": [40, 41], \"count\": [3]}}}\n");
}

Test(lerobot_review, healthy_datasets_pass)
{
    write_joined();
    expect(0, "", "");
    write_single();
    expect(0, "", "");
    review("1");
    cr_assert_str_empty(found);
}

/* ---- rows and pictures ---- */

Test(lerobot_review, drift_names_the_worst_row)
{
    write_joined();
    struct lerobot_rows rows = lerobot_rows_of(0, LEROBOT_ROWS);
    for (int t = 0; t < LEROBOT_STEPS; t++)
        rows.times[LEROBOT_STEPS + t] += (float)t * 0.01f;
    lerobot_write_rows(LEROBOT_DATA, &rows);
    expect(1, "video episode 1" TOP "[2]: ", "0.02 s (0.2 frames) from its picture at 0.5 s; 2 of 3 rows");
}

static void expect_drift(const char *line)
{
    struct weir_dataset *dataset;
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_dataset_config config = {.size = sizeof config, .path = lerobot_root};
    char text[1024];
    cr_assert_eq(weir_dataset_open(&dataset, &config, &err), 0, "%s", err.text);
    cr_assert(weir_dataset_drift(dataset, text, sizeof text) && strncmp(text, line, strlen(line)) == 0, "%s", text);
    cr_assert(strstr(text, lerobot_root) && strstr(text, ": episode 1; `weir verify` names the rows"), "%s", text);
    weir_dataset_close(&dataset);
}

Test(lerobot_review, opening_reports_drift_in_one_line)
{
    write_joined();
    struct lerobot_rows rows = lerobot_rows_of(0, LEROBOT_ROWS);
    for (int t = 0; t < LEROBOT_STEPS; t++)
        rows.times[LEROBOT_STEPS + t] += (float)t * 0.01f;
    lerobot_write_rows(LEROBOT_DATA, &rows);
    expect_drift(
        "2 rows of 1 episode drift from their pictures by up to 0.2 frames, more than LeRobot's tolerance, so");
    for (int t = 0; t < LEROBOT_STEPS; t++)
        rows.times[LEROBOT_STEPS + t] = t == 2 ? 0.2f : 0;
    lerobot_write_rows(LEROBOT_DATA, &rows);
    expect_drift("the rows of 1 episode are not one frame apart by the dataset's fps; the first is ");
}

Test(lerobot_review, roundings_are_no_drift)
{
    struct mp4_file video = mp4_plain();
    write_joined();
    video.mdhd.words[2] = 100 * 1000;
    video.stts = MP4_TABLE(2, 3, 9999, 3, 10001);
    lerobot_write_video(LEROBOT_VIDEO, &video);
    expect(0, "", "");
}

Test(lerobot_review, longer_videos_are_named)
{
    write_single();
    lerobot_write_video(LEROBOT_VIDEO_1, &(struct mp4_file[]){mp4_plain()}[0]);
    expect(1, "video episode 1" TOP ": ", LEROBOT_VIDEO_1 " is longer than its rows: 3 frames after the last row");
}

Test(lerobot_review, episodes_follow_each_other_in_a_video)
{
    write_joined();
    struct lerobot_list list = lerobot_plain_list;
    list.begin[1] = 0.2;
    lerobot_write_list(&list);
    expect(2, "video episode 1" TOP "[0]: ", "begins at picture 2 of " LEROBOT_VIDEO ", but episode 0 ends at 2");
}

Test(lerobot_review, pictures_between_episodes_belong_to_no_row)
{
    write_joined();
    struct lerobot_list list = lerobot_plain_list;
    struct mp4_file video = mp4_plain();
    video.stts = MP4_TABLE(3, 2, 100, 1, 300, 3, 100); /* pictures at 0, 0.1, 0.2, 0.5, 0.6 and 0.7 s */
    lerobot_write_video(LEROBOT_VIDEO, &video);
    list.begin[1] = 0.5;
    lerobot_write_list(&list);
    expect(1, "video episode 1" TOP "[0]: ", "2 frames of " LEROBOT_VIDEO " before this row belong to no row");
}

/* ---- tables ---- */

Test(lerobot_review, rows_have_the_rate_of_the_dataset)
{
    write_joined();
    lerobot_write_info(true, "fps", "20");
    expect(2, "tables episode 1/timestamp[", "at the fps of meta/info.json, 20, rows are 0.05 s apart");
}

Test(lerobot_review, sizes_are_those_of_the_videos)
{
    write_joined();
    struct mp4_file video = mp4_plain();
    video.width = 32;
    lerobot_write_video(LEROBOT_VIDEO, &video);
    expect(1, "tables episode 0" TOP ": ", LEROBOT_VIDEO " is 32x48, but its shape in meta/info.json is 48x64x3");
}

Test(lerobot_review, tasks_exist)
{
    write_joined();
    struct lerobot_rows rows = lerobot_rows_of(0, LEROBOT_ROWS);
    rows.task[4] = 2;
    lerobot_write_rows(LEROBOT_DATA, &rows);
    expect(1, "tables episode 1/task_index[1]: ", "is 2, but");
    cr_assert_eq(unlink(lerobot_path("meta/tasks.parquet")), 0);
    expect(1, "tables -: meta/tasks.parquet", "");
}

Test(lerobot_review, tasks_are_those_of_the_list_of_episodes)
{
    write_joined();
    struct lerobot_rows rows = lerobot_rows_of(0, LEROBOT_ROWS);
    rows.task[5] = 0;
    lerobot_write_rows(LEROBOT_DATA, &rows);
    expect(1, "tables episode 1/task_index[2]: ", "is 0, \"open the door\", but the list of episodes has \"close it\"");
    write_single();
    lerobot_write_text("meta/episodes.jsonl", "{\"episode_index\": 0, \"tasks\": [\"open the door\"], \"length\": 3}\n"
                                              "{\"episode_index\": 1, \"tasks\": [\"a\", \"b\"], \"length\": 3}\n");
    expect(1, "tables episode 1/task_index[0]: ", "the list of episodes has \"a\" and others");
    lerobot_write_text("meta/episodes.jsonl",
                       "{\"episode_index\": 0, \"tasks\": [], \"length\": 3}\n"
                       "{\"episode_index\": 1, \"tasks\": [\"a\", \"close it\"], \"length\": 3}\n");
    expect(0, "", "");
}

Test(lerobot_review, rows_of_tasks_that_lerobot_takes_for_others)
{
    static const char *const texts[] = {"close it", "open the door"};
    const int64_t numbers[] = {1, 0};
    write_joined();
    pq_write(lerobot_path("meta/tasks.parquet"),
             (struct pq_column[]){{.name = "task_index", .type = PQ_I64, .values = numbers},
                                  {.name = "task", .type = PQ_TEXT, .values = texts}},
             2, 2);
    expect(1, "missing -: meta/tasks.parquet: its rows are not in the order of task_index", "");
}

Test(lerobot_review, rows_are_numbered_by_the_lengths_before_them)
{
    write_single();
    struct lerobot_rows rows = lerobot_rows_of(1, LEROBOT_STEPS);
    rows.index[2]++;
    lerobot_write_rows(LEROBOT_DATA_1, &rows);
    expect(1, "tables episode 1/index[2]: ", "is 6, but by the lengths in the list of episodes this is row 5");
    review("1");
    cr_assert_str_empty(found); /* not all lengths count */
}

Test(lerobot_review, recorded_ends_are_those_of_the_rows)
{
    struct lerobot_list list = lerobot_plain_list;
    write_joined();
    list.end[0] = 0.3;
    list.end[1] = 0.64;
    lerobot_write_list(&list);
    expect(0, "", ""); /* less than half a frame */
    list.end[1] = 0.7;
    lerobot_write_list(&list);
    expect(1, "tables episode 1" TOP ": ",
           "to_timestamp in the list of episodes is 0.7 s, but 3 rows from 0.3 s at 10");
    list.end[1] = NAN;
    lerobot_write_list(&list);
    expect(0, "", "");
}

Test(lerobot_review, rows_without_episode)
{
    struct lerobot_rows rows = lerobot_rows_of(0, LEROBOT_ROWS);
    struct lerobot_list list = lerobot_plain_list;
    write_joined();
    list.length[1]--;
    list.to[1]--;
    lerobot_write_list(&list);
    lerobot_write_info(true, "total_frames", "5");
    rows.episode[LEROBOT_ROWS - 1] = 9;
    lerobot_write_rows(LEROBOT_DATA, &rows);
    /* The video and the statistics have one row more, too. */
    expect(3, "tables " LEROBOT_DATA ": ", "has 6 rows, but by the list of episodes its episodes have 5;");
    review("0");
    cr_assert_null(strstr(found, "tables " LEROBOT_DATA));
}

static void write_feature_of(bool third, const char *name, const char *dtype)
{
    char features[512];
    snprintf(features, sizeof features,
             "{\"" LEROBOT_CAMERA "\": {\"dtype\": \"video\", \"shape\": [48, 64, 3]},"
             "\"observation.state\": {\"dtype\": \"float32\", \"shape\": [2]},"
             "\"action\": {\"dtype\": \"float32\", \"shape\": [2]},"
             "\"timestamp\": {\"dtype\": \"float32\", \"shape\": [1]},"
             "\"%s\": {\"dtype\": \"%s\", \"shape\": [1]}}",
             name, dtype);
    lerobot_write_info(third, "features", features);
}

static void write_feature(const char *name, const char *dtype)
{
    write_feature_of(true, name, dtype);
}

Test(lerobot_review, columns_that_info_promises_exist)
{
    write_joined();
    write_feature("next.done", "float32");
    expect(1, "tables episode 0/next.done: ", "has no column next.done");
    write_feature("next.reward", "string");
    expect(1, "tables episode 0/next.reward: ", LEROBOT_DATA ": has no column next.reward of strings");
}

Test(lerobot_review, numbers_are_finite)
{
    write_joined();
    write_feature("next.reward", "float32");
    struct lerobot_rows rows = lerobot_rows_of(0, LEROBOT_ROWS);
    rows.reward[4] = NAN;
    lerobot_write_rows(LEROBOT_DATA, &rows);
    expect(1, "numbers episode 1/next.reward[1]: ", "is nan");
    rows.reward[4] = 0;
    rows.state[1][1] = NAN; /* opening the dataset reports it */
    lerobot_write_rows(LEROBOT_DATA, &rows);
    expect(0, "", "");
}

Test(lerobot_review, frames_are_numbered_in_their_episode)
{
    for (int third = 0; third < 2; third++) {
        struct lerobot_rows rows = lerobot_rows_of(third ? 0 : 1, third ? LEROBOT_ROWS : LEROBOT_STEPS);
        if (third)
            write_joined();
        else
            write_single();
        write_feature_of(third, "frame_index", "int64");
        expect(0, "", "");
        rows.frame[rows.n - 1] = 0;
        lerobot_write_rows(third ? LEROBOT_DATA : LEROBOT_DATA_1, &rows);
        expect(1, "tables episode 1/frame_index[2]: ", "is 0, but this is row 2 of the episode");
    }
}

/* ---- statistics ---- */

Test(lerobot_review, statistics_are_those_of_the_data)
{
    write_joined();
    write_stats("[0, 1.5]");
    expect(1, "stats meta/stats.json: observation.state: min[1] is 1.5, but", "that of the data is 1;");
    write_stats("[[0.00000001], 1]"); /* rounded */
    expect(1, "stats meta/stats.json", "min[0] is");
    write_stats("[0]");
    expect(1, "stats meta/stats.json", "min must have 2 numbers");
    write_stats("{}");
    expect(1, "stats meta/stats.json", "min must have 2 numbers");
    lerobot_write_text("meta/stats.json", "{" STATE ": {\"std\": [17.08, 16], \"mean\": [25, 26]}}");
    expect(1, "stats meta/stats.json", "std[0] is 17.08, but that of the data is 17.0782513 (and 1 more)");
    lerobot_write_text("meta/stats.json", "{" STATE ": {\"std\": [18.708287, 18.708287], \"count\": [6]}}");
    expect(0, "", ""); /* the unbiased estimate */
    lerobot_write_text("meta/stats.json", "{" STATE ": {\"count\": [7]}}");
    expect(1, "stats meta/stats.json", "count is 7, but there are 6 rows");
    lerobot_write_text("meta/stats.json", "{");
    expect(1, "stats -: meta/stats.json", "not a JSON object");
}

Test(lerobot_review, float16_is_rounded)
{
    write_joined();
    lerobot_write_text("meta/stats.json", "{" STATE ": {\"std\": [17.09, 17.07]}}");
    expect(1, "stats meta/stats.json", "std[0] is 17.09");
    write_feature("next.reward", "float16");
    lerobot_write_text("meta/stats.json", "{\"next.reward\": {\"std\": [0.001]}}");
    expect(1, "stats meta/stats.json", "std[0] is 0.001");
    struct lerobot_rows rows = lerobot_rows_of(0, LEROBOT_ROWS);
    for (int t = 0; t < LEROBOT_ROWS; t++)
        rows.reward[t] = (float)(10 * t);
    lerobot_write_rows(LEROBOT_DATA, &rows);
    lerobot_write_text("meta/stats.json", "{\"next.reward\": {\"std\": [17.09]}}");
    expect(0, "", "");
    lerobot_write_text("meta/stats.json", "{\"next.reward\": {\"std\": [18]}}");
    expect(1, "stats meta/stats.json", "std[0] is 18");
    for (int t = 0; t < LEROBOT_ROWS; t++)
        rows.reward[t] = (float)(1000 * t); /* squares exceed float16 */
    lerobot_write_rows(LEROBOT_DATA, &rows);
    expect(0, "", "");
}

Test(lerobot_review, numbers_that_lerobot_renumbers_do_not_count)
{
    write_joined();
    lerobot_write_text("meta/stats.json", "{\"index\": {\"max\": [99]}, \"episode_index\": {\"max\": [99]}}");
    expect(0, "", "");
}

Test(lerobot_review, statistics_of_each_episode)
{
    write_single();
    lerobot_write_text("meta/episodes_stats.jsonl",
                       "{\"episode_index\": 1, \"stats\": {" STATE ": {\"mean\": [10, 41]}}}\n");
    expect(2, "stats meta/episodes_stats.jsonl: episode 1: ", "mean[0] is 10, but that of the data is 40");
    expect(2, "missing meta/episodes_stats.jsonl: ", "no statistics of episode 0");
    cr_assert_eq(unlink(lerobot_path("meta/episodes_stats.jsonl")), 0);
    expect(1, "missing meta/episodes_stats.jsonl: ", "No such file");
}
