/* libFuzzer: what servers send: lists of four kinds, heads of responses, error bodies; and URLs, INI files and
 * credentials. The first byte selects the parser. */
#include "origin/http_head.h"
#include "origin/listing.h"
#include "origin/s3_credentials.h"
#include "origin/url.h"
#include "tests/fuzz/fuzz_bytes.h"

#include <stdlib.h>
#include <string.h>

static int take(void *user, const struct weir_listed *listed)
{
    int *n = user;
    char encoded[3 * WEIR_URL_NAME_MAX + 1], again[sizeof encoded];
    require(strlen(listed->facts.etag) < sizeof listed->facts.etag);
    if (weir_name_is_safe(listed->name)) {
        require(!strstr(listed->name, "/../") && strncmp(listed->name, "../", 3) != 0 && listed->name[0] != '/');
        require(!strpbrk(listed->name, "\r\n\\"));
        require(weir_url_encode(encoded, sizeof encoded, listed->name, true));
        memcpy(again, encoded, sizeof again);
        require(weir_url_decode(again) && strcmp(again, listed->name) == 0);
    }
    return ++*n > 1000 ? -ECANCELED : 0;
}

static void parse_head(const char *text, size_t size)
{
    struct weir_client_head head = {0};
    const struct weir_remote_facts file = {.size_bytes = 1000, .etag = "\"a\""};
    const struct weir_client_wanted wanted = {.offset = 10, .length = 20, .file = &file};
    struct weir_err err = WEIR_ERR_NONE;
    uint64_t body;
    for (const char *at = text, *end = text + size; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t n = stop ? (size_t)(stop - at) + 1 : (size_t)(end - at);
        if (!weir_client_head_line(&head, at, n))
            break;
        at += n;
    }
    int rc = weir_client_head_check(&head, &wanted, &body, &err);
    require(rc < 0 ? err.code == rc : body == 20 || head.status == 206);
    weir_client_status_error(&head, text, size, false, 1, &err);
}

static void parse_text(const char *text)
{
    struct weir_url url;
    struct weir_s3_credentials credentials;
    char value[64];
    if (weir_url_parse(&url, text, NULL) == 0)
        require(url.host_length > 0 && !memchr(url.host, '@', url.host_length));
    if (weir_ini_find(text, "default", "key", value, sizeof value))
        require(strlen(value) > 0 && !strpbrk(value, "\n"));
    weir_s3_credentials_json(&credentials, text, strlen(text), "x", NULL);
    weir_s3_time(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char next[WEIR_LIST_TOKEN_MAX];
    int n = 0;
    if (size == 0)
        return 0;
    char *text = malloc(size);
    memcpy(text, data + 1, size - 1);
    text[--size] = '\0';
    switch (data[0] % 6) {
    case 0:
        weir_listing_json(text, size, take, &n, NULL);
        break;
    case 1:
        weir_listing_text(text, size, take, &n, NULL);
        break;
    case 2:
        weir_listing_html(text, size, take, &n, NULL);
        break;
    case 3:
        weir_listing_s3(text, size, next, take, &n, NULL);
        break;
    case 4:
        parse_head(text, size);
        break;
    default:
        parse_text(text);
    }
    free(text);
    return 0;
}
