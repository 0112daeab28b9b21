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

enum {
    DEPTH_MAX = 16,
    FOLDERS_MAX = 100 * 1000,
    NAMES_MAX = 10 * 1000 * 1000,
    PAGES_MAX = 100 * 1000,
    EMPTY_PAGES_MAX = 1000,
    PAGE_MAX_BYTES = 8 << 20,
    FOLDER_MAX_BYTES = 2 << 20
};

struct folder {
    char *url; /* ends with a slash */
    int depth;
};

struct walk {
    struct weir_remote *remote;
    const struct weir_remote_search *search;
    struct weir_err *err;
    const char *base;       /* names are relative to it */
    int depth, names, keys; /* keys: of an S3 list */
    bool follow;            /* into folders */
    bool has_hint;          /* the folder contains search->hint */
    struct folder *folders;
    size_t n_folders, n_seen;
};

/* Counts one more name, and fails if they are too many. */
static int count(struct walk *w, int *names)
{
    if (++*names > NAMES_MAX)
        return weir_err_set(w->err, -EFBIG, "the list has over %d names; choose a smaller folder", NAMES_MAX);
    return 0;
}

static int report(struct walk *w, const char *url, const char *why_not)
{
    int rc = count(w, &w->names);
    return rc < 0 ? rc : w->search->found(w->search->user, url, why_not);
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
    const struct weir_remote_search *search = w->search;
    char name[WEIR_URL_NAME_MAX + 1], encoded[3 * WEIR_URL_NAME_MAX + 1] = "", url[WEIR_URL_MAX];
    int part = search->part(listed->name, listed->is_folder);
    bool follow = part < 0 && listed->is_folder && w->follow;
    w->has_hint |= listed->is_folder && search->hint && strcmp(listed->name, search->hint) == 0;
    if (part < 0 && !follow)
        return 0;
    bool safe = weir_name_is_safe(listed->name) && !(follow && strchr(listed->name, '/'));
    if (safe) {
        snprintf(name, sizeof name, "%.*s", follow ? WEIR_URL_NAME_MAX : part, listed->name);
        safe = weir_url_encode(encoded, sizeof encoded, name, true) &&
               (size_t)snprintf(url, sizeof url, "%s%s", w->base, encoded) < sizeof url - 1;
    }
    if (!safe)
        return report_unsafe(w, listed->name);
    size_t n = strlen(url);
    if (part == 0 && url[n - 1] == '/')
        url[n - 1] = '\0';
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
    rc = weir_text_ends(url, ".txt") ? weir_listing_text(text, response.bytes, take_name, w, w->err)
                                     : weir_listing_json(text, response.bytes, take_name, w, w->err);
    free(response.body);
    if (rc < 0)
        weir_err_prefix(w->err, "%s", url);
    return rc;
}

/* If the folder that was read is wanted as a whole, reports it instead of the folders in it. */
static int check_whole(struct walk *w, const char *url, size_t folders_before)
{
    char folder[WEIR_URL_MAX];
    snprintf(folder, sizeof folder, "%.*s", (int)strlen(url) - 1, url);
    if (!w->has_hint || !w->search->is_whole(w->search->user, folder))
        return 0;
    while (w->n_folders > folders_before)
        free(w->folders[--w->n_folders].url);
    return report(w, folder, NULL);
}

/* Reads the page of a folder, whose response has arrived. */
static int read_page(struct walk *w, const char *url, struct weir_client_response *response)
{
    size_t before = w->n_folders;
    int rc = response->rc;
    if (rc == -EFBIG) /* it is too large to be read with others */
        rc = get(w, url, response);
    w->base = url;
    w->has_hint = false;
    if (rc < 0)
        return fail(w, url, response);
    const char *text = response->body ? (const char *)response->body : "";
    bool json = strcmp(response->head.type, "application/json") == 0; /* nginx's index in JSON */
    rc = json ? weir_listing_json(text, response->bytes, take_name, w, w->err)
              : weir_listing_html(text, response->bytes, take_name, w, w->err);
    if (rc < 0)
        weir_err_prefix(w->err, "%s", url);
    return rc == 0 ? check_whole(w, url, before) : rc;
}

/* Reads the pages of several folders at once. */
static int read_folders(struct walk *w)
{
    struct folder folders[WEIR_REMOTE_DEPTH];
    const char *urls[WEIR_REMOTE_DEPTH];
    struct weir_client_response responses[WEIR_REMOTE_DEPTH];
    int n = 0, rc = 0;
    for (; n < WEIR_REMOTE_DEPTH && w->n_folders > 0; n++) {
        folders[n] = w->folders[--w->n_folders];
        urls[n] = folders[n].url;
    }
    weir_remote_get_pages(w->remote, urls, n, n > 1 ? FOLDER_MAX_BYTES : WEIR_LIST_MAX_BYTES, responses);
    for (int i = 0; i < n; i++) {
        w->depth = folders[i].depth;
        rc = rc == 0 ? read_page(w, urls[i], &responses[i]) : rc;
        free(responses[i].body);
        free(folders[i].url);
    }
    return rc;
}

static int walk_http(struct walk *w, const char *url)
{
    char list[WEIR_URL_MAX + 16];
    size_t n = strlen(url);
    n -= n > 0 && url[n - 1] == '/';
    if (weir_text_ends(url, ".json") || weir_text_ends(url, ".txt"))
        return read_list(w, url, false);
    snprintf(list, sizeof list, "%.*s/index.json", (int)n, url);
    int rc = read_list(w, list, true);
    if (rc <= 0)
        return rc;
    snprintf(list, sizeof list, "%.*s", (int)n, url);
    w->follow = true;
    rc = push_folder(w, list);
    while (rc == 0 && w->n_folders > 0)
        rc = read_folders(w);
    return rc;
}

/* ---- S3 ---- */

static int take_key(void *user, const struct weir_listed *listed)
{
    struct walk *w = user;
    char url[WEIR_URL_MAX];
    size_t before = strlen(w->base);
    int rc = count(w, &w->keys);
    if (rc < 0)
        return rc;
    if (strncmp(listed->name, w->base, before) != 0)
        return weir_err_set(w->err, -EREMOTEIO,
                            "the bucket's list has names that do not begin with %s; " WEIR_SERVER_ADVICE, w->base);
    const char *name = listed->name + before;
    int part = w->search->part(name, false);
    if (part < 0)
        return 0;
    bool safe = weir_name_is_safe(listed->name) &&
                (size_t)snprintf(url, sizeof url, "s3://%s/%s", w->remote->bucket, listed->name) < sizeof url;
    if (!safe)
        return report_unsafe(w, listed->name);
    bool is_file = name[part] == '\0';
    struct weir_object *object = listed->has_facts && is_file ? weir_remote_object_at(w->remote, url, w->err) : NULL;
    if (listed->has_facts && is_file && !object)
        return -ENOMEM;
    if (object)
        weir_remote_learn(w->remote, object, &listed->facts);
    url[strlen(url) - strlen(name) + (size_t)part] = '\0';
    size_t n = strlen(url);
    if (part == 0 && url[n - 1] == '/')
        url[n - 1] = '\0';
    return report(w, url, NULL);
}

/* The pages of a list so far. */
struct pages {
    int n, empty;                     /* empty: those in a row without a name */
    char marked[WEIR_LIST_TOKEN_MAX]; /* the token of page 1, 2, 4, 8 ... */
};

/* Checks that a list goes on to its end. A cycle of tokens of any length meets a marked one again. */
static int check_page(struct walk *w, struct pages *pages, const char *token, bool is_empty)
{
    pages->n++;
    pages->empty = is_empty ? pages->empty + 1 : 0;
    if (*token && strcmp(token, pages->marked) == 0)
        return weir_err_set(w->err, -EREMOTEIO, "the bucket's list repeats a page; " WEIR_SERVER_ADVICE);
    if (*token && (pages->empty >= EMPTY_PAGES_MAX || pages->n >= PAGES_MAX))
        return weir_err_set(w->err, -EREMOTEIO, "the bucket's list does not end: %d pages%s; " WEIR_SERVER_ADVICE,
                            pages->empty >= EMPTY_PAGES_MAX ? pages->empty : pages->n,
                            pages->empty >= EMPTY_PAGES_MAX ? " without a name" : "");
    if ((pages->n & (pages->n - 1)) == 0)
        memcpy(pages->marked, token, sizeof pages->marked);
    return 0;
}

static int walk_s3(struct walk *w, const char *path)
{
    char prefix[3 * WEIR_URL_MAX], token[WEIR_LIST_TOKEN_MAX] = "", encoded[3 * WEIR_LIST_TOKEN_MAX];
    struct pages pages = {0};
    char query[4 * WEIR_LIST_TOKEN_MAX + 3 * WEIR_URL_MAX], url[sizeof query + WEIR_URL_MAX],
        signed_path[WEIR_URL_HOST_MAX + 2];
    const struct weir_remote *r = w->remote;
    struct weir_client_response response;
    char base[WEIR_URL_MAX + 1];
    path += *path == '/';
    size_t n = strlen(path);
    snprintf(base, sizeof base, "%s%s", path, n > 0 && path[n - 1] != '/' ? "/" : "");
    w->base = base;
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
        int keys = w->keys;
        rc = weir_remote_get(w->remote, url, signed_path, query, PAGE_MAX_BYTES, &response);
        if (rc < 0)
            return weir_err_set(w->err, rc, "%s", response.err.text);
        rc = weir_listing_s3(response.body ? (const char *)response.body : "", response.bytes, token, take_key, w,
                             w->err);
        free(response.body);
        rc = rc < 0 ? rc : check_page(w, &pages, token, w->keys == keys);
    } while (rc == 0 && *token);
    return rc;
}

int weir_remote_list(struct weir_origin *origin, const char *url, const struct weir_remote_search *search,
                     struct weir_err *err)
{
    struct walk w = {.remote = (struct weir_remote *)origin, .search = search, .err = err};
    struct weir_url parts;
    int rc = weir_url_parse(&parts, url, err);
    if (rc == 0)
        rc = parts.is_s3 ? walk_s3(&w, parts.path) : walk_http(&w, url);
    while (w.n_folders > 0)
        free(w.folders[--w.n_folders].url);
    free(w.folders);
    return rc;
}

/* ---- learning ---- */

static int all_files(const char *name, bool is_folder)
{
    return is_folder ? -1 : (int)strlen(name);
}

static int ignore(void *user, const char *url, const char *why_not)
{
    (void)user, (void)url, (void)why_not;
    return 0;
}

void weir_remote_learn_below(struct weir_origin *origin, const char *url)
{
    struct weir_err ignored = WEIR_ERR_NONE;
    if (((struct weir_remote *)origin)->is_s3)
        weir_remote_list(origin, url, &(struct weir_remote_search){.part = all_files, .found = ignore}, &ignored);
}
