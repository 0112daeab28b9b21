/* Live figures: metrics in both formats, addresses, hosts, and which format a client gets. */
#include "analyze/live/http_server.h"
#include "analyze/live/live_priv.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

TestSuite(live);

/* ---- metrics ---- */

static const struct weir_metrics_process process = {
    .version = "1.2.3", .source = "run", .rank = 3, .world_size = 4, .start_unix_s = 1700000000.5};

static int collect(void *user, struct weir_metrics *metrics)
{
    snprintf(metrics->loader, sizeof metrics->loader, "%s", (const char *)user);
    metrics->epochs = 2;
    metrics->now = (struct weir_loader_now){.slots = 3, .batches_ready = 2, .workers = 2, .workers_busy = -1};
    metrics->report.steps = (struct weir_report_steps){
        .train_batches = 10, .images = 80, .train_s = 5, .train_wait_s = 2, .first_wait_s = 1};
    metrics->report.storage.device_bytes = -1;
    metrics->report.prof.machine.others_cores = NAN;
    struct weir_report_row *rows = metrics->report.prof.rows;
    rows[0] = (struct weir_report_row){.kind = WEIR_KIND_WORK, .count = 7, .total_s = 1.5, .self_s = 1};
    snprintf(rows[0].name, sizeof rows[0].name, "my \"stage\\\n");
    rows[1] = rows[0]; /* a name that occurs twice would make the whole answer invalid */
    rows[2] = (struct weir_report_row){.name = "never called"};
    metrics->report.prof.n_rows = 3;
    return 0;
}

static void write_run(void *user, FILE *out)
{
    (void)user;
    fputs("{\"type\":\"run\",\"used\":{}}\n", out);
}

static int fail(void *user, struct weir_metrics *metrics)
{
    (void)user, (void)metrics;
    return -ENOMEM;
}

static char *written(enum weir_live_form form, const char *const *loaders, int n)
{
    struct weir_live_source sources[4];
    char *text;
    size_t size;
    for (int i = 0; i < n; i++)
        sources[i] = (struct weir_live_source){.collect = loaders[i] ? collect : fail,
                                               .write_run = write_run,
                                               .write_log = weir_live_log,
                                               .user = (void *)loaders[i]};
    cr_assert_eq(weir_live_write(&text, &size, form, sources, n, &process, weir_live_page), 0);
    cr_assert_eq(strlen(text), size);
    return text;
}

static int count(const char *text, const char *what)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, what)); at++)
        n++;
    return n;
}

Test(live, classic_format)
{
    char *text = written(WEIR_LIVE_CLASSIC, (const char *const[]){"eps"}, 1);
    cr_assert(strstr(text, "# HELP weir_images_total Images delivered"));
    cr_assert(strstr(text, "# TYPE weir_images_total counter\nweir_images_total{loader=\"eps\",rank=\"3\"} 80\n"));
    cr_assert(strstr(text, "weir_build_info{rank=\"3\",version=\"1.2.3\",source=\"run\"} 1\n"));
    cr_assert(strstr(text, "weir_start_time_seconds{rank=\"3\"} 1700000000.5\n"));
    cr_assert(strstr(text, "weir_data_wait_ratio{loader=\"eps\",rank=\"3\"} 0.25\n"), "without the first batch");
    cr_assert(strstr(text, "weir_batches_total{loader=\"eps\",rank=\"3\",split=\"train\"} 10\n"));
    cr_assert_eq(count(text, "# EOF"), 0);
    free(text);
}

Test(live, openmetrics_format)
{
    char *text = written(WEIR_LIVE_OPENMETRICS, (const char *const[]){"eps"}, 1);
    cr_assert(strstr(text, "# TYPE weir_images counter\nweir_images_total{"));
    cr_assert(strstr(text, "# TYPE weir_build info\nweir_build_info{"));
    cr_assert(strstr(text, "# TYPE weir_stage_seconds counter\n# UNIT weir_stage_seconds seconds\n"));
    cr_assert_str_eq(text + strlen(text) - 6, "# EOF\n");
    free(text);
}

Test(live, labels_are_escaped_and_samples_differ)
{
    char *text = written(WEIR_LIVE_CLASSIC, (const char *const[]){"a", "a", "a \"b\"", "a"}, 4);
    cr_assert_eq(count(text, "weir_stage_calls_total{"), 4, "%s", text);
    cr_assert(strstr(text, "stage=\"my \\\"stage\\\\\\n\""));
    cr_assert(strstr(text, "weir_images_total{loader=\"a \\\"b\\\"\""));
    for (int i = 2; i <= 3; i++) {
        char label[40];
        snprintf(label, sizeof label, "weir_images_total{loader=\"a #%d\"", i);
        cr_assert_eq(count(text, label), 1);
    }
    free(text);
}

Test(live, unknown_figures_and_failed_loaders_are_left_out)
{
    char *text = written(WEIR_LIVE_CLASSIC, (const char *const[]){NULL, "eps"}, 2);
    cr_assert_eq(count(text, "weir_images_total{"), 1);
    static const char *const unknown[] = {"weir_storage_read_bytes_total{", "weir_others_cores{", "weir_workers_busy{",
                                          "weir_gpu_busy_ratio{",           "weir_cache_bytes{",  "never called"};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++)
        cr_assert_eq(count(text, unknown[i]), 0, "%s", unknown[i]);
    free(text);
    text = written(WEIR_LIVE_PAGE, NULL, 0);
    cr_assert(strstr(text, "<h1>Weir</h1>"));
    free(text);
}

Test(live, the_page_escapes_names)
{
    char *text = written(WEIR_LIVE_PAGE, (const char *const[]){"<script>&\""}, 1);
    cr_assert(strstr(text, "&lt;script&gt;&amp;&quot;"));
    cr_assert_eq(count(text, "<script>"), 1); /* the page's own */
    free(text);
}

Test(live, labels_of_paths)
{
    static const char *const paths[][2] = {
        {"a/b", "b"}, {"a/b///", "b"}, {"/", ""}, {"x\ny", "x?y"}, {"\xff.h5", "?.h5"}};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        char label[64];
        weir_metrics_label(label, paths[i][0]);
        cr_assert_str_eq(label, paths[i][1]);
    }
}

/* ---- requests ---- */

Test(live, clients_get_what_they_accept)
{
    static const struct {
        const char *accept;
        enum weir_live_form form;
    } cases[] = {
        {"", WEIR_LIVE_CLASSIC},
        {"*/*", WEIR_LIVE_CLASSIC},
        {"text/plain;version=0.0.4", WEIR_LIVE_CLASSIC},
        {"application/openmetrics-text", WEIR_LIVE_OPENMETRICS},
        {"application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", WEIR_LIVE_OPENMETRICS},
        {"application/openmetrics-text;q=0.2, text/plain;q=0.5", WEIR_LIVE_CLASSIC},
        {"Application/OpenMetrics-Text ; q=0", WEIR_LIVE_CLASSIC},
        {"application/openmetrics-textual", WEIR_LIVE_CLASSIC},
        {";;,,q=", WEIR_LIVE_CLASSIC},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        cr_assert_eq(weir_live_accepted(cases[i].accept), cases[i].form, "%s", cases[i].accept);
}

Test(live, addresses)
{
    static const struct {
        const char *text;
        bool loopback;
        const char *error;
    } cases[] = {
        {"127.0.0.1:9464", true, NULL},
        {"127.1.2.3:1", true, NULL},
        {"localhost:0", true, NULL},
        {"[::1]:9464", true, NULL},
        {"0.0.0.0:9464", false, NULL},
        {"[::]:65535", false, NULL},
        {"127.0.0.1", false, "has no port; write 127.0.0.1:9464"},
        {"::1", false, "has no port; write [::1]:9464"},
        {"[::1]", false, "has no port; write [::1]:9464"},
        {"9464", false, "is not an address with a port"},
        {":9464", false, "is not an address with a port"},
        {"127.0.0.1:65536", false, "is not an address with a port of 0..65535"},
        {"127.0.0.1:-1", false, "is not an address with a port"},
        {"127.0.0.1: 1", false, "is not an address with a port"},
        {"127.0.0.1:", false, "is not an address with a port"},
        {"[::1:9464", false, "is not an address with a port"},
        {"example.org:80", false, "is not a numeric address or localhost"},
        {"300.0.0.1:80", false, "is not a numeric address or localhost"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir_http_address address;
        struct weir_err err = WEIR_ERR_NONE;
        int rc = weir_http_address_parse(&address, cases[i].text, 0, &err);
        cr_assert_eq(rc, cases[i].error ? -EINVAL : 0, "%s", cases[i].text);
        if (cases[i].error)
            cr_assert(strstr(err.text, cases[i].error), "%s", err.text);
        else
            cr_assert_eq(address.loopback, cases[i].loopback, "%s", cases[i].text);
    }
    struct weir_http_address address;
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_http_address_parse(&address, "127.0.0.1:65530", 5, &err), 0);
    cr_assert_eq(weir_http_address_parse(&address, "127.0.0.1:65530", 6, &err), -EINVAL);
}

Test(live, hosts_of_other_sites_are_told_apart)
{
    static const char *const literal[] = {"127.0.0.1", "127.0.0.1:9464", "localhost",    "LocalHost:80",
                                          "[::1]",     "[::1]:1",        "10.0.0.7:9464"};
    static const char *const other[] = {"",
                                        "evil.example",
                                        "evil.example:9464",
                                        "127.0.0.1.evil.example",
                                        "localhost.",
                                        "localhost:80x",
                                        "[::1",
                                        "127.0.0.1:9464:1",
                                        "::1"};
    for (size_t i = 0; i < sizeof literal / sizeof literal[0]; i++)
        cr_assert(weir_http_host_is_literal(literal[i]), "%s", literal[i]);
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++)
        cr_assert_not(weir_http_host_is_literal(other[i]), "%s", other[i]);
}
