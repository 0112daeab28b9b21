/* http.h: HTTP requests through libcurl. A client belongs to one thread at a time and keeps its connections. It repeats
 * requests that fail for passing reasons, and accepts only bytes that are exactly the requested ones (http_head.h). */
#ifndef WEIR_ORIGIN_HTTP_H
#define WEIR_ORIGIN_HTTP_H

#include "origin/http_head.h"
#include "weir/base.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_client;
struct weir_client_request;

/* Who may end a wait: `stopped` is called 10 times per second. NULL = nobody. */
struct weir_waiter {
    bool (*stopped)(void *user);
    void *user;
};
static inline bool weir_waiter_stopped(const struct weir_waiter *waiter)
{
    return waiter && waiter->stopped && waiter->stopped(waiter->user);
}

enum { WEIR_CLIENT_HEADERS_MAX = 6, WEIR_CLIENT_HEADER_BYTES = 4096, WEIR_CLIENT_DEPTH_MAX = 1024 };

/* Totals of all clients that share it. */
struct weir_client_counts {
    _Atomic uint64_t requests, bytes, retries, throttled; /* throttled: responses 429 and 503 */
    _Atomic uint64_t connections;
    _Atomic uint64_t waited_ns, transfer_ns; /* sums over requests: until the first byte, and from there to the last */
};

struct weir_client_config {
    int depth;                 /* maximum number of requests in flight */
    int attempts;              /* of a request; 0: 8 */
    int connect_s, stall_s;    /* limits of connecting and of a transfer without progress, in seconds; 0: 10 and 20 */
    uint64_t pause_ns;         /* before the second attempt; doubled for each further one; 0: 0.1 s */
    const _Atomic bool *stop;  /* if it becomes true, all requests fail with -ECANCELED; NULL = never */
    struct weir_waiter waiter; /* for the thread that waits: if it is stopped, the requests in flight fail likewise */
    /* A longer wait for the next response is quadrupled here and reported in a notice: what the client waits for (NULL
     * = the URL), for how long, and why the last attempt failed. NULL = not reported. */
    _Atomic uint64_t *patience_ns;
    const char *what;
    struct weir_client_counts *counts; /* NULL = not counted */
    bool no_proxy;
};

/* Returns 0 if HTTP is available in this build, or -ENOTSUP with the reason. */
int weir_client_ready(struct weir_err *err);
/* Describes the library for `weir doctor`: version and certificates. Returns false if it is not available. */
bool weir_client_describe(char *text, size_t size);

int weir_client_open(struct weir_client **out, const struct weir_client_config *config, struct weir_err *err);
/* Cancels the requests in flight. */
void weir_client_close(struct weir_client **http);

/* Headers of a request. The strings are wiped after use. */
struct weir_client_headers {
    int n;
    char lines[WEIR_CLIENT_HEADERS_MAX][WEIR_CLIENT_HEADER_BYTES];
};

struct weir_client_request {
    const char *url;    /* must stay valid until the request completes, like everything below */
    const char *put;    /* method other than GET and HEAD, without a body; NULL = none */
    const char *header; /* one more header, "Name: value"; NULL = none */
    struct weir_client_wanted wanted;
    uint8_t
        *to; /* wanted.length bytes; if wanted.length is 0, the response owns a body that grows up to wanted.limit */
    /* Writes the headers of one attempt, such as a signature. Returns 0 or a negative code with err. NULL = none. */
    int (*prepare)(void *user, struct weir_client_headers *headers, struct weir_err *err);
    void *user;
    /* Checks the complete bytes of a range. Returns 0 or a negative code with err. NULL = none. */
    int (*check)(void *checked, const struct weir_client_request *request, const struct weir_client_head *head,
                 struct weir_err *err);
    void *checked;
    bool has_secrets; /* redirects are refused */
    uint32_t tag;
};

struct weir_client_response {
    uint32_t tag;
    int rc; /* 0, or -errno with err */
    struct weir_err err;
    struct weir_client_head head;
    uint8_t *body; /* owned by the caller; NULL if the request had a range. Followed by a zero byte */
    size_t bytes;
    uint64_t first_byte_ns, took_ns; /* of the last attempt: from its start to its first byte (0 = none), to its end */
};

/* Starts a request. Returns -EBUSY if `depth` requests are in flight. */
int weir_client_start(struct weir_client *http, const struct weir_client_request *request);
/* Waits at most a second for completions. Stores at most max responses. Returns their number, or -errno. */
int weir_client_wait(struct weir_client *http, struct weir_client_response *responses, int max);
/* Makes the requests in flight fail with -ECANCELED. */
void weir_client_cancel(struct weir_client *http);

/* A series of requests. */
struct weir_client_series {
    /* Stores the next request. Returns 1; 0 if there are no more; or a negative code with err. */
    int (*next)(void *user, struct weir_client_request *request, struct weir_err *err);
    /* Takes a response in any order, and owns its body. Returns 0 or a negative code with err. */
    int (*take)(void *user, struct weir_client_response *response, struct weir_err *err);
    void *user;
};
/* Performs a series, `depth` requests at once. No other request may be in flight. Returns 0 or the first code. After
 * one, the requests in flight are cancelled, and the client must be closed. */
int weir_client_run(struct weir_client *http, const struct weir_client_series *series, struct weir_err *err);
/* Performs n requests, whose tags are their numbers, in the same way. Returns 0 or the code of such a failure, which is
 * then that of the requests without a response. */
int weir_client_do(struct weir_client *http, const struct weir_client_request *requests, int n,
                   struct weir_client_response *responses);

#endif
