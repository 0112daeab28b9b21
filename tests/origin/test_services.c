/* S3 and the services of credentials, by servers that answer as prescribed: who is asked, with which secrets, and what
 * happens when they fail. */
#include "origin/remote.h"
#include "origin/s3_credentials.h"
#include "tests/fixtures/http_script.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define OK(body)                                                                                                       \
    {                                                                                                                  \
        "HTTP/1.1 200 x\r\nConnection: close\r\n\r\n" body, 0, SCRIPT_CLOSE                                            \
    }
#define STATUS(code)                                                                                                   \
    {                                                                                                                  \
        "HTTP/1.1 " code " x\r\nContent-Length: 0\r\n\r\n", 0, SCRIPT_KEEP                                             \
    }
#define KEYS(token, expires)                                                                                           \
    "{\"AccessKeyId\":\"id\",\"SecretAccessKey\":\"hidden\",\"Token\":\"" token "\",\"Expiration\":\"" expires "\"}"
#define OBJECT                                                                                                         \
    {                                                                                                                  \
        "HTTP/1.1 200 x\r\nETag: \"v1\"\r\nContent-Length: 100\r\n\r\n", 0, SCRIPT_KEEP                                \
    }

static void forget_environment(void)
{
    static const char *const names[] = {"AWS_ACCESS_KEY_ID",
                                        "AWS_PROFILE",
                                        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
                                        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
                                        "AWS_CONTAINER_AUTHORIZATION_TOKEN",
                                        "AWS_EC2_METADATA_SERVICE_ENDPOINT",
                                        "AWS_EC2_METADATA_DISABLED",
                                        "AWS_SHARED_CREDENTIALS_FILE",
                                        "AWS_CONFIG_FILE"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unsetenv(names[i]);
    setenv("HOME", "/nonexistent", 1);
}

static void set_address(const char *variable, int port, const char *path)
{
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d%s", port, path);
    setenv(variable, url, 1);
}

/* ---- services of credentials ---- */

Test(services, the_container_gets_its_token)
{
    static const struct script_answer answers[] = {OK(KEYS("one", "2100-01-01T00:00:00Z"))};
    struct weir_s3_credentials c;
    struct weir_err err = WEIR_ERR_NONE;
    forget_environment();
    set_address("AWS_CONTAINER_CREDENTIALS_FULL_URI", script_start(answers, 1), "/keys");
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "container token", 1);
    cr_assert_eq(weir_s3_credentials_find(&c, NULL, &err), 0, "%s", err.text);
    cr_assert(strcmp(c.key_id, "id") == 0 && strcmp(c.secret, "hidden") == 0 && strcmp(c.token, "one") == 0);
    cr_assert_eq(c.expires_s, 4102444800);
    cr_assert(strncmp(script_request(0), "GET /keys HTTP/1.1\r\n", 20) == 0, "%s", script_request(0));
    cr_assert(strstr(script_request(0), "\r\nAuthorization: container token\r\n"));
    script_stop();
}

Test(services, the_container_may_fail)
{
    static const struct script_answer answers[][1] = {
        {STATUS("403")}, {OK("no JSON")}, {OK("{\"AccessKeyId\":\"id\"}")}, {OK("")}};
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        struct weir_s3_credentials c;
        struct weir_err err = WEIR_ERR_NONE;
        forget_environment();
        set_address("AWS_CONTAINER_CREDENTIALS_FULL_URI", script_start(answers[i], 1), "/keys");
        cr_assert_lt(weir_s3_credentials_find(&c, NULL, &err), 0);
        cr_assert(strstr(err.text, "container"), "%s", err.text);
        script_stop();
    }
}

Test(services, the_container_is_this_machine_or_https)
{
    static const char *const other[] = {
        "http://192.0.2.1/",           "http://127.0.0.1.example/",     "http://localhost.example/",
        "http://localhost@192.0.2.1/", "http://127.0.0.1:1@192.0.2.1/", "ftp://localhost/"};
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++) {
        struct weir_s3_credentials c;
        struct weir_err err = WEIR_ERR_NONE;
        forget_environment();
        setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", other[i], 1);
        setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "hidden", 1);
        cr_assert_eq(weir_s3_credentials_find(&c, NULL, &err), -EACCES);
        cr_assert(strstr(err.text, "must be https or an address of this machine"), "%s: %s", other[i], err.text);
    }
}

Test(services, the_instance_is_asked_with_a_session_token)
{
    static const struct script_answer answers[] = {OK("session"), OK("role\nother"),
                                                   OK(KEYS("two", "2100-01-01T00:00:00Z"))};
    struct weir_s3_credentials c;
    struct weir_err err = WEIR_ERR_NONE;
    forget_environment();
    set_address("AWS_EC2_METADATA_SERVICE_ENDPOINT", script_start(answers, 3), "");
    cr_assert_eq(weir_s3_credentials_find(&c, NULL, &err), 0, "%s", err.text);
    cr_assert_str_eq(c.token, "two");
    cr_assert(strncmp(script_request(0), "PUT /latest/api/token ", 22) == 0, "%s", script_request(0));
    cr_assert(strstr(script_request(0), "\r\nX-aws-ec2-metadata-token-ttl-seconds: 21600\r\n"));
    cr_assert(strstr(script_request(2), "/iam/security-credentials/role HTTP"), "%s", script_request(2));
    for (int i = 1; i < 3; i++)
        cr_assert(strstr(script_request(i), "\r\nX-aws-ec2-metadata-token: session\r\n"), "%s", script_request(i));
    script_stop();
}

Test(services, an_instance_without_a_role)
{
    static const struct script_answer no_role[] = {OK("session"), STATUS("404")}, no_service[] = {STATUS("404")};
    struct weir_s3_credentials c;
    struct weir_err err = WEIR_ERR_NONE, why = WEIR_ERR_NONE;
    forget_environment();
    set_address("AWS_EC2_METADATA_SERVICE_ENDPOINT", script_start(no_role, 2), "");
    cr_assert_lt(weir_s3_credentials_find(&c, NULL, &err), 0);
    cr_assert(strstr(err.text, "instance's metadata service"), "%s", err.text);
    script_stop();
    set_address("AWS_EC2_METADATA_SERVICE_ENDPOINT", script_start(no_service, 1), "");
    cr_assert_eq(weir_s3_credentials_find(&c, NULL, &why), -EACCES);
    cr_assert(strstr(why.text, "no credentials for S3"), "%s", why.text);
    script_stop();
}

/* ---- interruptions ---- */

static bool stop_after_requests(void *user)
{
    return script_requests() >= *(int *)user;
}

/* The service asks for a pause of a minute; the client would wait for it. */
Test(services, finding_credentials_can_be_interrupted)
{
    static const struct script_answer busy[] = {
        {"HTTP/1.1 503 x\r\nRetry-After: 60\r\nContent-Length: 0\r\n\r\n", 0, SCRIPT_KEEP}};
    static const struct script_answer silent[] = {{"", 0, SCRIPT_HANG}};
    static const char *const variables[] = {"AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_EC2_METADATA_SERVICE_ENDPOINT"};
    int one = 1;
    const struct weir_waiter waiter = {stop_after_requests, &one};
    for (int i = 0; i < 4; i++) {
        struct weir_s3_credentials c;
        struct weir_err err = WEIR_ERR_NONE;
        forget_environment();
        set_address(variables[i / 2], script_start(i % 2 ? silent : busy, 1), "/keys");
        cr_assert_eq(weir_s3_credentials_find(&c, &waiter, &err), -ECANCELED, "%s", err.text);
        script_stop();
    }
}

static bool is_interrupted(void *user)
{
    (void)user;
    return script_requests() > 0;
}

/* The program's callback is polled although the request waits for its credentials. */
Test(services, a_request_that_waits_for_credentials_can_be_interrupted)
{
    static const struct script_answer busy[] = {
        {"HTTP/1.1 503 x\r\nRetry-After: 60\r\nContent-Length: 0\r\n\r\n", 0, SCRIPT_KEEP}};
    struct weir_origin *origin;
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_file_id id;
    forget_environment();
    set_address("AWS_CONTAINER_CREDENTIALS_FULL_URI", script_start(busy, 1), "/keys");
    const struct weir_remote_config config = {.endpoint = "http://127.0.0.1:9"};
    cr_assert_eq(weir_remote_open(&origin, "s3://bucket/a.weir", &config, &err), 0, "%s", err.text);
    weir_remote_watch(origin, is_interrupted, NULL);
    cr_assert_eq(origin->ops->identify(origin, "s3://bucket/a.weir", &id, &err), -ECANCELED, "%s", err.text);
    weir_origin_close(&origin);
    script_stop();
}

Test(services, a_token_of_the_container_adds_no_lines)
{
    static const struct script_answer answers[] = {OK(KEYS("one", "2100-01-01T00:00:00Z"))};
    struct weir_s3_credentials c;
    struct weir_err err = WEIR_ERR_NONE;
    forget_environment();
    set_address("AWS_CONTAINER_CREDENTIALS_FULL_URI", script_start(answers, 1), "/keys");
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "hidden\r\nX-More: 1", 1);
    cr_assert_eq(weir_s3_credentials_find(&c, NULL, &err), -EINVAL, "%s", err.text);
    cr_assert(strstr(err.text, "Authorization has control characters") && !strstr(err.text, "hidden"), "%s", err.text);
    cr_assert_eq(script_requests(), 0);
    script_stop();
}

/* ---- S3 ---- */

static int all_names(const char *name, bool is_folder)
{
    return is_folder ? -1 : (int)strlen(name);
}

static int note_url(void *user, const char *url, const char *why_not)
{
    char *text = user;
    size_t used = strlen(text);
    snprintf(text + used, 256 - used, "%s%s;", why_not ? "!" : "", url);
    return 0;
}

static struct weir_origin *open_bucket(int port)
{
    struct weir_origin *origin;
    struct weir_err err = WEIR_ERR_NONE;
    char endpoint[64];
    snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%d", port);
    const struct weir_remote_config config = {.endpoint = endpoint};
    cr_assert_eq(weir_remote_open(&origin, "s3://bucket/a.weir", &config, &err), 0, "%s", err.text);
    return origin;
}

Test(services, credentials_are_renewed_before_they_expire)
{
    static const struct script_answer answers[] = {OK(KEYS("one", "2001-01-01T00:00:00Z")), OBJECT,
                                                   OK(KEYS("two", "2100-01-01T00:00:00Z")), OBJECT, OBJECT};
    struct weir_file_id id;
    struct weir_err err = WEIR_ERR_NONE;
    forget_environment();
    int port = script_start(answers, 5);
    set_address("AWS_CONTAINER_CREDENTIALS_FULL_URI", port, "/keys");
    struct weir_origin *origin = open_bucket(port);
    for (int i = 0; i < 3; i++) {
        char path[] = "s3://bucket/0.weir";
        path[12] += (char)i;
        cr_assert_eq(origin->ops->identify(origin, path, &id, &err), 0, "%s", err.text);
    }
    cr_assert_eq(script_requests(), 5);
    cr_assert(strstr(script_request(1), "\r\nx-amz-security-token: one\r\n"));
    cr_assert(strstr(script_request(3), "\r\nx-amz-security-token: two\r\n"));
    cr_assert(strstr(script_request(4), "\r\nx-amz-security-token: two\r\n"));
    for (int i = 0; i < 5; i++)
        cr_assert(!strstr(script_request(i), "hidden"));
    weir_origin_close(&origin);
    script_stop();
}

/* A process or a service may take a minute to fail. */
Test(services, credentials_that_are_not_found_are_not_sought_for_each_request)
{
    static const struct script_answer answers[] = {STATUS("403")};
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_file_id id;
    forget_environment();
    set_address("AWS_CONTAINER_CREDENTIALS_FULL_URI", script_start(answers, 1), "/keys");
    struct weir_origin *origin = open_bucket(9);
    cr_assert_lt(origin->ops->identify(origin, "s3://bucket/a.weir", &id, &err), 0);
    int requests = script_requests();
    struct weir_err again = WEIR_ERR_NONE;
    cr_assert_lt(origin->ops->identify(origin, "s3://bucket/b.weir", &id, &again), 0);
    cr_assert(strstr(again.text, "credentials of the container"), "%s", again.text);
    cr_assert(requests > 0 && script_requests() == requests, "%d, then %d", requests, script_requests());
    weir_origin_close(&origin);
    script_stop();
}

Test(services, expired_credentials_are_named)
{
    static const struct script_answer answers[] = {{"HTTP/1.1 403 x\r\nContent-Length: 39\r\n\r\n"
                                                    "<Error><Code>ExpiredToken</Code></Error>",
                                                    0, SCRIPT_CLOSE}};
    struct weir_err err = WEIR_ERR_NONE;
    forget_environment();
    setenv("AWS_ACCESS_KEY_ID", "id", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "hidden", 1);
    struct weir_origin *origin = open_bucket(script_start(answers, 1));
    const struct weir_remote_search search = {.part = all_names, .found = note_url};
    cr_assert_eq(weir_remote_list(origin, "s3://bucket/a", &search, &err), -EACCES);
    cr_assert(strstr(err.text, "ExpiredToken") && strstr(err.text, "check the credentials"), "%s", err.text);
    cr_assert(!strstr(err.text, "hidden") && script_requests() == 1);
    weir_origin_close(&origin);
    script_stop();
}

#define PAGE(more, keys) OK("<ListBucketResult><EncodingType>url</EncodingType>" more keys "</ListBucketResult>")
#define KEY(name)        "<Contents><Key>" name "</Key><Size>100</Size><ETag>&quot;v1&quot;</ETag></Contents>"

Test(services, a_bucket_is_listed_page_by_page)
{
    static const struct script_answer answers[] = {
        PAGE("<IsTruncated>true</IsTruncated><NextContinuationToken>a+/=&amp;b</NextContinuationToken>",
             KEY("lab/1.weir")),
        PAGE("<IsTruncated>true</IsTruncated><NextContinuationToken>c</NextContinuationToken>", ""),
        PAGE("<IsTruncated>false</IsTruncated>", KEY("lab/2+b.weir"))};
    struct weir_file_id id;
    struct weir_err err = WEIR_ERR_NONE;
    char urls[256] = "";
    forget_environment();
    setenv("AWS_ACCESS_KEY_ID", "id", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "hidden", 1);
    struct weir_origin *origin = open_bucket(script_start(answers, 3));
    const struct weir_remote_search search = {.part = all_names, .found = note_url, .user = urls};
    cr_assert_eq(weir_remote_list(origin, "s3://bucket/lab", &search, &err), 0, "%s", err.text);
    cr_assert_str_eq(urls, "s3://bucket/lab/1.weir;s3://bucket/lab/2 b.weir;");
    cr_assert(strstr(script_request(0), "GET /bucket?encoding-type=url&list-type=2&prefix=lab%2F "));
    cr_assert(strstr(script_request(1), "?continuation-token=a%2B%2F%3D%26b&encoding-type=url"), "%s",
              script_request(1));
    cr_assert(strstr(script_request(2), "?continuation-token=c&"), "%s", script_request(2));
    cr_assert_eq(origin->ops->identify(origin, "s3://bucket/lab/1.weir", &id, &err), 0, "%s", err.text);
    cr_assert(id.size_bytes == 100 && script_requests() == 3, "the list has the facts");
    weir_origin_close(&origin);
    script_stop();
}

#define MORE(token) "<IsTruncated>true</IsTruncated><NextContinuationToken>" token "</NextContinuationToken>"

/* Lists a bucket whose server has these answers, and expects this error. */
static void expect_list_error(const struct script_answer *answers, int n, int rc, const char *words)
{
    struct weir_err err = WEIR_ERR_NONE;
    char urls[256] = "";
    forget_environment();
    setenv("AWS_ACCESS_KEY_ID", "id", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "hidden", 1);
    struct weir_origin *origin = open_bucket(script_start(answers, n));
    const struct weir_remote_search search = {.part = all_names, .found = note_url, .user = urls};
    cr_assert_eq(weir_remote_list(origin, "s3://bucket/lab", &search, &err), rc, "%s", err.text);
    cr_assert(strstr(err.text, words), "%s", err.text);
    cr_assert_str_empty(urls);
    weir_origin_close(&origin);
    script_stop();
}

Test(services, lists_of_faulty_buckets_are_errors)
{
    static const struct script_answer foreign[] = {PAGE("", KEY("b"))}, again[] = {PAGE(MORE("a"), "")};
    static const struct script_answer etag[] = {PAGE(
        "", "<Contents><Key>lab/a</Key><Size>100</Size><ETag>&quot;v1&quot;&#13;&#10;X-More: 1</ETag></Contents>")};
    expect_list_error(foreign, 1, -EREMOTEIO, "do not begin with lab/");
    expect_list_error(again, 1, -EREMOTEIO, "repeats a page");
    expect_list_error(etag, 1, -EBADMSG, "ETag with control characters");
}

/* Tokens in a cycle, which begins after some pages or at once, and pages without names. */
Test(services, lists_without_an_end_are_errors)
{
    enum { CYCLE = 250, FRESH = 1100 };
    static const struct script_answer pages[] = {PAGE(MORE("a"), ""), PAGE(MORE("b"), ""), PAGE(MORE("c"), "")};
    static char texts[FRESH][256];
    struct script_answer *answers = calloc(FRESH, sizeof *answers);
    for (int begin = 0; begin < 2; begin++) {
        for (int i = 0; i < CYCLE; i++)
            answers[i] = i < begin ? pages[2] : pages[i % 2];
        expect_list_error(answers, CYCLE, -EREMOTEIO, "repeats a page");
        cr_assert_lt(script_requests(), 20);
    }
    for (int i = 0; i < FRESH; i++) {
        snprintf(texts[i], sizeof texts[i],
                 "HTTP/1.1 200 x\r\nConnection: close\r\n\r\n<ListBucketResult>"
                 "<IsTruncated>true</IsTruncated><NextContinuationToken>%d</NextContinuationToken>"
                 "</ListBucketResult>",
                 i);
        answers[i] = (struct script_answer){texts[i], 0, SCRIPT_CLOSE};
    }
    expect_list_error(answers, FRESH, -EREMOTEIO, "does not end: 1000 pages without a name");
    free(answers);
}

/* They expire in two minutes, but the service has just been asked. */
Test(services, a_service_is_not_asked_for_every_request)
{
    char expires[32];
    time_t soon = time(NULL) + 120;
    struct tm tm;
    char keys[512];
    cr_assert(gmtime_r(&soon, &tm) && strftime(expires, sizeof expires, "%Y-%m-%dT%H:%M:%SZ", &tm) > 0);
    snprintf(keys, sizeof keys,
             "HTTP/1.1 200 x\r\nConnection: close\r\n\r\n{\"AccessKeyId\":\"id\",\"SecretAccessKey\":\"hidden\","
             "\"Token\":\"one\",\"Expiration\":\"%s\"}",
             expires);
    const struct script_answer answers[] = {{keys, 0, SCRIPT_CLOSE}, OBJECT, OBJECT};
    struct weir_file_id id;
    struct weir_err err = WEIR_ERR_NONE;
    forget_environment();
    int port = script_start(answers, 3);
    set_address("AWS_CONTAINER_CREDENTIALS_FULL_URI", port, "/keys");
    struct weir_origin *origin = open_bucket(port);
    cr_assert_eq(origin->ops->identify(origin, "s3://bucket/0.weir", &id, &err), 0, "%s", err.text);
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://192.0.2.1/", 1); /* refused without a request */
    cr_assert_eq(origin->ops->identify(origin, "s3://bucket/1.weir", &id, &err), 0, "%s", err.text);
    cr_assert(strstr(script_request(2), "\r\nx-amz-security-token: one\r\n"));
    weir_origin_close(&origin);
    script_stop();
}

/* ---- HTTP ---- */

Test(services, lists_are_bounded)
{
    static char block[(64 << 10) + 1];
    static const char head[] = "HTTP/1.1 200 x\r\nContent-Type: text/html\r\n\r\n";
    static const struct script_answer stated[] = {
        {"HTTP/1.1 200 x\r\nContent-Length: 10000000000\r\n\r\n[", 0, SCRIPT_HANG}};
    memset(block, ' ', sizeof block - 1);
    memcpy(block, head, sizeof head - 1);
    const struct script_answer endless[] = {{block, 0, SCRIPT_ENDLESS}};
    for (int i = 0; i < 2; i++) {
        struct weir_origin *origin;
        struct weir_err err = WEIR_ERR_NONE;
        char url[64], urls[256] = "";
        snprintf(url, sizeof url, "http://127.0.0.1:%d/data", script_start(i ? endless : stated, 1));
        cr_assert_eq(weir_remote_open(&origin, url, &(struct weir_remote_config){0}, &err), 0, "%s", err.text);
        const struct weir_remote_search search = {.part = all_names, .found = note_url, .user = urls};
        cr_assert_eq(weir_remote_list(origin, url, &search, &err), -EFBIG, "%s", err.text);
        cr_assert(strstr(err.text, "bytes") && strstr(err.text, "smaller folders"), "%s", err.text);
        weir_origin_close(&origin);
        script_stop();
    }
}

Test(services, a_name_that_cannot_be_resolved)
{
    static const char url[] =
        "http://a23456789012345678901234567890123456789012345678901234567890123456789.example/x.weir";
    struct weir_origin *origin;
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_file_id id;
    cr_assert_eq(weir_remote_open(&origin, url, &(struct weir_remote_config){0}, &err), 0, "%s", err.text);
    cr_assert_eq(origin->ops->identify(origin, url, &id, &err), -EHOSTUNREACH, "%s", err.text);
    cr_assert(strstr(err.text, "check the name of the host and the network"), "%s", err.text);
    weir_origin_close(&origin);
}

Test(services, a_server_that_is_not_there)
{
    static const struct script_answer none[] = {STATUS("404")};
    struct weir_origin *origin;
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_file_id id;
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/x.weir", script_start(none, 1));
    script_stop(); /* the port is free again */
    cr_assert_eq(weir_remote_open(&origin, url, &(struct weir_remote_config){0}, &err), 0, "%s", err.text);
    cr_assert_eq(origin->ops->identify(origin, url, &id, &err), -ECONNREFUSED, "%s", err.text);
    cr_assert(strstr(err.text, "whether the server runs"), "%s", err.text);
    weir_origin_close(&origin);
}
