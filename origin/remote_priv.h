/* remote_priv.h: state of an origin on servers. */
#ifndef WEIR_ORIGIN_REMOTE_PRIV_H
#define WEIR_ORIGIN_REMOTE_PRIV_H

#include "origin/disk_cache.h"
#include "origin/remote.h"
#include "origin/s3_sign.h"
#include "origin/url.h"

#include <pthread.h>

enum { WEIR_REMOTE_CLIENTS = 64, WEIR_REMOTE_DEPTH = 32, WEIR_REQUEST_URL_MAX = 4 * WEIR_URL_MAX };

/* What a signature covers. */
struct weir_signed {
    struct weir_remote *remote;
    const char *method, *path, *query; /* as in struct weir_s3_request */
};

/* A file. Objects stay valid until the origin is closed. */
struct weir_object {
    char *path, *url; /* the dataset's name of the file, and the address of requests */
    struct weir_signed get, head;
    struct weir_file_id id;
    struct weir_remote_facts facts; /* constant once known is set, like key */
    struct weir_disk_key key;
    _Atomic uint32_t *sums;      /* of blocks of WEIR_DISK_BLOCK bytes that were read; 0 = none. NULL: not needed */
    _Atomic bool known, missing; /* missing: the server had no such file when it was asked */
    _Atomic bool changed;        /* a block was read twice and differed */
};

struct weir_remote {
    struct weir_origin origin;
    bool is_s3, anonymous, path_style;
    char endpoint[WEIR_URL_HOST_MAX + 16]; /* scheme and host of requests, without a final slash */
    char host[2 * WEIR_URL_HOST_MAX];      /* of the header Host */
    char bucket[WEIR_URL_HOST_MAX], region[WEIR_S3_REGION_MAX];
    struct weir_client_counts counts;
    struct weir_disk_cache *cache; /* NULL = none */
    _Atomic bool stop;
    _Atomic bool has_loose, warned; /* some file has no strong ETag; the first one without any validator was named */
    _Atomic uint64_t patience_ns;   /* a longer wait without a response is reported */
    bool (*interrupted)(void *user);
    void *user;
    pthread_t owner;      /* the thread that may call interrupted */
    pthread_mutex_t lock; /* protects the members below */
    struct weir_object **table;
    size_t slots, objects;
    struct weir_client *clients[WEIR_REMOTE_CLIENTS]; /* unused ones */
    int n_clients;
    pthread_mutex_t secrets; /* protects the members below */
    bool has_credentials;
    int64_t renew_s; /* time of the next attempt to renew credentials that expire soon, or to find some */
    struct weir_err no_credentials; /* why the last attempt found none */
    struct weir_s3_credentials credentials;
    struct weir_s3_day day;
};

/* Returns the object with this path, which is added if it is missing. Returns NULL with err. */
struct weir_object *weir_remote_object_at(struct weir_remote *remote, const char *path, struct weir_err *err);
/* Stores what a list says of an object, unless it is known. */
void weir_remote_learn(struct weir_remote *remote, struct weir_object *object, const struct weir_remote_facts *facts);

/* Reads all n ranges of an object from the server, with many requests at once. */
int weir_remote_fetch(struct weir_object *object, const struct weir_origin_range *ranges, int n, struct weir_err *err);
/* The same in whole blocks: reads them from the cache where it has them, and stores the rest there. */
int weir_remote_fetch_blocks(struct weir_object *object, const struct weir_origin_range *ranges, int n,
                             struct weir_err *err);
/* Sets the key of an object whose facts are known. */
void weir_remote_set_key(const struct weir_disk_cache *cache, struct weir_object *object);

/* Prepares to compare later reads of an object, whose facts must be known, with earlier ones, unless it has a strong
 * ETag. Reports the first file without any validator. */
void weir_remote_learn_sums(struct weir_remote *remote, struct weir_object *object);
/* Compares the whole blocks of a response with those that were read before. For weir_client_request. */
int weir_remote_check_sums(void *object, const struct weir_client_request *request, const struct weir_client_head *head,
                           struct weir_err *err);

/* Returns the object whose facts are known; asks the server for them if necessary. Returns NULL with err. */
struct weir_object *weir_remote_known_object(struct weir_remote *remote, const char *path, struct weir_err *err);
/* As in struct weir_origin_ops. */
int weir_remote_identify(struct weir_origin *origin, const char *path, struct weir_file_id *id, struct weir_err *err);

/* Signs a request, unless the remote is anonymous or no S3. */
void weir_remote_set_signature(struct weir_client_request *request, const struct weir_signed *signature);
/* Performs at most WEIR_REMOTE_DEPTH requests at once, whose tags are their numbers. */
void weir_remote_perform(struct weir_remote *remote, const struct weir_client_request *requests, int n,
                         struct weir_client_response *responses);
/* Polls the program's callback on the thread that may call it. Returns whether the origin is cancelled. */
static inline bool weir_remote_stopped(void *remote)
{
    struct weir_remote *r = remote;
    if (r->interrupted && pthread_equal(pthread_self(), r->owner) && r->interrupted(r->user))
        atomic_store(&r->stop, true);
    return atomic_load(&r->stop);
}

/* Performs a request for a whole body of at most `limit` bytes. query: "" = none. The caller frees response->body. */
int weir_remote_get(struct weir_remote *remote, const char *url, const char *path, const char *query, size_t limit,
                    struct weir_client_response *response);
/* Performs at most WEIR_REMOTE_DEPTH unsigned requests for whole bodies of at most `limit` bytes. The caller frees the
 * bodies. */
void weir_remote_get_pages(struct weir_remote *remote, const char *const *urls, int n, size_t limit,
                           struct weir_client_response *responses);

#endif
