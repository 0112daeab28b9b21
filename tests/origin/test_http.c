/* The client against servers that break the rules. */
#include "base/terminal.h"
#include "origin/http.h"
#include "origin/remote.h"
#include "origin/source.h"
#include "tests/fixtures/http_script.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define RANGE_HEAD                                                                                                     \
    "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 10-19/100\r\nContent-Length: 10\r\nETag: \"v1\"\r\n"
#define RANGE    RANGE_HEAD "\r\n0123456789"
#define COUNT(a) (int)(sizeof(a) / sizeof *(a))

static const struct weir_remote_facts file = {.size_bytes = 100, .etag = "\"v1\""};

struct outcome {
    struct weir_client_response response;
    struct weir_client_counts counts;
    uint8_t bytes[16];
};

/* Requests bytes 10..19 of a file from a server with these answers. */
static void request(struct outcome *o, const struct script_answer *answers, int n, bool has_secrets)
{
    char url[64];
    struct weir_client *http;
    struct weir_err err = WEIR_ERR_NONE;
    int port = script_start(answers, n);
    memset(o, 0, sizeof *o);
    const struct weir_client_config config = {
        .depth = 2, .attempts = 4, .stall_s = 1, .pause_ns = 1000, .counts = &o->counts, .no_proxy = true};
    snprintf(url, sizeof url, "http://127.0.0.1:%d/x", port);
    cr_assert_eq(weir_client_open(&http, &config, &err), 0, "%s", err.text);
    const struct weir_client_request r = {
        .url = url, .wanted = {.offset = 10, .length = 10, .file = &file}, .to = o->bytes, .has_secrets = has_secrets};
    weir_client_do(http, &r, 1, &o->response);
    weir_client_close(&http);
    script_stop();
    cr_assert_eq(o->response.rc, o->response.err.code);
    cr_assert(o->bytes[10] == 0, "bytes past the range were written");
}

static void expect(const struct script_answer *answers, int n, int rc, int requests, const char *words)
{
    struct outcome o;
    request(&o, answers, n, false);
    cr_assert_eq(o.response.rc, rc, "rc %d: %s", o.response.rc, o.response.err.text);
    cr_assert_eq(script_requests(), requests, "%d requests: %s", script_requests(), o.response.err.text);
    cr_assert(!words || strstr(o.response.err.text, words), "%s", o.response.err.text);
    cr_assert(rc < 0 || memcmp(o.bytes, "0123456789", 10) == 0);
    cr_assert_eq(o.counts.requests, (uint64_t)requests);
}

Test(http, a_range_has_its_validator)
{
    static const struct script_answer good[] = {{RANGE, 0, SCRIPT_KEEP}};
    expect(good, 1, 0, 1, NULL);
    cr_assert(strstr(script_request(0), "\r\nRange: bytes=10-19\r\n"));
    cr_assert(strstr(script_request(0), "\r\nIf-Match: \"v1\"\r\n"));
    cr_assert(!strstr(script_request(0), "Accept-Encoding"));
}

Test(http, passing_faults_are_repeated)
{
    static const struct script_answer answers[][2] = {
        {{"HTTP/1.1 429 x\r\nContent-Length: 0\r\n\r\n", 0, SCRIPT_KEEP}, {RANGE, 0, SCRIPT_KEEP}},
        {{"HTTP/1.1 503 x\r\nContent-Length: 4\r\n\r\nslow", 0, SCRIPT_KEEP}, {RANGE, 0, SCRIPT_KEEP}},
        {{RANGE_HEAD "\r\n01234", 0, SCRIPT_CLOSE}, {RANGE, 0, SCRIPT_KEEP}},
        {{RANGE_HEAD "\r\n01234", 0, SCRIPT_RESET}, {RANGE, 0, SCRIPT_KEEP}},
        {{"", 0, SCRIPT_CLOSE}, {RANGE, 0, SCRIPT_KEEP}},
        {{RANGE_HEAD "\r\n01234", 0, SCRIPT_HANG}, {RANGE, 0, SCRIPT_KEEP}},
        {{"HTTP/1.1 206 x\r\nContent-Range: bytes 10-19/100\r\nConnection: close\r\n\r\n01", 0, SCRIPT_CLOSE},
         {RANGE, 0, SCRIPT_KEEP}},
    };
    for (int i = 0; i < COUNT(answers); i++)
        expect(answers[i], 2, 0, 2, NULL);
}

Test(http, faults_that_last_are_errors)
{
    static const struct script_answer storm[] = {{"HTTP/1.1 429 x\r\nContent-Length: 0\r\n\r\n", 0, SCRIPT_KEEP}};
    static const struct script_answer later[] = {
        {"HTTP/1.1 503 x\r\nRetry-After: 3600\r\nContent-Length: 0\r\n\r\n", 0, SCRIPT_KEEP}};
    static const struct script_answer broken[] = {{RANGE_HEAD "\r\n0", 0, SCRIPT_CLOSE}};
    expect(storm, 1, -EREMOTEIO, 4, "limits requests");
    expect(later, 1, -EREMOTEIO, 1, "limits requests");
    expect(broken, 1, -EREMOTEIO, 4, "broke");
}

Test(http, wrong_answers_are_not_repeated)
{
    static const struct {
        struct script_answer answer;
        int rc;
        const char *words;
    } cases[] = {
        {{"HTTP/1.1 200 x\r\nContent-Length: 100\r\n\r\n0123456789", 0, SCRIPT_ENDLESS}, -EREMOTEIO, "ignores ranges"},
        {{"HTTP/1.1 200 x\r\n\r\n0123456789", 0, SCRIPT_ENDLESS}, -EREMOTEIO, "ignores ranges"},
        {{"HTTP/1.1 206 x\r\nContent-Range: bytes 10-19/100\r\n\r\n0123456789", 0, SCRIPT_ENDLESS},
         -EREMOTEIO,
         "more bytes"},
        {{"HTTP/1.1 206 x\r\nContent-Range: bytes 0-9/100\r\nContent-Length: 10\r\n\r\n0123456789", 0, SCRIPT_KEEP},
         -EREMOTEIO,
         "other bytes"},
        {{"HTTP/1.1 206 x\r\nContent-Range: bytes 10-19/101\r\nContent-Length: 10\r\n\r\n0123456789", 0, SCRIPT_KEEP},
         -ESTALE,
         "101 bytes"},
        {{"HTTP/1.1 206 x\r\nContent-Range: bytes 10-19/100\r\nContent-Length: 10\r\nETag: \"v2\"\r\n\r\n0123456789", 0,
          SCRIPT_KEEP},
         -ESTALE,
         "changed"},
        {{"HTTP/1.1 412 x\r\nContent-Length: 0\r\n\r\n", 0, SCRIPT_KEEP}, -ESTALE, "changed"},
        {{"HTTP/1.1 304 x\r\n\r\n", 0, SCRIPT_CLOSE}, -EREMOTEIO, "fails with status 304"},
        {{"HTTP/1.1 404 x\r\nContent-Length: 0\r\n\r\n", 0, SCRIPT_KEEP}, -ENOENT, "no such file"},
        {{"HTTP/1.1 403 x\r\nContent-Length: 39\r\n\r\n<Error><Code>ExpiredToken</Code></Error>", 0, SCRIPT_CLOSE},
         -EACCES,
         "ExpiredToken"},
        {{"HTTP/1.1 301 x\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n", 0, SCRIPT_KEEP},
         -EREMOTEIO,
         "rotocol"},
        {{"HTTP/1.1 301 x\r\nLocation: http://127.0.0.1:9/\001\r\nContent-Length: 0\r\n\r\n", 0, SCRIPT_KEEP},
         -EREMOTEIO,
         NULL},
        {{"HTTP/1.1 206 x\r\nContent-Range: bytes 10-19/100\r\nContent-Length: 10\r\nContent-Encoding: gzip\r\n"
          "\r\n0123456789",
          0, SCRIPT_KEEP},
         -EREMOTEIO,
         "compresses"},
        {{"x: 0123456789\r\n", 0, SCRIPT_ENDLESS}, -EREMOTEIO, NULL},
    };
    for (int i = 0; i < COUNT(cases); i++)
        expect(&cases[i].answer, 1, cases[i].rc, 1, cases[i].words);
}

Test(http, an_endless_head_ends)
{
    static const struct script_answer endless[] = {
        {"HTTP/1.1 100 Continue\r\nX: 0123456789\r\n\r\n", 0, SCRIPT_ENDLESS}};
    expect(endless, 1, -EREMOTEIO, 1, "head");
}

Test(http, a_line_beyond_the_limit_of_libcurl)
{
    static char line[300 << 10];
    memset(line, 'x', sizeof line - 1);
    memcpy(line, "HTTP/1.1 206 x\r\nX: ", 19);
    const struct script_answer long_line[] = {{line, 0, SCRIPT_CLOSE}};
    expect(long_line, 1, -EREMOTEIO, 1, "the head of the server's response exceeds 64 KiB");
}

/* Lines after a body of chunks. */
Test(http, trailers_change_nothing_and_are_bounded)
{
#define CHUNKED                                                                                                        \
    "HTTP/1.1 206 x\r\nContent-Range: bytes 10-19/100\r\nTransfer-Encoding: chunked\r\nETag: \"v1\"\r\n\r\n"           \
    "a\r\n0123456789\r\n0\r\n"
    static char lines[100 << 10];
    size_t n = (size_t)snprintf(lines, sizeof lines, CHUNKED);
    while (n < sizeof lines - 200)
        n += (size_t)snprintf(lines + n, sizeof lines - n, "X: %0100d\r\n", 0);
    snprintf(lines + n, sizeof lines - n, "\r\n");
    const struct script_answer other[] = {
        {CHUNKED "ETag: \"v2\"\r\nContent-Range: bytes 0-1/2\r\nContent-Length: 7\r\n\r\n", 0, SCRIPT_KEEP}};
    const struct script_answer huge[] = {{lines, 0, SCRIPT_KEEP}};
    struct outcome o;
    request(&o, other, 1, false);
    cr_assert(o.response.rc == 0 && !o.response.head.bad, "%s", o.response.err.text);
    cr_assert_str_eq(o.response.head.etag, "\"v1\"");
    expect(huge, 1, -EREMOTEIO, 1, "head");
}

Test(http, a_long_pause_is_not_waited_for)
{
    static const char *const pauses[] = {"86400", "100000000", "99999999999999999999999999"};
    for (int i = 0; i < COUNT(pauses); i++) {
        char text[128];
        snprintf(text, sizeof text, "HTTP/1.1 503 x\r\nRetry-After: %s\r\nContent-Length: 0\r\n\r\n", pauses[i]);
        const struct script_answer later[] = {{text, 0, SCRIPT_KEEP}};
        expect(later, 1, -EREMOTEIO, 1, "limits requests");
    }
    static const struct script_answer negative[] = {
        {"HTTP/1.1 503 x\r\nRetry-After: -1\r\nContent-Length: 0\r\n\r\n", 0, SCRIPT_KEEP}, {RANGE, 0, SCRIPT_KEEP}};
    expect(negative, 2, 0, 2, NULL);
}

Test(http, a_validator_adds_no_lines)
{
    static const char *const etags[] = {"\"v1\"\r\nX-More: 1", "\"v1\nX-More: 1\"", "\"\t\"", "\"\x7f\""};
    static const struct script_answer good[] = {{RANGE, 0, SCRIPT_KEEP}};
    for (int i = 0; i < COUNT(etags); i++) {
        struct weir_remote_facts facts = {.size_bytes = 100};
        struct weir_client *http;
        struct weir_client_response response;
        struct weir_err err = WEIR_ERR_NONE;
        uint8_t bytes[10];
        char url[64];
        snprintf(facts.etag, sizeof facts.etag, "%s", etags[i]);
        snprintf(url, sizeof url, "http://127.0.0.1:%d/x", script_start(good, 1));
        cr_assert_eq(weir_client_open(&http, &(struct weir_client_config){.depth = 1, .no_proxy = true}, &err), 0);
        const struct weir_client_request r = {
            .url = url, .wanted = {.offset = 10, .length = 10, .file = &facts}, .to = bytes};
        weir_client_do(http, &r, 1, &response);
        cr_assert_eq(response.rc, -EINVAL, "%s", response.err.text);
        cr_assert(strstr(response.err.text, "If-Match has control characters"), "%s", response.err.text);
        cr_assert_eq(script_requests(), 0);
        weir_client_close(&http);
        script_stop();
    }
}

Test(http, missing_descriptors_are_named)
{
    static const struct script_answer good[] = {{RANGE, 0, SCRIPT_KEEP}};
    const struct weir_client_config config = {.depth = 1, .attempts = 2, .pause_ns = 1000, .no_proxy = true};
    struct weir_client *http, *other;
    struct weir_client_response response;
    struct weir_err err = WEIR_ERR_NONE;
    struct rlimit all, few;
    uint8_t bytes[10];
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/x", script_start(good, 1));
    cr_assert_eq(weir_client_open(&http, &config, &err), 0, "%s", err.text);
    int next = dup(0);
    close(next);
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &all), 0);
    few = (struct rlimit){(rlim_t)next, all.rlim_max};
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    const struct weir_client_request r = {
        .url = url, .wanted = {.offset = 10, .length = 10, .file = &file}, .to = bytes};
    weir_client_do(http, &r, 1, &response);
    int rc = weir_client_open(&other, &config, &err);
    setrlimit(RLIMIT_NOFILE, &all);
    cr_assert_eq(response.rc, -EMFILE, "%s", response.err.text);
    cr_assert(strstr(response.err.text, "ulimit -n"), "%s", response.err.text);
    cr_assert(rc == -EMFILE && strstr(err.text, "ulimit -n"), "%s", err.text);
    weir_client_close(&http);
    script_stop();
}

Test(http, credentials_are_not_sent_to_another_address)
{
    static const struct script_answer away[] = {
        {"HTTP/1.1 302 x\r\nLocation: http://127.0.0.1:9/x\r\nContent-Length: 0\r\n\r\n", 0, SCRIPT_KEEP}};
    static const struct script_answer region[] = {
        {"HTTP/1.1 301 x\r\nx-amz-bucket-region: eu-west-3\r\nContent-Length: 0\r\n\r\n", 0, SCRIPT_KEEP}};
    static const struct script_answer loop[] = {
        {"HTTP/1.1 302 x\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", 0, SCRIPT_KEEP}};
    struct outcome o;
    request(&o, away, 1, true);
    cr_assert(o.response.rc == -EREMOTEIO && strstr(o.response.err.text, "redirects"), "%s", o.response.err.text);
    request(&o, region, 1, true);
    cr_assert(strstr(o.response.err.text, "eu-west-3"), "%s", o.response.err.text);
    request(&o, loop, 1, false);
    cr_assert_eq(o.response.rc, -ELOOP, "%s", o.response.err.text);
    cr_assert_eq(script_requests(), 6);
}

Test(http, whole_bodies_are_bounded)
{
    static const struct script_answer endless[] = {{"HTTP/1.1 200 x\r\n\r\n0123456789", 0, SCRIPT_ENDLESS}};
    static const struct script_answer stated[] = {
        {"HTTP/1.1 200 x\r\nContent-Length: 10000000000\r\n\r\nx", 0, SCRIPT_HANG}};
    const struct script_answer *const all[] = {endless, stated};
    for (int i = 0; i < 2; i++) {
        char url[64];
        struct weir_client *http;
        struct weir_client_response response;
        struct weir_err err = WEIR_ERR_NONE;
        const struct weir_client_config config = {.depth = 1, .attempts = 2, .pause_ns = 1000, .no_proxy = true};
        snprintf(url, sizeof url, "http://127.0.0.1:%d/list", script_start(all[i], 1));
        cr_assert_eq(weir_client_open(&http, &config, &err), 0);
        const struct weir_client_request r = {.url = url, .wanted = {.limit = 100000}};
        weir_client_do(http, &r, 1, &response);
        cr_assert_eq(response.rc, -EFBIG, "%s", response.err.text);
        cr_assert_null(response.body);
        weir_client_close(&http);
        script_stop();
    }
}

/* ---- a source of an origin ---- */

static int all_names(const char *name, bool is_folder)
{
    return is_folder ? -1 : (int)strlen(name);
}

struct urls {
    char text[1024];
    int refused;
};

static int note_url(void *user, const char *url, const char *why_not)
{
    struct urls *urls = user;
    size_t used = strlen(urls->text);
    if (why_not)
        urls->refused++;
    else
        snprintf(urls->text + used, sizeof urls->text - used, "%s;", strrchr(url, '/') + 1);
    return 0;
}

Test(http, lists_skip_hostile_names)
{
    static const struct script_answer list[] = {
        {"HTTP/1.1 200 x\r\nContent-Length: 49\r\n\r\n[\"a b.h5\",\"../etc/x.h5\",\"c\\u0007.h5\",\"/d.h5\",\"e\"]", 0,
         SCRIPT_KEEP}};
    struct weir_origin *origin;
    struct weir_err err = WEIR_ERR_NONE;
    struct urls urls = {0};
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/data", script_start(list, 1));
    cr_assert_eq(weir_remote_open(&origin, url, &(struct weir_remote_config){0}, &err), 0, "%s", err.text);
    const struct weir_remote_search search = {.part = all_names, .found = note_url, .user = &urls};
    cr_assert_eq(weir_remote_list(origin, url, &search, &err), 0, "%s", err.text);
    cr_assert_str_eq(urls.text, "a%20b.h5;e;");
    cr_assert_eq(urls.refused, 3);
    weir_origin_close(&origin);
    script_stop();
}

Test(http, files_are_identified_once)
{
    static const struct script_answer head[] = {
        {"HTTP/1.1 200 x\r\nETag: \"v1\"\r\nContent-Length: 100\r\n\r\n", 0, SCRIPT_KEEP}};
    static const struct script_answer broken[] = {{"", 0, SCRIPT_CLOSE}};
    enum { FILES = 100 };
    char *paths[FILES];
    struct weir_origin *origin;
    struct weir_err err = WEIR_ERR_NONE;
    for (int fails = 0; fails < 2; fails++) {
        int port = script_start(fails ? broken : head, 1);
        for (int i = 0; i < FILES; i++)
            cr_assert(asprintf(&paths[i], "http://127.0.0.1:%d/%d.weir", port, i) > 0);
        cr_assert_eq(weir_remote_open(&origin, paths[0], &(struct weir_remote_config){0}, &err), 0, "%s", err.text);
        if (fails)
            origin->ops->cancel(origin);
        weir_remote_identify_all(origin, paths, FILES);
        for (int i = 0; i < FILES; i++) {
            struct weir_file_id id;
            cr_assert_eq(origin->ops->identify(origin, paths[i], &id, &err), fails ? -ECANCELED : 0);
            cr_assert(fails || id.size_bytes == 100);
            free(paths[i]);
        }
        cr_assert(fails || script_requests() == FILES, "%d requests", script_requests());
        weir_origin_close(&origin);
        script_stop();
    }
}

static void *cancel_soon(void *user)
{
    struct weir_origin *origin = user;
    while (script_requests() == 0)
        usleep(1000);
    origin->ops->cancel(origin);
    return NULL;
}

Test(http, a_wait_ends_when_it_is_cancelled)
{
    static const struct script_answer silent[] = {{"", 0, SCRIPT_HANG}};
    struct weir_origin *origin;
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_file_id id;
    pthread_t thread;
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/x.weir", script_start(silent, 1));
    cr_assert_eq(weir_remote_open(&origin, url, &(struct weir_remote_config){0}, &err), 0, "%s", err.text);
    pthread_create(&thread, NULL, cancel_soon, origin);
    cr_assert_eq(origin->ops->identify(origin, url, &id, &err), -ECANCELED, "%s", err.text);
    pthread_join(thread, NULL);
    weir_origin_close(&origin);
    script_stop();
}

static char noticed[1024];
static _Atomic int notices;

static void note(const char *text)
{
    snprintf(noticed, sizeof noticed, "%s", text);
    notices++;
}

static void *cancel_after_notice(void *user)
{
    struct weir_origin *origin = user;
    while (notices == 0)
        usleep(1000);
    origin->ops->cancel(origin);
    return NULL;
}

/* A server that says nothing, and one that fails again and again. */
Test(http, a_long_wait_is_reported)
{
    static const struct script_answer silent[] = {{"", 0, SCRIPT_HANG}};
    static const struct script_answer failing[] = {{"HTTP/1.1 500 x\r\nContent-Length: 0\r\n\r\n", 0, SCRIPT_KEEP}};
    weir_notice_set(note);
    for (int fails = 0; fails < 2; fails++) {
        struct weir_origin *origin;
        struct weir_err err = WEIR_ERR_NONE;
        struct weir_file_id id;
        pthread_t thread;
        char url[64];
        notices = 0;
        snprintf(url, sizeof url, "http://127.0.0.1:%d/x.weir", script_start(fails ? failing : silent, 1));
        const struct weir_remote_config config = {.patience_ns = fails ? 500 * 1000 * 1000 : 1000};
        cr_assert_eq(weir_remote_open(&origin, url, &config, &err), 0, "%s", err.text);
        pthread_create(&thread, NULL, cancel_after_notice, origin);
        cr_assert_eq(origin->ops->identify(origin, url, &id, &err), -ECANCELED, "%s", err.text);
        pthread_join(thread, NULL);
        cr_assert(strncmp(noticed, url, strlen(url)) == 0 && strstr(noticed, "no usable response for"), "%s", noticed);
        cr_assert(!fails || strstr(noticed, "the server fails with status 500"), "%s", noticed);
        weir_origin_close(&origin);
        script_stop();
    }
}

/* One of two ranges fails. The other one, whose server says nothing, is not waited for. */
Test(http, a_failure_ends_the_other_requests)
{
    static const struct script_answer answers[] = {
        {"HTTP/1.1 200 x\r\nContent-Length: 6000\r\nETag: \"v1\"\r\n\r\n", 0, SCRIPT_KEEP},
        {"HTTP/1.1 404 x\r\nContent-Length: 0\r\n\r\n", 0, SCRIPT_KEEP},
        {"", 0, SCRIPT_HANG}};
    struct weir_origin *origin;
    struct weir_origin_counts counts;
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_file_id id;
    uint8_t bytes[20];
    char url[64];
    const struct weir_origin_range ranges[] = {{0, 10, bytes}, {0, 0, NULL}, {10, 10, bytes + 10}};
    snprintf(url, sizeof url, "http://127.0.0.1:%d/x.weir", script_start(answers, 3));
    cr_assert_eq(weir_remote_open(&origin, url, &(struct weir_remote_config){0}, &err), 0, "%s", err.text);
    cr_assert_eq(origin->ops->identify(origin, url, &id, &err), 0, "%s", err.text);
    cr_assert_eq(origin->ops->read(origin, url, &id, ranges, 3, &err), -ENOENT, "%s", err.text);
    origin->ops->counts(origin, &counts);
    cr_assert(counts.requests == 3 && counts.retries == 0, "%d requests, %d retries", (int)counts.requests,
              (int)counts.retries);
    weir_origin_close(&origin);
    script_stop();
}

/* ---- files without a strong ETag ---- */

enum { SMALL = 6000 };

/* Writes the answer with all bytes of a small file, all the same but one. Returns its size. */
static size_t whole_file(char text[SMALL + 256], const char *validators, size_t other)
{
    int n = snprintf(text, 256, "HTTP/1.1 206 x\r\n%sContent-Range: bytes 0-%d/%d\r\nContent-Length: %d\r\n\r\n",
                     validators, SMALL - 1, SMALL, SMALL);
    memset(text + n, 'a', SMALL);
    text[(size_t)n + other] = 'b';
    return (size_t)n + SMALL;
}

/* Reads such a file twice, whose byte `other` differs the second time. Returns the result of the second read. */
static int read_twice(const char *head, const char *validators, size_t other, struct weir_err *err)
{
    static char first[SMALL + 256], second[SMALL + 256];
    const struct script_answer answers[] = {{head, 0, SCRIPT_KEEP},
                                            {first, whole_file(first, validators, 0), SCRIPT_KEEP},
                                            {second, whole_file(second, validators, other), SCRIPT_KEEP},
                                            {first, whole_file(first, validators, 0), SCRIPT_KEEP}};
    struct weir_origin *origin;
    struct weir_file_id id;
    uint8_t bytes[SMALL];
    char url[64];
    const struct weir_origin_range range = {0, SMALL, bytes};
    struct weir_err ignored = WEIR_ERR_NONE;
    notices = 0;
    *err = WEIR_ERR_NONE;
    snprintf(url, sizeof url, "http://127.0.0.1:%d/x.weir", script_start(answers, 4));
    cr_assert_eq(weir_remote_open(&origin, url, &(struct weir_remote_config){0}, err), 0, "%s", err->text);
    cr_assert_eq(origin->ops->identify(origin, url, &id, err), 0, "%s", err->text);
    cr_assert_eq(origin->ops->read(origin, url, &id, &range, 1, err), 0, "%s", err->text);
    cr_assert_eq(weir_remote_align(origin), strstr(head, "ETag: \"") ? 1u : 4096u);
    int rc = origin->ops->read(origin, url, &id, &range, 1, err);
    cr_assert_eq(origin->ops->read(origin, url, &id, &range, 1, &ignored), rc, "an object that changed stays so");
    cr_assert(!notices || strncmp(noticed, url, strlen(url)) == 0, "%s", noticed);
    weir_origin_close(&origin);
    script_stop();
    return rc;
}

Test(http, bytes_that_no_validator_covers_are_compared)
{
#define FACTS  "HTTP/1.1 200 x\r\nContent-Length: 6000\r\n"
#define WEAK   "ETag: W/\"v1\"\r\n"
#define TIME   "Last-Modified: Fri, 24 May 2013 00:00:00 GMT\r\n"
#define STRONG "ETag: \"v1\"\r\n"
    static const struct {
        const char *head, *validators;
        int rc, notices;
    } cases[] = {{FACTS "\r\n", "", -ESTALE, 1},
                 {FACTS WEAK "\r\n", WEAK, -ESTALE, 0},
                 {FACTS TIME "\r\n", TIME, -ESTALE, 0},
                 {FACTS STRONG "\r\n", STRONG, 0, 0}};
    struct weir_err err;
    weir_notice_set(note);
    for (int i = 0; i < COUNT(cases); i++) {
        cr_assert_eq(read_twice(cases[i].head, cases[i].validators, 0, &err), 0, "%s", err.text);
        cr_assert_eq(read_twice(cases[i].head, cases[i].validators, SMALL - 1, &err), cases[i].rc, "%d: %s", i,
                     err.text);
        cr_assert(!cases[i].rc || strstr(err.text, "the file changed"), "%s", err.text);
        cr_assert_eq(notices, cases[i].notices, "%d: %d notices", i, notices);
    }
}

/* What an index file would be compared with, and whether a cache may keep the bytes. */
Test(http, files_that_may_change_unnoticed_have_no_lasting_identity)
{
    static const struct {
        const char *head;
        bool lasts;
    } cases[] = {{FACTS "\r\n", false},
                 {FACTS TIME "\r\n", false},
                 {FACTS TIME "Date: Fri, 24 May 2013 00:00:00 GMT\r\n\r\n", false},
                 {FACTS TIME "Date: Fri, 24 May 2013 00:00:01 GMT\r\n\r\n", true},
                 {FACTS WEAK "\r\n", true},
                 {FACTS STRONG "\r\n", true}};
    weir_notice_set(note);
    for (int i = 0; i < COUNT(cases); i++) {
        const struct script_answer answers[] = {{cases[i].head, 0, SCRIPT_KEEP}};
        struct weir_file_id ids[2];
        char url[64];
        snprintf(url, sizeof url, "http://127.0.0.1:%d/x.weir", script_start(answers, 1));
        for (int k = 0; k < 2; k++) {
            struct weir_origin *origin;
            struct weir_err err = WEIR_ERR_NONE;
            cr_assert_eq(weir_remote_open(&origin, url, &(struct weir_remote_config){0}, &err), 0, "%s", err.text);
            cr_assert_eq(origin->ops->identify(origin, url, &ids[k], &err), 0, "%s", err.text);
            weir_origin_close(&origin);
        }
        cr_assert_eq(ids[0].inode == ids[1].inode, cases[i].lasts, "%d", i);
        script_stop();
    }
}

/* Bytes of a file whose time may be that of another version are not read from a cache. */
Test(http, a_cache_keeps_only_what_has_a_lasting_identity)
{
    static const struct {
        const char *validators;
        bool lasts;
    } cases[] = {{"", false},
                 {WEAK, false},
                 {TIME, false},
                 {TIME "Date: Fri, 24 May 2013 00:00:00 GMT\r\n", false},
                 {TIME "Date: Fri, 24 May 2013 00:00:01 GMT\r\n", true},
                 {STRONG, true}};
    static char head[512], text[SMALL + 256];
    char folder[] = "/tmp/weir_http.XXXXXX", cache[64], command[64];
    weir_notice_set(note);
    cr_assert_not_null(mkdtemp(folder));
    for (int i = 0; i < COUNT(cases); i++) {
        snprintf(head, sizeof head, FACTS "%s\r\n", cases[i].validators);
        const struct script_answer answers[] = {{head, 0, SCRIPT_KEEP},
                                                {text, whole_file(text, cases[i].validators, 0), SCRIPT_KEEP},
                                                {head, 0, SCRIPT_KEEP},
                                                {text, whole_file(text, cases[i].validators, 0), SCRIPT_KEEP}};
        char url[64];
        snprintf(cache, sizeof cache, "%s/%d:4M", folder, i);
        snprintf(url, sizeof url, "http://127.0.0.1:%d/x.weir", script_start(answers, 4));
        for (int k = 0; k < 2; k++) {
            struct weir_origin *origin;
            struct weir_err err = WEIR_ERR_NONE;
            struct weir_file_id id;
            uint8_t bytes[SMALL];
            const struct weir_origin_range range = {0, SMALL, bytes};
            cr_assert_eq(weir_remote_open(&origin, url, &(struct weir_remote_config){.cache = cache}, &err), 0, "%s",
                         err.text);
            cr_assert_eq(origin->ops->identify(origin, url, &id, &err), 0, "%s", err.text);
            cr_assert_eq(origin->ops->read(origin, url, &id, &range, 1, &err), 0, "%s", err.text);
            cr_assert(bytes[0] == 'b' && bytes[SMALL - 1] == 'a');
            weir_origin_close(&origin);
        }
        cr_assert_eq(script_requests(), cases[i].lasts ? 3 : 4, "%d: %d requests", i, script_requests());
        script_stop();
    }
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    cr_assert_eq(system(command), 0);
}

Test(http, a_source_reads_blocks_once)
{
    static char page[65536 + 512];
    static const char head[] =
        "HTTP/1.1 206 x\r\nETag: \"v1\"\r\nContent-Range: bytes 0-65535/1048576\r\nContent-Length: 65536\r\n\r\n";
    memcpy(page, head, sizeof head - 1);
    for (int i = 0; i < 65536; i++)
        page[sizeof head - 1 + i] = (char)(i * 7 + i / 256);
    const struct script_answer answers[] = {
        {"HTTP/1.1 200 x\r\nETag: \"v1\"\r\nContent-Length: 1048576\r\n\r\n", 0, SCRIPT_KEEP},
        {page, sizeof head - 1 + 65536, SCRIPT_KEEP},
        {"HTTP/1.1 412 x\r\nContent-Length: 0\r\n\r\n", 0, SCRIPT_KEEP}};
    struct weir_origin *origin;
    struct weir_source *source;
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_file_id id;
    char url[64];
    uint8_t bytes[100];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/x.weir", script_start(answers, 3));
    cr_assert_eq(weir_remote_open(&origin, url, &(struct weir_remote_config){0}, &err), 0, "%s", err.text);
    cr_assert_eq(origin->ops->identify(origin, url, &id, &err), 0, "%s", err.text);
    cr_assert_eq(id.size_bytes, 1048576u);
    cr_assert_eq(weir_source_open(&source, origin, url, &id, &err), 0);
    for (uint64_t at = 0; at + sizeof bytes <= 65536; at += 5000) {
        cr_assert_eq(weir_source_read(source, at, bytes, sizeof bytes), 0);
        for (size_t i = 0; i < sizeof bytes; i++)
            cr_assert_eq(bytes[i], (uint8_t)((at + i) * 7 + (at + i) / 256));
    }
    cr_assert_eq(script_requests(), 2);
    cr_assert_eq(weir_source_read(source, 1048576 - 50, bytes, sizeof bytes), -ENODATA);
    cr_assert_eq(weir_source_read(source, UINT64_MAX - 50, bytes, sizeof bytes), -ENODATA);
    cr_assert_eq(script_requests(), 2);
    cr_assert_eq(weir_source_read(source, 70000, bytes, sizeof bytes), -ESTALE);
    cr_assert(strstr(weir_source_reason(source, -ESTALE), "changed"));
    weir_source_close(&source);
    weir_origin_close(&origin);
    script_stop();
}
