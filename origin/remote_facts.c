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

/* A request for the facts of an object. It must stay in place until the request completes. */
struct question {
    struct weir_object *object;
    struct weir_signed head;
};

static void set_question(struct question *q, struct weir_object *object, struct weir_client_request *request)
{
    *q = (struct question){object, object->get};
    q->head.method = "HEAD";
    *request = (struct weir_client_request){.url = object->url, .wanted = {.is_head = true}};
    weir_remote_set_signature(request, &q->head);
}

/* Takes the facts out of the response. Frees its body. */
static int take_answer(struct weir_object *object, struct weir_client_response *response,
                       struct weir_remote_facts *facts, struct weir_err *err)
{
    free(response->body);
    atomic_store_explicit(&object->missing, response->rc == -ENOENT, memory_order_relaxed);
    if (response->rc < 0)
        return weir_err_set(err, response->rc, "%s", response->err.text);
    if (!response->head.has_length)
        return weir_err_set(err, -EREMOTEIO, "the server does not state the file's size; " WEIR_SERVER_ADVICE);
    const struct weir_client_head *head = &response->head;
    *facts = (struct weir_remote_facts){
        .size_bytes = head->length, .modified_s = head->modified_s, .is_recent = head->date_s <= head->modified_s};
    memcpy(facts->etag, response->head.etag, sizeof facts->etag);
    return 0;
}

static int ask(struct weir_remote *r, struct weir_object *object, struct weir_remote_facts *facts, struct weir_err *err)
{
    struct weir_client_response response;
    struct weir_client_request request;
    struct question question;
    set_question(&question, object, &request);
    weir_remote_perform(r, &request, &response);
    return take_answer(object, &response, facts, err);
}

int weir_remote_identify(struct weir_origin *origin, const char *path, struct weir_file_id *id, struct weir_err *err)
{
    struct weir_remote *r = (struct weir_remote *)origin;
    struct weir_remote_facts facts;
    struct weir_object *object = weir_remote_object_at(r, path, err);
    if (!object)
        return -EINVAL;
    bool known = atomic_load_explicit(&object->known, memory_order_acquire);
    if (atomic_load_explicit(&object->missing, memory_order_relaxed))
        return weir_err_set(err, -ENOENT, "the server has no such file; check the URL");
    int rc = known ? 0 : ask(r, object, &facts, err);
    if (rc < 0)
        return rc;
    if (!known)
        weir_remote_learn(r, object, &facts);
    *id = object->id;
    return 0;
}

/* ---- many files at once ---- */

/* Requests in flight. */
struct questions {
    struct weir_remote *remote;
    struct weir_client *http;
    struct question all[ASK_DEPTH]; /* by tag */
    int unused[ASK_DEPTH], n_unused;
    bool failed; /* so badly that the rest is not asked for */
};

static void start_question(struct questions *q, const char *path)
{
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_client_request request;
    struct weir_object *object = weir_remote_object_at(q->remote, path, &err);
    if (!object || atomic_load_explicit(&object->known, memory_order_acquire))
        return;
    int tag = q->unused[--q->n_unused];
    set_question(&q->all[tag], object, &request);
    request.tag = (uint32_t)tag;
    q->failed = weir_client_start(q->http, &request) < 0;
}

static void take_answers(struct questions *q)
{
    struct weir_client_response responses[16];
    int n = weir_remote_wait(q->remote, q->http, responses, 16);
    q->failed |= n < 0;
    for (int i = 0; i < n; i++) {
        struct weir_err err = WEIR_ERR_NONE;
        struct weir_remote_facts facts;
        struct weir_object *object = q->all[responses[i].tag].object;
        q->unused[q->n_unused++] = (int)responses[i].tag;
        int rc = take_answer(object, &responses[i], &facts, &err);
        if (rc == 0)
            weir_remote_learn(q->remote, object, &facts);
        q->failed |= rc < 0 && rc != -ENOENT && rc != -EACCES;
    }
}

void weir_remote_identify_all(struct weir_origin *origin, char *const *paths, int n)
{
    struct weir_err err = WEIR_ERR_NONE;
    struct questions *q = n > 1 ? calloc(1, sizeof *q) : NULL;
    if (!q)
        return;
    q->remote = (struct weir_remote *)origin;
    for (int i = 0; i < ASK_DEPTH; i++)
        q->unused[q->n_unused++] = i;
    if (weir_remote_client(origin, &q->http, ASK_DEPTH, &err) == 0) {
        for (int next = 0; !q->failed && (next < n || q->n_unused < ASK_DEPTH);) {
            while (next < n && q->n_unused > 0 && !q->failed)
                start_question(q, paths[next++]);
            if (q->n_unused < ASK_DEPTH)
                take_answers(q);
        }
        weir_client_close(&q->http); /* cancels what is left after a failure */
    }
    free(q);
}
