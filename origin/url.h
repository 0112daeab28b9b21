/* url.h: checks and takes apart the URLs of datasets, and encodes paths. */
#ifndef WEIR_ORIGIN_URL_H
#define WEIR_ORIGIN_URL_H

#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>

enum { WEIR_URL_MAX = 4096, WEIR_URL_HOST_MAX = 264, WEIR_URL_NAME_MAX = 1024 };

/* Returns whether the path is a URL that Weir can read: http://, https:// or s3://, in lower case. */
bool weir_url_is(const char *path);

/* The parts of a URL. They point into the text. */
struct weir_url {
    bool is_s3, is_https;
    const char *host; /* host and port, or the bucket */
    size_t host_length;
    const char *path; /* from the first slash on; "" if there is none. Percent-encoded, except for s3:// */
};
/* Takes a URL apart. Refuses user names and passwords, queries and fragments, because URLs are printed and stored;
 * control characters, "..", and percent codes of slashes. The error does not contain the URL. */
int weir_url_parse(struct weir_url *url, const char *text, struct weir_err *err);

/* Percent-encodes all bytes except letters, digits, "-._~" and, if keep_slash, "/". Returns false if out is too small.
 */
bool weir_url_encode(char *out, size_t size, const char *text, bool keep_slash);
/* Writes BASE/NAME. If the base is an HTTP URL, the name is percent-encoded. Returns false if out is too small. */
bool weir_url_join(char *out, size_t size, const char *base, const char *name);
/* Decodes percent codes in place. Returns false for malformed codes and for %00. */
bool weir_url_decode(char *text);

/* Returns whether a name from a server's list may be used: relative, with nonempty parts that are neither "." nor "..",
 * without control characters and backslashes, at most WEIR_URL_NAME_MAX bytes of UTF-8. */
bool weir_name_is_safe(const char *name);

#endif
