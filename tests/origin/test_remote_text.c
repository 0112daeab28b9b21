/* URLs, heads of responses, lists, signatures and credentials: everything about servers that needs no server. */
#include "base/terminal.h"
#include "origin/http_head.h"
#include "origin/listing.h"
#include "origin/s3_credentials.h"
#include "origin/s3_sign.h"
#include "origin/url.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* ---- URLs ---- */

static int parse(const char *text)
{
    struct weir_url url;
    struct weir_err err = WEIR_ERR_NONE;
    int rc = weir_url_parse(&url, text, &err);
    cr_assert_eq(rc, err.code);
    cr_assert(rc == 0 || !strstr(err.text, "secret1"), "the message has the password");
    return rc;
}

Test(remote_text, urls_without_secrets_are_accepted)
{
    static const char *const good[] = {"http://host",
                                       "https://host.org:8443/a/b%20c/",
                                       "http://[::1]:80/x.weir",
                                       "s3://bucket/lab one/x.tfrecord",
                                       "s3://bucket",
                                       "s3://a.b-c/é"};
    static const char *const bad[] = {"ftp://host/x",
                                      "http://",
                                      "http:///x",
                                      "http://u:secret1@host/x",
                                      "http://host/x?token=secret1",
                                      "http://host/x#y",
                                      "http://host/../x",
                                      "http://host/a//b",
                                      "http://host/%2e%2e/x",
                                      "http://host/a%2fb",
                                      "http://host/%0ax",
                                      "http://host/%zz",
                                      "http://ho st/x",
                                      "s3://b/x",
                                      "s3://bu$ket/x",
                                      "s3://bucket/a/../b",
                                      "s3://bucket/a\nb",
                                      "http://host/%00"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        cr_assert_eq(parse(good[i]), 0, "%s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        cr_assert_eq(parse(bad[i]), -EINVAL, "%s", bad[i]);
    cr_assert(weir_url_is("s3://x") && !weir_url_is("data/s3://x") && !weir_url_is("HTTP://x"));
}

Test(remote_text, encoding_is_undone_by_decoding)
{
    char out[64], small[5];
    cr_assert(weir_url_encode(out, sizeof out, "a b/ü+%", true));
    cr_assert_str_eq(out, "a%20b/%C3%BC%2B%25");
    cr_assert(weir_url_decode(out));
    cr_assert_str_eq(out, "a b/ü+%");
    cr_assert(weir_url_encode(out, sizeof out, "a/b", false));
    cr_assert_str_eq(out, "a%2Fb");
    cr_assert(!weir_url_encode(small, sizeof small, "a  ", true));
}

Test(remote_text, hostile_names_are_refused)
{
    static const char *const bad[] = {
        "", "/etc/passwd", "a/../b", "..", ".", "a//b", "a/", "a\nb", "a\\b", "\xff", "a\x1b[2J", "\xe2\x80\xae_",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        cr_assert(!weir_name_is_safe(bad[i]), "name %zu", i);
    cr_assert(weir_name_is_safe("a/b c.hdf5") && weir_name_is_safe("..a") && weir_name_is_safe("测试.h5"));
    char longer[WEIR_URL_NAME_MAX + 2];
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    cr_assert(!weir_name_is_safe(longer));
}

/* ---- heads ---- */

static const struct weir_remote_facts file = {.size_bytes = 1000, .modified_s = 1369353600, .etag = "\"v1\""};

/* Checks a head of several lines against the range 100..199. */
static int check(const char *lines, uint64_t *body)
{
    struct weir_client_head head = {0};
    struct weir_err err = WEIR_ERR_NONE;
    const struct weir_client_wanted wanted = {.offset = 100, .length = 100, .file = &file};
    for (const char *line = lines; *line;) {
        size_t n = strcspn(line, "\n") + 1;
        cr_assert(weir_client_head_line(&head, line, n));
        line += n;
    }
    int rc = weir_client_head_check(&head, &wanted, body, &err);
    cr_assert_eq(rc, err.code);
    return rc;
}

Test(remote_text, only_the_requested_range_of_the_same_file_is_accepted)
{
    static const struct {
        const char *lines;
        int rc;
    } cases[] = {
        {"HTTP/1.1 206 x\r\nContent-Range: bytes 100-199/1000\r\nContent-Length: 100\r\nETag: \"v1\"\r\n", 0},
        {"HTTP/1.1 206 x\r\ncontent-range: bytes 100-199/*\r\nETag: \"v1\"\r\n", 0},
        {"HTTP/1.1 206 x\r\ncontent-range: bytes 100-199/*\r\n", -EREMOTEIO},
        {"HTTP/1.1 206 x\r\nContent-Range: bytes 100-199/18446744073709551615\r\n", -EREMOTEIO},
        {"HTTP/1.1 206 x\r\nContent-Range: bytes 101-200/1000\r\n", -EREMOTEIO},
        {"HTTP/1.1 206 x\r\nContent-Range: bytes 100-198/1000\r\n", -EREMOTEIO},
        {"HTTP/1.1 206 x\r\n", -EREMOTEIO},
        {"HTTP/1.1 206 x\r\nContent-Type: multipart/byteranges\r\n", -EREMOTEIO},
        {"HTTP/1.1 206 x\r\nContent-Range: bytes 100-199/1000\r\nContent-Length: 99\r\n", -EREMOTEIO},
        {"HTTP/1.1 206 x\r\nContent-Range: bytes 100-199/1001\r\n", -ESTALE},
        {"HTTP/1.1 206 x\r\nContent-Range: bytes 100-199/1000\r\nETag: \"v2\"\r\n", -ESTALE},
        {"HTTP/1.1 206 x\r\nContent-Range: bytes 100-199/1000\r\nContent-Encoding: gzip\r\n", -EREMOTEIO},
        {"HTTP/1.1 206 x\r\nContent-Range: bytes 199-100/1000\r\n", -EREMOTEIO},
        {"HTTP/1.1 206 x\r\nContent-Range: bytes 100-99999999999999999999/1000\r\n", -EREMOTEIO},
        {"HTTP/1.1 206 x\r\nContent-Length: 1\r\nContent-Length: 2\r\nContent-Range: bytes 100-199/1000\r\n",
         -EREMOTEIO},
        {"HTTP/1.1 200 x\r\nContent-Length: 1000\r\nETag: \"v1\"\r\n", -EREMOTEIO},
        {"HTTP/1.1 412 x\r\n", -ESTALE},
        {"HTTP/1.1 416 x\r\nContent-Range: bytes */50\r\n", -ESTALE},
        {"HTTP/1.1 204 x\r\n", -EREMOTEIO},
        {"HTTP/1.1 20x\r\n", -EREMOTEIO},
        {"HTTP/1.1 302 x\r\nETag: \"v2\"\r\n\r\nHTTP/1.1 206 x\r\nContent-Range: bytes 100-199/1000\r\n", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t body;
        cr_assert_eq(check(cases[i].lines, &body), cases[i].rc, "%s", cases[i].lines);
        cr_assert(cases[i].rc < 0 || body == 100);
    }
}

Test(remote_text, a_head_has_a_limit)
{
    struct weir_client_head head = {0};
    char line[1024] = "x: ";
    int n = 0;
    memset(line + 3, 'y', sizeof line - 3);
    while (weir_client_head_line(&head, line, sizeof line))
        n++;
    cr_assert_eq(n, WEIR_HEAD_MAX_BYTES / (int)sizeof line);
}

Test(remote_text, dates_are_parsed_strictly)
{
    char text[WEIR_CLIENT_DATE];
    weir_client_date_text(1369353600, text);
    cr_assert_str_eq(text, "Fri, 24 May 2013 00:00:00 GMT");
    cr_assert_eq(weir_client_date(text), 1369353600);
    cr_assert_eq(weir_client_date("Fri, 24 Foo 2013 00:00:00 GMT"), 0);
    cr_assert_eq(weir_client_date("yesterday"), 0);
    cr_assert_eq(weir_client_date("Fri, 31 Dec 9999 23:59:59 GMT"), 0);
    cr_assert_eq(weir_s3_time("2013-05-24T00:00:00Z"), 1369353600);
    cr_assert_eq(weir_s3_time("soon"), 0);
}

Test(remote_text, pauses_grow_up_to_ten_seconds)
{
    static const uint64_t S = 1000000000;
    cr_assert_eq(weir_client_pause_ns(S / 10, 1, 0, 0), S / 20);
    cr_assert_eq(weir_client_pause_ns(S / 10, 3, 0, S / 5), 2 * S / 5);
    cr_assert_leq(weir_client_pause_ns(S / 10, 60, 0, UINT64_MAX), 10 * S);
    cr_assert_eq(weir_client_pause_ns(S / 10, 1, 7, 0), 7 * S);
    cr_assert(weir_client_is_passing(429) && weir_client_is_passing(503) && !weir_client_is_passing(404));
}

/* ---- lists ---- */

struct names {
    char text[4096];
    int n, stop_at;
};

static int note(void *user, const struct weir_listed *listed)
{
    struct names *names = user;
    size_t used = strlen(names->text);
    snprintf(names->text + used, sizeof names->text - used, "%s%s;", listed->name, listed->is_folder ? "/" : "");
    return ++names->n == names->stop_at ? -ECANCELED : 0;
}

Test(remote_text, html_lists_have_the_names_of_their_folder)
{
    static const char nginx[] =
        "<html>\r\n<head><title>Index of /d/</title></head><body>\r\n<a href=\"../\">../</a>\r\n"
        "<a href=\"a%20b.h5\">a b.h5</a> 1\r\n<a href=\"sub/\">sub/</a>\r\n</body></html>";
    static const char apache[] = "<!DOCTYPE HTML><table><a href=\"?C=N;O=D\">Name</a><a href=\"/\">Parent</a>"
                                 "<A class=x HREF='x&amp;y.weir'>x</A><a href=http://evil/x.h5>e</a><a name=h>t</a>"
                                 "<a href=\"%2e%2e%2fx.h5\">up</a>";
    struct names names = {0};
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_listing_html(nginx, strlen(nginx), note, &names, &err), 0);
    cr_assert_str_eq(names.text, "a b.h5;sub/;");
    names = (struct names){0};
    cr_assert_eq(weir_listing_html(apache, strlen(apache), note, &names, &err), 0);
    cr_assert_str_eq(names.text, "x&y.weir;../x.h5;");
    cr_assert_eq(weir_listing_html("hello", 5, note, &names, &err), -EBADMSG);
}

Test(remote_text, json_and_text_lists)
{
    static const char json[] =
        "[\"a.h5\", {\"name\":\"b.h5\",\"type\":\"file\"}, {\"name\":\"c\",\"type\":\"directory\"}]";
    static const char *const bad[] = {
        "{}",        "[1]",      "[{\"size\":1}]", "[\"a\\u0000b\"]",  "[",       "",
        "[\"a\"",    "[\"a\",]", "[,\"a\"]",       "[\"a\" \"b\"]",    "[\"a\"}", "[[\"a\"]]",
        "[\"a\"] x", "[\"a]",    "[\"a\\",         "[{\"name\":\"a\"]"};
    static const char odd[] = " [ \"a,]\" , {\"x\":[1,{}],\"name\":\"b\\\"}\"}\n] ";
    struct names names = {0};
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_listing_json(json, strlen(json), note, &names, &err), 0);
    cr_assert_str_eq(names.text, "a.h5;b.h5;c/;");
    names = (struct names){0};
    cr_assert_eq(weir_listing_json(odd, strlen(odd), note, &names, &err), 0, "%s", err.text);
    cr_assert_str_eq(names.text, "a,];b\"};");
    names = (struct names){0};
    cr_assert_eq(weir_listing_json("[]\n", 3, note, &names, &err), 0);
    cr_assert_str_empty(names.text);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct weir_err why = WEIR_ERR_NONE;
        cr_assert_eq(weir_listing_json(bad[i], strlen(bad[i]), note, &names, &why), -EBADMSG, "%s", bad[i]);
    }
    names = (struct names){.stop_at = 2};
    cr_assert_eq(weir_listing_text("# list\na.h5\r\n\n b.h5 \nc.h5", 25, note, &names, &err), -ECANCELED);
    cr_assert_str_eq(names.text, "a.h5; b.h5;");
}

Test(remote_text, s3_lists_are_decoded)
{
    static const char page[] =
        "<?xml version=\"1.0\"?><ListBucketResult><EncodingType>url</EncodingType><Contents><Key>a+b%2Fc%26.h5</Key>"
        "<Size>12</Size><ETag>&quot;abc&quot;</ETag></Contents><Contents><Key>dir/</Key><Size>0</Size></Contents>"
        "<IsTruncated>true</IsTruncated><NextContinuationToken>t&amp;1</NextContinuationToken></ListBucketResult>";
    static const char *const bad[] = {
        "",
        "<html>",
        "<ListBucketResult><Contents><Key>a</Key>",
        "<ListBucketResult><Contents><Key>a</Key><Size>-1</Size></Contents>",
        "<ListBucketResult><Contents><Key>a</Key><Size>99999999999999999999999</Size></Contents>",
        "<ListBucketResult><Contents><Key>a</Key><Size>18446744073709551615</Size></Contents>",
        "<ListBucketResult><Contents><Key>&bogus;</Key><Size>1</Size></Contents>",
        "<ListBucketResult><IsTruncated>true</IsTruncated>"};
    char next[WEIR_LIST_TOKEN_MAX];
    struct names names = {0};
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_listing_s3(page, strlen(page), next, note, &names, &err), 0, "%s", err.text);
    cr_assert_str_eq(names.text, "a b/c&.h5;");
    cr_assert_str_eq(next, "t&1");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct weir_err why = WEIR_ERR_NONE;
        cr_assert_eq(weir_listing_s3(bad[i], strlen(bad[i]), next, note, &names, &why), -EBADMSG, "%s", bad[i]);
    }
}

/* ---- signatures: AWS's published examples ---- */

static void expect_signature(const struct weir_s3_request *request, const char *id, const char *secret,
                             const char *signature)
{
    struct weir_s3_credentials credentials = {0};
    struct weir_s3_day day = {0};
    struct weir_err err = WEIR_ERR_NONE;
    char text[1024];
    snprintf(credentials.key_id, sizeof credentials.key_id, "%s", id);
    snprintf(credentials.secret, sizeof credentials.secret, "%s", secret);
    for (int i = 0; i < 2; i++) { /* the second time with the kept key */
        cr_assert_eq(weir_s3_sign(request, &credentials, &day, text, sizeof text, &err), 0, "%s", err.text);
        const char *found = strstr(text, "Signature=");
        cr_assert(found && strcmp(found + 10, signature) == 0, "%s", text);
    }
    cr_assert(!strstr(text, secret));
}

Test(remote_text, signatures_equal_the_published_ones)
{
    /* "Authenticating Requests (AWS Signature Version 4)" of the Amazon S3 API reference */
    static const char id[] = "AKIAIOSFODNN7EXAMPLE", secret[] = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
    struct weir_s3_request request = {
        .method = "GET",
        .path = "/test.txt",
        .query = "",
        .region = "us-east-1",
        .service = "s3",
        .headers =
            "host:examplebucket.s3.amazonaws.com\nrange:bytes=0-9\nx-amz-content-sha256:e3b0c44298fc1c149afbf4c89"
            "96fb92427ae41e4649b934ca495991b7852b855\nx-amz-date:20130524T000000Z\n",
        .names = "host;range;x-amz-content-sha256;x-amz-date",
        .payload_hash = weir_s3_empty_hash,
        .date = "20130524T000000Z"};
    expect_signature(&request, id, secret, "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
    request.path = "/";
    request.query = "max-keys=2&prefix=J";
    request.headers =
        "host:examplebucket.s3.amazonaws.com\nx-amz-content-sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e464"
        "9b934ca495991b7852b855\nx-amz-date:20130524T000000Z\n";
    request.names = "host;x-amz-content-sha256;x-amz-date";
    expect_signature(&request, id, secret, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
    /* get-vanilla of the AWS Signature Version 4 test suite */
    const struct weir_s3_request vanilla = {.method = "GET",
                                            .path = "/",
                                            .query = "",
                                            .region = "us-east-1",
                                            .service = "service",
                                            .headers = "host:example.amazonaws.com\nx-amz-date:20150830T123600Z\n",
                                            .names = "host;x-amz-date",
                                            .payload_hash = weir_s3_empty_hash,
                                            .date = "20150830T123600Z"};
    expect_signature(&vanilla, "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
                     "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
}

Test(remote_text, a_new_day_and_a_new_secret_have_a_new_key)
{
    struct weir_s3_credentials credentials = {.key_id = "id", .secret = "one"};
    struct weir_s3_request request = {.method = "GET",
                                      .path = "/",
                                      .query = "",
                                      .headers = "host:h\n",
                                      .names = "host",
                                      .payload_hash = weir_s3_empty_hash,
                                      .region = "r",
                                      .service = "s3",
                                      .date = "20130524T000000Z"};
    struct weir_s3_day day = {0}, fresh = {0};
    struct weir_err err = WEIR_ERR_NONE;
    char kept[512], again[512];
    cr_assert_eq(weir_s3_sign(&request, &credentials, &day, kept, sizeof kept, &err), 0);
    request.date = "20130525T000000Z";
    snprintf(credentials.secret, sizeof credentials.secret, "two");
    cr_assert_eq(weir_s3_sign(&request, &credentials, &day, kept, sizeof kept, &err), 0);
    cr_assert_eq(weir_s3_sign(&request, &credentials, &fresh, again, sizeof again, &err), 0);
    cr_assert_str_eq(kept, again);
}

/* ---- credentials ---- */

Test(remote_text, ini_files)
{
    static const char text[] = "# comment\n[default]\naws_access_key_id = A\n[profile lab]\r\nregion=eu-west-1 \r\n"
                               "  nested = no\nempty =\n[profile lab2]\nregion = x\n";
    char value[16];
    cr_assert(weir_ini_find(text, "default", "aws_access_key_id", value, sizeof value));
    cr_assert_str_eq(value, "A");
    cr_assert(weir_ini_find(text, "profile lab", "region", value, sizeof value));
    cr_assert_str_eq(value, "eu-west-1");
    cr_assert(!weir_ini_find(text, "profile lab", "empty", value, sizeof value));
    cr_assert(!weir_ini_find(text, "profile lab", "nested", value, sizeof value));
    cr_assert(!weir_ini_find(text, "lab", "region", value, sizeof value));
    cr_assert(!weir_ini_find(text, "profile lab", "region", value, 5));
}

Test(remote_text, credentials_come_from_json)
{
    static const char good[] = "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"hidden\",\"Token\":\"T\","
                               "\"Expiration\":\"2013-05-24T00:00:00Z\"}";
    static const char *const bad[] = {"[]", "{}", "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"hid\\nden\"}",
                                      "{\"Acc"};
    struct weir_s3_credentials c;
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_s3_credentials_json(&c, good, strlen(good), "x", &err), 0);
    cr_assert(strcmp(c.secret, "hidden") == 0 && strcmp(c.token, "T") == 0 && c.expires_s == 1369353600);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct weir_err why = WEIR_ERR_NONE;
        cr_assert_lt(weir_s3_credentials_json(&c, bad[i], strlen(bad[i]), "x", &why), 0);
        cr_assert(!strstr(why.text, "hid"));
    }
}

static void write_profile(const char *home, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/config", home);
    FILE *out = fopen(path, "w");
    fputs(text, out);
    fclose(out);
    setenv("AWS_CONFIG_FILE", path, 1);
    setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent", 1);
}

Test(remote_text, the_order_of_credentials)
{
    struct weir_s3_credentials c;
    struct weir_err err = WEIR_ERR_NONE;
    char home[] = "/tmp/weir_credentials.XXXXXX", region[WEIR_S3_REGION_MAX];
    cr_assert_not_null(mkdtemp(home));
    clearenv();
    setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
    write_profile(home, "[default]\naws_access_key_id=FILE\naws_secret_access_key=s\nregion=eu-north-1\n"
                        "[profile p]\ncredential_process=echo "
                        "'{\"AccessKeyId\":\"PROCESS\",\"SecretAccessKey\":\"s\"}'\n[profile sso]\nsso_session=x\n"
                        "[profile broken]\ncredential_process=exit 3\n");
    cr_assert_eq(weir_s3_credentials_find(&c, NULL, &err), 0, "%s", err.text);
    cr_assert_str_eq(c.key_id, "FILE");
    cr_assert_eq(weir_s3_region(region, &err), 0, "%s", err.text);
    cr_assert_str_eq(region, "eu-north-1");
    setenv("AWS_PROFILE", "p", 1);
    cr_assert_eq(weir_s3_credentials_find(&c, NULL, &err), 0, "%s", err.text);
    cr_assert_str_eq(c.key_id, "PROCESS");
    setenv("AWS_PROFILE", "sso", 1);
    cr_assert_eq(weir_s3_credentials_find(&c, NULL, &err), -ENOTSUP);
    cr_assert(strstr(err.text, "sso_session"));
    err = WEIR_ERR_NONE;
    setenv("AWS_PROFILE", "broken", 1);
    cr_assert_eq(weir_s3_credentials_find(&c, NULL, &err), -EACCES);
    err = WEIR_ERR_NONE;
    setenv("AWS_PROFILE", "none\n", 1);
    cr_assert_eq(weir_s3_credentials_find(&c, NULL, &err), -EACCES);
    cr_assert(strstr(err.text, "AWS_PROFILE: no profile none? in "), "%s", err.text);
    err = WEIR_ERR_NONE;
    setenv("AWS_REGION", "eu-west-1\nx", 1);
    cr_assert_eq(weir_s3_region(region, &err), -EINVAL);
    cr_assert(strstr(err.text, "AWS_REGION: is not the name of a region"), "%s", err.text);
    setenv("AWS_ACCESS_KEY_ID", "ENV", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "s", 1);
    setenv("AWS_SESSION_TOKEN", "t", 1);
    err = WEIR_ERR_NONE;
    cr_assert_eq(weir_s3_credentials_find(&c, NULL, &err), 0, "%s", err.text);
    cr_assert(strcmp(c.key_id, "ENV") == 0 && strcmp(c.token, "t") == 0);
}

/* ---- credential_process ---- */

Test(remote_text, a_command_is_split_like_python_s_shlex)
{
    static const struct {
        const char *command, *words; /* words: joined by "|"; NULL = refused */
    } cases[] = {
        {"a 'b c' \"d\"", "a|b c|d"},
        {"a\"b\\\"c\\\\d\\e\"f", "ab\"c\\d\\ef"},
        {" x\\ y\t''z ", "x y|z"},
        {"'' a", "|a"},
        {"a '$HOME' ~ ; rm", "a|$HOME|~|;|rm"},
        {"a 'b", NULL},
        {"a \"b", NULL},
        {" ", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[64], joined[64] = "", *words[WEIR_PROCESS_WORDS_MAX + 1];
        snprintf(text, sizeof text, "%s", cases[i].command);
        int n = weir_words_split(text, words);
        for (int k = 0; k < n; k++)
            snprintf(joined + strlen(joined), sizeof joined - strlen(joined), "%s%s", k ? "|" : "", words[k]);
        cr_assert_eq(n > 0, cases[i].words != NULL, "%s: %d", cases[i].command, n);
        cr_assert(n < 0 || strcmp(joined, cases[i].words) == 0, "%s: %s", cases[i].command, joined);
    }
    char many[4 * WEIR_PROCESS_WORDS_MAX] = "", *words[WEIR_PROCESS_WORDS_MAX + 1];
    for (int i = 0; i <= WEIR_PROCESS_WORDS_MAX; i++)
        strcat(many, "a ");
    cr_assert_eq(weir_words_split(many, words), -EINVAL);
}

static bool at_once(void *user)
{
    (void)user;
    return true;
}

static int output_of(const char *command, int limit_s, const struct weir_waiter *waiter, char text[64],
                     const char *words)
{
    struct weir_err err = WEIR_ERR_NONE;
    int rc = weir_process_output(command, limit_s, waiter, text, 64, &err);
    cr_assert(rc >= 0 || (rc == err.code && strstr(err.text, words)), "%s: %d, %s", command, rc, err.text);
    return rc;
}

static char notice[512];

static void keep_notice(const char *text)
{
    snprintf(notice, sizeof notice, "%s", text);
}

Test(remote_text, a_process_that_takes_long_is_reported)
{
    char text[64];
    weir_notice_set(keep_notice);
    cr_assert_eq(output_of("echo a", 600, NULL, text, ""), 2);
    cr_assert_str_empty(notice);
    output_of("sleep 1000", 1, NULL, text, "took over 1 s");
    weir_notice_set(NULL);
    cr_assert(strstr(notice, "credential_process") && strstr(notice, "ended after 1 s"), "%s", notice);
}

Test(remote_text, a_process_is_run_without_a_shell_and_with_a_limit)
{
    static const struct weir_waiter impatient = {.stopped = at_once};
    char text[64];
    for (int ignored = 0; ignored < 2; ignored++) {
        signal(SIGCHLD, ignored ? SIG_IGN : SIG_DFL);
        cr_assert_eq(output_of("echo '$HOME' \"a  b\" ; exit 3", 60, NULL, text, ""), 20);
        cr_assert_str_eq(text, "$HOME a  b ; exit 3\n");
        cr_assert_eq(output_of("sh -c 'trap \"\" PIPE; echo a; exec >&-; sleep 0.1'", 60, NULL, text, ""), 2);
        output_of("sleep 1000", 1, NULL, text, "took over 1 s");
        cr_assert_eq(output_of("sleep 1000", 60, &impatient, text, "interrupted"), -ECANCELED);
        cr_assert_eq(output_of("yes", 60, NULL, text, "too long"), -EACCES);
        cr_assert_eq(output_of("/nonexistent/program", 60, NULL, text, "No such file"), -EACCES);
    }
    signal(SIGCHLD, SIG_DFL);
    cr_assert_eq(output_of("false", 60, NULL, text, "it failed; run it yourself"), -EACCES);
}
