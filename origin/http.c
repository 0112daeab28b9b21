#include "origin/http.h"
#include "base/shortage.h"
#include "base/threads.h"
#include "origin/http_transfer_priv.h"

#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ATTEMPTS = 8, CONNECT_S = 10, STALL_S = 20, SLICE_MS = 100 };
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
    snprintf(text, size, "libcurl %s, %s, certificates %s", v->version, v->ssl_version ? v->ssl_version : "no TLS",
             file ? file : "not found");
    return true;
}

static uint64_t next_random(struct weir_client *http)
{
    http->random ^= http->random << 13;
    http->random ^= http->random >> 7;
    http->random ^= http->random << 17;
    return http->random;
}

static void count(_Atomic uint64_t *counter, uint64_t more)
{
    atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

/* ---- attempts ---- */

static void finish(struct weir_transfer *t)
{
    t->state = WEIR_TRANSFER_DONE;
    t->http->ready++;
    weir_transfer_free_headers(t);
}

static void begin(struct weir_transfer *t)
{
    struct weir_client_response *r = &t->response;
    r->rc = weir_transfer_prepare(t);
    if (r->rc == 0 && curl_multi_add_handle(t->http->multi, t->easy) != CURLM_OK)
        r->rc = weir_no_memory(&r->err);
    if (r->rc < 0) {
        finish(t);
        return;
    }
    t->state = WEIR_TRANSFER_FLYING;
    t->http->active++;
    count(&t->http->config.counts->requests, 1);
}

static void count_attempt(struct weir_transfer *t, bool again)
{
    struct weir_client_counts *c = t->http->config.counts;
    long connections = 0;
    uint64_t now_ns = weir_clock_monotonic_ns();
    curl_easy_getinfo(t->easy, CURLINFO_NUM_CONNECTS, &connections);
    count(&c->connections, connections > 0 ? (uint64_t)connections : 0);
    count(&c->bytes, t->response.bytes);
    count(&c->retries, again);
    count(&c->throttled, t->response.head.status == 429 || t->response.head.status == 503);
    if (t->first_ns) {
        count(&c->waited_ns, t->first_ns - t->begin_ns);
        count(&c->transfer_ns, now_ns - t->first_ns);
    }
}

static void end_attempt(struct weir_transfer *t, int code)
{
    struct weir_client *http = t->http;
    bool again = weir_transfer_judge(t, code) && t->attempt < http->config.attempts;
    curl_multi_remove_handle(http->multi, t->easy);
    http->active--;
    count_attempt(t, again);
    if (!again) {
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
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(http->multi, &left)) != NULL) {
        struct weir_transfer *t = NULL;
        CURLcode code = message->data.result;
        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&t);
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
            curl_multi_remove_handle(http->multi, t->easy);
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
    for (int i = 0; i < http->config.depth && n < max && http->ready > 0; i++) {
        struct weir_transfer *t = &http->transfers[i];
        if (t->state != WEIR_TRANSFER_DONE)
            continue;
        struct weir_client_response *r = &responses[n++];
        if (t->response.rc < 0) {
            free(t->response.body);
            t->response.body = NULL;
        } else if (t->response.body) {
            t->response.body[t->response.bytes] = '\0';
        }
        *r = t->response;
        t->response.body = NULL;
        t->capacity = 0;
        t->state = WEIR_TRANSFER_IDLE;
        http->ready--;
    }
    return n;
}

static int advance(struct weir_client *http, int wait_ms)
{
    int running;
    uint64_t until_ns = weir_clock_monotonic_ns() + (uint64_t)wait_ms * 1000000;
    for (;;) {
        if (must_stop(http))
            weir_client_cancel(http);
        uint64_t now_ns = weir_clock_monotonic_ns();
        int left_ms = now_ns < until_ns ? (int)((until_ns - now_ns) / 1000000) + 1 : 0;
        int slice_ms = resume(http, left_ms < SLICE_MS ? left_ms : SLICE_MS);
        if (curl_multi_perform(http->multi, &running) != CURLM_OK)
            return -EIO;
        end_attempts(http);
        if (http->ready > 0 || left_ms == 0 || http->active + http->paused == 0)
            return 0;
        if (curl_multi_poll(http->multi, NULL, 0, slice_ms, NULL) != CURLM_OK)
            return -EIO;
    }
}

int weir_client_wait(struct weir_client *http, struct weir_client_response *responses, int max, int wait_ms)
{
    sigset_t before;
    weir_pipe_signal_block(&before); /* libcurl with OpenSSL may write to a closed socket */
    int rc = advance(http, wait_ms);
    weir_pipe_signal_restore(&before);
    return rc < 0 ? rc : take_done(http, responses, max);
}

int weir_client_start(struct weir_client *http, const struct weir_client_request *request)
{
    for (int i = 0; i < http->config.depth; i++) {
        struct weir_transfer *t = &http->transfers[i];
        if (t->state != WEIR_TRANSFER_IDLE)
            continue;
        t->request = *request;
        t->response = (struct weir_client_response){.tag = request->tag};
        t->attempt = 0;
        begin(t);
        return 0;
    }
    return -EBUSY;
}

int weir_client_do(struct weir_client *http, const struct weir_client_request *request,
                   struct weir_client_response *response)
{
    int n = 0, rc = weir_client_start(http, request);
    while (rc == 0 && (n = weir_client_wait(http, response, 1, 10 * SLICE_MS)) == 0)
        continue;
    rc = rc < 0 ? rc : n < 0 ? n : 0;
    if (rc < 0) {
        *response = (struct weir_client_response){.rc = rc};
        weir_err_set(&response->err, rc, "HTTP request: %s", strerror(-rc));
    }
    return response->rc;
}

/* ---- opening ---- */

int weir_client_open(struct weir_client **out, const struct weir_client_config *config, struct weir_err *err)
{
    *out = NULL;
    int rc = weir_client_ready(err);
    if (rc < 0)
        return rc;
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
    http->multi = curl_multi_init();
    http->transfers = calloc((size_t)c->depth, sizeof *http->transfers);
    bool ok = http->multi && http->transfers &&
              curl_multi_setopt(http->multi, CURLMOPT_MAXCONNECTS, (long)c->depth) == CURLM_OK &&
              curl_multi_setopt(http->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING) == CURLM_OK;
    for (int i = 0; i < c->depth && ok; i++)
        ok = weir_transfer_open(&http->transfers[i], http);
    if (!ok) {
        weir_client_close(&http);
        return weir_no_memory(err);
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
    curl_multi_cleanup(h->multi);
    free(h->transfers);
    free(h);
    *http = NULL;
}
