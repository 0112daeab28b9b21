#include "origin/remote.h"
#include "base/hash.h"
#include "base/shortage.h"
#include "origin/remote_priv.h"
#include "origin/s3_credentials.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

static const uint64_t PATIENCE_NS = (uint64_t)10 * 1000 * 1000 * 1000;

/* ---- requests ---- */

/* Returns an unused client, or NULL with err. */
static struct weir_client *take_client(struct weir_remote *r, struct weir_err *err)
{
    struct weir_client *http = NULL;
    pthread_mutex_lock(&r->lock);
    if (r->n_clients > 0)
        http = r->clients[--r->n_clients];
    pthread_mutex_unlock(&r->lock);
    if (!http)
        weir_remote_client(&r->origin, &http, WEIR_REMOTE_DEPTH, err);
    return http;
}

/* Keeps a client for later requests, or closes it after a failure. */
static void give_client(struct weir_remote *r, struct weir_client *http, int rc)
{
    pthread_mutex_lock(&r->lock);
    if (rc == 0 && r->n_clients < WEIR_REMOTE_CLIENTS) {
        r->clients[r->n_clients++] = http;
        http = NULL;
    }
    pthread_mutex_unlock(&r->lock);
    weir_client_close(&http);
}

void weir_remote_perform(struct weir_remote *r, const struct weir_client_request *requests, int n,
                         struct weir_client_response *responses)
{
    struct weir_err why = WEIR_ERR_NONE;
    struct weir_client *http = take_client(r, &why);
    for (int i = 0; i < n && !http; i++)
        responses[i] = (struct weir_client_response){.rc = why.code, .err = why};
    if (http)
        give_client(r, http, weir_client_do(http, requests, n, responses));
}

int weir_remote_get(struct weir_remote *r, const char *url, const char *path, const char *query, size_t limit,
                    struct weir_client_response *response)
{
    const struct weir_signed s = {r, "GET", path, query};
    struct weir_client_request request = {.url = url, .wanted = {.limit = limit}};
    weir_remote_set_signature(&request, &s);
    weir_remote_perform(r, &request, 1, response);
    return response->rc;
}

void weir_remote_get_pages(struct weir_remote *r, const char *const *urls, int n, size_t limit,
                           struct weir_client_response *responses)
{
    struct weir_client_request requests[WEIR_REMOTE_DEPTH];
    for (int i = 0; i < n; i++)
        requests[i] = (struct weir_client_request){.url = urls[i], .wanted = {.limit = limit}, .tag = (uint32_t)i};
    weir_remote_perform(r, requests, n, responses);
}

/* ---- objects ---- */

static struct weir_object **slot_of(struct weir_object **table, size_t slots, const char *path)
{
    size_t at = (size_t)weir_hash64(path, strlen(path)) & (slots - 1);
    while (table[at] && strcmp(table[at]->path, path) != 0)
        at = (at + 1) & (slots - 1);
    return &table[at];
}

/* Makes room for one more object. */
static bool grow_table(struct weir_remote *r)
{
    if (2 * (r->objects + 1) <= r->slots)
        return true;
    size_t slots = r->slots ? 2 * r->slots : 64;
    struct weir_object **table = calloc(slots, sizeof *table);
    if (!table)
        return false;
    for (size_t i = 0; i < r->slots; i++)
        if (r->table[i])
            *slot_of(table, slots, r->table[i]->path) = r->table[i];
    free(r->table);
    r->table = table;
    r->slots = slots;
    return true;
}

/* Writes the address of requests for a path. Returns the part that is signed, or NULL with err. */
static const char *address(const struct weir_remote *r, const char *path, char url[WEIR_REQUEST_URL_MAX],
                           struct weir_err *err)
{
    struct weir_url parts;
    char encoded[3 * WEIR_URL_MAX];
    if (weir_url_parse(&parts, path, err) < 0)
        return NULL;
    if (!r->is_s3) {
        snprintf(url, WEIR_REQUEST_URL_MAX, "%s%s", path, *parts.path ? "" : "/");
        return url + (parts.path - path);
    }
    if (!weir_url_encode(encoded, sizeof encoded, *parts.path ? parts.path : "/", true)) {
        weir_err_set(err, -ENAMETOOLONG, "the name is too long");
        return NULL;
    }
    int n = snprintf(url, WEIR_REQUEST_URL_MAX, "%s", r->endpoint);
    snprintf(url + n, (size_t)(WEIR_REQUEST_URL_MAX - n), "%s%s%s", r->path_style ? "/" : "",
             r->path_style ? r->bucket : "", encoded);
    return url + n;
}

static struct weir_object *make_object(struct weir_remote *r, const char *path, struct weir_err *err)
{
    char url[WEIR_REQUEST_URL_MAX];
    const char *rest = address(r, path, url, err);
    struct weir_object *object = rest ? calloc(1, sizeof *object) : NULL;
    if (!rest)
        return NULL;
    if (object) {
        object->path = strdup(path);
        object->url = strdup(url);
    }
    if (!object || !object->path || !object->url) {
        if (object) {
            free(object->path);
            free(object->url);
        }
        free(object);
        weir_no_memory(err);
        return NULL;
    }
    object->get = (struct weir_signed){r, "GET", object->url + (rest - url), ""};
    object->head = object->get;
    object->head.method = "HEAD";
    return object;
}

struct weir_object *weir_remote_object_at(struct weir_remote *r, const char *path, struct weir_err *err)
{
    struct weir_object *object = NULL;
    pthread_mutex_lock(&r->lock);
    bool fits = grow_table(r);
    struct weir_object **slot = fits ? slot_of(r->table, r->slots, path) : NULL;
    if (slot && !*slot) {
        *slot = make_object(r, path, err);
        r->objects += *slot != NULL;
    }
    object = slot ? *slot : NULL;
    pthread_mutex_unlock(&r->lock);
    if (!fits)
        weir_no_memory(err);
    return object;
}

static bool same_id(const struct weir_file_id *a, const struct weir_file_id *b)
{
    return a->size_bytes == b->size_bytes && a->inode == b->inode && a->mtime_ns == b->mtime_ns;
}

struct weir_object *weir_remote_object(struct weir_origin *origin, const char *path, const struct weir_file_id *id,
                                       struct weir_err *err)
{
    struct weir_object *object = weir_remote_known_object((struct weir_remote *)origin, path, err);
    if (!object || same_id(&object->id, id))
        return object;
    weir_err_set(err, -ESTALE, "the file changed since it was opened; rerun to index it again");
    return NULL;
}

void weir_remote_request(struct weir_object *object, const struct weir_origin_range *range, uint32_t tag,
                         struct weir_client_request *request)
{
    *request = (struct weir_client_request){
        .url = object->url,
        .wanted = {.offset = range->offset, .length = range->length, .file = &object->facts},
        .to = range->to,
        .check = weir_remote_check_sums,
        .checked = object,
        .tag = tag,
    };
    weir_remote_set_signature(request, &object->get);
}

/* The ranges of an object, one request each. */
struct fetch {
    struct weir_object *object;
    const struct weir_origin_range *next, *end;
};

static int next_range(void *user, struct weir_client_request *request, struct weir_err *err)
{
    struct fetch *f = user;
    (void)err;
    while (f->next < f->end && f->next->length == 0)
        f->next++;
    if (f->next == f->end)
        return 0;
    weir_remote_request(f->object, f->next++, 0, request);
    return 1;
}

static int take_range(void *user, struct weir_client_response *response, struct weir_err *err)
{
    (void)user;
    return response->rc < 0 ? weir_err_set(err, response->rc, "%s", response->err.text) : 0;
}

int weir_remote_fetch(struct weir_object *object, const struct weir_origin_range *ranges, int n, struct weir_err *err)
{
    struct fetch fetch = {object, ranges, ranges + n};
    const struct weir_client_series series = {next_range, take_range, &fetch};
    struct weir_err why = WEIR_ERR_NONE;
    struct weir_client *http = take_client(object->get.remote, &why);
    int rc = http ? weir_client_run(http, &series, &why) : why.code;
    if (http)
        give_client(object->get.remote, http, rc);
    return rc < 0 ? weir_err_set(err, rc, "%s", why.text) : 0;
}

static int read_ranges(struct weir_origin *origin, const char *path, const struct weir_file_id *id,
                       const struct weir_origin_range *ranges, int n, struct weir_err *err)
{
    struct weir_err why = WEIR_ERR_NONE;
    struct weir_object *object = weir_remote_object(origin, path, id, &why);
    if (!object)
        return weir_err_set(err, why.code ? why.code : -ENOMEM, "%s", why.text);
    return object->key.size_bytes || object->sums ? weir_remote_fetch_blocks(object, ranges, n, err)
                                                  : weir_remote_fetch(object, ranges, n, err);
}

static void cancel(struct weir_origin *origin)
{
    atomic_store(&((struct weir_remote *)origin)->stop, true);
}

/* ---- opening ---- */

static void close_remote(struct weir_origin *origin)
{
    struct weir_remote *r = (struct weir_remote *)origin;
    for (int i = 0; i < r->n_clients; i++)
        weir_client_close(&r->clients[i]);
    for (size_t i = 0; i < r->slots; i++)
        if (r->table[i]) {
            free(r->table[i]->path);
            free(r->table[i]->url);
            free(r->table[i]->sums);
            free(r->table[i]);
        }
    free(r->table);
    weir_disk_cache_close(&r->cache);
    pthread_mutex_destroy(&r->lock);
    pthread_mutex_destroy(&r->secrets);
    explicit_bzero(r, sizeof *r);
    free(r);
}

static void counts(const struct weir_origin *origin, struct weir_origin_counts *to)
{
    const struct weir_remote *r = (const struct weir_remote *)origin;
    const struct weir_client_counts *c = &r->counts;
    *to = (struct weir_origin_counts){
        .requests = atomic_load_explicit(&c->requests, memory_order_relaxed),
        .bytes = atomic_load_explicit(&c->bytes, memory_order_relaxed),
        .retries = atomic_load_explicit(&c->retries, memory_order_relaxed),
        .limited = atomic_load_explicit(&c->throttled, memory_order_relaxed),
        .connections = atomic_load_explicit(&c->connections, memory_order_relaxed),
        .wait_ns = atomic_load_explicit(&c->waited_ns, memory_order_relaxed),
        .transfer_ns = atomic_load_explicit(&c->transfer_ns, memory_order_relaxed),
        .host = ((const struct weir_remote *)origin)->host,
    };
    if (r->cache)
        weir_disk_cache_counts(r->cache, &to->cache);
}

static const struct weir_origin_ops ops = {
    .engine = "http",
    .identify = weir_remote_identify,
    .read = read_ranges,
    .counts = counts,
    .cancel = cancel,
    .close = close_remote,
};

/* Uses an endpoint of the user's own. Default ports are left out, as in the header Host. */
static int set_endpoint(struct weir_remote *r, const char *endpoint, struct weir_err *err)
{
    struct weir_url url;
    struct weir_err why = WEIR_ERR_NONE;
    if (weir_url_parse(&url, endpoint, &why) < 0 || url.is_s3 || (*url.path && strcmp(url.path, "/") != 0))
        return weir_err_set(err, -EINVAL, "the endpoint of S3 must be http(s)://HOST[:PORT]%s%s", why.code ? ": " : "",
                            why.text);
    const char *port = url.is_https ? ":443" : ":80";
    size_t n = url.host_length, p = strlen(port);
    n -= n > p && strncmp(url.host + n - p, port, p) == 0 ? p : 0;
    snprintf(r->host, sizeof r->host, "%.*s", (int)n, url.host);
    snprintf(r->endpoint, sizeof r->endpoint, "http%s://%.*s", url.is_https ? "s" : "", (int)n, url.host);
    r->path_style = true;
    return 0;
}

static const char *endpoint_of(const struct weir_remote_config *config)
{
    static const char *const variables[] = {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"};
    const char *endpoint = config->endpoint && *config->endpoint ? config->endpoint : NULL;
    for (int i = 0; i < 2 && !endpoint; i++)
        endpoint = getenv(variables[i]) && *getenv(variables[i]) ? getenv(variables[i]) : NULL;
    return endpoint;
}

static int set_s3(struct weir_remote *r, const struct weir_url *url, const struct weir_remote_config *config,
                  struct weir_err *err)
{
    const char *endpoint = endpoint_of(config);
    snprintf(r->bucket, sizeof r->bucket, "%.*s", (int)url->host_length, url->host);
    int rc = weir_s3_region(r->region, err);
    if (rc < 0)
        return rc;
    if (endpoint)
        return set_endpoint(r, endpoint, err);
    const char *suffix = strncmp(r->region, "cn-", 3) == 0 ? ".cn" : "";
    r->path_style = strchr(r->bucket, '.') != NULL; /* a certificate for *.s3 does not cover such a bucket */
    snprintf(r->host, sizeof r->host, "%s%ss3.%s.amazonaws.com%s", r->path_style ? "" : r->bucket,
             r->path_style ? "" : ".", r->region, suffix);
    snprintf(r->endpoint, sizeof r->endpoint, "https://%.270s", r->host);
    return 0;
}

int weir_remote_open(struct weir_origin **out, const char *text, const struct weir_remote_config *config,
                     struct weir_err *err)
{
    struct weir_url url;
    *out = NULL;
    int rc = weir_client_ready(err);
    rc = rc < 0 ? rc : weir_url_parse(&url, text, err);
    if (rc < 0)
        return rc;
    struct weir_remote *r = calloc(1, sizeof *r);
    if (!r)
        return weir_no_memory(err);
    r->origin.ops = &ops;
    pthread_mutex_init(&r->lock, NULL);
    pthread_mutex_init(&r->secrets, NULL);
    r->is_s3 = url.is_s3;
    r->anonymous = config->anonymous;
    r->patience_ns = config->patience_ns ? config->patience_ns : PATIENCE_NS;
    snprintf(r->host, sizeof r->host, "%.*s", (int)url.host_length, url.host);
    rc = url.is_s3 ? set_s3(r, &url, config, err) : 0;
    if (rc == 0 && config->cache)
        rc = weir_disk_cache_open(&r->cache, config->cache, err);
    if (rc < 0)
        close_remote(&r->origin);
    else
        *out = &r->origin;
    return rc;
}

int weir_remote_client(struct weir_origin *origin, struct weir_client **http, int depth, struct weir_err *err)
{
    struct weir_remote *r = (struct weir_remote *)origin;
    const struct weir_client_config config = {.depth = depth,
                                              .stop = &r->stop,
                                              .waiter = {weir_remote_stopped, r},
                                              .patience_ns = &r->patience_ns,
                                              .counts = &r->counts};
    return weir_client_open(http, &config, err);
}

void weir_remote_watch(struct weir_origin *origin, bool (*interrupted)(void *user), void *user)
{
    struct weir_remote *r = (struct weir_remote *)origin;
    r->owner = pthread_self();
    r->user = user;
    r->interrupted = interrupted;
}
