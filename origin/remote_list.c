/* Lists of files on servers: of a bucket, of a folder with index.json or an HTML index, or a list that the URL names.
 */
#include "base/grow.h"
#include "base/shortage.h"
#include "base/text.h"
#include "origin/listing.h"
#include "origin/remote_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 16, FOLDERS_MAX = 100 * 1000, NAMES_MAX = 10 * 1000 * 1000, PAGE_MAX_BYTES = 8 << 20 };

struct folder {
    char *url; /* ends with a slash */
    int depth;
};

struct walk {
    struct weir_remote *remote;
    bool (*wanted)(const char *name);
    weir_remote_found_fn *found;
    void *user;
    struct weir_err *err;
    const char *base; /* names are relative to it */
    int depth, names;
    bool follow; /* into folders */
    struct folder *folders;
    size_t n_folders, n_seen;
};

static int report(struct walk *w, const char *url, const char *why_not)
{
    if (++w->names > NAMES_MAX)
        return weir_err_set(w->err, -EFBIG, "the list has over %d names; choose a smaller folder", NAMES_MAX);
    return w->found(w->user, url, why_not);
}

/* Reports a name that cannot be used. */
static int report_unsafe(struct walk *w, const char *name)
{
    char text[256];
    snprintf(text, sizeof text, "%.250s", name);
    weir_text_printable(text);
    return report(w, text,
                  "a name in the server's list has empty parts, \"..\", control characters or over 1,024 bytes; "
                  "rename it there");
}

static int push_folder(struct walk *w, const char *url)
{
    if (w->depth >= DEPTH_MAX)
        return weir_err_set(w->err, -ELOOP,
                            "%s: lies more than %d folders deep; choose a folder closer to the episodes", url,
                            DEPTH_MAX);
    if (w->n_seen++ >= FOLDERS_MAX)
        return weir_err_set(w->err, -EFBIG, "over %d folders; choose a smaller one", FOLDERS_MAX);
    char *copy;
    if (asprintf(&copy, "%s/", url) < 0 || !weir_grow(&w->folders, w->n_folders, sizeof *w->folders))
        return weir_no_memory(w->err);
    w->folders[w->n_folders++] = (struct folder){copy, w->depth + 1};
    return 0;
}

/* Takes a name of a list on an HTTP server. */
static int take_name(void *user, const struct weir_listed *listed)
{
    struct walk *w = user;
    char encoded[3 * WEIR_URL_NAME_MAX + 1], url[WEIR_URL_MAX];
    const char *slash = strrchr(listed->name, '/'), *last = slash ? slash + 1 : listed->name;
    bool follow = listed->is_folder && w->follow;
    if (!follow && (listed->is_folder || !w->wanted(last)))
        return 0;
    bool safe = weir_name_is_safe(listed->name) && weir_url_encode(encoded, sizeof encoded, listed->name, true) &&
                (!follow || !slash);
    if (safe)
        safe = (size_t)snprintf(url, sizeof url, "%s%s", w->base, encoded) < sizeof url - 1;
    if (!safe)
        return report_unsafe(w, listed->name);
    return follow ? push_folder(w, url) : report(w, url, NULL);
}

static int get(struct walk *w, const char *url, struct weir_client_response *response)
{
    return weir_remote_get(w->remote, url, "", "", WEIR_LIST_MAX_BYTES, response);
}

static int fail(struct walk *w, const char *url, const struct weir_client_response *response)
{
    return weir_err_set(w->err, response->rc, "%s: %s", url, response->err.text);
}

/* ---- HTTP ---- */

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

/* Reads a list that the URL names. Returns 1 if it is missing and may be. */
static int read_list(struct walk *w, const char *url, bool may_be_missing)
{
    struct weir_client_response response;
    char base[WEIR_URL_MAX];
    const char *slash = strrchr(url, '/');
    snprintf(base, sizeof base, "%.*s", (int)(slash - url) + 1, url);
    w->base = base;
    int rc = get(w, url, &response);
    if (rc < 0)
        return may_be_missing && (rc == -ENOENT || rc == -EACCES) ? 1 : fail(w, url, &response);
    const char *text = response.body ? (const char *)response.body : "";
    rc = ends_with(url, ".txt") ? weir_listing_text(text, response.bytes, take_name, w, w->err)
                                : weir_listing_json(text, response.bytes, take_name, w, w->err);
    free(response.body);
    if (rc < 0)
        weir_err_prefix(w->err, "%s", url);
    return rc;
}

static int read_folder(struct walk *w, const char *url)
{
    struct weir_client_response response;
    int rc = get(w, url, &response);
    w->base = url;
    if (rc < 0)
        return fail(w, url, &response);
    const char *text = response.body ? (const char *)response.body : "";
    bool json = strcmp(response.head.type, "application/json") == 0; /* nginx's index in JSON */
    rc = json ? weir_listing_json(text, response.bytes, take_name, w, w->err)
              : weir_listing_html(text, response.bytes, take_name, w, w->err);
    free(response.body);
    if (rc < 0)
        weir_err_prefix(w->err, "%s", url);
    return rc;
}

static int walk_http(struct walk *w, const char *url)
{
    char list[WEIR_URL_MAX + 16];
    size_t n = strlen(url);
    n -= n > 0 && url[n - 1] == '/';
    if (ends_with(url, ".json") || ends_with(url, ".txt"))
        return read_list(w, url, false);
    snprintf(list, sizeof list, "%.*s/index.json", (int)n, url);
    int rc = read_list(w, list, true);
    if (rc <= 0)
        return rc;
    snprintf(list, sizeof list, "%.*s", (int)n, url);
    w->follow = true;
    for (rc = push_folder(w, list); rc == 0 && w->n_folders > 0;) {
        struct folder folder = w->folders[--w->n_folders];
        w->depth = folder.depth;
        rc = read_folder(w, folder.url);
        free(folder.url);
    }
    return rc;
}

/* ---- S3 ---- */

static int take_key(void *user, const struct weir_listed *listed)
{
    struct walk *w = user;
    char url[WEIR_URL_MAX];
    const char *slash = strrchr(listed->name, '/'), *last = slash ? slash + 1 : listed->name;
    if (!w->wanted(last))
        return 0;
    bool safe = weir_name_is_safe(listed->name) &&
                (size_t)snprintf(url, sizeof url, "s3://%s/%s", w->remote->bucket, listed->name) < sizeof url;
    if (!safe)
        return report_unsafe(w, listed->name);
    struct weir_object *object = listed->has_facts ? weir_remote_object_at(w->remote, url, w->err) : NULL;
    if (listed->has_facts && !object)
        return -ENOMEM;
    if (object)
        weir_remote_learn(w->remote, object, &listed->facts);
    return report(w, url, NULL);
}

static int walk_s3(struct walk *w, const char *path)
{
    char prefix[3 * WEIR_URL_MAX], token[WEIR_LIST_TOKEN_MAX] = "", encoded[3 * WEIR_LIST_TOKEN_MAX];
    char query[4 * WEIR_LIST_TOKEN_MAX + 3 * WEIR_URL_MAX], url[sizeof query + WEIR_URL_MAX],
        signed_path[WEIR_URL_HOST_MAX + 2];
    const struct weir_remote *r = w->remote;
    struct weir_client_response response;
    path += *path == '/';
    size_t n = strlen(path);
    int rc = weir_url_encode(prefix, sizeof prefix - 4, path, false) ? 0 : -ENAMETOOLONG;
    if (n > 0 && path[n - 1] != '/' && rc == 0)
        strcat(prefix, "%2F");
    snprintf(signed_path, sizeof signed_path, "/%s", r->path_style ? r->bucket : "");
    do {
        if (rc == 0 && !weir_url_encode(encoded, sizeof encoded, token, false))
            rc = -ENAMETOOLONG;
        if (rc < 0)
            return weir_err_set(w->err, rc, "the name is too long");
        snprintf(query, sizeof query, "%s%s%sencoding-type=url&list-type=2&prefix=%s",
                 *token ? "continuation-token=" : "", encoded, *token ? "&" : "", prefix);
        snprintf(url, sizeof url, "%s%s?%s", r->endpoint, signed_path, query);
        rc = weir_remote_get(w->remote, url, signed_path, query, PAGE_MAX_BYTES, &response);
        if (rc < 0)
            return weir_err_set(w->err, rc, "%s", response.err.text);
        rc = weir_listing_s3(response.body ? (const char *)response.body : "", response.bytes, token, take_key, w,
                             w->err);
        free(response.body);
    } while (rc == 0 && *token);
    return rc;
}

int weir_remote_list(struct weir_origin *origin, const char *url, bool (*wanted)(const char *name),
                     weir_remote_found_fn *found, void *user, struct weir_err *err)
{
    struct walk w = {
        .remote = (struct weir_remote *)origin, .wanted = wanted, .found = found, .user = user, .err = err};
    struct weir_url parts;
    int rc = weir_url_parse(&parts, url, err);
    if (rc == 0)
        rc = parts.is_s3 ? walk_s3(&w, parts.path) : walk_http(&w, url);
    while (w.n_folders > 0)
        free(w.folders[--w.n_folders].url);
    free(w.folders);
    return rc;
}
