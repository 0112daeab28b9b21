/* Reports of a watched loader: tables, JSON and log lines from worker processes, periods, the sampling thread and
 * forks, and the same text from a log. */
#include "analyze/logs/log_read.h"
#include "analyze/watch/watch_report.h"
#include "analyze/watch/watch_text.h"
#include "prof/watch/watch.h"
#include "prof/watch/watch_read.h"
#include "python/watch/watch_module.h"
#include "tests/fakes/fake_store.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS = 2 };

static struct weir_watch *watch;
static pid_t children[WORKERS];
static int batches[2]; /* pipe of finished batches */

static void begin(void)
{
    char why[256];
    setenv("COLUMNS", "100", 1);
    watch = weir_watch_create(why, sizeof why);
    cr_assert_not_null(watch, "%s", why);
    cr_assert_eq(weir_watch_loader(watch, "train"), 0);
    cr_assert_eq(weir_watch_thread(watch, 0, WEIR_WATCH_LOOP, -1), 0);
    weir_watch_set(watch, 0, "num_workers", WORKERS);
    weir_watch_set(watch, 0, "prefetch_factor", 2);
    weir_watch_set_text(watch, 0, "dataset", "my.Dataset");
    cr_assert_eq(pipe(batches), 0);
}

static void end(void)
{
    for (int i = 0; i < WORKERS; i++)
        if (children[i] > 0) {
            kill(children[i], SIGKILL);
            waitpid(children[i], NULL, 0);
        }
    weir_watch_close(watch);
}

TestSuite(watch_report, .init = begin, .fini = end);

static void work(double ms)
{
    uint64_t until = weir_clock_monotonic_ns() + (uint64_t)(ms * 1e6);
    while (weir_clock_monotonic_ns() < until)
        ;
}

static void worker(int number)
{
    if (weir_watch_thread(watch, 0, WEIR_WATCH_WORKER, number) != 0)
        _exit(1);
    int decode = weir_watch_stage("03b_image_decode", 0);
    for (int i = 0;; i++) {
        weir_watch_batch_begin(i);
        weir_watch_item_begin(i * WORKERS + number);
        weir_watch_path(number ? "/data/b.jpg" : "/data/a.jpg");
        weir_watch_begin(decode);
        work(6);
        weir_watch_end();
        weir_watch_item_end();
        weir_watch_batch_end(1);
        if (write(batches[1], "b", 1) != 1)
            _exit(0);
    }
}

static void start_workers(void)
{
    for (int i = 0; i < WORKERS; i++) {
        children[i] = fork();
        if (children[i] == 0)
            worker(i);
    }
}

/* An epoch of n batches. The step takes 1 ms. */
static void epoch(int n)
{
    weir_watch_epoch_begin(0);
    for (int i = 0; i < n; i++) {
        char b;
        weir_watch_request_begin(0, 0, 0, i % WORKERS);
        cr_assert_eq(read(batches[0], &b, 1), 1);
        weir_watch_request_end(0, 1);
        work(1);
    }
    weir_watch_request_begin(0, 0, 0, 0);
    weir_watch_request_end(0, 0);
    weir_watch_epoch_end(0, 1);
}

static char *report(int what, int whole, const char *lang)
{
    char *text;
    cr_assert_eq(weir_watch_report(watch, -1, what, whole, lang, &text), 0);
    return text;
}

static void expect(const char *text, const char *part)
{
    cr_expect_not_null(strstr(text, part), "no \"%s\" in:\n%s", part, text);
}

Test(watch_report, tables_and_verdict_come_from_the_workers)
{
    weir_watch_sampling(watch, 1);
    start_workers();
    weir_watch_unseen(watch, "av.container.decode");
    epoch(200);
    char *text = report(WEIR_WATCH_TABLE, 1, "en");
    cr_expect_eq(strncmp(text, "verdict: Training waited for data ", 34), 0, "%s", text);
    expect(text, "03b_image_decode");
    expect(text, "08_wait_for_data");
    expect(text, "worker 1");
    expect(text, "ready batches at each request");
    expect(text, "my.Dataset");
    expect(text, "/data/a.jpg");
    expect(text, "not timed: av.container.decode");
    expect(text, "watch: ");
    weir_watch_free(text);
    text = report(WEIR_WATCH_TABLE, 1, "zh");
    expect(text, "性能分析统计");
    expect(text, "verdict: ");
    weir_watch_free(text);
    text = report(WEIR_WATCH_VERDICT, 1, NULL);
    cr_expect_null(strstr(text, "03b_image_decode  "), "%s", text);
    weir_watch_free(text);
}

static double number(const json_t *object, const char *outer, const char *key)
{
    const json_t *value = json_object_get(json_object_get(object, outer), key);
    cr_assert(json_is_number(value), "no number %s.%s", outer, key);
    return json_number_value(value);
}

Test(watch_report, periods_add_up_to_the_whole)
{
    static const char head[] = "{\"schema\":1,\"type\":\"watch\",";
    start_workers();
    epoch(30);
    char *text = report(WEIR_WATCH_JSON, 0, "en");
    json_t *first = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    cr_assert_not_null(first, "%s", text);
    cr_expect_eq(strncmp(text, head, strlen(head)), 0, "%s", text);
    weir_watch_free(text);
    epoch(50);
    text = report(WEIR_WATCH_VERDICT, 0, "en"); /* does not end the period */
    weir_watch_free(text);
    text = report(WEIR_WATCH_JSON, 0, "en");
    json_t *second = json_loads(text, 0, NULL);
    weir_watch_free(text);
    text = report(WEIR_WATCH_JSON, 1, "en");
    json_t *whole = json_loads(text, 0, NULL);
    weir_watch_free(text);
    cr_expect_eq(number(first, "watch", "batches"), 30);
    cr_expect_eq(number(second, "watch", "batches"), 50);
    cr_expect_eq(number(whole, "watch", "batches"), 80);
    cr_expect_eq(json_integer_value(json_object_get(second, "epoch_first")), 2);
    cr_expect_eq(json_integer_value(json_object_get(second, "epoch_last")), 2);
    cr_expect_gt(number(first, "watch", "run_first_s"), 0);
    cr_expect_eq(number(second, "watch", "run_first_s"), 0, "the run's first batch was in the first period");
    cr_expect(json_is_object(json_object_get(whole, "verdict")));
    json_decref(first);
    json_decref(second);
    json_decref(whole);
}

Test(watch_report, a_log_does_not_end_the_period_of_the_table)
{
    start_workers();
    epoch(30);
    weir_watch_free(report(WEIR_WATCH_LOG, 0, "en"));
    char *text = report(WEIR_WATCH_TABLE, 0, "en");
    cr_expect_not_null(strstr(text, " 30 batches"), "%s", text);
    weir_watch_free(text);
    epoch(20);
    weir_watch_free(report(WEIR_WATCH_TABLE, 0, "en"));
    text = report(WEIR_WATCH_LOG, 0, "en");
    cr_expect_not_null(strstr(text, "\"batches\":20,"), "%s", text);
    weir_watch_free(text);
}

/* Reads the last "stages" line of a log and prints it as `weir report` does. */
static char *printed_from_log(char *log, int *n_epochs, enum weir_lang lang)
{
    struct weir_lines lines;
    struct weir_log_record record = {0};
    struct weir_err err = WEIR_ERR_NONE;
    char *text = NULL;
    size_t size;
    int code;
    FILE *in = fmemopen(log, strlen(log), "r");
    weir_lines_open(&lines, in);
    *n_epochs = 0;
    while ((code = weir_log_next(&lines, &record, &err)) == WEIR_LOG_RECORD) {
        *n_epochs += record.type == WEIR_LOG_EPOCH;
        if (record.type != WEIR_LOG_STAGES)
            continue;
        cr_assert_not_null(record.watch);
        free(text);
        FILE *out = open_memstream(&text, &size);
        weir_watch_print(out, record.watch, &record.report, lang, false);
        fclose(out);
    }
    cr_assert_eq(code, WEIR_LOG_END, "%s", err.text);
    weir_log_record_clear(&record);
    weir_lines_close(&lines);
    fclose(in);
    return text;
}

Test(watch_report, a_log_prints_the_same_report)
{
    weir_watch_sampling(watch, 1);
    start_workers();
    epoch(60);
    epoch(60);
    weir_watch_headroom(0, 2);
    for (int i = 0; i < WORKERS; i++) { /* the figures stand still */
        kill(children[i], SIGKILL);
        waitpid(children[i], NULL, 0);
        children[i] = 0;
    }
    weir_watch_sampling(watch, 0);
    char *log = report(WEIR_WATCH_LOG, 1, "en");
    int n_epochs;
    char *printed = printed_from_log(log, &n_epochs, WEIR_LANG_EN);
    cr_expect_eq(n_epochs, 2);
    char *table = report(WEIR_WATCH_TABLE, 1, "en");
    /* The time of the call differs; all that follows from the segment is the same. */
    const char *from = "waits for data", *at = strstr(table, from), *there = strstr(printed, from);
    cr_assert(at && there, "%s\n%s", table, printed);
    cr_expect_eq(strncmp(at, there, (size_t)(strstr(at, "watch: ") - at)), 0, "%s\n%s", at, there);
    cr_expect_eq(strncmp(printed, table, 60), 0, "%s\n%s", printed, table);
    char *again = report(WEIR_WATCH_LOG, 1, "en");
    weir_watch_free(printed);
    printed = printed_from_log(again, &n_epochs, WEIR_LANG_ZH);
    cr_expect_eq(n_epochs, 0, "epochs are logged once");
    expect(printed, "性能分析统计");
    weir_watch_free(log);
    weir_watch_free(again);
    weir_watch_free(printed);
    weir_watch_free(table);
}

Test(watch_report, unknown_arguments_are_refused)
{
    char *text;
    cr_expect_eq(weir_watch_report(watch, 5, WEIR_WATCH_TABLE, 1, "en", &text), -EINVAL);
    cr_expect_null(text);
    cr_expect_eq(weir_watch_report(watch, 0, 9, 1, "en", &text), -EINVAL);
    cr_expect_eq(weir_watch_report(watch, 0, WEIR_WATCH_TABLE, 1, "fr", &text), -EINVAL);
    cr_expect_eq(weir_watch_report(NULL, 0, WEIR_WATCH_TABLE, 1, "en", &text), -EINVAL);
    text = report(WEIR_WATCH_TABLE, 1, "en"); /* before the first batch */
    expect(text, "too few for a verdict");
    weir_watch_free(text);
}

static int threads_now(void)
{
    char line[256];
    int n = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "Threads:", 8) == 0)
            n = atoi(line + 8);
    if (f)
        fclose(f);
    return n;
}

Test(watch_report, sampling_stops_at_a_fork_and_resumes_at_the_next_request)
{
    int before = threads_now();
    weir_watch_sampling(watch, 1);
    cr_expect_eq(threads_now(), before + 1);
    pid_t pid = fork();
    if (pid == 0) {
        weir_watch_sampling(watch, 1); /* the child may sample, and fork again */
        pid_t grandchild = fork();
        if (grandchild == 0)
            _exit(threads_now() == 1 ? 0 : 1);
        int status;
        waitpid(grandchild, &status, 0);
        weir_watch_sampling(watch, 0);
        char *text;
        int rc = weir_watch_report(watch, 0, WEIR_WATCH_JSON, 1, "en", &text);
        _exit(WEXITSTATUS(status) || rc != 0);
    }
    cr_expect_eq(threads_now(), before, "as in the parent after fork()");
    int status;
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_expect_eq(status, 0);
    weir_watch_epoch_begin(0);
    weir_watch_request_begin(0, 0, 0, 0);
    weir_watch_request_end(0, 1);
    cr_expect_eq(threads_now(), before + 1);
    weir_watch_sampling(watch, 0);
    cr_expect_eq(threads_now(), before);
    weir_watch_request_begin(0, 0, 0, 0);
    weir_watch_request_end(0, 1);
    cr_expect_eq(threads_now(), before, "off stays off");
    weir_watch_sampling(watch, 1); /* closing the watch ends it */
}

/* ---- several ranks ---- */

/* Joins as a rank, and runs an epoch whose batches take this long. */
static int run_rank(struct weir_watch *own, int rank, int port, double wait_ms)
{
    char why[256] = "";
    int rc = weir_watch_ranks(own, 0, rank, 2, "127.0.0.1", port, why, sizeof why);
    if (rc < 0)
        fprintf(stderr, "%s\n", why);
    weir_watch_ranks_pause(1);
    weir_watch_ranks_pause(0);
    weir_watch_epoch_begin(0);
    for (int i = 0; i < 40; i++) {
        weir_watch_request_begin(0, -1, -1, -1);
        work(wait_ms);
        weir_watch_request_end(0, 8);
        work(1);
    }
    weir_watch_request_begin(0, -1, -1, -1);
    weir_watch_request_end(0, 0);
    weir_watch_epoch_end(0, 1);
    weir_watch_ranks_publish();
    return rc;
}

static void second_rank(int port)
{
    char why[256], *text;
    struct weir_watch *own = weir_watch_create(why, sizeof why);
    if (!own || weir_watch_loader(own, "train") != 0 || weir_watch_thread(own, 0, WEIR_WATCH_LOOP, -1) != 0)
        _exit(1);
    int rc = run_rank(own, 1, port, 6);
    rc |= weir_watch_ranks_end(20, &text);
    _exit(rc == 0 && !text ? 0 : 2);
}

Test(watch_report, ranks_are_compared_through_the_store)
{
    struct fake_store *store = fake_store_open(FAKE_SINCE_2_2, false);
    cr_assert_not_null(store);
    int port = fake_store_port(store), status;
    pid_t pid = fork();
    if (pid == 0)
        second_rank(port);
    cr_assert_eq(run_rank(watch, 0, port, 0.1), 0);
    char *text, why[256];
    cr_expect_eq(weir_watch_ranks(watch, 0, 0, 2, "127.0.0.1", port, why, sizeof why), -EBUSY);
    cr_assert_eq(weir_watch_ranks_end(60, &text), 1);
    expect(text, "rank 1");
    expect(text, "20_step");
    weir_watch_free(text);
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_expect_eq(status, 0);
    weir_watch_ranks_publish(); /* no session, no effect */
    cr_expect_eq(weir_watch_ranks_table(&text), 0);
    cr_expect_eq(fake_store_blind_gets(store), 0);
    fake_store_close(&store);
}

Test(watch_report, without_a_store_a_rank_says_so)
{
    char why[256] = "", *text;
    unsetenv("MASTER_ADDR");
    cr_expect_eq(weir_watch_ranks(watch, 0, 0, 1, NULL, 0, why, sizeof why), 0, "a single rank needs none");
    cr_expect_lt(weir_watch_ranks(watch, 0, 0, 2, NULL, 0, why, sizeof why), 0);
    cr_expect_gt(strlen(why), 10);
    cr_expect_eq(weir_watch_ranks_end(0, &text), 0);
}
