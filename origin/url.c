#include "origin/url.h"
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *const schemes[] = {"http://", "https://", "s3://"};
enum { SCHEMES = sizeof schemes / sizeof schemes[0], HTTPS = 1, S3 = 2 };

static int scheme_of(const char *path)
{
    for (int i = 0; i < SCHEMES; i++)
        if (strncmp(path, schemes[i], strlen(schemes[i])) == 0)
            return i;
    return -1;
}

bool weir_url_is(const char *path)
{
    return path && scheme_of(path) >= 0;
}

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
           c == '_' || c == '~';
}

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

bool weir_url_encode(char *out, size_t size, const char *text, bool keep_slash)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t n = 0;
    for (; *text; text++) {
        bool plain = is_plain(*text) || (keep_slash && *text == '/');
        if (n + (plain ? 1 : 3) >= size)
            return false;
        if (plain) {
            out[n++] = *text;
            continue;
        }
        out[n++] = '%';
        out[n++] = digits[(unsigned char)*text >> 4];
        out[n++] = digits[(unsigned char)*text & 15];
    }
    if (n >= size)
        return false;
    out[n] = '\0';
    return true;
}

bool weir_url_join(char *out, size_t size, const char *base, const char *name)
{
    int used = snprintf(out, size, "%s/", base);
    if (used < 0 || (size_t)used >= size)
        return false;
    if (strncmp(base, "http://", 7) == 0 || strncmp(base, "https://", 8) == 0)
        return weir_url_encode(out + used, size - (size_t)used, name, true);
    return (size_t)snprintf(out + used, size - (size_t)used, "%s", name) < size - (size_t)used;
}

bool weir_url_decode(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++) {
        if (*from != '%') {
            *to++ = *from;
            continue;
        }
        int high = hex(from[1]), low = high < 0 ? -1 : hex(from[2]);
        if (low < 0 || (high == 0 && low == 0))
            return false;
        *to++ = (char)(16 * high + low);
        from += 2;
    }
    *to = '\0';
    return true;
}

/* Returns whether no part between slashes is empty, "." or "..". */
static bool parts_are_safe(const char *name)
{
    for (;;) {
        size_t n = strcspn(name, "/");
        if (n == 0 || (n == 1 && name[0] == '.') || (n == 2 && name[0] == '.' && name[1] == '.'))
            return false;
        if (!name[n])
            return true;
        name += n + 1;
    }
}

static bool is_printable(const char *text)
{
    size_t length = strlen(text);
    for (size_t at = 0; at < length;) {
        uint32_t code = 0;
        size_t n = weir_utf8_next(text + at, length - at, &code);
        if (n == 0 || weir_code_is_control(code) || code == '\\')
            return false;
        at += n;
    }
    return true;
}

bool weir_name_is_safe(const char *name)
{
    return strlen(name) <= WEIR_URL_NAME_MAX && is_printable(name) && parts_are_safe(name);
}

static bool host_is_valid(const struct weir_url *url)
{
    if (url->host_length == 0 || url->host_length >= WEIR_URL_HOST_MAX)
        return false;
    for (size_t i = 0; i < url->host_length; i++) {
        char c = url->host[i];
        bool address = c == ':' || c == '[' || c == ']';
        if (!is_plain(c) || c == '~')
            if (url->is_s3 || !address)
                return false;
    }
    return !url->is_s3 || (url->host_length >= 3 && url->host_length <= 63 && url->host[0] != '.');
}

static int check_path(const struct weir_url *url, struct weir_err *err)
{
    char decoded[WEIR_URL_MAX];
    size_t n = strlen(url->path);
    memcpy(decoded, url->path, n + 1);
    if (!url->is_s3 && !weir_url_decode(decoded))
        return weir_err_set(err, -EINVAL, "its percent codes are malformed; correct the URL");
    bool slashes = true; /* a code of a slash makes more parts than the text has */
    size_t parts = 0, decoded_parts = 0;
    for (const char *c = url->path; *c; c++)
        parts += *c == '/';
    for (const char *c = decoded; *c; c++)
        decoded_parts += *c == '/';
    slashes = parts == decoded_parts;
    n = strlen(decoded);
    if (n > 0 && decoded[n - 1] == '/')
        decoded[n - 1] = '\0';
    const char *rest = decoded[0] == '/' ? decoded + 1 : decoded;
    if (!slashes || !is_printable(decoded) || (*rest && !parts_are_safe(rest)))
        return weir_err_set(err, -EINVAL,
                            "its path has empty parts, \"..\", or characters that are not allowed; correct the URL");
    return 0;
}

int weir_url_parse(struct weir_url *url, const char *text, struct weir_err *err)
{
    int scheme = scheme_of(text);
    *url = (struct weir_url){.is_s3 = scheme == S3, .is_https = scheme == HTTPS};
    if (scheme < 0)
        return weir_err_set(err, -EINVAL, "not a URL that begins with http://, https:// or s3://");
    if (strlen(text) >= WEIR_URL_MAX)
        return weir_err_set(err, -ENAMETOOLONG, "the URL has over %d bytes", WEIR_URL_MAX - 1);
    url->host = text + strlen(schemes[scheme]);
    url->host_length = strcspn(url->host, "/");
    url->path = url->host + url->host_length;
    if (memchr(url->host, '@', url->host_length))
        return weir_err_set(err, -EINVAL,
                            "the URL has a user name or a password, and URLs are printed and stored; remove it");
    if (!url->is_s3 && strpbrk(url->host, "?#"))
        return weir_err_set(
            err, -EINVAL,
            "the URL has a query or a fragment, which may be secret, and URLs are printed and stored; use "
            "a URL without it, or s3:// with credentials");
    if (!host_is_valid(url))
        return weir_err_set(err, -EINVAL, "the name of its %s is invalid; correct the URL",
                            url->is_s3 ? "bucket" : "host");
    return check_path(url, err);
}
