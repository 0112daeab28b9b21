/* The page of logs: untrusted texts, unusual figures, and its size. */
#include "analyze/page/page.h"
#include "analyze/page/page_html.h"
#include "weir/stages.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HOSTILE "</title><script>alert(1)</script><img src=x onerror=alert(2)>\\\"'&\\u202e"

static char *text;
static size_t size;

static void register_stages(void)
{
    cr_assert_eq(weir_loader_stages(), 0);
}

static void release(void)
{
    free(text);
    text = NULL;
}

TestSuite(page, .init = register_stages, .fini = release);

static const char *escaped(const char *plain)
{
    free(text);
    FILE *out = open_memstream(&text, &size);
    weir_page_text(out, plain);
    fclose(out);
    return text;
}

Test(page, texts_are_escaped)
{
    cr_expect_str_eq(escaped("<b>\"a\" & 'b'</b>"), "&lt;b&gt;&quot;a&quot; &amp; &#39;b&#39;&lt;/b&gt;");
    cr_expect_str_eq(escaped("摄像头 é"), "摄像头 é");
    cr_expect_str_eq(escaped("a\x01\x7f\n\xff\xc3 b"), "a????? b");
    cr_expect_str_eq(escaped("right\xe2\x80\xaeleft"), "right?left", "bidirectional overrides");
}

Test(page, texts_are_cut)
{
    char plain[3 * WEIR_PAGE_TEXT];
    memset(plain, 'x', sizeof plain);
    plain[sizeof plain - 1] = '\0';
    const char *cut = escaped(plain);
    cr_expect_eq(strlen(cut), WEIR_PAGE_TEXT + strlen("…"));
    cr_expect_str_eq(cut + WEIR_PAGE_TEXT, "…");
}

Test(page, figures_have_three_digits)
{
    char figure[WEIR_PAGE_FIGURE];
    cr_expect_str_eq(weir_page_time(figure, 0.0123456), "12.3 ms");
    cr_expect_str_eq(weir_page_time(figure, 0.99999), "1.00 s");
    cr_expect_str_eq(weir_page_time(figure, 1e-9), "1 ns");
    cr_expect_str_eq(weir_page_time(figure, 0), "0 µs");
    cr_expect_str_eq(weir_page_time(figure, NAN), "–");
    cr_expect_str_eq(weir_page_number(figure, 1234567.8), "1,234,568");
    cr_expect_str_eq(weir_page_number(figure, -1234), "-1,234");
    cr_expect_str_eq(weir_page_number(figure, 999.7), "1,000");
    cr_expect_str_eq(weir_page_number(figure, 1e300), "–");
    cr_expect_str_eq(weir_page_percent(figure, 0.0123), "1.2 %");
    cr_expect_str_eq(weir_page_percent(figure, 7), "100 %");
    cr_expect_eq(weir_page_part(NAN, 1), 0);
    cr_expect_eq(weir_page_part(1, 0), 0);
    cr_expect_eq(weir_page_part(INFINITY, 2), 0);
}

/* ---- pages ---- */

static const char *page_of(const char *log, enum weir_lang lang, int expected)
{
    struct weir_err err = WEIR_ERR_NONE;
    free(text);
    FILE *out = open_memstream(&text, &size);
    int rc = weir_page_of_log(out, log, strlen(log), lang, &err);
    fclose(out);
    cr_assert_eq(rc, expected, "%d: %s", rc, err.text);
    return text;
}

static int count(const char *in, const char *what)
{
    int n = 0;
    for (const char *at = in; (at = strstr(at, what)); at++)
        n++;
    return n;
}

#define RUN "{\"type\":\"run\",\"weir\":\"0\",\"config\":{\"data\":\"d\"},\"used\":{\"num_workers\":2}}\n"
#define ROW(name, share)                                                                                               \
    "{\"name\":\"" name "\",\"kind\":\"work\",\"side\":\"worker\",\"count\":9,\"total_s\":1,\"self_s\":1,"             \
    "\"mean_s\":0.1,\"min_s\":0.01,\"p50_s\":0.1,\"p90_s\":0.2,\"p99_s\":0.3,\"max_s\":0.4,\"share\":" share "}"

#define PLAIN_ROW(name, total) name " | 总计: " total "s | 调用: 9次 | 平均: 1.00ms\n"
#define PLAIN                                                                                                          \
    "⏱️  性能分析统计\n" PLAIN_ROW("03_read_images_total", "12.00") PLAIN_ROW("03b_image_decode", "11.00")   \
        PLAIN_ROW("20_train_forward_pass", "8.00") PLAIN_ROW("21_backward", "6.00") PLAIN_ROW(HOSTILE, "1.00")

Test(page, a_plain_log_has_its_verdict_and_shares)
{
    const char *page = page_of("Epoch 1/2 总耗时: 15.00s\nEpoch 2/2 总耗时: 16.00s\n" PLAIN, WEIR_LANG_EN, 0);
    static const char *const wanted[] = {
        "Cannot tell whether training waits for data",
        "the 40 % rule: decoding is 92 % of a sample&#39;s time",
        "<th scope=\"row\">forward pass</th><td>26 % of the loop&#39;s time (20_train_forward_pass, 8.00s): a smaller",
        "one published example (4 cameras, batch_size 4, chunk_size 20)",
        "<td>40-50 %</td>",
        "Over time",
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        cr_expect(strstr(page, wanted[i]), "wanted: %s\n%s", wanted[i], page);
    cr_expect_eq(count(page, "<script"), 1, "only the page's own script");
    cr_expect_eq(count(page, "<img"), 0);
    page_of(PLAIN, WEIR_LANG_ZH, 0);
    page_of("Epoch 1/2 总耗时: 15.00s\n", WEIR_LANG_EN, -ENODATA);
}

Test(page, a_hostile_log_adds_no_markup)
{
    const char *page = page_of(
        "{\"type\":\"run\",\"weir\":\"" HOSTILE "\",\"config\":{\"data\":\"" HOSTILE "\",\"" HOSTILE
        "\":1},\"used\":{\"host\":\"" HOSTILE "\"}}\n"
        "{\"type\":\"stages\",\"final\":true,\"timing\":true,\"wall_s\":3,\"stages\":[" ROW(
            HOSTILE,
            "1") "],"
                 "\"workers\":[{\"name\":\"<i>w0</i>\",\"wall_s\":1,\"work_s\":1}],\"errors\":[{\"text\":\"" HOSTILE
                 "\",\"count\":1}]}\n",
        WEIR_LANG_EN, 0);
    cr_expect_eq(count(page, "<script"), 1, "only the page's own script");
    cr_expect_eq(count(page, "</script>"), 1);
    cr_expect_eq(count(page, "</title>"), 1);
    cr_expect_eq(count(page, "<img"), 0);
    cr_expect_eq(count(page, "<i>"), 0);
    cr_expect_eq(count(page, "\xe2\x80\xae"), 0);
    cr_expect_gt(count(page, "&lt;script&gt;alert(1)&lt;/script&gt;"), 2, "it is shown as text");
}

Test(page, unusual_figures_are_drawn_inside_the_charts)
{
    const char *page = page_of(
        RUN "{\"type\":\"epoch\",\"epoch\":-2147483648,\"total_s\":0,\"train_s\":0,\"data_wait_fraction\":1e15,"
            "\"images_per_s\":-1e15}\n"
            "{\"type\":\"epoch\",\"epoch\":2147483647,\"total_s\":-1,\"train_s\":1e15,\"data_wait_fraction\":-1e15,"
            "\"images_per_s\":1e15}\n"
            "{\"type\":\"stages\",\"epoch_first\":1,\"wall_s\":0,\"stages\":[" ROW("a", "-1e15") "," ROW(
                "b", "1e15") "],\"queue\":{\"mean\":-1e15,\"requests\":1,\"min\":-5,\"max\":2000000000},"
                             "\"workers\":[{\"name\":\"w\",\"wall_s\":-1,\"work_s\":1e15,\"wait_s\":-1e15}]}\n"
                             "{\"type\":\"stages\",\"final\":true,\"wall_s\":0,\"stages\":[" ROW(
                                 "a", "0") "],\"steps\":{\"images\":0,\"train_s\":-1}}\n",
        WEIR_LANG_EN, 0);
    const char *body = strstr(page, "<main>"), *end = strstr(page, "<script>");
    cr_assert(body && end);
    ((char *)(uintptr_t)end)[0] = '\0';
    cr_expect_eq(count(body, "nan"), 0);
    cr_expect_eq(count(body, "inf"), 0);
    cr_expect_eq(count(body, "width=\"-"), 0);
    cr_expect_gt(count(body, "<figure"), 1);
}

Test(page, a_long_run_makes_a_page_of_bounded_size)
{
    char *log = NULL;
    size_t length;
    FILE *out = open_memstream(&log, &length);
    fputs(RUN, out);
    for (int epoch = 1; epoch <= 2500; epoch++) {
        fprintf(out,
                "{\"type\":\"epoch\",\"epoch\":%d,\"total_s\":1.5,\"train_s\":1,\"data_wait_fraction\":0.%d,"
                "\"images_per_s\":%d}\n",
                epoch, epoch % 10, 1000 + epoch % 37);
        fprintf(out,
                "{\"type\":\"stages\",\"epoch_first\":%d,\"epoch_last\":%d,\"timing\":true,\"wall_s\":1,"
                "\"queue\":{\"mean\":1.5,\"min\":0,\"max\":3,\"requests\":20},\"steps\":{\"images\":%d},"
                "\"stages\":[",
                epoch, epoch, 100 + epoch % 7);
        for (int stage = 0; stage < 20; stage++)
            fprintf(out, "%s{\"name\":\"stage %d\",\"kind\":\"work\",\"side\":\"worker\",\"count\":9,\"total_s\":%d.5}",
                    stage ? "," : "", stage, (epoch + stage) % 11);
        fputs("]}\n", out);
    }
    fclose(out);
    const char *page = page_of(log, WEIR_LANG_EN, 0);
    free(log);
    cr_expect_lt(strlen(page), 1000000);
    cr_expect(strstr(page, "<span>2500</span>"), "the newest epoch is the chart's end");
    cr_expect(strstr(page, ">epochs 1–2500<"), "tables are merged, not dropped");
}

Test(page, sections_without_data_are_left_out)
{
    const char *page = page_of(RUN, WEIR_LANG_EN, 0);
    cr_expect_eq(count(page, "<h2>"), 1, "only the settings");
    page = page_of(RUN, WEIR_LANG_ZH, 0);
    cr_expect(strstr(page, "<html lang=\"zh\">") && strstr(page, "设置与机器"));
}

Test(page, rows_of_the_gpu_have_their_group)
{
    const char *page =
        page_of(RUN "{\"type\":\"stages\",\"final\":true,\"stages\":[{\"name\":\"wait\",\"kind\":\"wait\","
                    "\"side\":\"consumer\",\"count\":9,\"total_s\":1}],\"gpu\":{\"name\":\"g\",\"stages\":["
                    "{\"name\":\"copy\",\"kind\":\"work\",\"side\":\"gpu\",\"count\":9,\"total_s\":1}]}}\n",
                WEIR_LANG_EN, 0);
    const char *group = strstr(page, "<th scope=\"rowgroup\" colspan=\"6\">work</th>");
    cr_assert(group);
    cr_expect(strstr(group, "copy (gpu)</th>"));
}

/* Calls of 10 ns to 0.08 s: 7 powers of ten, of which every other one has a label. */
Test(page, the_scale_of_latencies_has_labels_at_both_ends)
{
    const char *page = page_of(RUN "{\"type\":\"stages\",\"final\":true,\"stages\":[{\"name\":\"a\",\"kind\":\"work\","
                                   "\"side\":\"worker\",\"count\":9,\"total_s\":1,\"min_s\":1e-8,\"p50_s\":1e-6,"
                                   "\"p90_s\":1e-6,\"p99_s\":1e-6,\"max_s\":0.08}]}\n",
                               WEIR_LANG_EN, 0);
    const char *scale = strstr(page, "<svg class=\"powers\"");
    cr_assert(scale);
    *(char *)(uintptr_t)strstr(scale, "</svg>") = '\0';
    cr_expect(strstr(scale, "x=\"0.00%\" y=\"12\" text-anchor=\"start\">10 ns<"), "%s", scale);
    cr_expect(strstr(scale, "x=\"100.00%\" y=\"12\" text-anchor=\"end\">100 ms<"), "%s", scale);
    cr_expect_eq(count(scale, "<text"), 4, "%s", scale);
}

Test(page, a_cut_off_line_does_not_matter)
{
    const char *page = page_of(RUN "{\"type\":\"epoch\",\"epo", WEIR_LANG_EN, 0);
    cr_expect(strstr(page, "<h1>d</h1>"));
}

Test(page, logs_without_a_run_are_refused)
{
    page_of("", WEIR_LANG_EN, -ENODATA);
    page_of("{\"type\":\"later\"}\n", WEIR_LANG_EN, -ENODATA);
    page_of("{\"type\":\"run\"}\n{\"type\":\n{}\n", WEIR_LANG_EN, -EBADMSG);
    page_of(RUN "{\"type\":\"profile\",\"windows\":7}\n", WEIR_LANG_EN, -EBADMSG);
}

/* The log is untrusted, so a path in it must not block or make the page fail. */
Test(page, traces_that_are_no_files_are_left_out)
{
    char folder[] = "/tmp/weir-page-XXXXXX", log[4096];
    cr_assert(mkdtemp(folder));
    char pipe[64], file[64];
    snprintf(pipe, sizeof pipe, "%s/a.pt.trace.json", folder);
    snprintf(file, sizeof file, "%s/b.pt.trace.json", folder);
    cr_assert_eq(mkfifo(pipe, 0600), 0);
    FILE *damaged = fopen(file, "w");
    fputs("{\"traceEvents\": [{\"ph\": ", damaged);
    fclose(damaged);
    const char *const paths[] = {pipe, file, "/dev/zero", folder, "/nowhere"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        snprintf(
            log, sizeof log,
            RUN "{\"type\":\"stages\",\"final\":true,\"stages\":[" ROW(
                "a", "1") "]}\n"
                          "{\"type\":\"profile\",\"windows\":[{\"first_step\":1,\"last_step\":2,\"path\":\"%s\"}]}\n",
            paths[i]);
        cr_expect_eq(count(page_of(log, WEIR_LANG_EN, 0), "class=\"timeline\""), 0, "%s", paths[i]);
    }
    unlink(pipe);
    unlink(file);
    rmdir(folder);
}

/* The largest times that the reader of traces accepts. */
Test(page, traces_with_extreme_times_are_drawn)
{
    char path[] = "/tmp/weir-page-XXXXXX.json", log[1024];
    FILE *trace = fdopen(mkstemps(path, 5), "w");
    fputs("{\"traceEvents\":[", trace);
    static const char *const times[] = {"-4e12", "4e12", "0", "7", "1e12"};
    for (int i = 0; i < 5; i++)
        fprintf(trace,
                "%s{\"ph\":\"X\",\"cat\":\"loader_stage\",\"name\":\"a\",\"pid\":1,\"tid\":%d,\"ts\":%s,"
                "\"dur\":%s}",
                i ? "," : "", i, times[i], times[(i + 3) % 5]);
    fputs(",{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":7,\"ts\":5,\"dur\":2}]}", trace);
    fclose(trace);
    snprintf(log, sizeof log,
             RUN "{\"type\":\"stages\",\"final\":true,\"stages\":[" ROW(
                 "a", "1") "]}\n"
                           "{\"type\":\"profile\",\"windows\":[{\"path\":\"%s\"}]}\n",
             path);
    const char *page = page_of(log, WEIR_LANG_EN, 0);
    const char *figure = strstr(page, "<figure class=\"timeline\""), *end = strstr(page, "<script>");
    cr_assert(figure && end);
    ((char *)(uintptr_t)end)[0] = '\0';
    cr_expect_eq(count(figure, "nan"), 0);
    cr_expect_eq(count(figure, "inf"), 0);
    cr_expect_eq(count(figure, "M-"), 0);
    unlink(path);
}

/* ---- results ---- */

static const char *result_page(const char *json, int expected)
{
    struct weir_err err = WEIR_ERR_NONE;
    free(text);
    FILE *out = open_memstream(&text, &size);
    int rc = weir_page_of_result(out, json, strlen(json), &err);
    fclose(out);
    cr_assert_eq(rc, expected, "%d: %s", rc, err.text);
    return text;
}

static void expect_safe(const char *page)
{
    const char *body = strstr(page, "<main>"), *end = strstr(page, "<script>");
    cr_assert(body && end);
    cr_expect_eq(count(page, "<script"), 1);
    cr_expect_eq(count(page, "<img"), 0);
    ((char *)(uintptr_t)end)[0] = '\0';
    cr_expect_eq(count(body, "nan"), 0);
    cr_expect_eq(count(body, "inf"), 0);
    cr_expect_eq(count(body, "width=\"-"), 0);
}

Test(page, results_of_trials_are_drawn)
{
    const char *page = result_page(
        "{\"config\":{\"data\":\"d\"},\"advice\":{\"format\":\"Use packed.\",\"command\":[\"weir\",\"run\"]},"
        "\"formats\":[{\"name\":\"as-is\",\"bytes_per_frame\":3e4},{\"name\":\"packed\",\"bytes_per_frame\":3e5},"
        "{\"name\":\"failed\",\"bytes_per_frame\":1}],"
        "\"cells\":[{\"format\":\"as-is\",\"cache\":\"warm\",\"settings\":{\"io\":\"auto\",\"num_workers\":2},"
        "\"images_per_s\":{\"median\":100,\"low\":90,\"high\":110}},"
        "{\"format\":\"as-is\",\"cache\":\"memory\",\"images_per_s\":{\"median\":9000}},"
        "{\"format\":\"packed\",\"cache\":\"cold\",\"images_per_s\":{\"median\":2000}},"
        "{\"format\":\"failed\",\"cache\":\"warm\",\"error\":\"no memory\"}]}",
        0);
    cr_expect(strstr(page, "2 formats, up to 2,000 images/s"));
    cr_expect(strstr(page, "weir run</code>") && strstr(page, "no memory") && strstr(page, "num_workers 2"));
    page =
        result_page("{\"data\":\"d\",\"chosen\":1,\"candidates\":[{\"setting\":{\"num_workers\":1},\"images_per_s\":5},"
                    "{\"setting\":{\"num_workers\":2},\"images_per_s\":8,\"turns\":[{\"images_per_s\":7}]}],"
                    "\"path\":[\"more workers\"]}",
                    0);
    cr_expect(strstr(page, "8 images/s with num_workers 2") && strstr(page, "class=\"chosen\""));
}

/* The second label is at y = 116.936..., for which y + 13 - y is less than 13 in doubles. */
Test(page, labels_of_formats_do_not_overlap, .timeout = 20)
{
    static const int rates[] = {1000, 596, 590, 200};
    char json[1024], label[64];
    FILE *out = fmemopen(json, sizeof json, "w");
    fputs("{\"formats\":[", out);
    for (int i = 0; i < 4; i++)
        fprintf(out, "%s{\"name\":\"format-%d\",\"bytes_per_frame\":1000}", i ? "," : "", rates[i]);
    fputs("],\"cells\":[", out);
    for (int i = 0; i < 4; i++)
        fprintf(out, "%s{\"format\":\"format-%d\",\"cache\":\"warm\",\"images_per_s\":{\"median\":%d}}", i ? "," : "",
                rates[i], rates[i]);
    fputs("]}", out);
    fclose(out);
    const char *page = result_page(json, 0);
    double y[4];
    for (int i = 0; i < 4; i++) {
        snprintf(label, sizeof label, ">format-%d</text>", rates[i]);
        const char *end = strstr(page, label), *at = end ? memrchr(page, '<', (size_t)(end - page)) : NULL;
        cr_assert(at && sscanf(at, "<text x=\"%*f%%\" y=\"%lf\"", &y[i]) == 1, "%s", label);
        cr_expect(i == 0 || y[i] - y[i - 1] >= 13, "label %d: %g below %g", i, y[i], y[i - 1]);
    }
}

Test(page, comparisons_mark_what_exceeds_the_noise)
{
    const char *page = result_page(
        "{\"comparisons\":[{\"verdict\":\"50.0 % faster\",\"before\":{\"data_bound\":\"yes\",\"cause\":\"decode\"},"
        "\"after\":{\"data_bound\":\"no\"},\"whole\":{\"name\":\"images/"
        "s\",\"result\":\"higher\",\"before\":100,\"after\":150,"
        "\"change\":0.5,\"low\":0.4,\"high\":0.6},\"per\":\"image\",\"stages\":[{\"name\":\"a\",\"result\":\"none\","
        "\"before\":1,\"after\":1.1,\"change\":0.1,\"low\":-9,\"high\":9},{\"name\":\"b\",\"result\":\"higher\","
        "\"before\":1,\"after\":4,\"change\":3,\"low\":2,\"high\":4}],"
        "\"differences\":[{\"name\":\"config.io\",\"before\":\"mmap\"}]}]}",
        0);
    cr_expect(strstr(page, "<p class=\"verdict\">50.0 % faster</p>"));
    cr_expect(strstr(page, "Data-bound before: yes, limited by decode; after: no."));
    cr_expect(strstr(page, "<td>+50 %</td>") && strstr(page, "<td>~</td>") && strstr(page, "<td>4 ×</td>"));
    cr_expect(strstr(page, "config.io</th><td>mmap</td><td></td>"));
}

Test(page, hostile_results_add_no_markup)
{
#define BAD                                                                                                            \
    "{\"name\":\"" HOSTILE "\",\"result\":\"higher\",\"before\":-1e15,\"after\":1e300,\"change\":-7,\"low\":1e15}"
    expect_safe(result_page("{\"comparisons\":[7,{\"verdict\":\"" HOSTILE "\",\"whole\":" BAD ",\"stages\":[" BAD
                            ",[]],\"per\":\"" HOSTILE "\",\"before\":{\"file\":\"" HOSTILE
                            "\",\"data_bound\":\"" HOSTILE "\",\"cause\":\"" HOSTILE
                            "\"},\"differences\":[{\"name\":\"" HOSTILE "\"}]}]}",
                            0));
    expect_safe(result_page("{\"config\":7,\"formats\":[{\"name\":\"" HOSTILE "\",\"bytes_per_frame\":1e-300},"
                            "{\"name\":\"b\",\"bytes_per_frame\":1e15}],\"cells\":[{\"format\":\"" HOSTILE
                            "\",\"cache\":\"warm\",\"settings\":{\"" HOSTILE "\":\"" HOSTILE
                            "\"},\"images_per_s\":{\"median\":1e-300,\"low\":-1}},"
                            "{\"format\":\"b\",\"cache\":\"cold\",\"images_per_s\":{\"median\":1e15}}]}",
                            0));
    expect_safe(result_page("{\"data\":\"" HOSTILE "\",\"chosen\":1e15,\"candidates\":[{\"error\":\"" HOSTILE
                            "\"}],\"path\":[3,\"" HOSTILE "\"],\"command\":[\"" HOSTILE "\",null]}",
                            0));
}

Test(page, other_documents_are_refused)
{
    result_page("", -ENODATA);
    result_page("[1, 2]", -ENODATA);
    result_page("{\"schema\":1}", -ENODATA);
    result_page("{\"cells\":", -ENODATA);
}
