#include "origin/listing.h"
#include "base/claims.h"
#include "base/shortage.h"
#include "origin/url.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NAME_MAX_BYTES = 4 * WEIR_URL_NAME_MAX };

/* ---- JSON and text ---- */

static int take_json(const json_t *item, weir_listed_fn *listed, void *user, bool *fits)
{
    const json_t *name = json_is_object(item) ? json_object_get(item, "name") : item;
    const char *type = json_string_value(json_object_get(item, "type"));
    struct weir_listed entry = {.name = json_string_value(name)};
    *fits = entry.name && strlen(entry.name) == json_string_length(name);
    if (!*fits)
        return 0;
    entry.is_folder = type && strcmp(type, "directory") == 0;
    return listed(user, &entry);
}

static int no_array(struct weir_err *err, const char *why)
{
    return weir_err_set(err, -EBADMSG, "the list is not a JSON array of names%s%s; correct it on the server",
                        *why ? ": " : "", why);
}

/* Takes one element, whose bytes are known. */
static int take_element(const char *text, size_t n, size_t number, weir_listed_fn *listed, void *user,
                        struct weir_err *err)
{
    json_error_t why;
    bool fits;
    int rc = weir_json_claim(text, n, NULL, err);
    if (rc < 0)
        return rc;
    json_t *item = json_loadb(text, n, JSON_DECODE_ANY, &why);
    if (!item)
        return no_array(err, why.text);
    rc = take_json(item, listed, user, &fits);
    json_decref(item);
    return fits ? rc
                : weir_err_set(
                      err, -EBADMSG,
                      "entry %zu of the list is neither a name nor an object with \"name\"; correct it on the server",
                      number);
}

/* Elements are parsed one by one, because the tree of a long list takes many times its bytes. */
int weir_listing_json(const char *text, size_t n, weir_listed_fn *listed, void *user, struct weir_err *err)
{
    size_t at = weir_json_blank(text, n, 0);
    if (at == n || text[at] != '[')
        return no_array(err, "");
    at = weir_json_blank(text, n, at + 1);
    for (size_t number = 0; at < n && (number > 0 || text[at] != ']'); number++) {
        size_t length = weir_json_value(text + at, n - at);
        int rc = take_element(text + at, length, number, listed, user, err);
        if (rc != 0)
            return rc;
        at = weir_json_blank(text, n, at + length);
        if (at == n || text[at] != ',')
            break;
        at = weir_json_blank(text, n, at + 1);
    }
    bool ends = at < n && text[at] == ']' && weir_json_blank(text, n, at + 1) == n;
    return ends ? 0 : no_array(err, "it has no end");
}

/* Copies n bytes to name. Returns false if they are too many or contain a zero. */
static bool copy_name(char name[NAME_MAX_BYTES], const char *text, size_t n)
{
    if (n >= NAME_MAX_BYTES || memchr(text, 0, n))
        return false;
    memcpy(name, text, n);
    name[n] = '\0';
    return true;
}

int weir_listing_text(const char *text, size_t n, weir_listed_fn *listed, void *user, struct weir_err *err)
{
    int rc = 0, number = 0;
    for (const char *line = text, *end = text + n; line < end && rc == 0;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        const char *next = stop ? stop + 1 : end;
        size_t length = (size_t)((stop ? stop : end) - line);
        char name[NAME_MAX_BYTES];
        number++;
        while (length > 0 && (line[length - 1] == '\r' || line[length - 1] == ' ' || line[length - 1] == '\t'))
            length--;
        if (length > 0 && *line != '#') {
            struct weir_listed entry = {.name = name};
            if (!copy_name(name, line, length))
                return weir_err_set(err, -EBADMSG,
                                    "line %d of the list is too long or has a zero byte; correct it on the server",
                                    number);
            rc = listed(user, &entry);
        }
        line = next;
    }
    return rc;
}

/* ---- entities of HTML and XML ---- */

/* Writes a character as UTF-8. Returns its length; 0 for characters that are not allowed. */
static size_t put_utf8(char *to, unsigned long code)
{
    if (code == 0 || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
        return 0;
    if (code < 0x80) {
        to[0] = (char)code;
        return 1;
    }
    size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, code >>= 6)
        to[i] = (char)(0x80 | (code & 0x3F));
    to[0] = (char)((n == 2 ? 0xC0 : n == 3 ? 0xE0 : 0xF0) | code);
    return n;
}

/* Replaces entities in place. They are never shorter than their characters. Returns false for unknown ones. */
static bool decode_entities(char *text)
{
    static const struct {
        const char *name;
        char c;
    } named[] = {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
    char *to = text;
    for (const char *from = text; *from;) {
        size_t used = 0, made = 0;
        const char c = *from; /* `to` may be the same place */
        for (size_t i = 0; c == '&' && i < sizeof named / sizeof named[0] && !used; i++)
            if (strncmp(from, named[i].name, strlen(named[i].name)) == 0) {
                used = strlen(named[i].name);
                to[made++] = named[i].c;
            }
        if (c == '&' && !used && from[1] == '#') {
            bool hexadecimal = from[2] == 'x' || from[2] == 'X';
            char *end;
            unsigned long code = strtoul(from + (hexadecimal ? 3 : 2), &end, hexadecimal ? 16 : 10);
            used = *end == ';' && end - from <= 10 ? (size_t)(end - from) + 1 : 0;
            made = used ? put_utf8(to, code) : 0;
        }
        if (c == '&' && (!used || !made || made > used))
            return false;
        if (c != '&') {
            to[made++] = c;
            used = 1;
        }
        to += made;
        from += used;
    }
    *to = '\0';
    return true;
}

/* ---- HTML ---- */

/* Returns the value of href in a tag that ends at `end`, and its length; NULL if it has none. */
static const char *href_of(const char *tag, const char *end, size_t *n)
{
    static const char word[] = "href";
    for (const char *at = tag; at + sizeof word < end; at++) {
        if (strncasecmp(at, word, sizeof word - 1) != 0 || (at > tag && !strchr(" \t\r\n", at[-1])))
            continue;
        at += sizeof word - 1;
        while (at < end && strchr(" \t\r\n", *at))
            at++;
        if (at == end || *at != '=')
            return NULL;
        at++;
        while (at < end && strchr(" \t\r\n", *at))
            at++;
        char quote = at < end && (*at == '"' || *at == '\'') ? *at++ : '\0';
        const char *stop = at;
        while (stop < end && (quote ? *stop != quote : !strchr(" \t\r\n", *stop)))
            stop++;
        *n = (size_t)(stop - at);
        return at;
    }
    return NULL;
}

static int take_link(const char *link, size_t n, weir_listed_fn *listed, void *user)
{
    char name[NAME_MAX_BYTES];
    struct weir_listed entry = {.name = name};
    if (n == 0 || !copy_name(name, link, n) || !decode_entities(name))
        return 0;
    if (strncmp(name, "./", 2) == 0)
        memmove(name, name + 2, strlen(name) - 1);
    n = strlen(name);
    if (n == 0 || *name == '/' || strpbrk(name, "?#:") || strncmp(name, "../", 3) == 0 || strcmp(name, "..") == 0)
        return 0; /* sorting, other folders, other servers */
    entry.is_folder = name[n - 1] == '/';
    if (entry.is_folder)
        name[n - 1] = '\0';
    return *name && weir_url_decode(name) ? listed(user, &entry) : 0;
}

int weir_listing_html(const char *text, size_t n, weir_listed_fn *listed, void *user, struct weir_err *err)
{
    int rc = 0;
    bool any = false;
    for (const char *at = text, *end = text + n; at < end && rc == 0;) {
        const char *tag = memchr(at, '<', (size_t)(end - at));
        const char *stop = tag ? memchr(tag, '>', (size_t)(end - tag)) : NULL;
        size_t length;
        if (!stop)
            break;
        any |= stop - tag > 4 && (strncasecmp(tag, "<html", 5) == 0 || strncasecmp(tag, "<!doc", 5) == 0);
        bool is_link = stop - tag > 2 && (tag[1] == 'a' || tag[1] == 'A') && strchr(" \t\r\n", tag[2]);
        const char *link = is_link ? href_of(tag + 2, stop, &length) : NULL;
        rc = link ? take_link(link, length, listed, user) : 0;
        at = stop + 1;
    }
    return rc == 0 && !any ? weir_err_set(err, -EBADMSG,
                                          "the server sends no list of this folder; add a file index.json "
                                          "with an array of its names, or turn on its index")
                           : rc;
}

/* ---- S3 ---- */

/* Finds <name>VALUE</name> between text and end. Returns NULL if it is missing. */
static const char *element(const char *text, const char *end, const char *name, size_t *n)
{
    char open[40], close[40];
    snprintf(open, sizeof open, "<%s>", name);
    snprintf(close, sizeof close, "</%s>", name);
    const char *begin = memmem(text, (size_t)(end - text), open, strlen(open));
    if (!begin)
        return NULL;
    begin += strlen(open);
    const char *stop = memmem(begin, (size_t)(end - begin), close, strlen(close));
    *n = stop ? (size_t)(stop - begin) : 0;
    return stop ? begin : NULL;
}

static bool text_of(const char *text, const char *end, const char *name, char *value, size_t size)
{
    size_t n;
    const char *begin = element(text, end, name, &n);
    if (!begin || n >= size || memchr(begin, 0, n))
        return false;
    memcpy(value, begin, n);
    value[n] = '\0';
    return decode_entities(value);
}

static bool take_size(const char *text, uint64_t *size)
{
    char *end;
    errno = 0;
    *size = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == '\0' && errno == 0 && *size <= INT64_MAX;
}

static int take_object(const char *text, const char *end, bool encoded, weir_listed_fn *listed, void *user,
                       struct weir_err *err)
{
    char key[NAME_MAX_BYTES], size[24], etag[WEIR_ETAG_MAX] = "";
    struct weir_listed entry = {.name = key, .has_facts = true};
    if (!text_of(text, end, "Key", key, sizeof key) || !text_of(text, end, "Size", size, sizeof size) ||
        !take_size(size, &entry.facts.size_bytes))
        return weir_err_set(err, -EBADMSG,
                            "the bucket's list has an object without a valid key and size; check the endpoint");
    for (char *c = encoded ? key : NULL; c && *c; c++)
        *c = *c == '+' ? ' ' : *c;
    if (encoded && !weir_url_decode(key))
        return weir_err_set(err, -EBADMSG, "the bucket's list has a malformed key; check the endpoint");
    size_t n = strlen(key);
    if (n == 0 || key[n - 1] == '/')
        return 0; /* the marker of a folder */
    entry.has_facts = text_of(text, end, "ETag", etag, sizeof etag - 2) && *etag;
    if (entry.has_facts && !weir_header_is_plain(etag))
        return weir_err_set(err, -EBADMSG, "the bucket's list has an ETag with control characters; check the endpoint");
    if (entry.has_facts)
        snprintf(entry.facts.etag, sizeof entry.facts.etag, *etag == '"' ? "%.253s" : "\"%.253s\"", etag);
    return listed(user, &entry);
}

int weir_listing_s3(const char *text, size_t n, char next[WEIR_LIST_TOKEN_MAX], weir_listed_fn *listed, void *user,
                    struct weir_err *err)
{
    static const char begin[] = "<Contents>", finish[] = "</Contents>";
    const char *end = text + n, *at = text;
    char flag[16];
    int rc = 0;
    next[0] = '\0';
    if (!memmem(text, n, "<ListBucketResult", 17))
        return weir_err_set(err, -EBADMSG, "the server does not answer as S3; check the endpoint");
    bool encoded = text_of(text, end, "EncodingType", flag, sizeof flag) && strcmp(flag, "url") == 0;
    while (rc == 0 && (at = memmem(at, (size_t)(end - at), begin, sizeof begin - 1)) != NULL) {
        at += sizeof begin - 1;
        const char *stop = memmem(at, (size_t)(end - at), finish, sizeof finish - 1);
        if (!stop)
            return weir_err_set(err, -EBADMSG, "the bucket's list is cut off; check the endpoint");
        rc = take_object(at, stop, encoded, listed, user, err);
        at = stop + sizeof finish - 1;
    }
    if (rc < 0 || !text_of(text, end, "IsTruncated", flag, sizeof flag) || strcmp(flag, "true") != 0)
        return rc;
    if (!text_of(text, end, "NextContinuationToken", next, WEIR_LIST_TOKEN_MAX) || !*next)
        return weir_err_set(err, -EBADMSG,
                            "the bucket's list continues, but has no token for its next part; check the endpoint");
    return 0;
}
