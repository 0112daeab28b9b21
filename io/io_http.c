/* http: files on servers. Reads ahead with many requests in flight; the client repeats and checks them (origin/). */
#include "base/shortage.h"
#include "io/file_set_priv.h"
#include "io/in_flight.h"
#include "io/io_ops.h"
#include "origin/remote.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { GAP_BYTES = 64 << 10, RESPONSES = 32 };

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
    struct weir_in_flight in_flight;
    uint64_t limited;   /* requests that the server refused, at the last wait */
    uint64_t waited_ns; /* end of the last wait */
    /* By the numbers of their files; NULL = not used yet. Only the read-ahead thread sets them. Takers find those of
     * completed reads. */
    struct weir_object **objects;
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

static int ring_open(void **out, struct weir_file_set *set, int depth, bool is_fixed, uint8_t *pool, size_t pool_bytes,
                     char *features, size_t size, struct weir_err *err)
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
    weir_in_flight_begin(&ring->in_flight, depth, is_fixed, GAP_BYTES, weir_clock_monotonic_ns());
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
    if (rc == 0)
        weir_in_flight_queued(&ring->in_flight, weir_clock_monotonic_ns());
    return rc == -EBUSY ? -EAGAIN : rc;
}

/* Measures the requests that have ended. */
static void measure(struct ring *ring, const struct weir_client_response *responses, int n, uint64_t now_ns)
{
    struct weir_origin_counts counts;
    ring->origin->ops->counts(ring->origin, &counts);
    if (counts.limited > ring->limited)
        weir_in_flight_refused(&ring->in_flight, now_ns);
    ring->limited = counts.limited;
    for (int i = 0; i < n; i++)
        weir_in_flight_done(&ring->in_flight, now_ns, responses[i].bytes, responses[i].first_byte_ns,
                            responses[i].took_ns);
}

/* Pauses so that a wait handles several responses: waking up costs as much as a request. With many requests in flight,
 * a part of their latency more makes no difference. */
static void gather(struct ring *ring)
{
    uint64_t pause_ns = weir_in_flight_pause_ns(&ring->in_flight), end_ns = ring->waited_ns + pause_ns;
    if (pause_ns == 0 || weir_clock_monotonic_ns() >= end_ns)
        return;
    const struct timespec end = {(time_t)(end_ns / 1000000000), (long)(end_ns % 1000000000)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL);
}

static int ring_wait(void *user, uint32_t *tags, int *results, int max)
{
    struct ring *ring = user;
    struct weir_client_response responses[RESPONSES];
    gather(ring);
    int n = weir_client_wait(ring->http, responses, max < RESPONSES ? max : RESPONSES);
    ring->waited_ns = weir_clock_monotonic_ns();
    measure(ring, responses, n, ring->waited_ns);
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

static int ring_pace(void *user, size_t *gap_bytes)
{
    struct ring *ring = user;
    *gap_bytes = ring->in_flight.gap_bytes;
    return ring->in_flight.limit;
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
    .pace = ring_pace,
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
