#include "origin/http.h"
#include "base/shortage.h"
#include "base/threads.h"
#include "origin/http_priv.h"

#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ATTEMPTS = 8, CONNECT_S = 10, STALL_S = 20, STALL_BYTES_PER_S = 1000, REDIRECTS = 5, ERROR_BYTES = 4096 };
enum { BODY_FIRST = 16 << 10, SLICE_MS = 100 };
enum { FIRST_ATTEMPTS = 3 }; /* to reach a server that has never answered */
static const uint64_t PAUSE_NS = 100 * 1000 * 1000;

enum state { IDLE, FLYING, PAUSED, DONE };

/* A place for one request, which keeps its handle. */
struct transfer {
    CURL *easy;
    enum state state;
    struct weir_client *http;
    struct weir_client_request request;
    struct weir_client_response response;
    struct curl_slist *headers;
    int attempt;
    uint64_t resume_ns;  /* PAUSED: when the next attempt begins */
    uint64_t body_bytes; /* expected; UINT64_MAX = unknown */
    bool head_checked, is_error;
    uint64_t begin_ns, first_ns;
    size_t capacity; /* of response.body */
    char error[CURL_ERROR_SIZE], error_body[ERROR_BYTES];
    size_t error_bytes;
};

struct weir_client {
    struct weir_client_config config;
    CURLM *multi;
    struct transfer *transfers;
    bool has_answered;         /* a server has sent a head */
    int active, paused, ready; /* numbers of transfers in flight, paused, and done */
    uint64_t random;
    struct weir_client_counts unshared; /* if the configuration has none */
    struct weir_client_headers lines;   /* of the attempt that is being set up */
};

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

/* ---- what libcurl calls ---- */

/* Returns whether the response's body is kept only to describe the error. */
static bool is_error_status(int status)
{
    return status >= 300 && status != 412 && status != 416;
}

/* Decides about the response when its head is complete. */
static bool check_head(struct transfer *t)
{
    if (t->head_checked)
        return true;
    t->head_checked = true;
    t->is_error = is_error_status(t->response.head.status);
    if (t->is_error)
        return true;
    t->response.rc = weir_client_head_check(&t->response.head, &t->request.wanted, &t->body_bytes, &t->response.err);
    return t->response.rc == 0;
}

static size_t on_header(char *line, size_t size, size_t n, void *user)
{
    struct transfer *t = user;
    (void)size;
    t->http->has_answered = true;
    if (t->first_ns == 0)
        t->first_ns = weir_clock_monotonic_ns();
    if (weir_client_head_line(&t->response.head, line, n))
        return n;
    t->response.rc = weir_err_set(&t->response.err, -EREMOTEIO, "the head of the server's response exceeds %d KiB",
                                  WEIR_HEAD_MAX_BYTES >> 10);
    return 0;
}

/* Makes room for n more bytes and a final zero in a body without a range. */
static bool reserve(struct transfer *t, size_t n)
{
    struct weir_client_response *r = &t->response;
    if (n > t->request.wanted.limit - r->bytes) {
        r->rc = weir_err_set(&r->err, -EFBIG, "the response exceeds %zu bytes; name files or smaller folders",
                             t->request.wanted.limit);
        return false;
    }
    size_t capacity = t->capacity ? t->capacity : BODY_FIRST;
    while (capacity < r->bytes + n + 1)
        capacity *= 2;
    if (capacity == t->capacity)
        return true;
    uint8_t *more = realloc(r->body, capacity);
    if (!more) {
        r->rc = weir_no_memory(&r->err);
        return false;
    }
    r->body = more;
    t->capacity = capacity;
    return true;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *user)
{
    struct transfer *t = user;
    struct weir_client_response *r = &t->response;
    (void)size;
    if (!check_head(t))
        return 0;
    if (t->is_error) {
        size_t more = n < ERROR_BYTES - t->error_bytes ? n : ERROR_BYTES - t->error_bytes;
        memcpy(t->error_body + t->error_bytes, bytes, more);
        t->error_bytes += more;
        return more == n ? n : 0;
    }
    if (n > t->body_bytes - r->bytes) {
        r->rc = weir_err_set(&r->err, -EREMOTEIO, "the server sends more bytes than the requested range");
        return 0;
    }
    if (t->request.wanted.length == 0 && !reserve(t, n))
        return 0;
    memcpy((t->request.wanted.length ? t->request.to : r->body) + r->bytes, bytes, n);
    r->bytes += n;
    return n;
}

/* ---- one attempt ---- */

static bool set_fixed_options(struct transfer *t)
{
    const struct weir_client_config *c = &t->http->config;
    const char *file = weir_client_authorities();
    CURL *e = t->easy;
    bool ok = true;
#define SET(option, value) ok = ok && curl_easy_setopt(e, option, value) == CURLE_OK
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, t);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, t);
    SET(CURLOPT_PRIVATE, t);
    SET(CURLOPT_ERRORBUFFER, t->error);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_NOPROGRESS, 1L);
    SET(CURLOPT_PATH_AS_IS, 1L);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_CONNECTTIMEOUT, (long)c->connect_s);
    SET(CURLOPT_LOW_SPEED_LIMIT, (long)STALL_BYTES_PER_S);
    SET(CURLOPT_LOW_SPEED_TIME, (long)c->stall_s);
    SET(CURLOPT_USERAGENT, "weir");
    SET(CURLOPT_BUFFERSIZE, 64L << 10);
    SET(CURLOPT_MAXREDIRS, (long)REDIRECTS);
    if (c->no_proxy)
        SET(CURLOPT_PROXY, "");
    if (file)
        SET(CURLOPT_CAINFO, file);
#undef SET
    return ok;
}

static bool add_header(struct transfer *t, const char *line)
{
    struct curl_slist *more = curl_slist_append(t->headers, line);
    t->headers = more ? more : t->headers;
    return more != NULL;
}

static bool add_validator(struct transfer *t)
{
    const struct weir_remote_facts *file = t->request.wanted.file;
    char line[WEIR_ETAG_MAX + 64], date[WEIR_CLIENT_DATE];
    if (!file)
        return true;
    if (weir_etag_is_strong(file->etag)) {
        snprintf(line, sizeof line, "If-Match: %s", file->etag);
        return add_header(t, line);
    }
    if (file->modified_s == 0)
        return true;
    weir_client_date_text(file->modified_s, date);
    snprintf(line, sizeof line, "If-Unmodified-Since: %s", date);
    return add_header(t, line);
}

static void free_headers(struct transfer *t)
{
    for (struct curl_slist *h = t->request.has_secrets ? t->headers : NULL; h; h = h->next)
        explicit_bzero(h->data, strlen(h->data));
    if (t->request.has_secrets)
        explicit_bzero(&t->http->lines, sizeof t->http->lines);
    curl_slist_free_all(t->headers);
    t->headers = NULL;
}

/* Writes the headers of this attempt. */
static int set_headers(struct transfer *t)
{
    int rc = 0;
    free_headers(t);
    t->http->lines.n = 0;
    bool ok = add_validator(t) && (!t->request.header || add_header(t, t->request.header));
    if (t->request.prepare)
        rc = t->request.prepare(t->request.user, &t->http->lines, &t->response.err);
    for (int i = 0; i < t->http->lines.n && ok && rc == 0; i++)
        ok = add_header(t, t->http->lines.lines[i]);
    if (rc == 0 && (!ok || curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers) != CURLE_OK))
        rc = weir_no_memory(&t->response.err);
    return rc;
}

static int set_request(struct transfer *t)
{
    const struct weir_client_request *r = &t->request;
    char range[64] = "";
    bool https = strncmp(r->url, "https:", 6) == 0, ok = true;
    if (r->wanted.length)
        snprintf(range, sizeof range, "%llu-%llu", (unsigned long long)r->wanted.offset,
                 (unsigned long long)(r->wanted.offset + r->wanted.length - 1));
    ok = ok && curl_easy_setopt(t->easy, CURLOPT_URL, r->url) == CURLE_OK;
    ok = ok && curl_easy_setopt(t->easy, CURLOPT_RANGE, *range ? range : NULL) == CURLE_OK;
    ok = ok && curl_easy_setopt(t->easy, CURLOPT_NOBODY, r->wanted.is_head ? 1L : 0L) == CURLE_OK;
    if (!r->wanted.is_head)
        ok = ok && curl_easy_setopt(t->easy, CURLOPT_HTTPGET, 1L) == CURLE_OK;
    ok = ok && curl_easy_setopt(t->easy, CURLOPT_CUSTOMREQUEST, r->put) == CURLE_OK;
    ok = ok && curl_easy_setopt(t->easy, CURLOPT_FOLLOWLOCATION, r->has_secrets ? 0L : 1L) == CURLE_OK;
    ok = ok && curl_easy_setopt(t->easy, CURLOPT_REDIR_PROTOCOLS_STR, https ? "https" : "http,https") == CURLE_OK;
    return ok ? set_headers(t) : weir_no_memory(&t->response.err);
}

static void finish(struct transfer *t)
{
    t->state = DONE;
    t->http->ready++;
    free_headers(t);
}

static void begin(struct transfer *t)
{
    struct weir_client_response *r = &t->response;
    r->head = (struct weir_client_head){0};
    r->bytes = t->error_bytes = 0;
    r->rc = 0;
    r->err.code = 0;
    r->err.text[0] = '\0';
    t->head_checked = t->is_error = false;
    t->first_ns = 0;
    t->error[0] = '\0';
    t->attempt++;
    t->begin_ns = weir_clock_monotonic_ns();
    r->rc = set_request(t);
    if (r->rc == 0 && curl_multi_add_handle(t->http->multi, t->easy) != CURLM_OK)
        r->rc = weir_no_memory(&r->err);
    if (r->rc < 0) {
        finish(t);
        return;
    }
    t->state = FLYING;
    t->http->active++;
    count(&t->http->config.counts->requests, 1);
}

/* ---- results ---- */

/* Returns the error of a transfer that did not complete. *again: whether it may succeed when repeated. */
static int transfer_error(struct transfer *t, CURLcode code, bool *again)
{
    struct weir_err *err = &t->response.err;
    const char *why = *t->error ? t->error : curl_easy_strerror(code);
    *again = true;
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
        *again = t->http->has_answered || t->attempt < FIRST_ATTEMPTS;
        return weir_err_set(err, -EHOSTUNREACH, "%s; check the name of the host and the network", why);
    case CURLE_COULDNT_CONNECT:
        *again = t->http->has_answered || t->attempt < FIRST_ATTEMPTS;
        return weir_err_set(err, -ECONNREFUSED, "%s", why);
    case CURLE_OPERATION_TIMEDOUT:
        return weir_err_set(err, -ETIMEDOUT, "the server sends nothing or too slowly: %s", why);
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_SSL_CONNECT_ERROR:
        return weir_err_set(err, -EREMOTEIO, "the connection broke: %s", why);
    default:
        break;
    }
    *again = false;
    if (code == CURLE_OUT_OF_MEMORY)
        return weir_no_memory(err);
    if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE)
        return weir_err_set(err, -EACCES,
                            "the server's certificate is not trusted: %s; correct it, or name your "
                            "authority's file in CURL_CA_BUNDLE",
                            why);
    if (code == CURLE_TOO_MANY_REDIRECTS)
        return weir_err_set(err, -ELOOP, "the server redirects more than %d times", REDIRECTS);
    return weir_err_set(err, -EREMOTEIO, "%s", why);
}

/* Determines the result of an attempt. Returns whether to repeat it. */
static bool judge(struct transfer *t, CURLcode code)
{
    struct weir_client_response *r = &t->response;
    bool again = false;
    if (r->rc < 0) /* set by a callback */
        return false;
    if (code == CURLE_OK && !check_head(t))
        return false;
    if (t->is_error && (code == CURLE_OK || code == CURLE_WRITE_ERROR)) {
        again = weir_client_is_passing(r->head.status) && r->head.retry_after_s <= WEIR_CLIENT_RETRY_AFTER_MAX_S;
        r->rc = weir_client_status_error(&r->head, t->error_body, t->error_bytes, t->request.has_secrets, t->attempt,
                                         &r->err);
    } else if (code != CURLE_OK) {
        r->rc = transfer_error(t, code, &again);
    } else if (!t->request.wanted.is_head && t->body_bytes != UINT64_MAX && r->bytes != t->body_bytes) {
        again = true;
        r->rc = weir_err_set(&r->err, -EREMOTEIO, "the connection broke: %zu of %llu bytes arrived", r->bytes,
                             (unsigned long long)t->body_bytes);
    }
    return again;
}

static void count_attempt(struct transfer *t, bool again)
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

static void end_attempt(struct transfer *t, CURLcode code)
{
    struct weir_client *http = t->http;
    bool again = judge(t, code) && t->attempt < http->config.attempts;
    curl_multi_remove_handle(http->multi, t->easy);
    http->active--;
    count_attempt(t, again);
    if (!again) {
        finish(t);
        return;
    }
    t->state = PAUSED;
    t->resume_ns = weir_clock_monotonic_ns() + weir_client_pause_ns(http->config.pause_ns, t->attempt,
                                                                    t->response.head.retry_after_s, next_random(http));
    http->paused++;
}

static void end_attempts(struct weir_client *http)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(http->multi, &left)) != NULL) {
        struct transfer *t = NULL;
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
        struct transfer *t = &http->transfers[i];
        if (t->state != PAUSED)
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
        struct transfer *t = &http->transfers[i];
        if (t->state != FLYING && t->state != PAUSED)
            continue;
        if (t->state == FLYING) {
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
        struct transfer *t = &http->transfers[i];
        if (t->state != DONE)
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
        t->state = IDLE;
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
        struct transfer *t = &http->transfers[i];
        if (t->state != IDLE)
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
    for (int i = 0; i < c->depth && ok; i++) {
        struct transfer *t = &http->transfers[i];
        t->http = http;
        t->easy = curl_easy_init();
        ok = t->easy && set_fixed_options(t);
    }
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
    for (int i = 0; i < h->config.depth && h->transfers; i++) {
        free(h->transfers[i].response.body);
        free_headers(&h->transfers[i]);
        curl_easy_cleanup(h->transfers[i].easy);
    }
    curl_multi_cleanup(h->multi);
    free(h->transfers);
    free(h);
    *http = NULL;
}
