/* http_head.h: the head of an HTTP response: parses its lines and compares it with the request. Every byte is hostile.
 */
#ifndef WEIR_ORIGIN_HTTP_HEAD_H
#define WEIR_ORIGIN_HTTP_HEAD_H

#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Advice in messages about servers that break the rules. */
#define WEIR_SERVER_ADVICE                                                                                             \
    "use a server that supports ranges, such as nginx, Apache or S3, and no proxy that changes them"

enum { WEIR_ETAG_MAX = 256, WEIR_HEAD_MAX_BYTES = 64 << 10, WEIR_CLIENT_DATE = 40 };

/* What is known of a file on a server. */
struct weir_remote_facts {
    uint64_t size_bytes;
    int64_t modified_s;       /* seconds since 1970; 0 = unknown */
    bool is_recent;           /* the file may change again without another time: it has the server's current second */
    char etag[WEIR_ETAG_MAX]; /* with its quotes and W/; "" = none */
};

/* Begin with zeros. Redirects and 1xx responses begin the head anew. */
struct weir_client_head {
    int status;
    size_t bytes; /* total of all lines */
    bool bad;     /* a line is malformed, or two lines contradict each other */
    bool has_length, has_range, has_total;
    uint64_t length;             /* Content-Length */
    uint64_t first, last, total; /* Content-Range; the body is first..last of total bytes */
    uint32_t retry_after_s;      /* 0 = none */
    bool is_encoded;             /* the body is compressed or otherwise encoded */
    int64_t modified_s, date_s;  /* Last-Modified, and the server's clock; 0 = unknown */
    char etag[WEIR_ETAG_MAX];
    char region[32]; /* x-amz-bucket-region */
    char type[64];   /* Content-Type, without parameters */
};

/* Adds a line, with or without its line end. Returns false if the head is too long. */
bool weir_client_head_line(struct weir_client_head *head, const char *line, size_t n);

/* Requested bytes. length 0: the whole body, at most `limit` bytes. */
struct weir_client_wanted {
    uint64_t offset;
    size_t length, limit;
    bool is_head;                         /* a HEAD request, which has no body */
    const struct weir_remote_facts *file; /* what must still be true; NULL = nothing is known */
};
/* Compares a head of status 2xx or 412 or 416 with the request. Returns 0 with *body, the exact size of the body
 * (UINT64_MAX = unknown), or -ESTALE, -EREMOTEIO or -EFBIG with err. */
int weir_client_head_check(const struct weir_client_head *head, const struct weir_client_wanted *wanted, uint64_t *body,
                           struct weir_err *err);

/* Returns whether the ETag promises equal bytes. */
bool weir_etag_is_strong(const char *etag);
/* Returns whether a value can be part of a request: without control characters, which could add lines to it. */
bool weir_header_is_plain(const char *text);

/* Parses a date such as "Fri, 24 May 2013 00:00:00 GMT". Returns seconds since 1970, or 0 if it is malformed. */
int64_t weir_client_date(const char *text);
/* Writes the date in that form. */
void weir_client_date_text(int64_t seconds, char text[WEIR_CLIENT_DATE]);

/* ---- http_errors.c: parts of the client that need no libcurl ---- */

/* Returns whether a response with this status may succeed when it is repeated. */
bool weir_client_is_passing(int status);
/* Returns the pause before the next attempt in ns. attempt: number of attempts so far; random: any number. */
uint64_t weir_client_pause_ns(uint64_t pause_ns, int attempt, uint32_t retry_after_s, uint64_t random);
/* Servers that ask for a longer pause are not asked again. */
enum { WEIR_CLIENT_RETRY_AFTER_MAX_S = 60 };

/* Finds the error code in the body of a response, such as ExpiredToken in S3's XML. Empty if there is none. */
void weir_client_error_code(const char *body, size_t n, char code[64]);
/* Returns the error of a response whose status is an error. body: the first n bytes of its body. */
int weir_client_status_error(const struct weir_client_head *head, const char *body, size_t n, bool has_secrets,
                             int attempts, struct weir_err *err);

/* libcurl reports missing descriptors as missing memory or as a broken connection. Returns whether the process lacks
 * them, with the error. */
bool weir_client_lacks_descriptors(struct weir_err *err);
/* Returns the error of a call of libcurl that lacked a resource: descriptors, else memory. */
int weir_client_shortage(struct weir_err *err);

/* Returns the file of certificate authorities, which is at another place in each distribution, or NULL. */
const char *weir_client_authorities(void);

#endif
