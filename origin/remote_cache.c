/* Reads of files on servers through the cache on disk. */
#include "base/shortage.h"
#include "origin/remote_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = WEIR_DISK_BLOCK };

/* ---- keys ---- */

void weir_remote_set_key(const struct weir_disk_cache *cache, struct weir_object *object)
{
    const struct weir_remote_facts *facts = &object->facts;
    bool is_strong = weir_etag_is_strong(facts->etag);
    char identity[WEIR_REQUEST_URL_MAX + WEIR_ETAG_MAX + 64];
    if (!is_strong && (facts->modified_s == 0 || facts->is_recent))
        return; /* a change of the file could not be detected */
    snprintf(identity, sizeof identity, "%s\n%s\n%lld\n%llu", object->url, facts->etag,
             is_strong ? 0 : (long long)facts->modified_s, (unsigned long long)facts->size_bytes);
    object->key = weir_disk_cache_key(cache, identity, facts->size_bytes);
}

/* ---- reading ---- */

/* The part of a range that is not in the cache, and the request that brings it: the blocks that contain it. */
struct gap {
    uint64_t offset;
    size_t n;
    uint8_t *to;
    uint8_t *blocks; /* owned; NULL = the request writes to `to` */
};

/* Widens the gap to whole blocks, with memory for them if they are more than the gap. */
static int prepare(const struct weir_object *object, struct gap *gap, struct weir_origin_range *request)
{
    uint64_t begin = gap->offset / BLOCK * BLOCK, end = (gap->offset + gap->n + BLOCK - 1) / BLOCK * BLOCK;
    end = end < object->facts.size_bytes ? end : object->facts.size_bytes;
    *request = (struct weir_origin_range){begin, (size_t)(end - begin), gap->to};
    if (request->length == gap->n)
        return 0;
    request->to = gap->blocks = malloc(request->length);
    return gap->blocks ? 0 : -ENOMEM;
}

static void finish(struct weir_object *object, const struct gap *gap, const struct weir_origin_range *request)
{
    weir_remote_store(object, request->offset, request->to, request->length);
    if (gap->blocks)
        memcpy(gap->to, gap->blocks + (gap->offset - request->offset), gap->n);
}

/* Reads a gap of each range. Returns 0 or a negative code. */
static int fill(struct weir_object *object, struct gap *gaps, struct weir_origin_range *requests, int n,
                struct weir_err *err)
{
    int rc = 0;
    for (int i = 0; i < n && rc == 0; i++)
        rc = prepare(object, &gaps[i], &requests[i]) < 0 ? weir_no_memory(err) : 0;
    rc = rc < 0 ? rc : weir_remote_fetch(object, requests, n, err);
    for (int i = 0; i < n; i++) {
        if (rc == 0)
            finish(object, &gaps[i], &requests[i]);
        free(gaps[i].blocks);
    }
    return rc;
}

int weir_remote_fetch_blocks(struct weir_object *object, const struct weir_origin_range *ranges, int n,
                             struct weir_err *err)
{
    struct weir_disk_cache *cache = object->get.remote->cache;
    struct gap *gaps = calloc((size_t)n + 1, sizeof *gaps);
    struct weir_origin_range *requests = calloc((size_t)n + 1, sizeof *requests);
    int missing = 0, rc = gaps && requests ? 0 : weir_no_memory(err);
    for (int i = 0; i < n && rc == 0; i++) {
        const struct weir_origin_range *r = &ranges[i];
        size_t done =
            object->key.size_bytes ? weir_disk_cache_read(cache, &object->key, r->offset, r->to, r->length) : 0;
        if (done < r->length)
            gaps[missing++] = (struct gap){r->offset + done, r->length - done, r->to + done, NULL};
    }
    if (rc == 0 && missing)
        rc = fill(object, gaps, requests, missing, err);
    free(gaps);
    free(requests);
    return rc;
}

/* ---- for the engine ---- */

size_t weir_remote_align(const struct weir_origin *origin)
{
    const struct weir_remote *r = (const struct weir_remote *)origin;
    return r->cache || atomic_load(&r->has_loose) ? BLOCK : 1;
}

bool weir_remote_is_cached(struct weir_object *object, const struct weir_origin_range *range)
{
    return object->key.size_bytes &&
           weir_disk_cache_find(object->get.remote->cache, &object->key, range->offset, range->length);
}

void weir_remote_store(struct weir_object *object, uint64_t offset, const uint8_t *bytes, size_t n)
{
    if (object->key.size_bytes)
        weir_disk_cache_store(object->get.remote->cache, &object->key, offset, bytes, n);
}
