/* http_transfer_priv.h: the attempts of one request, and the client's state, without libcurl's
 * names. */
#ifndef WEIR_ORIGIN_HTTP_TRANSFER_PRIV_H
#define WEIR_ORIGIN_HTTP_TRANSFER_PRIV_H

#include "origin/http.h"

/* ---- libcurl's events by epoll, whose cost, unlike that of poll, does not grow with the number of requests in flight
 * ---- */

/* libcurl searches all connections of a multi handle for a free one, so each handle has only a few places for
 * requests. They share addresses of hosts and sessions of TLS. */
enum { WEIR_EVENT_GROUP = 16, WEIR_EVENT_GROUPS = 64 };

struct weir_event_group {
    struct weir_events *events;
    void *multi;       /* NULL: not used yet */
    uint64_t timer_ns; /* when libcurl must be called even without an event; UINT64_MAX = never */
};

/* Begin with zeros. */
struct weir_events {
    int poller;       /* plus one */
    uint64_t touched; /* a bit per group: something in it may be complete */
    void *share;      /* for CURLOPT_SHARE of the handles */
    struct weir_event_group groups[WEIR_EVENT_GROUPS];
};

/* Returns false if resources are missing. */
bool weir_events_open(struct weir_events *events);
/* Call after all handles were removed and closed. */
void weir_events_close(struct weir_events *events);
/* Start and end the request of a handle. place: below WEIR_EVENT_GROUP * WEIR_EVENT_GROUPS. */
bool weir_events_add(struct weir_events *events, int place, void *easy);
void weir_events_remove(struct weir_events *events, int place, void *easy);
/* Returns a handle whose request has ended, with its CURLcode, or NULL. */
void *weir_events_done(struct weir_events *events, int *code);
/* Lets libcurl work, and waits at most wait_ms for events. Returns 0 or -errno. */
int weir_events_run(struct weir_events *events, int wait_ms);

/* ---- requests ---- */

struct curl_slist;

enum { WEIR_TRANSFER_ERROR_BYTES = 4096, WEIR_TRANSFER_TEXT_BYTES = 256 };

enum weir_transfer_state {
    WEIR_TRANSFER_IDLE,
    WEIR_TRANSFER_FLYING,
    WEIR_TRANSFER_PAUSED,
    WEIR_TRANSFER_DONE,
};

/* A place for one request, which keeps its handle. */
struct weir_transfer {
    void *easy; /* CURL; NULL until the first request */
    enum weir_transfer_state state;
    struct weir_transfer *next; /* IDLE, DONE: in its list */
    struct weir_client *http;
    struct weir_client_request request;
    struct weir_client_response response;
    struct curl_slist *headers;
    int attempt;
    uint64_t resume_ns;  /* PAUSED: when the next attempt begins */
    uint64_t body_bytes; /* expected; UINT64_MAX = unknown */
    bool head_checked, is_error;
    uint64_t begin, first, end; /* ticks: of the attempt, its first byte (0 = none), and the end of the last attempt */
    size_t capacity;            /* of response.body */
    char error[WEIR_TRANSFER_TEXT_BYTES], error_body[WEIR_TRANSFER_ERROR_BYTES];
    size_t error_bytes;
    char why[WEIR_TRANSFER_TEXT_BYTES]; /* the error of the attempt before, without its advice */
};

struct weir_client {
    struct weir_client_config config;
    struct weir_events events;
    struct weir_transfer *transfers, *idle, *done, **done_end;
    uint64_t quiet_ns;         /* when the wait for the next response began */
    bool has_answered;         /* a server has sent a head */
    int active, paused, ready; /* numbers of transfers in flight, paused, and done */
    uint64_t random;
    struct weir_client_counts unshared; /* if the configuration has none */
    struct weir_client_headers lines;   /* of the attempt that is being set up */
};

/* Returns how often a request is tried: less often if the server has never answered. */
static inline int weir_transfer_attempts(const struct weir_client *http)
{
    enum { FIRST_ATTEMPTS = 3 };
    return http->has_answered || http->config.attempts < FIRST_ATTEMPTS ? http->config.attempts : FIRST_ATTEMPTS;
}

/* Starts the next attempt of the request. Returns 0, or the code in transfer->response. */
int weir_transfer_begin(struct weir_transfer *transfer);
/* Ends an attempt that libcurl has ended with this CURLcode, with its result in transfer->response. Returns whether to
 * repeat it. */
bool weir_transfer_end(struct weir_transfer *transfer, int code);
/* Stops the attempt in flight. */
void weir_transfer_stop(struct weir_transfer *transfer);
void weir_transfer_close(struct weir_transfer *transfer);
/* Frees the headers of an attempt, and wipes them if they have secrets. */
void weir_transfer_free_headers(struct weir_transfer *transfer);

#endif
