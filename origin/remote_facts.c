/* Identities of files on servers: from lists, or by one HEAD request per file. */
#include "base/hash.h"
#include "origin/remote_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ASK_DEPTH = 64 };

/* The ETag identifies the bytes; only files without one need their time. If a change might not show in either, the
 * identity is another one in each process, so that no index file is used. */
static struct weir_file_id id_of(const struct weir_remote *r, const struct weir_object *object,
                                 const struct weir_remote_facts *facts)
{
    const char *what = *facts->etag ? facts->etag : object->path;
    bool is_sure = *facts->etag || (facts->modified_s && !facts->is_recent);
    uint64_t process = is_sure ? 0 : weir_clock_monotonic_ns();
    return (struct weir_file_id){.size_bytes = facts->size_bytes,
                                 .device = weir_hash64(r->host, strlen(r->host)),
                                 .inode = (weir_hash64(what, strlen(what)) ^ process) | 1,
                                 .mtime_ns = *facts->etag ? 0 : facts->modified_s * 1000000000};
}

void weir_remote_learn(struct weir_remote *r, struct weir_object *object, const struct weir_remote_facts *facts)
{
    pthread_mutex_lock(&r->lock);
    if (!object->known) {
        object->facts = *facts;
        object->id = id_of(r, object, facts);
        if (r->cache)
            weir_remote_set_key(r->cache, object);
        weir_remote_learn_sums(r, object);
        atomic_store_explicit(&object->known, true, memory_order_release);
    }
    pthread_mutex_unlock(&r->lock);
}

static struct weir_client_request question_of(const struct weir_object *object, uint32_t tag)
{
    struct weir_client_request request = {.url = object->url, .wanted = {.is_head = true}, .tag = tag};
    weir_remote_set_signature(&request, &object->head);
    return request;
}

/* Learns the facts in a response, and frees its body. */
static int take_answer(struct weir_remote *r, struct weir_object *object, struct weir_client_response *response,
                       struct weir_err *err)
{
    const struct weir_client_head *head = &response->head;
    free(response->body);
    atomic_store_explicit(&object->missing, response->rc == -ENOENT, memory_order_relaxed);
    if (response->rc < 0)
        return weir_err_set(err, response->rc, "%s", response->err.text);
    if (!head->has_length)
        return weir_err_set(err, -EREMOTEIO, "the server does not state the file's size; " WEIR_SERVER_ADVICE);
    struct weir_remote_facts facts = {
        .size_bytes = head->length, .modified_s = head->modified_s, .is_recent = head->date_s <= head->modified_s};
    memcpy(facts.etag, head->etag, sizeof facts.etag);
    weir_remote_learn(r, object, &facts);
    return 0;
}

struct weir_object *weir_remote_known_object(struct weir_remote *r, const char *path, struct weir_err *err)
{
    struct weir_client_response response;
    struct weir_object *object = weir_remote_object_at(r, path, err);
    if (!object)
        return NULL;
    if (atomic_load_explicit(&object->missing, memory_order_relaxed)) {
        weir_err_set(err, -ENOENT, "the server has no such file; check the URL");
        return NULL;
    }
    if (atomic_load_explicit(&object->known, memory_order_acquire))
        return object;
    const struct weir_client_request request = question_of(object, 0);
    weir_remote_perform(r, &request, 1, &response);
    return take_answer(r, object, &response, err) < 0 ? NULL : object;
}

int weir_remote_identify(struct weir_origin *origin, const char *path, struct weir_file_id *id, struct weir_err *err)
{
    struct weir_err why = WEIR_ERR_NONE;
    const struct weir_object *object = weir_remote_known_object((struct weir_remote *)origin, path, &why);
    if (!object)
        return weir_err_set(err, why.code, "%s", why.text);
    *id = object->id;
    return 0;
}

/* ---- many files at once ---- */

struct questions {
    struct weir_remote *remote;
    char *const *paths;
    int n, next;
};

static int next_question(void *user, struct weir_client_request *request, struct weir_err *err)
{
    struct questions *q = user;
    while (q->next < q->n) {
        struct weir_object *object = weir_remote_object_at(q->remote, q->paths[q->next++], err);
        if (!object || atomic_load_explicit(&object->known, memory_order_acquire))
            continue;
        *request = question_of(object, (uint32_t)q->next - 1);
        return 1;
    }
    return 0;
}

static int take_question(void *user, struct weir_client_response *response, struct weir_err *err)
{
    struct questions *q = user;
    struct weir_object *object = weir_remote_object_at(q->remote, q->paths[response->tag], err);
    int rc = take_answer(q->remote, object, response, err);
    return rc == -ENOENT || rc == -EACCES ? 0 : rc;
}

void weir_remote_identify_all(struct weir_origin *origin, char *const *paths, int n)
{
    struct questions q = {(struct weir_remote *)origin, paths, n, 0};
    const struct weir_client_series series = {next_question, take_question, &q};
    struct weir_client *http;
    struct weir_err ignored = WEIR_ERR_NONE;
    if (n > 1 && weir_remote_client(origin, &http, ASK_DEPTH, &ignored) == 0) {
        weir_client_run(http, &series, &ignored);
        weir_client_close(&http);
    }
}
