/* listing.h: parses the lists of files that servers send. Every byte is hostile; the caller checks names with
 * weir_name_is_safe. */
#ifndef WEIR_ORIGIN_LISTING_H
#define WEIR_ORIGIN_LISTING_H

#include "origin/http_head.h"
#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>

enum { WEIR_LIST_MAX_BYTES = 64 << 20, WEIR_LIST_TOKEN_MAX = 2048 };

struct weir_listed {
    const char *name; /* decoded; relative to the list, for S3 the whole key */
    bool is_folder;
    bool has_facts; /* size and ETag are known, so the server need not be asked for them */
    struct weir_remote_facts facts;
};
/* Returns 0, or a negative code, which ends the list and is returned. */
typedef int weir_listed_fn(void *user, const struct weir_listed *listed);

/* All return 0, the result of the function, or -EBADMSG or -ENOMEM with err. text is followed by a zero byte. */

/* An array of names, or of objects with "name", and optionally "type" ("file" or "directory"). */
int weir_listing_json(const char *text, size_t n, weir_listed_fn *listed, void *user, struct weir_err *err);
/* One name per line. Empty lines and lines that begin with # are ignored. */
int weir_listing_text(const char *text, size_t n, weir_listed_fn *listed, void *user, struct weir_err *err);
/* The links of an HTML page to names in the same folder. Other links are ignored. */
int weir_listing_html(const char *text, size_t n, weir_listed_fn *listed, void *user, struct weir_err *err);
/* The answer to ListObjectsV2. next: the token for the following part of the list; "" after the last part. */
int weir_listing_s3(const char *text, size_t n, char next[WEIR_LIST_TOKEN_MAX], weir_listed_fn *listed, void *user,
                    struct weir_err *err);

#endif
