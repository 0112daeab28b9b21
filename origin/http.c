#include "origin/http.h"
#include "base/shortage.h"
#include "base/terminal.h"
#include "base/threads.h"
#include "origin/http_transfer_priv.h"

#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ATTEMPTS = 8, CONNECT_S = 10, STALL_S = 20, SLICE_MS = 100, SLICES = 10 };
static const uint64_t PAUSE_NS = 100 * 1000 * 1000;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool started;

static void start_library(void)
{
    started = curl_global_init(CURL_GLOBAL_DEFAULT) == 0;
}

int weir_client_ready(struct weir_err *err)
{
    pthread_once(&once, start_library);
    return started ? 0 : weir_err_set(err, -ENOMEM, "libcurl cannot start; free some memory");
}

bool weir_client_describe(char *text, size_t size)
{
    const curl_version_info_data *v = curl_version_info(CURLVERSION_NOW);
    const char *file = weir_client_authorities();
    snprintf(text, size, "libcurl %s, %s, %s%s", v->version, v->ssl_version ? v->ssl_version : "no TLS",
             file ? "certificates in " : "no file of certificates, so https fails; name one in CURL_CA_BUNDLE",
             file ? file : "");
    return true;
}

static uint64_t next_random(struct weir_client *http)
{
    http->random ^= http->random << 13;
    http->random ^= http->random >> 7;
    http->random ^= http->random << 17;
    return http->random;
}

/* ---- attempts ---- */

static void finish(struct weir_transfer *t)
{
    struct weir_client *http = t->http;
    t->state = WEIR_TRANSFER_DONE;
    t->next = NULL;
    *http->done_end = t;
    http->done_end = &t->next;
    http->ready++;
    weir_transfer_free_headers(t);
}

static void make_idle(struct weir_transfer *t)
{
    t->state = WEIR_TRANSFER_IDLE;
    t->next = t->http->idle;
    t->http->idle = t;
}

static void begin(struct weir_transfer *t)
{
    if (weir_transfer_begin(t) < 0) {
        finish(t);
        return;
    }
    t->state = WEIR_TRANSFER_FLYING;
    t->http->active++;
}

static void end_attempt(struct weir_transfer *t, int code)
{
    struct weir_client *http = t->http;
    http->active--;
    if (!weir_transfer_end(t, code)) {
        finish(t);
        return;
    }
    t->state = WEIR_TRANSFER_PAUSED;
    t->resume_ns = weir_clock_monotonic_ns() + weir_client_pause_ns(http->config.pause_ns, t->attempt,
                                                                    t->response.head.retry_after_s, next_random(http));
    http->paused++;
}

static void end_attempts(struct weir_client *http)
{
    CURL *easy;
    int code;
    while ((easy = weir_events_done(&http->events, &code)) != NULL) {
        struct weir_transfer *t = NULL;
        curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&t);
        end_attempt(t, code);
    }
}

/* Resumes paused requests that are due. Returns the ms until the next one is due, at most wait_ms. */
static int resume(struct weir_client *http, int wait_ms)
{
    uint64_t now_ns = weir_clock_monotonic_ns();
    for (int i = 0; i < http->config.depth && http->paused > 0; i++) {
        struct weir_transfer *t = &http->transfers[i];
        if (t->state != WEIR_TRANSFER_PAUSED)
            continue;
        if (t->resume_ns <= now_ns) {
            http->paused--;
            begin(t);
            continue;
        }
        uint64_t ms = (t->resume_ns - now_ns) / 1000000 + 1;
        wait_ms = ms < (uint64_t)wait_ms ? (int)ms : wait_ms;
    }
    return wait_ms;
}

void weir_client_cancel(struct weir_client *http)
{
    for (int i = 0; i < http->config.depth; i++) {
        struct weir_transfer *t = &http->transfers[i];
        if (t->state != WEIR_TRANSFER_FLYING && t->state != WEIR_TRANSFER_PAUSED)
            continue;
        if (t->state == WEIR_TRANSFER_FLYING) {
            weir_transfer_stop(t);
            http->active--;
        } else {
            http->paused--;
        }
        t->response.err = WEIR_ERR_NONE;
        t->response.rc = weir_err_set(&t->response.err, -ECANCELED, "interrupted");
        finish(t);
    }
}

static bool must_stop(const struct weir_client *http)
{
    return http->config.stop && atomic_load_explicit(http->config.stop, memory_order_relaxed);
}

static int take_done(struct weir_client *http, struct weir_client_response *responses, int max)
{
    int n = 0;
    if (http->done)
        http->quiet_ns = weir_clock_monotonic_ns();
    while (n < max && http->done) {
        struct weir_transfer *t = http->done;
        struct weir_client_response *r = &responses[n++];
        http->done = t->next;
        if (!http->done)
            http->done_end = &http->done;
        if (t->response.rc < 0) {
            free(t->response.body);
            t->response.body = NULL;
        } else if (t->response.body) {
            t->response.body[t->response.bytes] = '\0';
        }
        *r = t->response;
        t->response.body = NULL;
        t->capacity = 0;
        make_idle(t);
        http->ready--;
    }
    return n;
}

/* Returns the request in flight that has been tried most often, or NULL. */
static const struct weir_transfer *most_tried(const struct weir_client *http)
{
    const struct weir_transfer *most = NULL;
    for (int i = 0; i < http->config.depth; i++) {
        const struct weir_transfer *t = &http->transfers[i];
        bool waits = t->state == WEIR_TRANSFER_FLYING || t->state == WEIR_TRANSFER_PAUSED;
        if (waits && (!most || t->attempt > most->attempt))
            most = t;
    }
    return most;
}

static void report_quiet(const struct weir_client *http)
{
    const struct weir_client_config *c = &http->config;
    const struct weir_transfer *t = most_tried(http);
    uint64_t quiet_ns = weir_clock_monotonic_ns() - http->quiet_ns,
             limit_ns = c->patience_ns ? *c->patience_ns : UINT64_MAX;
    if (!t || quiet_ns < limit_ns || !atomic_compare_exchange_strong(c->patience_ns, &limit_ns, 4 * limit_ns))
        return;
    const char *what = c->what ? c->what : t->request.url;
    weir_notice("%.*s: no usable response for %.0f s (attempt %d of %d%s%s); check the network and the server, or "
                "interrupt the program",
                (int)strcspn(what, "?"), what, (double)quiet_ns / 1e9, t->attempt, weir_transfer_attempts(http),
                *t->why ? "; the one before: " : "", t->why);
}

/* Waits for a slice of time, or until a request has ended. */
static int advance(struct weir_client *http)
{
    uint64_t until_ns = weir_clock_monotonic_ns() + (uint64_t)SLICE_MS * 1000000;
    for (;;) {
        if (must_stop(http))
            weir_client_cancel(http);
        uint64_t now_ns = weir_clock_monotonic_ns();
        int left_ms = now_ns < until_ns ? (int)((until_ns - now_ns) / 1000000) + 1 : 0;
        int wait_ms = resume(http, left_ms);
        int rc = weir_events_run(&http->events, http->ready > 0 ? 0 : wait_ms);
        if (rc < 0)
            return rc;
        end_attempts(http);
        if (http->ready > 0 || left_ms == 0 || http->active + http->paused == 0)
            return 0;
    }
}

int weir_client_wait(struct weir_client *http, struct weir_client_response *responses, int max)
{
    for (int i = 0; i < SLICES && http->ready == 0 && http->active + http->paused > 0; i++) {
        sigset_t before;
        weir_pipe_signal_block(&before); /* libcurl with OpenSSL may write to a closed socket */
        int rc = advance(http);
        weir_pipe_signal_restore(&before);
        if (rc < 0)
            return rc;
        if (http->ready > 0)
            break;
        if (weir_waiter_stopped(&http->config.waiter))
            weir_client_cancel(http);
        report_quiet(http);
    }
    return take_done(http, responses, max);
}

int weir_client_start(struct weir_client *http, const struct weir_client_request *request)
{
    struct weir_transfer *t = http->idle;
    if (!t)
        return -EBUSY;
    http->idle = t->next;
    if (http->active + http->paused == 0)
        http->quiet_ns = weir_clock_monotonic_ns();
    t->request = *request;
    t->response = (struct weir_client_response){.tag = request->tag};
    t->attempt = 0;
    t->why[0] = '\0';
    begin(t);
    return 0;
}

/* ---- series ---- */

int weir_client_run(struct weir_client *http, const struct weir_client_series *series, struct weir_err *err)
{
    struct weir_client_request request;
    struct weir_client_response responses[16];
    int rc = 0, more = 1, n = 0;
    while (rc == 0 && (more > 0 || http->active + http->paused + http->ready > 0)) {
        while (more > 0 && http->idle && (more = series->next(series->user, &request, err)) > 0)
            weir_client_start(http, &request);
        rc = more < 0 ? more : 0;
        n = rc == 0 ? weir_client_wait(http, responses, 16) : 0;
        if (n < 0)
            rc = weir_err_set(err, n, "HTTP requests: %s", strerror(-n));
        for (int i = 0; i < n; i++) {
            int taken = series->take(series->user, &responses[i], err);
            rc = rc < 0 ? rc : taken;
        }
    }
    if (rc < 0)
        weir_client_cancel(http);
    return rc;
}

struct batch {
    const struct weir_client_request *requests;
    struct weir_client_response *responses;
    int n, next;
};

static int next_request(void *user, struct weir_client_request *request, struct weir_err *err)
{
    struct batch *batch = user;
    (void)err;
    if (batch->next == batch->n)
        return 0;
    *request = batch->requests[batch->next++];
    return 1;
}

static int take_response(void *user, struct weir_client_response *response, struct weir_err *err)
{
    (void)err;
    ((struct batch *)user)->responses[response->tag] = *response;
    return 0;
}

int weir_client_do(struct weir_client *http, const struct weir_client_request *requests, int n,
                   struct weir_client_response *responses)
{
    struct batch batch = {requests, responses, n, 0};
    const struct weir_client_series series = {next_request, take_response, &batch};
    struct weir_err err = WEIR_ERR_NONE;
    for (int i = 0; i < n; i++)
        responses[i] = (struct weir_client_response){.rc = -EINPROGRESS};
    int rc = weir_client_run(http, &series, &err);
    for (int i = 0; i < n; i++)
        if (responses[i].rc == -EINPROGRESS) {
            responses[i].rc = rc;
            responses[i].err = err;
        }
    return rc;
}

/* ---- opening ---- */

int weir_client_open(struct weir_client **out, const struct weir_client_config *config, struct weir_err *err)
{
    *out = NULL;
    int rc = weir_client_ready(err);
    if (rc < 0)
        return rc;
    weir_clock_init();
    struct weir_client *http = calloc(1, sizeof *http);
    if (!http)
        return weir_no_memory(err);
    http->config = *config;
    struct weir_client_config *c = &http->config;
    c->counts = c->counts ? c->counts : &http->unshared;
    c->attempts = c->attempts ? c->attempts : ATTEMPTS;
    c->connect_s = c->connect_s ? c->connect_s : CONNECT_S;
    c->stall_s = c->stall_s ? c->stall_s : STALL_S;
    c->pause_ns = c->pause_ns ? c->pause_ns : PAUSE_NS;
    http->random = weir_clock_monotonic_ns() | 1;
    http->done_end = &http->done;
    http->transfers = calloc((size_t)c->depth, sizeof *http->transfers);
    bool ok = weir_events_open(&http->events) && http->transfers;
    for (int i = c->depth - 1; i >= 0 && ok; i--) {
        http->transfers[i].http = http;
        make_idle(&http->transfers[i]);
    }
    if (!ok) {
        rc = weir_client_shortage(err); /* before closing gives some back */
        weir_client_close(&http);
        return rc;
    }
    *out = http;
    return 0;
}

void weir_client_close(struct weir_client **http)
{
    struct weir_client *h = *http;
    if (!h)
        return;
    if (h->transfers)
        weir_client_cancel(h);
    for (int i = 0; i < h->config.depth && h->transfers; i++)
        weir_transfer_close(&h->transfers[i]);
    weir_events_close(&h->events);
    free(h->transfers);
    free(h);
    *http = NULL;
}
