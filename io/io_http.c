/* http: files on servers. Reads ahead with many requests in flight; the client repeats and checks them (origin/). */
#include "base/shortage.h"
#include "io/file_set_priv.h"
#include "io/io_ops.h"
#include "origin/remote.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GAP_BYTES = 64 << 10, WAIT_MS = 1000 };

#if WEIR_HAVE_CURL

static int shared_open(void **shared, struct weir_file_set *set, struct weir_err *err)
{
    (void)err;
    *shared = set;
    return 0;
}

static int read_extent(void *user, int file, int fd, uint64_t offset, size_t length, void *buffer, const uint8_t **data,
                       struct weir_err *err)
{
    struct weir_file_set *set = user;
    struct weir_origin *origin = weir_file_set_origin(set);
    struct weir_file_id id = weir_file_set_id(set, file);
    const struct weir_origin_range range = {offset, length, buffer};
    (void)fd;
    *data = buffer;
    return origin->ops->read(origin, weir_file_set_path(set, file), &id, &range, 1, err);
}

/* ---- read-ahead ---- */

struct ring {
    struct weir_client *http;
    struct weir_file_set *set;
    struct weir_origin *origin;
    struct weir_object **objects; /* by the numbers of their files; NULL = not used yet */
    /* Only the read-ahead thread sets them. Takers find those of completed reads. */
};

static struct weir_object *object_of(struct ring *ring, int file, struct weir_err *err)
{
    if (!ring->objects[file]) {
        struct weir_file_id id = weir_file_set_id(ring->set, file);
        ring->objects[file] = weir_remote_object(ring->origin, weir_file_set_path(ring->set, file), &id, err);
    }
    return ring->objects[file];
}

static void ring_close(void *user)
{
    struct ring *ring = user;
    weir_client_close(&ring->http);
    free(ring->objects);
    free(ring);
}

static int ring_open(void **out, struct weir_file_set *set, int depth, uint8_t *pool, size_t pool_bytes, char *features,
                     size_t size, struct weir_err *err)
{
    (void)pool;
    (void)pool_bytes;
    struct ring *ring = calloc(1, sizeof *ring);
    if (!ring)
        return weir_no_memory(err);
    ring->set = set;
    ring->origin = weir_file_set_origin(set);
    ring->objects = calloc((size_t)weir_file_set_count(set) + 1, sizeof *ring->objects);
    int rc = ring->objects ? weir_remote_client(ring->origin, &ring->http, depth, err) : weir_no_memory(err);
    if (rc < 0) {
        ring_close(ring);
        return rc;
    }
    snprintf(features, size, "HTTP/1.1, connections kept alive");
    *out = ring;
    return 0;
}

static bool ring_is_near(void *user, int file, uint64_t offset, size_t length)
{
    struct weir_err ignored = WEIR_ERR_NONE;
    struct weir_object *object = object_of(user, file, &ignored);
    const struct weir_origin_range range = {offset, length, NULL};
    return object && weir_remote_is_cached(object, &range);
}

static int ring_queue(void *user, int file, int fd, uint64_t offset, size_t length, uint8_t *to, uint32_t tag)
{
    struct ring *ring = user;
    struct weir_client_request request;
    struct weir_err err = WEIR_ERR_NONE;
    uint64_t file_bytes = weir_file_set_size(ring->set, file);
    (void)fd;
    struct weir_object *object = object_of(ring, file, &err);
    if (!object)
        return err.code ? err.code : -EIO;
    if (offset >= file_bytes)
        return -ENODATA;
    length = length < file_bytes - offset ? length : (size_t)(file_bytes - offset);
    const struct weir_origin_range range = {offset, length, to};
    weir_remote_request(object, &range, tag, &request);
    int rc = weir_client_start(ring->http, &request);
    return rc == -EBUSY ? -EAGAIN : rc;
}

static int ring_wait(void *user, uint32_t *tags, int *results, int max)
{
    struct ring *ring = user;
    struct weir_client_response responses[16];
    int n = weir_client_wait(ring->http, responses, max < 16 ? max : 16, WAIT_MS);
    for (int i = 0; i < n; i++) {
        tags[i] = responses[i].tag;
        results[i] = responses[i].rc < 0 ? responses[i].rc : (int)responses[i].bytes;
    }
    return n;
}

static size_t ring_align(const struct weir_file_set *set)
{
    return weir_remote_align(weir_file_set_origin(set));
}

static void ring_taken(void *user, int file, uint64_t offset, const uint8_t *bytes, size_t n)
{
    weir_remote_store(((struct ring *)user)->objects[file], offset, bytes, n);
}

static void ring_cancel(void *user)
{
    weir_client_cancel(((struct ring *)user)->http);
}

static const struct weir_ring_ops ring_ops = {
    .open = ring_open,
    .cancel = ring_cancel,
    .close = ring_close,
    .align = ring_align,
    .is_near = ring_is_near,
    .queue = ring_queue,
    .wait = ring_wait,
    .taken = ring_taken,
};

static int ready(struct weir_err *err)
{
    return weir_client_ready(err);
}

const struct weir_io_ops weir_io_http = {
    .name = "http",
    .summary = "files on HTTP servers and in S3, many requests in flight",
    .shared_open = shared_open,
    .read = read_extent,
    .is_remote = true,
    .gap_bytes = GAP_BYTES,
    .ring = &ring_ops,
    .ready = ready,
};

#else

const struct weir_io_ops weir_io_http = {
    .name = "http",
    .summary = "files on HTTP servers and in S3, many requests in flight",
    .why_not = "built without libcurl",
    .is_remote = true,
};

#endif
