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
}

TestSuite(report, .init = register_stages);

static void release(struct weir_loader_report *report)
{
    weir_loader_report_clear(report);
    free(report);
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
