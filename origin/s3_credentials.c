#include "origin/s3_credentials.h"
#include "base/shortage.h"
#include "base/text.h"
#include "origin/http.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FILE_MAX_BYTES = 1 << 20, ANSWER_MAX_BYTES = 64 << 10, VALUE_MAX = 4096 };

static const uint64_t PATIENCE_NS = (uint64_t)10 * 1000 * 1000 * 1000;

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* Returns false if the value is too long. */
static bool set(char *to, size_t size, const char *value)
{
    size_t n = value ? strlen(value) : 0;
    if (n >= size)
        return false;
    memcpy(to, value ? value : "", n + 1);
    return true;
}

static int take(struct weir_s3_credentials *c, const char *id, const char *secret, const char *token, const char *where,
                struct weir_err *err)
{
    c->expires_s = 0;
    if (!id || !secret || !*id || !*secret)
        return weir_err_set(err, -EACCES, "%s: lacks the access key or its secret", where);
    if (set(c->key_id, sizeof c->key_id, id) && set(c->secret, sizeof c->secret, secret) &&
        set(c->token, sizeof c->token, token) && weir_header_is_plain(id) && weir_header_is_plain(secret) &&
        weir_header_is_plain(c->token))
        return 0;
    return weir_err_set(err, -EACCES, "%s: a key is too long or has control characters", where);
}

int64_t weir_s3_time(const char *text)
{
    struct tm tm = {0};
    const char *end = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
    if (!end || (*end != 'Z' && *end != '.' && *end != '+'))
        return 0;
    time_t seconds = timegm(&tm);
    return seconds > 0 ? (int64_t)seconds : 0;
}

int weir_s3_credentials_json(struct weir_s3_credentials *c, const char *text, size_t n, const char *where,
                             struct weir_err *err)
{
    json_t *object = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_object(object)) {
        json_decref(object);
        return weir_err_set(err, -EBADMSG, "%s: the answer is not a JSON object", where);
    }
    const char *token = json_string_value(json_object_get(object, "SessionToken"));
    token = token ? token : json_string_value(json_object_get(object, "Token"));
    int rc = take(c, json_string_value(json_object_get(object, "AccessKeyId")),
                  json_string_value(json_object_get(object, "SecretAccessKey")), token, where, err);
    c->expires_s = weir_s3_time(json_string_value(json_object_get(object, "Expiration")));
    json_decref(object);
    return rc;
}

/* ---- files ---- */

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t");
}

/* Returns the length of the line at `at`, without blanks at its end. *next: the next line. */
static size_t line_length(const char *at, const char **next)
{
    size_t n = strcspn(at, "\n");
    *next = at + n + (at[n] == '\n');
    while (n > 0 && strchr(" \t\r", at[n - 1]))
        n--;
    return n;
}

bool weir_ini_find(const char *text, const char *section, const char *key, char *value, size_t size)
{
    bool inside = false;
    size_t section_length = strlen(section), key_length = key ? strlen(key) : 0;
    for (const char *line = text, *next; *line; line = next) {
        size_t n = line_length(line, &next);
        if (n == 0 || *line == '#' || *line == ';' || *line == ' ' || *line == '\t')
            continue;
        if (*line == '[') {
            inside = n == section_length + 2 && strncmp(line + 1, section, section_length) == 0 && line[n - 1] == ']';
            if (inside && !key)
                return true;
            continue;
        }
        const char *after =
            key && n > key_length && strncmp(line, key, key_length) == 0 ? skip_blanks(line + key_length) : "";
        if (!inside || *after != '=')
            continue;
        const char *begin = skip_blanks(after + 1);
        size_t length = begin < line + n ? (size_t)(line + n - begin) : 0;
        if (length == 0 || length >= size)
            return false;
        memcpy(value, begin, length);
        value[length] = '\0';
        return true;
    }
    return false;
}

/* Reads a file of the user's, in whole. Returns NULL if it is missing or too large. The caller wipes and frees it. */
static char *read_text(const char *named, const char *name)
{
    char path[PATH_MAX];
    const char *home = variable("HOME"), *given = variable(named);
    if (!given && !home)
        return NULL;
    if (given)
        snprintf(path, sizeof path, "%s", given);
    else
        snprintf(path, sizeof path, "%s/.aws/%s", home, name);
    FILE *file = fopen(path, "re");
    char *text = file ? malloc(FILE_MAX_BYTES + 1) : NULL;
    size_t n = text ? fread(text, 1, FILE_MAX_BYTES + 1, file) : 0;
    if (file)
        fclose(file);
    if (n == 0 || n > FILE_MAX_BYTES || memchr(text, 0, n)) {
        free(text);
        return NULL;
    }
    text[n] = '\0';
    return text;
}

static void wipe(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

struct files {
    char *credentials, *config;
    char profile[128], section[160]; /* section: of config */
    bool is_named;                   /* the environment names the profile */
};

static void open_files(struct files *f)
{
    const char *profile = variable("AWS_PROFILE");
    profile = profile ? profile : variable("AWS_DEFAULT_PROFILE");
    f->is_named = profile != NULL;
    snprintf(f->profile, sizeof f->profile, "%.127s", profile ? profile : "default");
    snprintf(f->section, sizeof f->section, "%s%s", strcmp(f->profile, "default") == 0 ? "" : "profile ", f->profile);
    f->credentials = read_text("AWS_SHARED_CREDENTIALS_FILE", "credentials");
    f->config = read_text("AWS_CONFIG_FILE", "config");
}

static void close_files(struct files *f)
{
    wipe(f->credentials);
    wipe(f->config);
}

static bool find(const struct files *f, const char *key, char value[VALUE_MAX])
{
    return (f->credentials && weir_ini_find(f->credentials, f->profile, key, value, VALUE_MAX)) ||
           (f->config && weir_ini_find(f->config, f->section, key, value, VALUE_MAX));
}

int weir_s3_region(char region[WEIR_S3_REGION_MAX], struct weir_err *err)
{
    static const char *const variables[] = {"AWS_REGION", "AWS_DEFAULT_REGION"};
    struct files f;
    char value[VALUE_MAX];
    const char *given = NULL, *where = "region of the AWS profile";
    for (size_t i = 0; i < sizeof variables / sizeof variables[0] && !given; i++)
        if ((given = variable(variables[i])) != NULL)
            where = variables[i];
    if (!given) {
        open_files(&f);
        given = find(&f, "region", value) ? value : "us-east-1";
        close_files(&f);
    }
    if (strlen(given) >= WEIR_S3_REGION_MAX ||
        strspn(given, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != strlen(given))
        return weir_err_set(err, -EINVAL, "%s: is not the name of a region, such as us-east-1; correct it", where);
    snprintf(region, WEIR_S3_REGION_MAX, "%s", given);
    return 0;
}

static int from_process(struct weir_s3_credentials *c, const char *command, const struct weir_waiter *waiter,
                        struct weir_err *err)
{
    char *text = malloc(ANSWER_MAX_BYTES);
    if (!text)
        return weir_no_memory(err);
    int rc = weir_process_output(command, WEIR_PROCESS_LIMIT_S, waiter, text, ANSWER_MAX_BYTES, err);
    if (rc >= 0)
        rc = weir_s3_credentials_json(c, text, (size_t)rc, "credential_process of the AWS profile", err);
    explicit_bzero(text, ANSWER_MAX_BYTES);
    free(text);
    return rc;
}

/* AWS_PROFILE names a section of one of the files. */
static int check_profile(const struct files *f, struct weir_err *err)
{
    char name[sizeof f->profile];
    bool exists = !f->is_named || (f->credentials && weir_ini_find(f->credentials, f->profile, NULL, NULL, 0)) ||
                  (f->config && weir_ini_find(f->config, f->section, NULL, NULL, 0));
    if (exists)
        return 0;
    memcpy(name, f->profile, sizeof name);
    weir_text_printable(name);
    return weir_err_set(err, -EACCES,
                        "AWS_PROFILE: no profile %s in ~/.aws/credentials or ~/.aws/config; correct the name, or unset "
                        "the variable",
                        name);
}

/* Returns 1 if the profile has no credentials. */
static int from_files(struct weir_s3_credentials *c, const struct files *f, const struct weir_waiter *waiter,
                      struct weir_err *err)
{
    static const char *const unsupported[] = {"sso_session", "sso_start_url", "role_arn", "web_identity_token_file"};
    char id[VALUE_MAX], secret[VALUE_MAX], token[VALUE_MAX], command[VALUE_MAX], other[VALUE_MAX];
    int rc = check_profile(f, err);
    if (rc < 0)
        return rc;
    bool keys = find(f, "aws_access_key_id", id) && find(f, "aws_secret_access_key", secret);
    if (keys) {
        rc = take(c, id, secret, find(f, "aws_session_token", token) ? token : NULL, "AWS profile", err);
        explicit_bzero(secret, sizeof secret);
        explicit_bzero(token, sizeof token);
        return rc;
    }
    if (find(f, "credential_process", command))
        return from_process(c, command, waiter, err);
    for (size_t i = 0; i < sizeof unsupported / sizeof unsupported[0]; i++)
        if (find(f, unsupported[i], other))
            return weir_err_set(
                err, -ENOTSUP,
                "AWS profile %s: %s is not supported; run `aws configure export-credentials --profile %s "
                "--format env` and set the variables that it prints",
                f->profile, unsupported[i], f->profile);
    return 1;
}

/* ---- services ---- */

/* Gets a text from a service of credentials. The caller wipes and frees *text. */
static int get(const char *url, const char *method, const char *header, const struct weir_waiter *waiter, char **text,
               size_t *n, struct weir_err *err)
{
    struct weir_client *http;
    _Atomic uint64_t patience_ns = PATIENCE_NS;
    const struct weir_client_config config = {.depth = 1,
                                              .attempts = 2,
                                              .connect_s = 1,
                                              .stall_s = 2,
                                              .waiter = waiter ? *waiter : (struct weir_waiter){0},
                                              .patience_ns = &patience_ns,
                                              .what = "the service of credentials for S3",
                                              .no_proxy = true};
    struct weir_client_request request = {.url = url, .put = method, .has_secrets = true};
    struct weir_client_response response = {.rc = 0};
    request.wanted.limit = ANSWER_MAX_BYTES;
    request.header = header;
    *text = NULL;
    int rc = weir_client_open(&http, &config, err);
    if (rc < 0)
        return rc;
    weir_client_do(http, &request, 1, &response);
    weir_client_close(&http);
    if (response.rc < 0)
        return weir_err_set(err, response.rc, "%s", response.err.text);
    *text = (char *)response.body;
    *n = response.bytes;
    return *text ? 0 : weir_err_set(err, -EBADMSG, "an empty answer");
}

/* Returns whether the URL's host is this machine or a container's service, for which no encryption is needed. */
static bool is_local(const char *url)
{
    static const char *const hosts[] = {"127.0.0.1", "localhost", "[::1]", "169.254.170.2", "169.254.170.23"};
    if (strncmp(url, "http://", 7) != 0)
        return false;
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        size_t n = strlen(hosts[i]);
        const char *after = url + 7 + n;
        if (strncmp(url + 7, hosts[i], n) != 0)
            continue;
        after += *after == ':' ? 1 + strspn(after + 1, "0123456789") : 0;
        if (*after == '/' || *after == '\0') /* no longer name, and no user name before another host */
            return true;
    }
    return false;
}

/* Returns 1 if no container service is named. */
static int from_container(struct weir_s3_credentials *c, const struct weir_waiter *waiter, struct weir_err *err)
{
    const char *full = variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    const char *relative = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    const char *token = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    char url[1024], header[VALUE_MAX] = "", *text;
    size_t n;
    if (!full && !relative)
        return 1;
    snprintf(url, sizeof url, "%s%s", relative ? "http://169.254.170.2" : full, relative ? relative : "");
    bool local = relative ? *relative == '/' : strncmp(url, "https://", 8) == 0 || is_local(url);
    if (!local)
        return weir_err_set(err, -EACCES,
                            "AWS_CONTAINER_CREDENTIALS_FULL_URI: must be https or an address of this machine");
    if (token)
        snprintf(header, sizeof header, "Authorization: %s", token);
    int rc = get(url, NULL, *header ? header : NULL, waiter, &text, &n, err);
    explicit_bzero(header, sizeof header);
    if (rc < 0) {
        weir_err_prefix(err, "credentials of the container");
        return rc;
    }
    rc = weir_s3_credentials_json(c, text, n, "credentials of the container", err);
    wipe(text);
    return rc;
}

/* Asks the metadata service of an EC2 instance, with a session token (IMDSv2). Returns 1 if there is none. */
static int from_instance(struct weir_s3_credentials *c, const struct weir_waiter *waiter, struct weir_err *err)
{
    static const char roles[] = "/latest/meta-data/iam/security-credentials/";
    const char *endpoint = variable("AWS_EC2_METADATA_SERVICE_ENDPOINT"), *off = variable("AWS_EC2_METADATA_DISABLED");
    char url[1024], header[VALUE_MAX], *token = NULL, *role = NULL, *text = NULL;
    struct weir_err why = WEIR_ERR_NONE;
    size_t n;
    if (off && strcasecmp(off, "true") == 0)
        return 1;
    endpoint = endpoint ? endpoint : "http://169.254.169.254";
    snprintf(url, sizeof url, "%s/latest/api/token", endpoint);
    int rc = get(url, "PUT", "X-aws-ec2-metadata-token-ttl-seconds: 21600", waiter, &token, &n, &why);
    if (rc < 0)
        return rc == -ECANCELED ? weir_err_set(err, rc, "%s", why.text) : 1;
    snprintf(header, sizeof header, "X-aws-ec2-metadata-token: %.*s", (int)strcspn(token, "\r\n"), token);
    wipe(token);
    snprintf(url, sizeof url, "%s%s", endpoint, roles);
    rc = get(url, NULL, header, waiter, &role, &n, &why);
    if (rc == 0) {
        snprintf(url, sizeof url, "%s%s%.*s", endpoint, roles, (int)strcspn(role, "\r\n/?#"), role);
        rc = get(url, NULL, header, waiter, &text, &n, &why);
    }
    if (rc == 0)
        rc = weir_s3_credentials_json(c, text, n, "the instance's metadata service", &why);
    explicit_bzero(header, sizeof header);
    wipe(role);
    wipe(text);
    return rc == 0 ? 0 : weir_err_set(err, rc, "the instance's metadata service: %s", why.text);
}

int weir_s3_credentials_find(struct weir_s3_credentials *c, const struct weir_waiter *waiter, struct weir_err *err)
{
    memset(c, 0, sizeof *c);
    const char *id = variable("AWS_ACCESS_KEY_ID");
    if (id)
        return take(c, id, variable("AWS_SECRET_ACCESS_KEY"), variable("AWS_SESSION_TOKEN"), "environment", err);
    struct files f;
    open_files(&f);
    int rc = from_files(c, &f, waiter, err);
    close_files(&f);
    if (rc == 1)
        rc = from_container(c, waiter, err);
    if (rc == 1)
        rc = from_instance(c, waiter, err);
    if (rc == 1)
        rc = weir_err_set(err, -EACCES,
                          "no credentials for S3: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, write "
                          "~/.aws/credentials, or use --anonymous for a public bucket");
    return rc;
}
