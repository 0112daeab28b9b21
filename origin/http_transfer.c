/* The attempts of one request: what libcurl calls, options and headers, the result, and the stages. */
#include "base/shortage.h"
#include "origin/http_transfer_priv.h"
#include "weir/recorder.h"
#include "weir/stages.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STALL_BYTES_PER_S = 1000, REDIRECTS = 5, BODY_FIRST = 16 << 10 };
_Static_assert(WEIR_TRANSFER_TEXT_BYTES >= CURL_ERROR_SIZE, "libcurl's messages fit");

/* ---- what libcurl calls ---- */

/* Returns whether the response's body is kept only to describe the error. */
static bool is_error_status(int status)
{
    return status >= 300 && status != 412 && status != 416;
}

/* Decides about the response when its head is complete. */
static bool check_head(struct weir_transfer *t)
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

static int long_head(struct weir_err *err)
{
    return weir_err_set(err, -EREMOTEIO, "the head of the server's response exceeds %d KiB; " WEIR_SERVER_ADVICE,
                        WEIR_HEAD_MAX_BYTES >> 10);
}

/* Lines after the body change nothing, but count. */
static bool fits_trailer(struct weir_client_head *head, size_t n)
{
    bool fits = n <= WEIR_HEAD_MAX_BYTES - head->bytes;
    head->bytes += fits ? n : 0;
    return fits;
}

static size_t on_header(char *line, size_t size, size_t n, void *user)
{
    struct weir_transfer *t = user;
    (void)size;
    t->http->has_answered = true;
    if (t->first == 0)
        t->first = weir_clock_ticks();
    if (t->head_checked ? fits_trailer(&t->response.head, n) : weir_client_head_line(&t->response.head, line, n))
        return n;
    t->response.rc = long_head(&t->response.err);
    return 0;
}

/* Makes room for n more bytes and a final zero in a body without a range. */
static bool reserve(struct weir_transfer *t, size_t n)
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
    struct weir_transfer *t = user;
    struct weir_client_response *r = &t->response;
    (void)size;
    if (!check_head(t))
        return 0;
    if (t->is_error) {
        size_t more = n < WEIR_TRANSFER_ERROR_BYTES - t->error_bytes ? n : WEIR_TRANSFER_ERROR_BYTES - t->error_bytes;
        memcpy(t->error_body + t->error_bytes, bytes, more);
        t->error_bytes += more;
        return more == n ? n : 0;
    }
    if (n > t->body_bytes - r->bytes) {
        r->rc = weir_err_set(&r->err, -EREMOTEIO,
                             "the server sends more bytes than the requested range; " WEIR_SERVER_ADVICE);
        return 0;
    }
    if (t->request.wanted.length == 0 && !reserve(t, n))
        return 0;
    memcpy((t->request.wanted.length ? t->request.to : r->body) + r->bytes, bytes, n);
    r->bytes += n;
    return n;
}

/* ---- one attempt ---- */

static bool set_fixed_options(struct weir_transfer *t)
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
    SET(CURLOPT_SHARE, t->http->events.share);
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
    SET(CURLOPT_QUICK_EXIT, 1L); /* do not wait for the resolver of a request that is cancelled */
    if (c->no_proxy)
        SET(CURLOPT_PROXY, "");
    if (file)
        SET(CURLOPT_CAINFO, file);
#undef SET
    return ok;
}

static int add_header(struct weir_transfer *t, const char *line)
{
    if (!weir_header_is_plain(line))
        return weir_err_set(&t->response.err, -EINVAL,
                            "the value of %.*s has control characters, which could add lines to the request; correct "
                            "it where it comes from",
                            (int)strcspn(line, ":"), line);
    struct curl_slist *more = curl_slist_append(t->headers, line);
    t->headers = more ? more : t->headers;
    return more ? 0 : weir_no_memory(&t->response.err);
}

static int add_validator(struct weir_transfer *t)
{
    const struct weir_remote_facts *file = t->request.wanted.file;
    char line[WEIR_ETAG_MAX + 64], date[WEIR_CLIENT_DATE];
    if (!file)
        return 0;
    if (weir_etag_is_strong(file->etag)) {
        snprintf(line, sizeof line, "If-Match: %s", file->etag);
        return add_header(t, line);
    }
    if (file->modified_s == 0)
        return 0;
    weir_client_date_text(file->modified_s, date);
    snprintf(line, sizeof line, "If-Unmodified-Since: %s", date);
    return add_header(t, line);
}

void weir_transfer_free_headers(struct weir_transfer *t)
{
    for (struct curl_slist *h = t->request.has_secrets ? t->headers : NULL; h; h = h->next)
        explicit_bzero(h->data, strlen(h->data));
    if (t->request.has_secrets)
        explicit_bzero(&t->http->lines, sizeof t->http->lines);
    curl_slist_free_all(t->headers);
    t->headers = NULL;
}

/* Writes the headers of this attempt. */
static int set_headers(struct weir_transfer *t)
{
    weir_transfer_free_headers(t);
    t->http->lines.n = 0;
    int rc = add_validator(t);
    if (rc == 0 && t->request.header)
        rc = add_header(t, t->request.header);
    if (rc == 0 && t->request.prepare)
        rc = t->request.prepare(t->request.user, &t->http->lines, &t->response.err);
    for (int i = 0; i < t->http->lines.n && rc == 0; i++)
        rc = add_header(t, t->http->lines.lines[i]);
    if (rc == 0 && curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers) != CURLE_OK)
        rc = weir_no_memory(&t->response.err);
    return rc;
}

static int set_request(struct weir_transfer *t)
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

/* Sets up the attempt. Returns 0 or the code in the response. */
static int prepare(struct weir_transfer *t)
{
    struct weir_client_response *r = &t->response;
    r->head = (struct weir_client_head){0};
    r->bytes = t->error_bytes = 0;
    r->rc = 0;
    r->err.code = 0;
    r->err.text[0] = '\0';
    t->head_checked = t->is_error = false;
    t->first = 0;
    t->error[0] = '\0';
    t->attempt++;
    t->begin = weir_clock_ticks();
    return r->rc = set_request(t);
}

/* ---- results ---- */

/* Returns the error of a transfer that did not complete. *again: whether it may succeed when repeated. */
static int transfer_error(struct weir_transfer *t, CURLcode code, bool *again)
{
    struct weir_err *err = &t->response.err;
    const char *why = *t->error ? t->error : curl_easy_strerror(code);
    *again = true;
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
        if (weir_client_lacks_descriptors(err))
            return err->code;
        return weir_err_set(err, -EHOSTUNREACH, "%s; check the name of the host and the network", why);
    case CURLE_COULDNT_CONNECT:
        if (weir_client_lacks_descriptors(err))
            return err->code;
        return weir_err_set(err, -ECONNREFUSED, "%s; check the address, and whether the server runs", why);
    case CURLE_OPERATION_TIMEDOUT:
        return weir_err_set(err, -ETIMEDOUT,
                            "the server sends nothing or too slowly: %s; check the network and the server's load", why);
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_SSL_CONNECT_ERROR:
        return weir_err_set(err, -EREMOTEIO, "the connection broke: %s; check the network and the server", why);
    default:
        break;
    }
    *again = false;
    if (code == CURLE_OUT_OF_MEMORY && t->first && !t->head_checked) /* a line that is longer than libcurl's limit */
        return long_head(err);
    if (code == CURLE_OUT_OF_MEMORY)
        return weir_client_shortage(err);
    if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE)
        return weir_err_set(err, -EACCES,
                            "the server's certificate is not trusted: %s; correct it, or name your "
                            "authority's file in CURL_CA_BUNDLE",
                            why);
    if (code == CURLE_TOO_MANY_REDIRECTS)
        return weir_err_set(err, -ELOOP, "the server redirects more than %d times; use the address of the data itself",
                            REDIRECTS);
    return weir_err_set(err, -EREMOTEIO, "%s; check the URL and the server", why);
}

/* Determines the result of the attempt. Returns whether it may succeed when repeated. */
static bool judge(struct weir_transfer *t, CURLcode code)
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
        r->rc = weir_err_set(&r->err, -EREMOTEIO,
                             "the connection broke: %zu of %llu bytes arrived; check the network and the server",
                             r->bytes, (unsigned long long)t->body_bytes);
    } else if (t->request.check) {
        r->rc = t->request.check(t->request.checked, &t->request, &r->head, &r->err);
    }
    return again;
}

/* ---- attempts ---- */

static void count(_Atomic uint64_t *counter, uint64_t more)
{
    atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

static int place_of(const struct weir_transfer *t)
{
    return (int)(t - t->http->transfers);
}

static bool make_handle(struct weir_transfer *t)
{
    t->easy = curl_easy_init();
    return t->easy && set_fixed_options(t);
}

int weir_transfer_begin(struct weir_transfer *t)
{
    struct weir_client_response *r = &t->response;
    r->rc = t->easy || make_handle(t) ? prepare(t) : weir_client_shortage(&r->err);
    if (t->attempt > 1)
        weir_span(WEIR_STAGE_RETRY_PAUSE, t->end, t->begin);
    if (r->rc == 0 && !weir_events_add(&t->http->events, place_of(t), t->easy))
        r->rc = weir_client_shortage(&r->err);
    if (r->rc == 0)
        count(&t->http->config.counts->requests, 1);
    return r->rc;
}

/* Returns how long the attempt took to connect, in ticks; 0 if the connection existed. */
static uint64_t connecting(const struct weir_transfer *t, long connections)
{
    curl_off_t us = 0, tls_us = 0;
    if (connections == 0)
        return 0;
    curl_easy_getinfo(t->easy, CURLINFO_CONNECT_TIME_T, &us);
    curl_easy_getinfo(t->easy, CURLINFO_APPCONNECT_TIME_T, &tls_us);
    us = tls_us > us ? tls_us : us;
    return us > 0 ? (uint64_t)((double)us * 1000 / weir_clock_ns_per_tick()) : 0;
}

static void record_stages(struct weir_transfer *t, long connections, uint64_t now)
{
    uint64_t connected = t->begin + connecting(t, connections);
    if (connected > t->begin)
        weir_span(WEIR_STAGE_CONNECT, t->begin, connected);
    if (!t->first)
        return;
    weir_span(WEIR_STAGE_FIRST_BYTE, connected < t->first ? connected : t->first, t->first);
    weir_span(WEIR_STAGE_TRANSFER, t->first, now);
}

static void count_attempt(struct weir_transfer *t, bool again)
{
    struct weir_client_counts *c = t->http->config.counts;
    struct weir_client_response *r = &t->response;
    long connections = 0;
    uint64_t now = weir_clock_ticks();
    curl_easy_getinfo(t->easy, CURLINFO_NUM_CONNECTS, &connections);
    count(&c->connections, connections > 0 ? (uint64_t)connections : 0);
    count(&c->bytes, r->bytes);
    count(&c->retries, again);
    count(&c->throttled, r->head.status == 429 || r->head.status == 503);
    r->took_ns = weir_clock_to_ns(now - t->begin);
    r->first_byte_ns = t->first ? weir_clock_to_ns(t->first - t->begin) : 0;
    if (t->first) {
        count(&c->waited_ns, r->first_byte_ns);
        count(&c->transfer_ns, r->took_ns - r->first_byte_ns);
    }
    record_stages(t, connections, now);
}

void weir_transfer_stop(struct weir_transfer *t)
{
    weir_events_remove(&t->http->events, place_of(t), t->easy);
}

bool weir_transfer_end(struct weir_transfer *t, int code)
{
    bool again = judge(t, (CURLcode)code) && t->attempt < weir_transfer_attempts(t->http);
    weir_transfer_stop(t);
    count_attempt(t, again);
    if (again)
        snprintf(t->why, sizeof t->why, "%.*s", (int)strcspn(t->response.err.text, ";"), t->response.err.text);
    t->end = weir_clock_ticks();
    return again;
}

void weir_transfer_close(struct weir_transfer *t)
{
    free(t->response.body);
    weir_transfer_free_headers(t);
    curl_easy_cleanup(t->easy);
}
