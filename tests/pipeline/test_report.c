#include "base/text.h"
#include "pipeline/report/report_parts_priv.h"
#include "weir/report.h"
#include "weir/stages.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void register_stages(void)
{
    cr_assert_eq(weir_loader_stages(), 0);
    setenv("COLUMNS", "1000", 1); /* most tests are about the text, not about its layout */
}

TestSuite(report, .init = register_stages);

#define RULE60 "============================================================\n"
#define DASH60 "------------------------------------------------------------\n"

/* Users' scripts parse this format, so it is deliberately repeated here. */
#define ZH_HEAD                                                                                                        \
    RULE60 "⏱️  性能分析统计\n" RULE60                                                                       \
           "环节名称                                  | 总计:    XXXs | 调用:  XXX次 | 平均: XXXms\n" DASH60

static char *printed(const struct weir_loader_report *report, enum weir_lang lang)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    weir_loader_report_print(out, report, lang);
    fclose(out);
    return text;
}

static struct weir_report_row row(const char *name, enum weir_stage_kind kind, uint64_t count, double total_s)
{
    struct weir_report_row made = {
        .kind = kind, .count = count, .total_s = total_s, .cpu_s = -1, .cpu_over_wall = -1, .share = -1};
    snprintf(made.name, sizeof made.name, "%s", name);
    made.mean_s = count ? total_s / (double)count : 0;
    return made;
}

static struct weir_loader_report *small_report(void)
{
    struct weir_loader_report *report = calloc(1, sizeof *report);
    report->epoch_first = 1;
    report->epoch_last = 10;
    report->epoch_count = 30;
    report->timing = true;
    report->wall_s = 61.5;
    report->prof.rows[0] = row("02_read_qpos", WEIR_KIND_WORK, 0, 0);
    report->prof.rows[1] = row("03_read_images_total", WEIR_KIND_SPAN, 83430, 1200.5);
    report->prof.rows[2] = row("03b_image_decode", WEIR_KIND_WORK, 333720, 1100.3);
    report->prof.n_rows = 3;
    return report;
}

static void release(struct weir_loader_report *report)
{
    weir_loader_report_clear(report);
    free(report);
}

Test(report, chinese_table_byte_by_byte)
{
    struct weir_loader_report *report = small_report();
    /* These rows must be sorted between the others, although Weir added two of them to the classic ones. */
    report->prof.rows[3] = row("08_wait_for_data", WEIR_KIND_WAIT, 7, 1150.0);
    report->prof.rows[4] = row("03c_read_bytes", WEIR_KIND_WORK, 10, 1160.0);
    report->prof.rows[5] = row("09_wait_for_slot", WEIR_KIND_WAIT, 10, 1120.0);
    report->prof.n_rows = 6;
    char *text = printed(report, WEIR_LANG_ZH);
    const char *table = strstr(text, RULE60);
    cr_assert_not_null(table);
    const char *golden =
        ZH_HEAD "03_read_images_total                     | 总计:  1200.50s | 调用:  83430次 | 平均:  14.39ms\n"
                "03c_read_bytes                           | 总计:  1160.00s | 调用:     10次 | 平均: 116000.00ms\n"
                "08_wait_for_data                         | 总计:  1150.00s | 调用:      7次 | 平均: 164285.71ms\n"
                "09_wait_for_slot                         | 总计:  1120.00s | 调用:     10次 | 平均: 112000.00ms\n"
                "03b_image_decode                         | 总计:  1100.30s | 调用: 333720次 | 平均:   3.30ms\n" RULE60;
    cr_assert_eq(strncmp(table, golden, strlen(golden)), 0, "got:\n%s\nwanted:\n%s", table, golden);
    cr_assert_null(strstr(text, "02_read_qpos"));
    cr_assert_null(strstr(text, "耗时:"), "only epoch lines may match grep 耗时:");
    cr_assert_eq(strncmp(text, "统计范围: 第 1-10 轮 (共 30 轮), 墙钟 61.50s\n", strlen("统计范围: 第 1-10 轮")), 0);
    free(text);
    release(report);
}

/* At 64x64, most stages take microseconds. The unit must stay ms, because scripts match "平均: +[0-9.]+ms". */
Test(report, chinese_table_shows_microseconds_as_digits)
{
    struct weir_loader_report *report = small_report();
    report->prof.rows[0] = row("02_read_qpos", WEIR_KIND_WORK, 160, 160 * 2.34e-6);
    report->prof.rows[1] = row("03_read_images_total", WEIR_KIND_SPAN, 10, 10 * 12e-6);
    report->prof.rows[2] = row("03b_image_decode", WEIR_KIND_WORK, 100, 100 * 4.2e-8);
    report->prof.n_rows = 3;
    char *text = printed(report, WEIR_LANG_ZH);
    static const char *const wanted[] = {
        "03_read_images_total                     | 总计:   0.0001s | 调用:     10次 | 平均:   0.01ms\n",
        "02_read_qpos                             | 总计:   0.0004s | 调用:    160次 | 平均: 0.0023ms\n",
        "03b_image_decode                         | 总计: 0.000004s | 调用:    100次 | 平均: 0.000042ms\n",
    };
    for (int i = 0; i < 3; i++)
        cr_assert_not_null(strstr(text, wanted[i]), "wanted: %s\n%s", wanted[i], text);
    free(text);
    release(report);
}

Test(report, spans_that_overlap_are_named_beside_the_workers_time)
{
    struct weir_loader_report *report = small_report();
    report->prof.workers = calloc(2, sizeof *report->prof.workers);
    report->prof.n_workers = 2;
    report->prof.workers[0].wall_s = report->prof.workers[1].wall_s = 700;
    char *text = printed(report, WEIR_LANG_EN);
    cr_assert_null(strstr(text, "overlap"), "1200.50 s fit in 1400 s:\n%s", text);
    free(text);
    report->prof.workers[1].wall_s = 40;
    text = printed(report, WEIR_LANG_EN);
    cr_assert_not_null(
        strstr(text,
               "\nspans of 03_read_images_total overlap: they add up to 1200.500s in 740.000s of the workers' time; "
               "the mean is the latency of one span\nworker "),
        "%s", text);
    free(text);
    text = printed(report, WEIR_LANG_ZH);
    cr_assert_not_null(
        strstr(text, "\nspans of 03_read_images_total overlap: they add up to 1200.500s in 740.000s of the workers'"),
        "%s", text);
    free(text);
    release(report);
}

Test(report, a_decode_cache_that_costs_more_than_it_saves)
{
    struct weir_loader_report *report = small_report();
    report->cache = (struct weir_report_cache){.budget_bytes = 1000000, .hits = 1, .misses = 1, .saved_s = 0.25};
    char *text = printed(report, WEIR_LANG_EN);
    cr_assert_not_null(strstr(text, ", 0.250 s of work saved\n"), "%s", text);
    free(text);
    report->cache.saved_s = -0.014;
    text = printed(report, WEIR_LANG_EN);
    cr_assert_not_null(strstr(text, ", no work saved: copies took 0.014 s longer than loading\n"), "%s", text);
    free(text);
    text = printed(report, WEIR_LANG_ZH);
    cr_assert_not_null(strstr(text, ", no work saved: copies took 0.014 s longer than loading\n"), "%s", text);
    free(text);
    release(report);
}

static void add_error(struct weir_loader_report *report, uint64_t count, const char *text)
{
    struct weir_report_error *error = &report->errors[report->n_errors++];
    error->count = count;
    report->bad_frames += count;
    snprintf(error->text, sizeof error->text, "%s", text);
}

Test(report, frames_of_a_file_that_fail_alike_are_one_line)
{
    struct weir_loader_report *report = small_report();
    add_error(report, 1, "d/a.hdf5: /top[5]: the image is 80x64");
    add_error(report, 2, "d/b.hdf5: /top[5]: the image is 80x64");
    add_error(report, 3, "d/a.hdf5: /wrist[5]: the image is 80x64");
    add_error(report, 1, "d/a.hdf5: /top[6]: truncated");
    add_error(report, 1, "d/c.hdf5: not an HDF5 file");
    add_error(report, 4, "d/a.hdf5: /top[9]: the image is 80x64");
    char *text = printed(report, WEIR_LANG_EN);
    cr_assert_not_null(strstr(text, "\n  8 x d/a.hdf5: /top[5]: the image is 80x64 (the first of 3 frames)\n"
                                    "  2 x d/b.hdf5: /top[5]: the image is 80x64\n"
                                    "  1 x d/a.hdf5: /top[6]: truncated\n"
                                    "  1 x d/c.hdf5: not an HDF5 file\nprofiler"),
                       "%s", text);
    free(text);
    text = printed(report, WEIR_LANG_ZH);
    cr_assert_not_null(strstr(text, "\n  8 x d/a.hdf5: /top[5]: the image is 80x64 (the first of 3 frames)\n  2 x "),
                       "%s", text);
    free(text);
    release(report);
}

/* Returns the line's distance from the title, since users run grep -A 20 on it. */
static int line_of(const char *text, const char *begins_with)
{
    const char *at = strstr(text, "性能分析统计");
    for (int line = 0; at; line++, at = strchr(at, '\n')) {
        at += line > 0;
        if (strncmp(at, begins_with, strlen(begins_with)) == 0)
            return line;
    }
    return -1;
}

Test(report, chinese_table_of_a_gpu_run_has_the_gpus_times_and_fits_behind_its_title)
{
    static const char *const known[] = {"00_TOTAL_getitem",     "01_file_cache",       "02_read_qpos",
                                        "03_read_images_total", "03a_read_one_camera", "03b_image_decode",
                                        "04_read_actions",      "06_collate",          "08_wait_for_data"};
    struct weir_loader_report *report = small_report();
    int n = 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        report->prof.rows[n++] = row(known[i], WEIR_KIND_WORK, 10, 1.0);
    const char *const consumers[] = {"07_h2d_copy", "07b_prepare_batch", "10_val_forward_pass",
                                     "20_train_forward_pass"};
    for (int i = 0; i < 4; i++) {
        report->prof.rows[n] = row(consumers[i], WEIR_KIND_WORK, 100, 0.016);
        report->prof.rows[n++].side = WEIR_SIDE_CONSUMER;
    }
    const char *const helpers[] = {"03b_image_decode", "06_collate", "09b_wait_for_work", "09d_wait_for_gpu_decode"};
    for (int i = 0; i < 4; i++) {
        report->prof.rows[n] = row(helpers[i], i < 2 ? WEIR_KIND_WORK : WEIR_KIND_WAIT, 2, 500);
        report->prof.rows[n++].side = WEIR_SIDE_HELPER;
    }
    report->prof.rows[n++] = row("09b_wait_for_work", WEIR_KIND_WAIT, 2, 900);
    report->prof.rows[n++] = row("03h_hand_to_gpu", WEIR_KIND_WORK, 2, 0.5);
    report->prof.n_rows = n;
    report->gpu = (struct weir_report_gpu){.used = true, .name = "GPU", .n_rows = 2};
    report->gpu.rows[0] = row("20_train_forward_pass", WEIR_KIND_WORK, 100, 0.5);
    report->gpu.rows[1] = row("08_wait_for_data", WEIR_KIND_WAIT, 100, 77);
    report->gpu.rows[0].side = report->gpu.rows[1].side = WEIR_SIDE_GPU;
    char *text = printed(report, WEIR_LANG_ZH);
    cr_assert_not_null(
        strstr(text, "20_train_forward_pass                    | 总计:     0.50s | 调用:    100次 | 平均:   5.00ms\n"),
        "%s", text);
    cr_assert_not_null(strstr(text, "08_wait_for_data                         | 总计:     1.00s"),
                       "the loop's own wait");
    cr_assert_null(strstr(text, "(helper)             | 总计:   500.00s | 调用:      2次 | 平均: 250000.00ms\n09"));
    cr_assert_null(strstr(text, "09b_wait_for_work (helper)"));
    cr_assert_null(strstr(text, "09d_wait_for_gpu_decode (helper)"));
    cr_assert_null(strstr(text, "\n09b_wait_for_work "), "waits of idle workers are the rows left out");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        cr_assert(line_of(text, known[i]) > 3 && line_of(text, known[i]) < line_of(text, "03h_hand_to_gpu"));
    cr_assert_gt(line_of(text, "20_train_forward_pass"), 3);
    cr_assert_leq(line_of(text, "03h_hand_to_gpu"), 19);
    const char *end = strstr(strstr(text, "20_train_forward_pass"), RULE60);
    int lines = 0;
    for (const char *at = strstr(text, "性能分析统计"); at && at < end; at = strchr(at + 1, '\n'))
        lines++;
    cr_assert_leq(lines - 1, 20, "grep -A 20 does not show the whole table:\n%s", text);
    free(text);
    release(report);
}

Test(report, chinese_rows_of_equal_total_stay_in_stage_order)
{
    struct weir_loader_report *report = small_report();
    for (int i = 0; i < 3; i++)
        report->prof.rows[i] = row((const char *[]){"a", "b", "c"}[i], WEIR_KIND_WORK, 1, 2.0);
    char *text = printed(report, WEIR_LANG_ZH);
    cr_assert(strstr(text, "\na  ") < strstr(text, "\nb  ") && strstr(text, "\nb  ") < strstr(text, "\nc  "));
    free(text);
    release(report);
}

Test(report, english_table)
{
    struct weir_loader_report *report = small_report();
    report->prof.rows[2].p50_s = 0.0025;
    report->prof.rows[2].p99_s = 25e-9;
    report->prof.rows[2].max_s = 1.25;
    report->prof.rows[2].cpu_over_wall = 0.98;
    report->prof.rows[2].share = 1;
    report->prof.rows[3] = row("03a_read_one_camera", WEIR_KIND_INCLUSIVE, 333720, 1150.5);
    report->prof.rows[3].cpu_over_wall = 0.97; /* of its self time, which the table does not show */
    report->prof.n_rows = 4;
    char *text = printed(report, WEIR_LANG_EN);
    cr_assert_eq(strncmp(text, "epochs 1-10 of 30, 61.50 s\n", 27), 0, "%s", text);
    cr_assert_null(strstr(text, "02_read_qpos"));
    const char *wanted =
        "03b_image_decode        work       333720  1100.300s   3.30ms  2.50ms  0ns  25ns  1.25s      0.98  100.0%\n";
    cr_assert_not_null(strstr(text, wanted), "%s", text);
    const char *span = strstr(text, "03_read_images_total");
    cr_assert_not_null(strstr(span, "         -       -\n"), "%s", span);
    const char *inclusive = strstr(text, "03a_read_one_camera");
    cr_assert_not_null(inclusive, "%s", text);
    cr_assert_eq(strncmp(strchr(inclusive, '\n') - 18, "         -       -\n", 19), 0, "%s", inclusive);
    free(text);
    report->final = true;
    text = printed(report, WEIR_LANG_EN);
    cr_assert_eq(strncmp(text, "whole run: epochs 1-10 of 30", 28), 0);
    free(text);
    release(report);
}

Test(report, columns_line_up)
{
    struct weir_loader_report *report = small_report();
    report->prof.rows[0] = row("a stage with a name of fifty characters, or so more", WEIR_KIND_WORK, 1, 1);
    report->prof.rows[1] = row("加载图像", WEIR_KIND_WAIT, 2, 2);
    report->prof.rows[1].side = WEIR_SIDE_CONSUMER;
    char *text = printed(report, WEIR_LANG_EN);
    char *line = strtok(strchr(text, '\n') + 1, "\n");
    int width = weir_text_width(line);
    for (int i = 0; i < 3; i++) {
        line = strtok(NULL, "\n");
        cr_assert_eq(weir_text_width(line), width, "%s", line);
    }
    free(text);
    release(report);
}

Test(report, timing_off_says_so_and_prints_the_rest)
{
    struct weir_loader_report *report = small_report();
    report->timing = false;
    report->prof.n_rows = 0;
    report->reads = 12;
    report->read_bytes = 1200000;
    report->ahead_reads = 9;
    for (enum weir_lang lang = WEIR_LANG_EN; lang <= WEIR_LANG_ZH; lang++) {
        char *text = printed(report, lang);
        cr_assert_not_null(strstr(text, "--no-timing"));
        cr_assert_null(strstr(text, "性能分析统计"));
        cr_assert_not_null(strstr(text, "io: 12 reads, 1.14 MiB, 97.7 KiB per read, 75 % by read-ahead\n"));
        free(text);
    }
    release(report);
}

Test(report, requests_are_counted_for_servers_only)
{
    struct weir_loader_report *report = small_report();
    char *none = printed(report, WEIR_LANG_EN);
    report->server = (struct weir_report_server){.requests = 700,
                                                 .bytes = 1 << 20,
                                                 .opening_requests = 9,
                                                 .retries = 3,
                                                 .limited = 2,
                                                 .connections = 65,
                                                 .wait_s = 0.05,
                                                 .transfer_s = 0.001,
                                                 .in_flight = 31.25,
                                                 .limit = 80,
                                                 .host = "a.example:81"};
    char *text = printed(report, WEIR_LANG_EN);
    cr_assert_null(strstr(none, "server:"));
    cr_assert_not_null(strstr(text, "server: 700 requests, and 9 to open, over 65 connections to a.example:81;"), "%s",
                       text);
    cr_assert_not_null(strstr(text, "3 repeated, 2 refused by a limit (429, 503)"), "%s", text);
    cr_assert_null(strstr(text, "cache:"));
    free(none);
    free(text);
    release(report);
}

Test(report, a_cache_on_disk_has_a_line_and_a_warning)
{
    struct weir_loader_report *report = small_report();
    report->server = (struct weir_report_server){.bytes = 1 << 20, .cache_bytes = 3 << 20};
    char *text = printed(report, WEIR_LANG_EN);
    cr_assert_not_null(strstr(text, "cache: 3 MiB of 4 MiB came from disk (75 %), 0 bytes stored\n"), "%s", text);
    report->server.cache_full_bytes = 1 << 20;
    report->server.cache_damaged_blocks = 2;
    report->server.cache_errno = ENOSPC;
    char *bad = printed(report, WEIR_LANG_EN);
    cr_assert_not_null(strstr(bad, "full: 1 MiB not stored"), "%s", bad);
    cr_assert_not_null(strstr(bad, "2 damaged blocks"), "%s", bad);
    cr_assert_not_null(strstr(bad, "warning: --cache stores nothing more: No space left on device;"), "%s", bad);
    free(text);
    free(bad);
    release(report);
}

Test(report, pictures_are_counted_for_videos_only)
{
    struct weir_loader_report *report = small_report();
    char *none = printed(report, WEIR_LANG_EN);
    report->video.counts = (struct weir_video_counts){50, 1000, 525, 75, 0.1, 0};
    char *text = printed(report, WEIR_LANG_EN);
    report->video.counts.gpu_groups = 20;
    char *with_gpu = printed(report, WEIR_LANG_EN);
    cr_assert_null(strstr(none, "videos:"));
    cr_assert_not_null(
        strstr(text, "videos: 525 pictures decoded for 75 frames, 7.00 each, in groups of 20.0 pictures\n"), "%s",
        text);
    cr_assert_not_null(strstr(with_gpu, "in groups of 20.0 pictures, 40 % of them by the GPU\n"), "%s", with_gpu);
    free(none);
    free(text);
    free(with_gpu);
    release(report);
}

Test(report, chunks_say_what_was_paid)
{
    static const char wanted[] =
        "chunks: 800 unpacked for 100 frames, 2.5 frames at a time; 3.00 bytes unpacked per byte of the frames, "
        "1.50 bytes read per stored byte\n";
    struct weir_loader_report *report = small_report();
    for (enum weir_lang lang = WEIR_LANG_EN; lang <= WEIR_LANG_ZH; lang++) {
        report->chunks = (struct weir_chunk_counts){0};
        char *none = printed(report, lang);
        report->chunks = (struct weir_chunk_counts){100, 40, 800, 1000000, 3000000, 500000, 750000};
        char *text = printed(report, lang);
        cr_assert_null(strstr(none, "chunks:"));
        cr_assert_not_null(strstr(text, wanted), "%s", text);
        free(none);
        free(text);
    }
    release(report);
}

Test(report, errors_are_listed_and_the_rest_counted)
{
    struct weir_loader_report *report = small_report();
    report->bad_frames = 30;
    report->bad_episodes = 2;
    report->n_errors = 12;
    for (int i = 0; i < 12; i++) {
        snprintf(report->errors[i].text, sizeof report->errors[i].text, "ep%d.hdf5: \x1b[31mframe %d\n", i, i);
        report->errors[i].count = 2;
    }
    char *text = printed(report, WEIR_LANG_EN);
    cr_assert_not_null(
        strstr(text, "errors: 30 bad frames, 0 samples skipped, 0 frames substituted, 2 episodes left out\n"));
    cr_assert_not_null(strstr(text, "  2 x ep9.hdf5: ?[31mframe 9?\n"), "%s", text);
    cr_assert_null(strstr(text, "ep10.hdf5"));
    cr_assert_not_null(strstr(text, "  and 12 more\n"), "%s", text);
    free(text);
    text = printed(report, WEIR_LANG_ZH);
    cr_assert_not_null(strstr(text, "  and 12 more\n"), "%s", text);
    cr_assert_null(strchr(text, 0x1b));
    free(text);
    release(report);
}

Test(report, cpu_time_is_measured_or_the_mean_of_thirty_readings_times_the_calls)
{
    struct weir_snapshot *snapshot = calloc(1, sizeof *snapshot);
    struct weir_loader_report *report = calloc(1, sizeof *report);
    const struct weir_report_row *decode = &report->prof.rows[WEIR_STAGE_IMAGE_DECODE];
    const struct weir_report_row *reading = &report->prof.rows[WEIR_STAGE_READ_BYTES];
    snapshot->n_stages = WEIR_LOADER_STAGES;
    snapshot->stages[WEIR_STAGE_IMAGE_DECODE] = (struct weir_stage_stats){.count = 10,
                                                                          .self_ns = 30000000,
                                                                          .measured = 10,
                                                                          .measured_ns = 30000000,
                                                                          .off_ns = 15000000,
                                                                          .preempted_ns = 6000000};
    snapshot->stages[WEIR_STAGE_READ_BYTES] =
        (struct weir_stage_stats){.count = 800, .self_ns = 10000000, .sampled = 29, .sampled_cpu_ns = 290000};
    cr_assert_eq(weir_report_from_snapshot(&report->prof, snapshot), 0);
    cr_assert_float_eq(decode->cpu_s, 0.015, 1e-12);
    cr_assert_float_eq(decode->preempted_s, 0.006, 1e-12);
    cr_assert_float_eq(decode->cpu_over_wall, 0.5, 1e-12);
    cr_assert(reading->cpu_s == -1 && reading->cpu_over_wall == -1, "29 readings are too few");
    /* Context switches may be recorded for some threads and not for others. */
    struct weir_stage_stats *stats = &snapshot->stages[WEIR_STAGE_READ_BYTES];
    *stats = (struct weir_stage_stats){.count = 1000,
                                       .self_ns = 10000000,
                                       .measured = 200,
                                       .measured_ns = 3000000,
                                       .off_ns = 1000000,
                                       .sampled = 30,
                                       .sampled_cpu_ns = 150000};
    cr_assert_eq(weir_report_from_snapshot(&report->prof, snapshot), 0);
    cr_assert_float_eq(reading->cpu_s, 0.002 + 800 * 5e-6, 1e-12);
    cr_assert_float_eq(reading->cpu_over_wall, 0.6, 1e-12);
    release(report);
    free(snapshot);
}

static struct weir_report_worker thread_line(uint64_t throttled_ns, bool delay_known,
                                             struct weir_report_worker *consumer)
{
    struct weir_thread_stats threads[] = {
        {.name = "w0", .role = WEIR_ROLE_WORKER, .wall_ns = 10000000000, .work_ns = 9000000000, .cpu_ns = 2000000000},
        {.name = "consumer", .role = WEIR_ROLE_CONSUMER, .wall_ns = 10000000000, .wait_ns = 9000000000},
    };
    struct weir_snapshot *snapshot = calloc(1, sizeof *snapshot);
    struct weir_loader_report *report = calloc(1, sizeof *report);
    threads[0].delay_known = delay_known;
    threads[0].delay_ns = delay_known ? 6000000000 : 0;
    snapshot->n_stages = WEIR_LOADER_STAGES;
    snapshot->threads = threads;
    snapshot->n_threads = 2;
    snapshot->throttled_ns = throttled_ns;
    snapshot->machine_busy = 1000;
    snapshot->machine_steal = 100;
    cr_assert_eq(weir_report_from_snapshot(&report->prof, snapshot), 0);
    cr_assert_eq(report->prof.n_workers, 1);
    struct weir_report_worker worker = report->prof.workers[0];
    *consumer = report->prof.consumer;
    release(report);
    free(snapshot);
    return worker;
}

Test(report, a_threads_time_is_split_by_what_the_kernel_did_with_it)
{
    struct weir_report_worker consumer, w = thread_line(0, true, &consumer);
    cr_assert_float_eq(w.cpu_s, 2, 1e-9);
    cr_assert_float_eq(w.core_wait_s, 6, 1e-9, "no part of the delay is throttling");
    cr_assert_float_eq(w.throttled_s, 0, 1e-9);
    cr_assert_float_eq(w.blocked_s, 2, 1e-9);
    cr_assert_float_eq(w.steal_s, 0.2, 1e-9);
    w = thread_line(3000000000, true, &consumer);
    cr_assert_float_eq(w.throttled_s, 3, 1e-9);
    cr_assert_float_eq(w.core_wait_s, 3, 1e-9);
    w = thread_line(30000000000, true, &consumer);
    cr_assert_float_eq(w.throttled_s, 6, 1e-9, "throttling cannot exceed the delay");
    cr_assert_float_eq(w.core_wait_s, 0, 1e-9);
    cr_assert_str_eq(consumer.name, "consumer");
    cr_assert_float_eq(consumer.wait_s, 9, 1e-9);
    w = thread_line(30000000000, false, &consumer);
    cr_assert(w.throttled_s == -1 && w.core_wait_s == -1 && w.blocked_s == -1, "unknown times must be -1");
}

Test(report, rows_from_a_snapshot)
{
    struct weir_snapshot *snapshot = calloc(1, sizeof *snapshot);
    snapshot->n_stages = WEIR_LOADER_STAGES;
    struct weir_stage_stats *decode = &snapshot->stages[WEIR_STAGE_IMAGE_DECODE];
    *decode = (struct weir_stage_stats){
        .count = 10, .total_ns = 30000000, .self_ns = 30000000, .min_ns = 1000000, .max_ns = 5000000};
    decode->hist[weir_hist_bucket(3000000)] = 10;
    snapshot->stages[WEIR_STAGE_READ_BYTES] =
        (struct weir_stage_stats){.count = 1, .total_ns = 10000000, .self_ns = 10000000};
    snapshot->stages[WEIR_STAGE_TRAIN_FORWARD] = (struct weir_stage_stats){.count = 1, .total_ns = 90, .self_ns = 90};
    snapshot->stages[WEIR_STAGE_TOTAL_GETITEM] = (struct weir_stage_stats){.count = 1, .total_ns = 90, .self_ns = 90};
    snapshot->stages[WEIR_STAGE_WORKER_LOOP] = (struct weir_stage_stats){.count = 1, .total_ns = 90, .self_ns = 90};
    struct weir_thread_stats threads[] = {
        {.name = "w00", .role = WEIR_ROLE_WORKER, .wall_ns = 2000000000, .work_ns = 1000000000, .zones = 40},
        {.name = "main", .role = WEIR_ROLE_CONSUMER, .wall_ns = 2000000000, .zones = 2, .too_deep = 3},
    };
    snapshot->threads = threads;
    snapshot->n_threads = 2;
    struct weir_loader_report *report = calloc(1, sizeof *report);
    cr_assert_eq(weir_report_from_snapshot(&report->prof, snapshot), 0);
    cr_assert_eq(report->prof.n_rows, WEIR_LOADER_STAGES - 1, "all rows except the worker's loop");
    cr_assert_float_eq(report->prof.rows[WEIR_STAGE_IMAGE_DECODE].share, 0.75, 1e-12);
    cr_assert_float_eq(report->prof.rows[WEIR_STAGE_READ_BYTES].share, 0.25, 1e-12);
    cr_assert_eq(report->prof.rows[WEIR_STAGE_TRAIN_FORWARD].share, -1, "the consumer's work counts in no share");
    cr_assert_eq(report->prof.rows[WEIR_STAGE_TOTAL_GETITEM].self_s, 0);
    cr_assert_float_eq(report->prof.rows[WEIR_STAGE_IMAGE_DECODE].p50_s, 0.003, 0.0002);
    cr_assert_eq(report->prof.n_workers, 1);
    cr_assert_str_eq(report->prof.workers[0].name, "w00");
    cr_assert_eq(report->prof.zones, 42);
    cr_assert_eq(report->prof.too_deep, 3);
    cr_assert_float_eq(report->prof.thread_s, 4, 1e-12);
    cr_assert_gt(report->prof.zone_cost_ns, 0);
    cr_assert_float_eq(report->prof.profiler_share, 42 * report->prof.zone_cost_ns / 4e9, 1e-15);
    double shares = 0;
    for (int i = 0; i < report->prof.n_rows; i++)
        shares += report->prof.rows[i].share > 0 ? report->prof.rows[i].share : 0;
    cr_assert_float_eq(shares, 1, 1e-12);
    snapshot->others[WEIR_STAGE_IMAGE_DECODE] =
        (struct weir_stage_stats){.count = 7, .total_ns = 7000000, .self_ns = 7000000, .min_ns = 1, .max_ns = 2};
    cr_assert_eq(weir_report_from_snapshot(&report->prof, snapshot), 0);
    cr_assert_eq(report->prof.n_rows, WEIR_LOADER_STAGES, "one more row");
    cr_assert_float_eq(report->prof.rows[WEIR_STAGE_IMAGE_DECODE].share, 0.75, 1e-12, "share of the workers' work");
    const struct weir_report_row *others = &report->prof.rows[WEIR_STAGE_IMAGE_DECODE + 1];
    cr_assert(others->side == WEIR_SIDE_HELPER && others->count == 7 && others->share == -1 &&
              !strcmp(others->name, "03b_image_decode"));
    threads[0].role = WEIR_ROLE_OTHER; /* without workers, the consumer's line is shown */
    cr_assert_eq(weir_report_from_snapshot(&report->prof, snapshot), 0);
    cr_assert_eq(report->prof.n_workers, 1);
    cr_assert_str_eq(report->prof.workers[0].name, "main");
    free(snapshot);
    release(report);
}

Test(report, epoch_lines)
{
    struct weir_epoch_line line = {.epoch = 3,
                                   .epoch_count = 10,
                                   .total_s = 12.34,
                                   .train_s = 10,
                                   .val_s = 2.3,
                                   .data_wait_fraction = 0.123,
                                   .samples_per_s = 123.4,
                                   .images_per_s = 493.6,
                                   .peak_rss_bytes = 1230000000};
    char text[512];
    for (int pass = 0; pass < 4; pass++) {
        FILE *out = fmemopen(text, sizeof text, "w");
        line.interrupted = pass & 1;
        weir_epoch_print(out, &line, pass < 2 ? WEIR_LANG_ZH : WEIR_LANG_EN);
        fclose(out);
        static const char *const wanted[] = {
            "Epoch 3/10 总耗时: 12.34s | 训练耗时: 10.00s | 验证耗时: 2.30s | 数据等待: 12.3% | 样本/秒: 123.4 | "
            "图像/秒: 493.6 | 峰值内存: 1.23GB\n",
            "Epoch 3/10 (中断) 总耗时: 12.34s | 训练耗时: 10.00s | 验证耗时: 2.30s | 数据等待: 12.3% | 样本/秒: 123.4 "
            "| "
            "图像/秒: 493.6 | 峰值内存: 1.23GB\n",
            "epoch 3/10 total 12.34 s | train 10.00 s | val 2.30 s | data wait 12.3 % | 123.4 samples/s | "
            "493.6 images/s | peak memory 1.15 GiB\n",
            "epoch 3/10 (interrupted) total 12.34 s | train 10.00 s | val 2.30 s | data wait 12.3 % | 123.4 samples/s "
            "| "
            "493.6 images/s | peak memory 1.15 GiB\n",
        };
        cr_assert_str_eq(text, wanted[pass]);
    }
}

/* Counts the conversions of a format string, and sets types[i] to the conversion specifier of argument i (from 0). */
static int conversions(const char *format, char types[16])
{
    int n = 0, next = 0;
    memset(types, 0, 16);
    for (const char *at = format; (at = strchr(at, '%')); at++) {
        at++;
        if (*at == '%')
            continue;
        size_t digits = strspn(at, "0123456789");
        int argument = at[digits] == '$' ? atoi(at) - 1 : next++;
        at += strcspn(at, "dsfu");
        cr_assert(*at && argument >= 0 && argument < 16, "%s", format);
        types[argument] = *at;
        n++;
    }
    return n;
}

Test(report, texts_of_both_languages_print_the_same_values)
{
    const char *const *en = weir_report_texts(WEIR_LANG_EN), *const *zh = weir_report_texts(WEIR_LANG_ZH);
    int values = 0;
    for (int text = 0; text < WEIR_TEXTS; text++) {
        char types[2][16];
        int n[2] = {conversions(en[text], types[0]), conversions(zh[text], types[1])};
        for (int i = 0; i < 16; i++)
            cr_assert(!types[0][i] || !types[1][i] || types[0][i] == types[1][i], "%s\n%s", en[text], zh[text]);
        cr_assert(n[0] == n[1] || text == WEIR_TEXT_ONE_EPOCH, "%s\n%s", en[text], zh[text]);
        values += n[0];
    }
    cr_assert_gt(values, 20);
}

/* In a Chinese report, only the table, its heading and the line of epochs contain Chinese. */
Test(report, lines_outside_the_chinese_table_are_english)
{
    struct weir_loader_report *report = small_report();
    report->prof.machine = (struct weir_report_machine){.used = true, .cores = 2, .online = 2};
    report->prof.workers = calloc(1, sizeof *report->prof.workers);
    report->prof.n_workers = 1;
    report->gpu = (struct weir_report_gpu){.used = true, .name = "GPU"};
    report->cache = (struct weir_report_cache){.budget_bytes = 1000000, .hits = 1, .misses = 1, .saved_s = 0.25};
    report->frames_shared = report->changed_files = report->queue_samples = 1;
    add_error(report, 1, "d/c.hdf5: not an HDF5 file");
    char *text = printed(report, WEIR_LANG_ZH), *english = printed(report, WEIR_LANG_EN);
    const char *after = strstr(text, "worker "), *same = strstr(english, "worker ");
    cr_assert(after && same);
    cr_assert_str_eq(after, same);
    free(text);
    free(english);
    release(report);
}

Test(report, the_machine)
{
    struct weir_loader_report *report = small_report();
    char *text = printed(report, WEIR_LANG_EN);
    cr_assert_null(strstr(text, "machine"), "%s", text);
    free(text);
    report->prof.machine = (struct weir_report_machine){
        .used = true, .cores = 2, .online = 2, .part = 2, .others_cores = -1, .steal_cores = -1, .load_average = -1};
    text = printed(report, WEIR_LANG_EN);
    cr_assert_not_null(strstr(text, "\nmachine: 2 of 2 cores\n"), "%s", text);
    free(text);
    report->prof.machine =
        (struct weir_report_machine){true, 12, 64, 6, 11.5, true, 300, 17, 3.25, 125829120, 1.5, 0.25, 21};
    text = printed(report, WEIR_LANG_EN);
    cr_assert_not_null(strstr(text, "\nmachine: 12 of 64 cores, 6 of them for this local rank; CPU quota 11.50 cores, "
                                    "throttled in 17 of 300 periods, 3.25 s; memory limit 120 MiB; others used 1.50 "
                                    "cores, 0.25 stolen; load average 21.00 at the start\n"),
                       "%s", text);
    free(text);
    text = printed(report, WEIR_LANG_ZH);
    cr_assert_not_null(strstr(text, "\nmachine: 12 of 64 cores, 6 of them for this local rank; CPU quota 11.50 "), "%s",
                       text);
    free(text);
    release(report);
}

Test(report, a_gpu_in_lines)
{
    struct weir_epoch_line line = {.epoch = 1, .epoch_count = 1, .gpu = true, .gpu_busy_fraction = 0.931};
    char text[512];
    line.copy_overlap_fraction = 0.97;
    for (int lang = WEIR_LANG_EN; lang <= WEIR_LANG_ZH; lang++) {
        FILE *out = fmemopen(text, sizeof text, "w");
        weir_epoch_print(out, &line, (enum weir_lang)lang);
        fclose(out);
        cr_assert_not_null(strstr(text, lang == WEIR_LANG_ZH ? " | GPU忙碌: 93.1% | 拷贝重叠: 97.0%\n"
                                                             : " | GPU busy 93.1 % | copies overlapped 97.0 %\n"),
                           "%s", text);
    }
}

/* Without room for the kind, the names tell the GPU's rows from the host's. */
Test(report, a_gpu_in_a_narrow_table)
{
    struct weir_loader_report *report = small_report();
    struct weir_stage_stats stats = {0};
    weir_stage_stats_add(&stats, 2000000);
    report->gpu.used = true;
    weir_report_gpu_add(&report->gpu, WEIR_STAGE_H2D_COPY, &stats);
    setenv("COLUMNS", "80", 1);
    char *table = printed(report, WEIR_LANG_EN);
    cr_assert_not_null(strstr(table, "\n07_h2d_copy (gpu) "), "%s", table);
    cr_assert_not_null(strstr(table, "\n03b_image_decode  "), "%s", table);
    cr_assert_null(strstr(table, "gpu-work"), "%s", table);
    free(table);
    release(report);
}

Test(report, a_gpu_in_the_table)
{
    struct weir_loader_report *report = small_report();
    struct weir_stage_stats stats = {0};
    weir_stage_stats_add(&stats, 2000000);
    weir_stage_stats_add(&stats, 4000000);
    report->gpu = (struct weir_report_gpu){.used = true,
                                           .number = 1,
                                           .name = "H200",
                                           .copy_bytes_per_s = 50e9,
                                           .overlap = 0.97,
                                           .busy = 0.931,
                                           .stall_s = 0.5,
                                           .sync_steps = true};
    weir_report_gpu_add(&report->gpu, WEIR_STAGE_H2D_COPY, &stats);
    char *table = printed(report, WEIR_LANG_EN);
    cr_assert_not_null(strstr(table, "\n07_h2d_copy             gpu-work  "), "%s", table);
    cr_assert_not_null(strstr(table, "  2     0.006s   3.00ms "), "%s", table);
    cr_assert_not_null(
        strstr(table, "\nGPU 1 (H200): busy 93.1 %, copies at 50.00 GB/s, 97.0 % of their time alongside steps, "
                      "the step's stream waited 0.500 s for batches; the program waited for each step before "
                      "the next (--sync-steps)\n"),
        "%s", table);
    cr_assert_null(strstr(table, "\ndecoded: "));
    free(table);
    report->gpu.decode = (struct weir_report_decode){
        .n_engines = 1,
        .engines = {{.by = "7 JPEG engines", .frames = 3000, .groups = 12, .busy = 0.95},
                    {.by = "the multiprocessors", .frames = 512, .groups = 2, .busy = 0.25}},
        .cpu_frames = 700,
        .cpu_busy = 0.5,
        .compared = 4,
        .gate_db = 55,
        .least_db = 99};
    table = printed(report, WEIR_LANG_EN);
    cr_assert_not_null(strstr(table, "\ndecoded: 3000 frames by 7 JPEG engines in 12 groups, busy 95.0 %; 700 by the "
                                     "CPU, 50.0 % of its workers' time; 4 compared with CPU decoding: "
                                     "identical\n"),
                       "%s", table);
    free(table);
    report->gpu.decode.engines[0].frames = report->gpu.decode.engines[0].groups = 1;
    table = printed(report, WEIR_LANG_EN);
    cr_assert_not_null(strstr(table, "\ndecoded: 1 frame by 7 JPEG engines in 1 group, busy 95.0 %; 700 by"), "%s",
                       table);
    free(table);
    report->gpu.decode.n_engines = 2;
    report->gpu.decode.sent_back = 2;
    report->gpu.decode.below = 1;
    report->gpu.decode.least_db = 43.21;
    report->gpu.decode.cpu_busy = -1;
    snprintf(report->gpu.decode.reasons, sizeof report->gpu.decode.reasons, "2 gate");
    table = printed(report, WEIR_LANG_EN);
    cr_assert_not_null(strstr(table, "busy 95.0 %; 512 frames by the multiprocessors in 2 groups, busy 25.0 %; "
                                     "700 by the CPU; 2 not accepted by the GPU (2 "
                                     "gate); 4 compared with CPU decoding: "
                                     "lowest PSNR 43.2 dB, 1 below 55 dB\n"),
                       "%s", table);
    free(table);
    release(report);
}

Test(report, a_gpu_in_the_chinese_table)
{
    struct weir_loader_report *report = small_report();
    struct weir_stage_stats stats = {0};
    weir_stage_stats_add(&stats, 2000000);
    report->gpu = (struct weir_report_gpu){.used = true, .name = "H200", .overlap = -1};
    report->gpu.decode =
        (struct weir_report_decode){.n_engines = 1,
                                    .engines = {{.by = "7 JPEG engines", .frames = 3000, .groups = 12, .busy = 0.95}},
                                    .cpu_frames = 700,
                                    .cpu_busy = 0.5,
                                    .compared = 4,
                                    .gate_db = 55,
                                    .least_db = 99};
    weir_report_gpu_add(&report->gpu, WEIR_STAGE_H2D_COPY, &stats);
    char *table = printed(report, WEIR_LANG_ZH);
    cr_assert_not_null(strstr(table, "\ndecoded: 3000 frames by 7 JPEG engines in 12 groups, busy 95.0 %; 700 by the "),
                       "%s", table);
    cr_assert_not_null(strstr(table, "\n  GPU 07_h2d_copy: "), "%s", table);
    free(table);
    report->timing = false;
    table = printed(report, WEIR_LANG_ZH);
    cr_assert_null(strstr(table, "07_h2d_copy"), "%s", table);
    free(table);
    release(report);
}

Test(report, cells_that_are_filled_from_elsewhere)
{
    struct weir_stage_stats then = {0}, now;
    weir_stage_stats_add(&then, 5000);
    weir_stage_stats_add(&then, 1);
    now = then;
    weir_stage_stats_add(&now, 100);
    weir_stage_stats_add(&now, 300);
    cr_assert_eq(now.min_ns, 1);
    cr_assert_eq(now.max_ns, 5000);
    weir_stage_stats_subtract(&now, &then);
    cr_assert_eq(now.count, 2);
    cr_assert_eq(now.total_ns, 400);
    cr_assert(now.min_ns > 90 && now.min_ns <= 100 && now.max_ns >= 300 && now.max_ns < 320);
}

static char *json_of(void (*write)(struct weir_json *json), bool pretty)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    struct weir_json json;
    weir_json_open(&json, out, pretty);
    write(&json);
    weir_json_close(&json);
    fclose(out);
    return text;
}

static void nested(struct weir_json *json)
{
    weir_json_object(json, NULL);
    weir_json_int(json, "a", INT64_MIN);
    weir_json_array(json, "list");
    weir_json_uint(json, NULL, UINT64_MAX);
    weir_json_bool(json, NULL, false);
    weir_json_object(json, NULL);
    weir_json_end(json, '}');
    weir_json_end(json, ']');
    weir_json_text(json, "none", NULL);
    weir_json_end(json, '}');
}

Test(json, nesting_compact_and_pretty)
{
    char *text = json_of(nested, false);
    cr_assert_str_eq(text, "{\"a\":-9223372036854775808,\"list\":[18446744073709551615,false,{}],\"none\":null}\n");
    free(text);
    text = json_of(nested, true);
    cr_assert_str_eq(text, "{\n  \"a\": -9223372036854775808,\n  \"list\": [\n    18446744073709551615,\n    false,\n"
                           "    {}\n  ],\n  \"none\": null\n}\n");
    free(text);
}

static void hostile_text(struct weir_json *json)
{
    weir_json_array(json, NULL);
    weir_json_text(json, NULL, "quote \" slash \\ nl \n tab \t esc \x1b del \x7f");
    weir_json_text(json, NULL, "摄像头 \xf0\x9f\x93\xb7");
    weir_json_text(json, NULL, "\xff\xc0\x80\xed\xa0\x80 cut \xe6\x91");
    weir_json_text(json, NULL, "c1 \xc2\x9b bidi \xe2\x80\xae");
    weir_json_end(json, ']');
}

Test(json, texts_are_escaped)
{
    char *text = json_of(hostile_text, false);
    cr_assert_str_eq(text, "[\"quote \\\" slash \\\\ nl \\n tab \\t esc \\u001b del \\u007f\","
                           "\"摄像头 \xf0\x9f\x93\xb7\","
                           "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd cut "
                           "\xef\xbf\xbd\xef\xbf\xbd\","
                           "\"c1 \\u009b bidi \\u202e\"]\n");
    free(text);
}

static void numbers(struct weir_json *json)
{
    weir_json_array(json, NULL);
    weir_json_double(json, NULL, 0.1);
    weir_json_double(json, NULL, 1.0 / 3);
    weir_json_double(json, NULL, 12345678.5);
    weir_json_double(json, NULL, 1e300);
    weir_json_double(json, NULL, NAN);
    weir_json_double(json, NULL, -INFINITY);
    weir_json_double(json, NULL, -0.0);
    weir_json_end(json, ']');
}

Test(json, numbers_are_short_and_exact)
{
    char *text = json_of(numbers, false);
    cr_assert_str_eq(text, "[0.1,0.33333333333333331,12345678.5,1e+300,null,null,0]\n");
    free(text);
}

Test(err, first_error_is_kept_and_made_printable)
{
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_err_set(&err, -EBADMSG, "%s: frame %d", "a\nb\x1b[0m\xff", 7), -EBADMSG);
    cr_assert_str_eq(err.text, "a?b?[0m?: frame 7");
    cr_assert_eq(weir_err_set(&err, -EIO, "second"), -EIO);
    cr_assert_eq(err.code, -EBADMSG);
    weir_err_prefix(&err, "ep%d\t", 3);
    cr_assert_str_eq(err.text, "ep3?: a?b?[0m?: frame 7");
    cr_assert_eq(weir_err_set(NULL, -EIO, "nobody listens"), -EIO);
    struct weir_err none = WEIR_ERR_NONE;
    weir_err_prefix(&none, "prefix");
    cr_assert_str_eq(none.text, "");
}

Test(err, long_texts_end_at_a_whole_character)
{
    char name[4096];
    for (size_t i = 0; i + 3 < sizeof name; i += 3)
        memcpy(name + i, "帧", 4);
    for (int shift = 0; shift < 3; shift++) {
        struct weir_err err = WEIR_ERR_NONE;
        weir_err_set(&err, -EIO, "%.*s%s", shift, "ab", name);
        cr_assert_lt(strlen(err.text), sizeof err.text);
        cr_assert_null(strchr(err.text, '?'));
        weir_err_prefix(&err, "%s", name + 3 * 900);
        cr_assert_lt(strlen(err.text), sizeof err.text);
        cr_assert_null(strchr(err.text, '?'));
    }
}
