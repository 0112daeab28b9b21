#include "analyze/logs/log_lines.h"
#include "analyze/logs/log_plain.h"
#include "analyze/logs/log_read.h"
#include "analyze/logs/log_words.h"
#include "analyze/verdict/verdict.h"
#include "base/text.h"
#include "tests/fixtures/report_fixture.h"
#include "weir/stages.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void register_stages(void)
{
    cr_assert_eq(weir_loader_stages(), 0);
}

TestSuite(log_read, .init = register_stages);

/* --- JSON lines --------------------------------------------------------------------------------------------------- */

static const struct weir_report_cache full_cache = {.budget_bytes = 1u << 30,
                                                    .used_bytes = 1000000,
                                                    .frames = 7,
                                                    .hits = 2000,
                                                    .misses = 1000,
                                                    .saved_s = 10.0 / 3,
                                                    .all_frames = 3000,
                                                    .all_bytes = 3000000001,
                                                    .all_hit_rate = 2.0 / 3};

static void add_gpu(struct weir_report_gpu *gpu, int seed)
{
    struct weir_stage_stats stats = {0};
    for (int i = 0; i < 20; i++)
        weir_stage_stats_add(&stats, 1234567u + 98765u * (unsigned)i);
    *gpu = (struct weir_report_gpu){.used = true,
                                    .number = seed,
                                    .copy_bytes_per_s = seed > 1 ? -1 : 55.5e9 / 7,
                                    .overlap = seed > 1 ? -1 : 0.987,
                                    .busy = 2.0 / 3,
                                    .stall_s = 0.25 / 3,
                                    .sync_steps = seed > 1,
                                    .used_bytes = seed > 1 ? 0 : 3210987654};
    if (seed > 0)
        gpu->decode = (struct weir_report_decode){
            .n_engines = 2,
            .engines = {{.by = "7 JPEG engines", .frames = 123456789, .groups = 4321, .busy = 0.97531},
                        {.by = "the multiprocessors", .frames = 5432, .groups = 21, .busy = 1.0 / 7}},
            .cpu_frames = 98765,
            .cpu_busy = seed > 1 ? -1 : 1.0 / 3,
            .sent_back = 15,
            .reasons = "12 progressive, 3 truncated",
            .compared = 40,
            .below = 1,
            .gate_db = 55,
            .least_db = 61.97};
    snprintf(gpu->name, sizeof gpu->name, "NVIDIA \x1b H200");
    weir_report_gpu_add(gpu, WEIR_STAGE_H2D_COPY, &stats);
    /* This stage was never called, so it has no row. */
    weir_report_gpu_add(gpu, WEIR_STAGE_PREPARE_BATCH, &(struct weir_stage_stats){0});
    weir_report_gpu_add(gpu, WEIR_STAGE_WAIT_DATA, &stats);
}

static const struct weir_report_machine machines[] = {
    {.used = true, .cores = 2, .online = 64, .part = 1, .others_cores = -1, .steal_cores = -1, .load_average = -1},
    {true, 12, 64, 6, 11.5, true, 300, 17, 100.0 / 3, 125829120, 5.0 / 3, 0.0625, 21.65},
};

static void add_sources(struct weir_report_sources *sources)
{
    *sources = (struct weir_report_sources){
        .n_cameras = 2,
        .cameras = {{"top", {900, 1234567, 10.0 / 3, 0.001 / 3, 0.02, 0.5}, {901, 1234568, 20.0 / 3, 0.003, 0.004, 1}},
                    {"wrist \x1b 图", {7, 8, 1, 2, 3, 4}, {0}}},
        .files_read = 51,
        .files_median_s = 0.001 / 7,
        .n_files = 2,
        .files = {{"a/episode_3.hdf5", 90, 0.0512, 0.061}, {"\xff.hdf5", 89, 0.001, 0.002}},
        .n_calls = 2,
        .calls = {{"a/episode_3.hdf5", "top", 17, false, 0.061}, {"demo.hdf5:demo_1", "wrist", 0, true, 1e-4 / 3}}};
    weir_text_printable(sources->cameras[1].name);
    weir_text_printable(sources->files[1].name);
}

static const char *const names[] = {"00_TOTAL_getitem", "03b_image_decode", "08_wait_for_data", "图像 \"增强\"\\",
                                    "03a"};

static void add_steps(struct weir_loader_report *report)
{
    report->steps =
        (struct weir_report_steps){900, 90, 16000, 100.0 / 7, 1.25, 50.0 / 7, 0.1, 0.2, false, true, 2.5, true};
    report->first_epoch = (struct weir_report_epochs){1, 1600, 10.0 / 3, 1, 480, 480, 123456};
    report->later_epochs = (struct weir_report_epochs){9, 14400, 80.0 / 7, 7, 470.5, 500, -1};
    report->storage = (struct weir_report_storage){130000, 16, 1e-4 / 3, 1e-3 / 3, 1e8 / 3};
    report->late = (struct weir_report_late){77, 10.0 / 3, 5, 0.5, 0.25, "top", "a/episode_3.hdf5", "weir-w1", 3, 2, 1};
    report->idle = (struct weir_report_idle){0.05, 1.0 / 3, 0.1, 0.2, 0.3, 0.04, 0.05, 0.06, 1e-5 / 3, -1, 35.5};
    report->setup = (struct weir_report_setup){.known = true,
                                               .workers = 8,
                                               .slots = 9,
                                               .batch_size = 16,
                                               .images_per_sample = 2,
                                               .device = -1,
                                               .width = 640,
                                               .height = 480,
                                               .out_width = 320,
                                               .out_height = 240,
                                               .normalised = true,
                                               .encoded = true,
                                               .sizes_differ = true,
                                               .reads_ahead = true,
                                               .decoder = "turbo",
                                               .io = "pread",
                                               .kind = WEIR_FRAME_PNG,
                                               .image_bytes = 230400,
                                               .frames_bytes = 900000000,
                                               .memory_free_bytes = 20000000000,
                                               .cached_at_start = 0.125,
                                               .copy_bytes_per_s = 1e10 / 3,
                                               .jpeg_engines = 7,
                                               .indexed = true,
                                               .index_s = 1.25};
}

static void add_workers_and_errors(struct weir_loader_report *report)
{
    add_sources(&report->sources);
    report->prof.workers = calloc(2, sizeof *report->prof.workers);
    for (int i = 0; i < 3; i++) /* the third is the consumer; some figures of the second are unknown */
        *(i == 2 ? &report->prof.consumer : &report->prof.workers[i]) =
            (struct weir_report_worker){.wall_s = 100.0 / 3,
                                        .work_s = 30 + i,
                                        .wait_s = 3 - i,
                                        .unattributed_s = (1 + i) / 7.0,
                                        .cpu_s = 29.5 + i,
                                        .work_cpu_s = i == 1 ? -1 : 28.1,
                                        .wait_cpu_s = i == 1 ? -1 : 0.9,
                                        .unattributed_cpu_s = i == 1 ? -1 : 0.5,
                                        .throttled_s = i == 1 ? -1 : 2.0 / 3,
                                        .core_wait_s = i == 1 ? -1 : 1.0 / 3,
                                        .blocked_s = i == 1 ? -1 : 2.3,
                                        .steal_s = i == 1 ? -1 : 0.1};
    strcpy(report->prof.workers[0].name, "w00");
    strcpy(report->prof.workers[1].name, "w01");
    strcpy(report->prof.consumer.name, "consumer");
    snprintf(report->errors[0].text, sizeof report->errors[0].text, "ep.hdf5: /images/top[3]: \x1b[31mbad\xff\n");
    snprintf(report->errors[1].text, sizeof report->errors[1].text, "数据集 缺失");
    report->errors[0].count = 60;
    report->errors[1].count = 2;
    report->changed_files = report->prof.too_deep;
    report->storage.device_bytes = -1;
    if (report->final) /* the other report has no step figures, like an old log */
        add_steps(report);
}

static struct weir_loader_report *full_report(int seed)
{
    struct weir_loader_report *report = calloc(1, sizeof *report);
    *report = (struct weir_loader_report){.epoch_first = 1 + seed,
                                          .epoch_last = 10 + seed,
                                          .epoch_count = 30,
                                          .timing = true,
                                          .final = seed > 0,
                                          .wall_s = 100.0 / 3,
                                          .prof.n_rows = 5,
                                          .prof.n_workers = 2,
                                          .queue_slots = 8,
                                          .queue_mean = 22.0 / 7,
                                          .queue_max = 8,
                                          .queue_samples = 99,
                                          .reads = 333720,
                                          .read_bytes = 37000000001,
                                          .fallbacks = {4, 0.97, 0.0041, 1.5},
                                          .stored_pixels = 307200000,
                                          .decoded_pixels = 76800001,
                                          .chunks = {100, 40, 800, 12345678, 34567890, 7654321, 23456789},
                                          .video = {{seed > 0 ? 50 : 0, 1000, 525, 50, 0.987654321, 17}, 0.00123},
                                          .frames_shared = 12 + (unsigned)seed,
                                          .prof.machine = machines[seed > 0],
                                          .cache = seed ? full_cache : (struct weir_report_cache){0},
                                          .bad_frames = 100,
                                          .skipped_samples = 2,
                                          .substituted_frames = 3,
                                          .bad_episodes = 1,
                                          .n_errors = 2,
                                          .prof.zones = 1000001,
                                          .prof.too_deep = (unsigned)seed,
                                          .prof.zone_cost_ns = 21.37,
                                          .prof.thread_s = 200.0 / 3,
                                          .prof.profiler_share = 0.000123456789,
                                          .prof.clock_error_ppm = 0.314,
                                          .prof.cpu_sampled = "perf_event_open: Permission denied"};
    for (int i = 0; i < 5; i++) {
        struct weir_report_row *row = &report->prof.rows[i];
        double total = 1000.0 / (3 + i + seed);
        *row = (struct weir_report_row){.kind = (enum weir_stage_kind[]){WEIR_KIND_SPAN, WEIR_KIND_WORK, WEIR_KIND_WAIT,
                                                                         WEIR_KIND_WORK, WEIR_KIND_INCLUSIVE}[i],
                                        .side = i == 2 ? WEIR_SIDE_CONSUMER : WEIR_SIDE_WORKER,
                                        .count = 83430u + (unsigned)i,
                                        .total_s = total,
                                        .self_s = total / 2,
                                        .mean_s = total / 83430,
                                        .min_s = 1e-9 / 3,
                                        .p50_s = 1e-4 / 3,
                                        .p90_s = 1e-3 / 3,
                                        .p99_s = 1e-2 / 3,
                                        .max_s = 10.0 / 3,
                                        .cpu_s = i == 2 ? -1 : total / 3,
                                        .preempted_s = i == 2 ? -1 : total / 7,
                                        .cpu_over_wall = i == 2 ? -1 : 0.9 / (1 + i),
                                        .share = i & 1 ? 0.5 : -1};
        snprintf(row->name, sizeof row->name, "%s", names[i]);
    }
    if (seed > 0)
        add_gpu(&report->gpu, seed);
    add_workers_and_errors(report);
    return report;
}

static void release_report(struct weir_loader_report *report)
{
    weir_loader_report_clear(report);
    free(report);
}

static const struct weir_epoch_line epoch = {.epoch = 3,
                                             .epoch_count = 30,
                                             .total_s = 37.0 / 3,
                                             .train_s = 10,
                                             .val_s = 2.1,
                                             .data_wait_fraction = 1.0 / 7,
                                             .samples_per_s = 123.456,
                                             .images_per_s = 400,
                                             .peak_rss_bytes = 1234567890,
                                             .interrupted = true};

#define RUN_LINE                                                                                                       \
    "{\"type\":\"run\",\"weir\":\"0.1.0\",\"git\":\"abc\",\"machine\":{\"cpu\":\"Xeon \\u001b[31m\",\"cores\":8},"     \
    "\"versions\":{\"hdf5\":\"1.10.8\"},\"config\":{\"batch_size\":8,\"on_error\":null,\"rate\":0.25,\"drop_last\":"   \
    "true}}\n"

Test(log_read, what_was_logged_prints_as_the_live_report_did)
{
    for (enum weir_lang lang = WEIR_LANG_EN; lang <= WEIR_LANG_ZH; lang++) {
        char *log = NULL, *live = NULL;
        size_t log_size = 0, live_size = 0;
        FILE *log_out = open_memstream(&log, &log_size), *live_out = open_memstream(&live, &live_size);
        for (int seed = 0; seed < 3; seed++) {
            struct weir_loader_report *report = full_report(seed);
            struct weir_epoch_line line = epoch;
            line.gpu = seed > 0;
            line.gpu_busy_fraction = 0.98765;
            line.copy_overlap_fraction = seed > 1 ? -1 : 2.0 / 3;
            weir_epoch_log(log_out, &line);
            weir_epoch_print(live_out, &line, lang);
            report->timing = seed != 2;
            report->prof.n_rows = report->timing ? report->prof.n_rows : 0;
            weir_loader_report_log(log_out, report);
            weir_verdict_of_log(live_out, report);
            putc('\n', live_out);
            weir_loader_report_print(live_out, report, lang);
            release_report(report);
        }
        fclose(log_out);
        fclose(live_out);
        struct report_output output = report_text(log, lang == WEIR_LANG_ZH ? "--lang=zh" : "--lang=en");
        cr_assert_eq(output.status, 0, "%s", output.err);
        cr_assert_eq(strncmp(output.out, live, live_size), 0, "live:\n%s\nfrom the log:\n%s", live, output.out);
        cr_assert_str_empty(output.err);
        cr_assert_null(strchr(output.out, 0x1b));
        const char *rest = output.out + live_size;
        cr_assert_not_null(strstr(rest, "stage totals over time"), "%s", rest);
        report_release(output);
        free(log);
        free(live);
    }
}

Test(log_read, a_read_report_equals_the_written_one)
{
    struct weir_loader_report *report = full_report(0);
    add_steps(report);
    char *first = NULL, *second = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&first, &size);
    weir_loader_report_log(out, report);
    fclose(out);
    FILE *in = fmemopen(first, size, "r");
    struct weir_lines lines;
    struct weir_log_record record = {0};
    struct weir_err err = WEIR_ERR_NONE;
    weir_lines_open(&lines, in);
    cr_assert_eq(weir_log_next(&lines, &record, &err), WEIR_LOG_RECORD, "%s", err.text);
    cr_assert_eq(record.type, WEIR_LOG_STAGES);
    cr_assert_eq(record.report.prof.rows[3].share, report->prof.rows[3].share);
    cr_assert_eq(record.report.prof.rows[2].cpu_over_wall, -1);
    cr_assert_eq(record.report.prof.rows[2].cpu_s, -1);
    cr_assert_eq(record.report.prof.rows[1].cpu_s, report->prof.rows[1].cpu_s);
    cr_assert_eq(record.report.prof.rows[1].preempted_s, report->prof.rows[1].preempted_s);
    cr_assert_eq(record.report.prof.workers[0].unattributed_s, 1.0 / 7);
    cr_assert_eq(record.report.prof.workers[0].core_wait_s, 1.0 / 3);
    cr_assert_eq(record.report.prof.workers[1].blocked_s, -1);
    cr_assert_str_eq(record.report.prof.consumer.name, "consumer");
    cr_assert_eq(record.report.prof.consumer.throttled_s, 2.0 / 3);
    out = open_memstream(&second, &size);
    weir_loader_report_log(out, &record.report);
    fclose(out);
    cr_assert_str_eq(second, first);
    cr_assert_eq(weir_log_next(&lines, &record, &err), WEIR_LOG_END);
    weir_log_record_clear(&record);
    weir_lines_close(&lines);
    fclose(in);
    free(first);
    free(second);
    release_report(report);
}

/* Logs from before the rename contain only "other_s" and "other_cpu_s". */
Test(log_read, older_names_of_unattributed_time)
{
    struct weir_loader_report *report = full_report(0);
    char *log = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&log, &size);
    weir_loader_report_log(out, report);
    fclose(out);
    int n = 0;
    for (char *key = log; (key = strstr(key, "\"unattributed_")); n++)
        memcpy(key, "\"unknown", strlen("\"unknown"));
    cr_assert_eq(n, 2 * (report->prof.n_workers + 1), "%d keys", n);
    FILE *in = fmemopen(log, size, "r");
    struct weir_lines lines;
    struct weir_log_record record = {0};
    struct weir_err err = WEIR_ERR_NONE;
    weir_lines_open(&lines, in);
    cr_assert_eq(weir_log_next(&lines, &record, &err), WEIR_LOG_RECORD, "%s", err.text);
    cr_assert_eq(record.report.prof.workers[0].unattributed_s, 1.0 / 7);
    cr_assert_eq(record.report.prof.workers[0].unattributed_cpu_s, 0.5);
    cr_assert_eq(record.report.prof.workers[1].unattributed_cpu_s, -1);
    weir_log_record_clear(&record);
    weir_lines_close(&lines);
    fclose(in);
    free(log);
    release_report(report);
}

Test(log_read, json_output_holds_everything)
{
    char *log = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&log, &size);
    struct weir_loader_report *report = full_report(0);
    fputs(RUN_LINE "{\"type\":\"later\",\"x\":[1]}\n\n", out);
    weir_epoch_log(out, &epoch);
    weir_loader_report_log(out, report);
    fclose(out);
    struct report_output output = report_text(log, "--json");
    cr_assert_eq(output.status, 0, "%s", output.err);
    cr_assert_not_null(strstr(output.out, "\"kind\": \"weir\""));
    cr_assert_not_null(strstr(output.out, "\"batch_size\": 8"));
    cr_assert_not_null(strstr(output.out, "\"peak_rss_bytes\": 1234567890"));
    cr_assert_not_null(strstr(output.out, "\"zone_cost_ns\": 21.37"));
    cr_assert_not_null(strstr(output.out, "\"cut_off\": false"));
    cr_assert_not_null(strstr(output.out, "\"name\": \"图像 \\\"增强\\\"\\\\\""));
    cr_assert_null(strchr(output.out, 0x1b));
    report_release(output);
    release_report(report);
    free(log);
}

Test(log_read, a_last_line_cut_off_is_announced_and_the_rest_shown)
{
    char *log = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&log, &size);
    weir_epoch_log(out, &epoch);
    struct weir_loader_report *report = full_report(0);
    weir_loader_report_log(out, report);
    fclose(out);
    size_t first = (size_t)(strchr(log, '\n') - log) + 1;
    for (size_t cut = first + 1; cut < size - 1; cut += 97) {
        struct report_output output = report_bytes(log, cut, NULL);
        cr_assert_eq(output.status, 0, "%zu: %s", cut, output.err);
        cr_assert_not_null(strstr(output.err, "line 2 is cut off"), "%s", output.err);
        cr_assert_eq(strncmp(output.out, "epoch 3/30 (interrupted)", 24), 0);
        report_release(output);
    }
    /* Only the newline is missing, so no data is lost. */
    struct report_output output = report_bytes(log, size - 1, NULL);
    cr_assert_eq(output.status, 0);
    cr_assert_str_empty(output.err);
    report_release(output);
    output = report_bytes(log, first - 10, NULL);
    cr_assert_eq(output.status, 1);
    cr_assert_not_null(strstr(output.err, "its only line is cut off"), "%s", output.err);
    cr_assert_str_empty(output.out);
    report_release(output);
    release_report(report);
    free(log);
}

Test(log_read, too_many_rows_are_refused)
{
    char *log = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&log, &size);
    fputs("{\"type\":\"stages\",\"stages\":[{}", out);
    for (int i = 0; i < WEIR_REPORT_ROWS; i++)
        fputs(",{}", out);
    fputs("]}\n", out);
    fclose(out);
    struct report_output output = report_text(log, NULL);
    cr_assert_eq(output.status, 1);
    cr_assert_not_null(strstr(output.err, "\"stages\" is not a list, or is too long"), "%s", output.err);
    report_release(output);
    free(log);
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

Test(log_lines, pieces_and_numbers)
{
    char text[] = "\xef\xbb\xbfone\r\n\ntwo\rthree\nlast";
    FILE *in = fmemopen(text, sizeof text - 1, "r");
    struct weir_lines lines;
    weir_lines_open(&lines, in);
    static const struct {
        const char *text;
        uint64_t number;
        bool ended;
    } wanted[] = {{"one", 1, true}, {"", 1, true},      {"", 2, true},
                  {"two", 3, true}, {"three", 3, true}, {"last", 4, false}};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        cr_assert_eq(weir_lines_next(&lines), 1);
        cr_assert_str_eq(lines.text, wanted[i].text);
        cr_assert_eq(lines.number, wanted[i].number, "%zu", i);
        cr_assert_eq(lines.ended, wanted[i].ended);
    }
    cr_assert_eq(weir_lines_next(&lines), 0);
    weir_lines_close(&lines);
    fclose(in);
}

Test(log_lines, long_lines_are_cut_at_the_limit)
{
    size_t size = WEIR_LINE_MAX_BYTES + 10;
    for (int over = 0; over < 2; over++) {
        char *text = malloc(size);
        memset(text, 'x', size);
        text[WEIR_LINE_MAX_BYTES + over] = '\n';
        FILE *in = fmemopen(text, size, "r");
        struct weir_lines lines;
        weir_lines_open(&lines, in);
        cr_assert_eq(weir_lines_next(&lines), 1);
        cr_assert_eq(lines.length, WEIR_LINE_MAX_BYTES);
        cr_assert_eq(lines.cut, over == 1);
        cr_assert_eq(weir_lines_next(&lines), 1);
        cr_assert_eq(lines.length, (size_t)(9 - over));
        weir_lines_close(&lines);
        fclose(in);
        free(text);
    }
}

/* --- words -------------------------------------------------------------------------------------------------------- */

Test(log_words, durations)
{
    static const struct {
        const char *text;
        double seconds;
        int rest; /* number of unread bytes; -1 = not a duration */
    } cases[] = {
        {"12.34s", 12.34, 0},
        {" 12.3秒", 12.3, 0},
        {"850ms", 0.85, 0},
        {"850 毫秒", 0.85, 0},
        {"1.5 min", 90, 0},
        {"1.5分钟", 90, 0},
        {"1分23秒", 83, 0},
        {"1h 2m 3s", 3723, 0},
        {"1:02:03", 3723, 0},
        {"02:03.5", 123.5, 0},
        {"1,200.50s", 1200.5, 0},
        {"7", 7, 0},
        {"12.3s (0.2min)", 12.3, 9},
        {"3 samples", 3, 8},
        {"1min 20 steps", 60, 9},
        {"-3s", 0, -1},
        {"XXXs", 0, -1},
        {"", 0, -1},
        {"1234567890123456789012345s", 0, -1},
        {"nan", 0, -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double seconds = 0;
        size_t n = weir_read_duration(cases[i].text, 1, &seconds);
        if (cases[i].rest < 0) {
            cr_assert_eq(n, 0, "%s", cases[i].text);
            continue;
        }
        cr_assert_float_eq(seconds, cases[i].seconds, 1e-9, "%s: %g", cases[i].text, seconds);
        cr_assert_eq((int)(strlen(cases[i].text) - n), cases[i].rest, "%s: %zu", cases[i].text, n);
    }
}

Test(log_words, epochs)
{
    static const struct {
        const char *text;
        int epoch, count; /* epoch: -1 = none */
    } cases[] = {
        {"Epoch 3/10 总", 3, 10},
        {"Epoch [3/10] x", 3, 10},
        {"[Epoch 3 / 10] x", 3, 10},
        {"epoch: 0", 0, 0},
        {"EPOCH：12", 12, 0},
        {"Epoch #7 -", 7, 0},
        {"Epoch 1: 99%|█| 9/9 Epoch 2/5", 2, 5},
        {"Epoch[003]", 3, 0},
        {"Best epoch 7", -1, 0},
        {"saved ckpt @ epoch 7", -1, 0},
        {"num_epoch 7", -1, 0},
        {"epochs 7", -1, 0},
        {"Epoch 2.5", -1, 0},
        {"Epoch 123456789", -1, 0},
        {"nepoch 3", -1, 0},
        {"Epoch", -1, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int number = -1, count = 0;
        const char *text = cases[i].text;
        const char *behind = weir_find_epoch(text, text + strlen(text), &number, &count);
        cr_assert_eq(behind != NULL, cases[i].epoch >= 0, "%s", text);
        cr_assert(number == cases[i].epoch && count == cases[i].count, "%s: %d/%d", text, number, count);
    }
}

/* --- plain logs --------------------------------------------------------------------------------------------------- */

static struct weir_plain_log plain(const char *bytes, size_t size)
{
    struct weir_plain_log log;
    struct weir_lines lines;
    FILE *in = fmemopen((void *)(uintptr_t)bytes, size, "r");
    weir_lines_open(&lines, in);
    cr_assert_eq(weir_plain_open(&log), 0);
    while (weir_lines_next(&lines) > 0)
        cr_assert_eq(weir_plain_line(&log, lines.text, lines.length, lines.number), 0);
    cr_assert_eq(weir_plain_finish(&log), 0);
    weir_lines_close(&lines);
    fclose(in);
    return log;
}

static const struct weir_totals_cell *cell(const struct weir_plain_log *log, size_t table, const char *name)
{
    const struct weir_totals_table *in = &log->totals.tables[table];
    for (size_t i = 0; table < log->totals.n_tables && i < in->n_cells; i++) {
        const struct weir_totals_cell *found = &log->totals.cells[in->first_cell + i];
        if (strcmp(log->totals.names[found->stage], name) == 0)
            return found;
    }
    return NULL;
}

static void assert_epoch(const struct weir_plain_log *log, size_t i, int number, int count, double total_s,
                         double train_s, double val_s)
{
    cr_assert_lt(i, log->n_epochs);
    const struct weir_plain_epoch *got = &log->epochs[i];
    cr_assert(got->epoch == number && got->epoch_count == count, "%zu: %d/%d", i, got->epoch, got->epoch_count);
    cr_assert_float_eq(got->total_s, total_s, 1e-9, "%zu: total %g", i, got->total_s);
    cr_assert_float_eq(got->train_s, train_s, 1e-9, "%zu: train %g", i, got->train_s);
    cr_assert_float_eq(got->val_s, val_s, 1e-9, "%zu: val %g", i, got->val_s);
}

Test(log_plain, what_weir_prints_in_chinese_is_read_back)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    for (int seed = 0; seed < 2; seed++) {
        struct weir_loader_report *report = full_report(seed);
        weir_epoch_print(out, &epoch, WEIR_LANG_ZH);
        weir_loader_report_print(out, report, WEIR_LANG_ZH);
        release_report(report);
    }
    fclose(out);
    struct weir_plain_log log = plain(text, size);
    cr_assert_eq(log.totals.n_tables, 2);
    cr_assert(log.periodic);
    cr_assert(log.totals.tables[0].closed && log.totals.tables[1].closed);
    cr_assert(log.totals.tables[0].epoch_first == 1 && log.totals.tables[0].epoch_last == 10);
    cr_assert(!log.totals.tables[0].final && log.totals.tables[1].final);
    cr_assert_eq(log.totals.tables[0].n_cells, 5);
    cr_assert_float_eq(cell(&log, 0, "图像 \"增强\"\\")->total_s, 166.67, 1e-9);
    cr_assert_eq(log.times_left, 0);
    cr_assert_eq(log.n_epochs, 2);
    assert_epoch(&log, 0, 3, 30, 12.33, 10, 2.1);
    weir_plain_close(&log);
    free(text);
}

/* --- the command -------------------------------------------------------------------------------------------------- */

Test(cmd_report, an_endless_progress_bar_is_no_obstacle)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    for (int i = 0; i < 40000; i++)
        fprintf(out, "\r%3d%%|███████████████      | %d/40000 [00:10<00:20, 12.3it/s]", i / 400, i);
    fputs("\rEpoch 1/1 总耗时: 1.00s\n", out);
    for (int i = 0; i < WEIR_LINE_MAX_BYTES + 5; i++)
        putc('x', out);
    fputs("\n" HEAD ROW("a", "1.00", "10") RULE, out);
    fclose(out);
    struct report_output output = report_bytes(text, size, NULL);
    cr_assert_eq(output.status, 0, "%s", output.err);
    cr_assert_not_null(strstr(output.out, "1 tables, 1 epochs"), "%s", output.out);
    cr_assert_not_null(strstr(output.err, "1 lines are longer than 1048576 bytes"), "%s", output.err);
    report_release(output);
    free(text);
}

Test(cmd_report, many_tables_stay_within_the_limits)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    for (int i = 0; i < WEIR_TOTALS_TABLES_MAX + 100; i++)
        fprintf(out, "性能分析统计\nstage | 总计: %d.00s | 调用: %d次 | 平均: 1.00ms\n", i, i + 1);
    for (int i = 0; i < WEIR_TOTALS_STAGES_MAX + 100; i++)
        fprintf(out, "stage %d | 总计: 1.00s | 调用: 1次 | 平均: 1.00ms\n", i);
    fclose(out);
    struct weir_plain_log log = plain(text, size);
    cr_assert_eq(log.totals.n_tables, WEIR_TOTALS_TABLES_MAX);
    cr_assert_eq(log.totals.dropped_rows, 100 + WEIR_TOTALS_STAGES_MAX + 100);
    cr_assert_not(weir_totals_cumulative(&log.totals), "half of the rows must not decide");
    weir_plain_close(&log);
    free(text);
}
