/* The page of logs: texts, figures, its size, and traces. tests/golden has pages of logs and results. */
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
