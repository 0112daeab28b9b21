/* remote.h: files on HTTP servers and in S3 buckets. */
#ifndef WEIR_ORIGIN_REMOTE_H
#define WEIR_ORIGIN_REMOTE_H

#include "origin/http.h"
#include "origin/origin.h"

struct weir_remote_config {
    const char *endpoint; /* of S3: a URL; NULL = the environment, or AWS */
    bool anonymous;       /* does not sign requests to S3 */
    const char *cache;    /* "DIR[:SIZE]" for copies on disk (disk_cache.h); NULL = none */
    uint64_t patience_ns; /* a wait for the server is reported after it, and again after 4 and 16 times; 0: 10 s */
};

/* Opens an origin for this URL and others of its server or bucket. */
int weir_remote_open(struct weir_origin **out, const char *url, const struct weir_remote_config *config,
                     struct weir_err *err);

/* While the calling thread waits for a server, `interrupted` is called 10 times per second; if it returns true, the
 * origin is cancelled. NULL = not any more. */
void weir_remote_watch(struct weir_origin *origin, bool (*interrupted)(void *user), void *user);

/* What a search of a server's lists is for. */
struct weir_remote_search {
    /* Returns the length of the first part of a name that is a file, or a folder that is wanted as a whole; 0 for the
     * folder that contains it; or -1. name: relative to a folder of the search; that of a folder if is_folder. */
    int (*part)(const char *name, bool is_folder);
    const char *hint; /* a folder with a folder of this name may be wanted as a whole; NULL = none */
    bool (*is_whole)(void *user, const char *url);
    /* Receives a path, which is valid during the call. why_not: reason why the name cannot be used, or NULL. The same
     * folder can be found repeatedly. Returns 0 or a negative code. */
    int (*found)(void *user, const char *url, const char *why_not);
    void *user;
};
/* Lists the wanted files and folders below a URL, in any order. The URL may be a folder, or a list that ends
 * in .json or .txt. */
int weir_remote_list(struct weir_origin *origin, const char *url, const struct weir_remote_search *search,
                     struct weir_err *err);
/* If the server's lists contain all facts of files (S3), learns those of the files below a folder. Errors show when the
 * files are identified. */
void weir_remote_learn_below(struct weir_origin *origin, const char *url);

/* Asks the server for the identities of all n files that no list has stated, many at once; files of which it fails to
 * learn it are asked for again when they are opened. */
void weir_remote_identify_all(struct weir_origin *origin, char *const *paths, int n);

/* ---- for the engine ---- */

struct weir_object;

/* Returns the object of a file that has this identity. Returns NULL with err if it changed or cannot be found. */
struct weir_object *weir_remote_object(struct weir_origin *origin, const char *path, const struct weir_file_id *id,
                                       struct weir_err *err);
/* Opens a client with `depth` requests in flight. */
int weir_remote_client(struct weir_origin *origin, struct weir_client **http, int depth, struct weir_err *err);
/* Prepares a request for a range of an object, which must not be empty. */
void weir_remote_request(struct weir_object *object, const struct weir_origin_range *range, uint32_t tag,
                         struct weir_client_request *request);

/* Returns the number of bytes that the beginning and the length of requests should be multiples of. */
size_t weir_remote_align(const struct weir_origin *origin);
/* Whether the range can be read from the cache on disk, which weir_origin_ops.read then does. Does not block. */
bool weir_remote_is_cached(struct weir_object *object, const struct weir_origin_range *range);
/* Stores bytes that a request has brought in the cache on disk, if there is one. */
void weir_remote_store(struct weir_object *object, uint64_t offset, const uint8_t *bytes, size_t n);

#endif
