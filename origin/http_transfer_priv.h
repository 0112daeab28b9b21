/* http_transfer_priv.h: the attempts of one request, and the client's state, without libcurl's
 * names. */
#ifndef WEIR_ORIGIN_HTTP_TRANSFER_PRIV_H
#define WEIR_ORIGIN_HTTP_TRANSFER_PRIV_H

#include "origin/http_events_priv.h"
#include "origin/http_priv.h"

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

/* Makes the handle. Returns false if memory is short; close it in any case. */
bool weir_transfer_open(struct weir_transfer *transfer);
void weir_transfer_close(struct weir_transfer *transfer);

/* Sets up the next attempt of the request. Returns 0 or the code in transfer->response. */
int weir_transfer_prepare(struct weir_transfer *transfer);
/* Determines the result of an attempt that ended with this CURLcode, in transfer->response. Returns whether to repeat
 * it. */
bool weir_transfer_judge(struct weir_transfer *transfer, int code);
/* Frees the headers of an attempt, and wipes them if they have secrets. */
void weir_transfer_free_headers(struct weir_transfer *transfer);

#endif
