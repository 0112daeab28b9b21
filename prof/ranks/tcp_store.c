#include "prof/ranks/tcp_store.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Queries, as numbered since torch 2.2. Earlier stores have no VALIDATE, so their numbers are one lower. */
enum query { VALIDATE = 0, SET = 1, GET = 3, CHECK = 5, GETNUMKEYS = 7 };
enum { CHECK_READY = 0, CHECK_NOT_READY = 1, GREETING_KEYS = 4, SLICE_MS = 50 };
static const uint32_t magic = 0x3C85F7CE; /* follows VALIDATE */

int weir_store_from_environment(struct weir_store_address *address, struct weir_err *err)
{
    const char *host = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT");
    *address = (struct weir_store_address){0};
    if (!host || !*host)
        return weir_err_set(err, -ENOENT, "MASTER_ADDR is not set");
    char *end;
    long number = port ? strtol(port, &end, 10) : 0;
    if (!port || end == port || *end || number < 1 || number > 65535)
        return weir_err_set(err, -EINVAL, "MASTER_PORT=%.40s is not a port number", port ? port : "");
    if (strlen(host) >= sizeof address->host)
        return weir_err_set(err, -EINVAL, "MASTER_ADDR=%.40s... is too long for a host name", host);
    memcpy(address->host, host, strlen(host) + 1);
    address->port = (int)number;
    return 0;
}

/* ---- bytes, with a deadline ---- */

static void begin_call(struct weir_store *store)
{
    store->deadline_ns = weir_clock_monotonic_ns() + store->timeout_ns;
}

/* Waits until the socket is ready. Returns 0, -ETIMEDOUT or -ECANCELED. */
static int wait_ready(struct weir_store *store, short events)
{
    for (;;) {
        if (store->stop && atomic_load(store->stop))
            return -ECANCELED;
        uint64_t now_ns = weir_clock_monotonic_ns();
        if (now_ns >= store->deadline_ns)
            return -ETIMEDOUT;
        uint64_t left_ms = (store->deadline_ns - now_ns) / 1000000 + 1;
        struct pollfd ready = {.fd = store->fd, .events = events};
        int n = poll(&ready, 1, left_ms < SLICE_MS ? (int)left_ms : SLICE_MS);
        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return -errno;
    }
}

static int send_bytes(struct weir_store *store, const void *bytes, size_t n)
{
    const char *at = bytes;
    while (n > 0) {
        ssize_t sent = send(store->fd, at, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno != EAGAIN && errno != EINTR)
            return -errno;
        if (sent > 0) {
            at += sent;
            n -= (size_t)sent;
            continue;
        }
        int rc = wait_ready(store, POLLOUT);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int receive_bytes(struct weir_store *store, void *bytes, size_t n)
{
    char *at = bytes;
    while (n > 0) {
        ssize_t got = recv(store->fd, at, n, MSG_DONTWAIT);
        if (got == 0)
            return -ECONNRESET;
        if (got < 0 && errno != EAGAIN && errno != EINTR)
            return -errno;
        if (got > 0) {
            at += got;
            n -= (size_t)got;
            continue;
        }
        int rc = wait_ready(store, POLLIN);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* ---- requests: a query, then numbers in the machine's byte order and strings after their length ---- */

struct request {
    char *at, *end;
    char bytes[WEIR_STORE_KEYS * (WEIR_STORE_KEY + 17) + 64];
};

static void add_bytes(struct request *request, const void *bytes, size_t n)
{
    if ((size_t)(request->end - request->at) < n)
        return; /* keys are checked by key_fits, so a request always fits */
    memcpy(request->at, bytes, n);
    request->at += n;
}

static void add_number(struct request *request, uint64_t number)
{
    add_bytes(request, &number, sizeof number);
}

static void add_key(struct request *request, const char *key)
{
    add_number(request, strlen(key));
    add_bytes(request, key, strlen(key));
}

static void add_query(struct request *request, const struct weir_store *store, enum query query)
{
    char number = (char)(query - (store->dialect == WEIR_STORE_UP_TO_2_1));
    add_bytes(request, &number, 1);
}

static void begin_request(struct request *request)
{
    request->at = request->bytes;
    request->end = request->bytes + sizeof request->bytes;
}

static int send_request(struct weir_store *store, const struct request *request)
{
    if (store->stop && atomic_load(store->stop))
        return -ECANCELED;
    return send_bytes(store, request->bytes, (size_t)(request->at - request->bytes));
}

static bool key_fits(const char *key)
{
    return strnlen(key, WEIR_STORE_KEY) < WEIR_STORE_KEY;
}

static int failed(struct weir_err *err, int rc, const char *what)
{
    return weir_err_set(err, rc, "the store of torch.distributed: %s: %s", what,
                        rc == -ETIMEDOUT ? "no answer in time" : strerror(-rc));
}

/* ---- connecting ---- */

static int connect_to(struct weir_store *store, const struct addrinfo *to)
{
    int on = 1, error = 0;
    socklen_t size = sizeof error;
    store->fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, to->ai_protocol);
    if (store->fd < 0)
        return -errno;
    setsockopt(store->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    begin_call(store);
    int rc = connect(store->fd, to->ai_addr, to->ai_addrlen) < 0 && errno != EINPROGRESS ? -errno : 0;
    if (rc == 0)
        rc = wait_ready(store, POLLOUT);
    if (rc == 0 && getsockopt(store->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
        rc = -errno;
    if (rc == 0)
        rc = -error;
    if (rc < 0)
        weir_store_close(store);
    return rc;
}

static int connect_any(struct weir_store *store, const struct weir_store_address *address, struct weir_err *err)
{
    char port[16];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *list = NULL;
    snprintf(port, sizeof port, "%d", address->port);
    int rc = getaddrinfo(address->host, port, &hints, &list);
    if (rc != 0)
        return weir_err_set(err, -EHOSTUNREACH, "the store of torch.distributed: host %.100s: %s", address->host,
                            gai_strerror(rc));
    rc = -EHOSTUNREACH;
    for (const struct addrinfo *to = list; to && rc < 0 && rc != -ECANCELED; to = to->ai_next)
        rc = connect_to(store, to);
    freeaddrinfo(list);
    if (rc < 0)
        return weir_err_set(err, rc, "the store of torch.distributed: %.100s, port %d: %s", address->host,
                            address->port, strerror(-rc));
    return 0;
}

/* Sends VALIDATE, its magic number and four GETNUMKEYS. Stores since torch 2.2 answer with four numbers. Older ones
 * read a SET whose key has 0x070707073C85F7CE bytes, which no memory holds, and close the connection at once. */
static int greet(struct weir_store *store)
{
    struct request request;
    int64_t keys[GREETING_KEYS];
    begin_request(&request);
    begin_call(store);
    store->dialect = WEIR_STORE_SINCE_2_2;
    add_query(&request, store, VALIDATE);
    add_bytes(&request, &magic, sizeof magic);
    for (int i = 0; i < GREETING_KEYS; i++)
        add_query(&request, store, GETNUMKEYS);
    int rc = send_request(store, &request);
    if (rc == 0)
        rc = receive_bytes(store, keys, sizeof keys);
    for (int i = 0; rc == 0 && i < GREETING_KEYS; i++)
        if (keys[i] < 0 || keys[i] > INT64_MAX / 2)
            rc = -EPROTO;
    return rc;
}

/* Checks a key that does not exist, to see that the store speaks the older dialect. */
static int greet_older(struct weir_store *store)
{
    static const char key[1][WEIR_STORE_KEY] = {"weir/never"};
    bool present;
    store->dialect = WEIR_STORE_UP_TO_2_1;
    return weir_store_check(store, key, 1, &present, NULL);
}

int weir_store_open(struct weir_store *store, struct weir_store_address *address, uint64_t timeout_ns,
                    const atomic_bool *stop, struct weir_err *err)
{
    *store = (struct weir_store){.fd = -1, .timeout_ns = timeout_ns, .stop = stop};
    int rc = connect_any(store, address, err);
    if (rc < 0)
        return rc;
    if (address->dialect != WEIR_STORE_UP_TO_2_1)
        rc = greet(store);
    if (rc == -ECONNRESET || rc == -EPIPE) {
        weir_store_close(store);
        rc = connect_any(store, address, err);
        if (rc < 0)
            return rc;
        rc = greet_older(store);
    } else if (address->dialect == WEIR_STORE_UP_TO_2_1) {
        store->dialect = WEIR_STORE_UP_TO_2_1;
    }
    if (rc < 0) {
        weir_store_close(store);
        return weir_err_set(err, rc, "%.100s, port %d, does not answer as a store of torch.distributed: %s",
                            address->host, address->port, rc == -ETIMEDOUT ? "no answer in time" : strerror(-rc));
    }
    address->dialect = store->dialect;
    return 0;
}

void weir_store_close(struct weir_store *store)
{
    if (store->fd >= 0)
        close(store->fd);
    store->fd = -1;
}

/* ---- calls ---- */

int weir_store_set(struct weir_store *store, const char *key, const void *value, size_t bytes, struct weir_err *err)
{
    struct request request;
    if (!key_fits(key))
        return failed(err, -ENAMETOOLONG, "set");
    begin_request(&request);
    begin_call(store);
    add_query(&request, store, SET);
    add_key(&request, key);
    add_number(&request, bytes);
    if (bytes > (size_t)(request.end - request.at))
        return failed(err, -EMSGSIZE, "set");
    add_bytes(&request, value, bytes); /* in one piece: the first store with libuv (torch 2.2) loses track of pieces */
    int rc = send_request(store, &request);
    return rc < 0 ? failed(err, rc, "set") : 0;
}

int weir_store_check(struct weir_store *store, const char (*keys)[WEIR_STORE_KEY], int n, bool *present,
                     struct weir_err *err)
{
    struct request request;
    unsigned char replies[WEIR_STORE_KEYS];
    int rc = n < 0 || n > WEIR_STORE_KEYS ? -E2BIG : 0;
    begin_request(&request);
    begin_call(store);
    for (int i = 0; i < n && rc == 0; i++) {
        if (!key_fits(keys[i])) {
            rc = -ENAMETOOLONG;
            break;
        }
        add_query(&request, store, CHECK);
        add_number(&request, 1);
        add_key(&request, keys[i]);
    }
    if (rc == 0)
        rc = send_request(store, &request);
    if (rc == 0)
        rc = receive_bytes(store, replies, (size_t)n);
    for (int i = 0; i < n && rc == 0; i++) {
        if (replies[i] != CHECK_READY && replies[i] != CHECK_NOT_READY)
            rc = -EPROTO;
        present[i] = replies[i] == CHECK_READY;
    }
    return rc < 0 ? failed(err, rc, "check") : 0;
}

int weir_store_get(struct weir_store *store, const char *key, void *value, size_t size, struct weir_err *err)
{
    struct request request;
    uint64_t bytes = 0;
    if (!key_fits(key))
        return failed(err, -ENAMETOOLONG, "get");
    begin_request(&request);
    begin_call(store);
    add_query(&request, store, GET);
    add_key(&request, key);
    int rc = send_request(store, &request);
    if (rc == 0)
        rc = receive_bytes(store, &bytes, sizeof bytes);
    if (rc == 0 && bytes > size)
        rc = -EMSGSIZE;
    if (rc == 0)
        rc = receive_bytes(store, value, bytes);
    return rc < 0 ? failed(err, rc, "get") : (int)bytes;
}
