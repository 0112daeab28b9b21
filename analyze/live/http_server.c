/* The HTTP server on libmicrohttpd, driven by its owner's thread. */
#include "analyze/live/http_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if WEIR_HAVE_MICROHTTPD
#include <microhttpd.h>

/* Limits for all clients together: 64 connections of at most 16 KiB and a copy of the page each. */
enum {
    CONNECTIONS = 64,
    CONNECTIONS_PER_ADDRESS = 32,
    BACKLOG = 32,
    REQUEST_BYTES = 16 << 10,
    IDLE_S = 5,
    LOOK_MS = 100, /* between looks for clients that have left */
};
static const char RELOAD_S[] = "10";                    /* seconds after which browsers load the page again */
static const uint64_t REQUEST_NS = 10ull * 1000000000u; /* from the connection to the end of the answer */

struct connection {
    int fd; /* -1 = free */
    uint64_t begin_ns;
    bool answered;
    bool ended; /* shut down because the client left or took too long */
};

struct weir_http {
    struct MHD_Daemon *daemon;
    int listener, epoll;
    bool loopback;
    weir_http_answer *answer;
    void *user;
    char url[80];
    struct connection connections[CONNECTIONS];
};

/* ---- one request ---- */

static enum MHD_Result reply(struct MHD_Connection *connection, const struct weir_http_reply *answer)
{
    static const char *const headers[][2] = {
        {"Connection", "close"},
        {"Cache-Control", "no-store"},
        {"X-Content-Type-Options", "nosniff"},
        {"Content-Security-Policy",
         "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
         "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"},
        {"Referrer-Policy", "no-referrer"}};
    struct MHD_Response *response =
        MHD_create_response_from_buffer(answer->size, (void *)answer->body, MHD_RESPMEM_MUST_COPY);
    if (!response)
        return MHD_NO;
    bool ok = MHD_add_response_header(response, "Content-Type", answer->type) == MHD_YES;
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
        ok = ok && MHD_add_response_header(response, headers[i][0], headers[i][1]) == MHD_YES;
    if (strncmp(answer->type, "text/html", 9) == 0)
        ok = ok && MHD_add_response_header(response, "Refresh", RELOAD_S) == MHD_YES;
    if (answer->status == MHD_HTTP_METHOD_NOT_ALLOWED)
        ok = ok && MHD_add_response_header(response, "Allow", "GET, HEAD") == MHD_YES;
    enum MHD_Result result = ok ? MHD_queue_response(connection, (unsigned)answer->status, response) : MHD_NO;
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, int status, const char *text)
{
    return reply(connection, &(struct weir_http_reply){status, "text/plain; charset=utf-8", text, strlen(text)});
}

static const char *header(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* Answers as soon as the headers are complete, so that no body of a request is ever read. */
static enum MHD_Result on_request(void *user, struct MHD_Connection *connection, const char *path, const char *method,
                                  const char *version, const char *body, size_t *size, void **state)
{
    struct weir_http *http = user;
    const char *host = header(connection, MHD_HTTP_HEADER_HOST), *accept = header(connection, MHD_HTTP_HEADER_ACCEPT);
    struct weir_http_reply answer = {.status = MHD_HTTP_OK, .type = "text/plain; charset=utf-8", .body = ""};
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    (void)version, (void)body, (void)size, (void)state;
    if (info && info->socket_context)
        ((struct connection *)info->socket_context)->answered = true;
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD are allowed\n");
    if (http->loopback && host && !weir_http_host_is_literal(host))
        return refuse(connection, MHD_HTTP_FORBIDDEN,
                      "this address answers only requests for localhost or a numeric address\n");
    http->answer(http->user, path, accept ? accept : "", &answer);
    return reply(connection, &answer);
}

/* ---- connections ---- */

static void on_connection(void *user, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct weir_http *http = user;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (*context)
            ((struct connection *)*context)->fd = -1;
        return;
    }
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    for (int i = 0; info && i < CONNECTIONS; i++) {
        if (http->connections[i].fd >= 0)
            continue;
        http->connections[i] = (struct connection){.fd = info->connect_fd, .begin_ns = weir_clock_monotonic_ns()};
        *context = &http->connections[i];
        return;
    }
}

/* libmicrohttpd 0.9.75 overlooks the end of a request if it arrives together with the request's last bytes. A client
 * that has sent a whole request and nothing more still gets its answer. */
static bool has_left(const struct connection *c)
{
    char next;
    return !c->answered && recv(c->fd, &next, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* Ends the connections of clients that have left, or that send or read so slowly that they hold their place for too
 * long. Returns whether there are others. */
static bool end_connections(struct weir_http *http)
{
    uint64_t now_ns = weir_clock_monotonic_ns();
    bool open = false;
    for (int i = 0; i < CONNECTIONS; i++) {
        struct connection *c = &http->connections[i];
        if (c->fd < 0 || c->ended)
            continue;
        c->ended = now_ns - c->begin_ns >= REQUEST_NS || has_left(c);
        if (c->ended)
            shutdown(c->fd, SHUT_RDWR); /* the next run sees that, and closes it */
        open |= !c->ended;
    }
    return open;
}

/* ---- opening and running ---- */

static int listen_on(const struct weir_http_address *address, const char *text, int *listener, struct weir_err *err)
{
    int yes = 1, fd = socket(address->sockaddr.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    *listener = fd;
    if (fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        if (address->sockaddr.ss_family == AF_INET6)
            setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
    }
    if (fd >= 0 && bind(fd, (const struct sockaddr *)&address->sockaddr, address->size) == 0 &&
        listen(fd, BACKLOG) == 0)
        return 0;
    int code = errno;
    const char *hint = code == EADDRINUSE      ? "the port is in use; use another one, or port 0 for any free port"
                       : code == EADDRNOTAVAIL ? "this machine has no such address"
                       : code == EACCES        ? "not permitted; use a port above 1023"
                                               : strerror(code);
    if (fd >= 0)
        close(fd);
    *listener = -1;
    return weir_err_set(err, -code, "%.100s: cannot listen: %s", text, hint);
}

static void name_url(struct weir_http *http)
{
    struct sockaddr_storage at;
    socklen_t size = sizeof at;
    char host[INET6_ADDRSTRLEN] = "";
    if (getsockname(http->listener, (struct sockaddr *)&at, &size) < 0)
        return;
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&at;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&at;
    bool is_v6 = at.ss_family == AF_INET6;
    inet_ntop(at.ss_family, is_v6 ? (const void *)&v6->sin6_addr : (const void *)&v4->sin_addr, host, sizeof host);
    snprintf(http->url, sizeof http->url, "http://%s%s%s:%u", is_v6 ? "[" : "", host, is_v6 ? "]" : "",
             ntohs(is_v6 ? v6->sin6_port : v4->sin_port));
}

static int start(struct weir_http *http, const char *text, struct weir_err *err)
{
    http->daemon =
        MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, on_request, http, MHD_OPTION_LISTEN_SOCKET, http->listener,
                         MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
                         (unsigned)CONNECTIONS_PER_ADDRESS, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_BYTES,
                         MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
                         http, MHD_OPTION_END);
    const union MHD_DaemonInfo *info =
        http->daemon ? MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
    if (!http->daemon)
        http->listener = -1; /* libmicrohttpd may have closed it */
    if (!info)
        return weir_err_set(err, -ENOMEM, "%.100s: cannot start the HTTP server: out of memory or descriptors", text);
    http->epoll = info->epoll_fd;
    return 0;
}

int weir_http_open(struct weir_http **out, const char *address, int port_offset, weir_http_answer *answer, void *user,
                   struct weir_err *err)
{
    struct weir_http_address at;
    *out = NULL;
    int rc = weir_http_address_parse(&at, address, port_offset, err);
    if (rc < 0)
        return rc;
    struct weir_http *http = calloc(1, sizeof *http);
    if (!http)
        return weir_err_set(err, -ENOMEM, "%.100s: out of memory", address);
    *http = (struct weir_http){.listener = -1, .epoll = -1, .loopback = at.loopback, .answer = answer, .user = user};
    for (int i = 0; i < CONNECTIONS; i++)
        http->connections[i].fd = -1;
    rc = listen_on(&at, address, &http->listener, err);
    if (rc == 0)
        rc = start(http, address, err);
    if (rc < 0) {
        weir_http_close(&http);
        return rc;
    }
    name_url(http);
    *out = http;
    return 0;
}

const char *weir_http_url(const struct weir_http *http)
{
    return http->url;
}

int weir_http_fd(const struct weir_http *http)
{
    return http->epoll;
}

int weir_http_run(struct weir_http *http)
{
    MHD_UNSIGNED_LONG_LONG due_ms;
    MHD_run(http->daemon);
    bool open = end_connections(http);
    if (MHD_get_timeout(http->daemon, &due_ms) != MHD_YES)
        return open ? LOOK_MS : -1;
    return due_ms > LOOK_MS ? LOOK_MS : (int)due_ms;
}

void weir_http_close(struct weir_http **http)
{
    if (!*http)
        return;
    if ((*http)->daemon)
        MHD_stop_daemon((*http)->daemon); /* closes the listener too */
    else if ((*http)->listener >= 0)
        close((*http)->listener);
    free(*http);
    *http = NULL;
}

void weir_http_forget(const struct weir_http *http)
{
    close(http->listener);
    close(http->epoll);
    for (int i = 0; i < CONNECTIONS; i++)
        if (http->connections[i].fd >= 0)
            close(http->connections[i].fd);
}

bool weir_http_library(char *text, size_t size)
{
    snprintf(text, size, "libmicrohttpd %s", MHD_get_version());
    return true;
}

#else

bool weir_http_library(char *text, size_t size)
{
    snprintf(text, size, "built without libmicrohttpd; install libmicrohttpd-dev and build again");
    return false;
}

int weir_http_open(struct weir_http **out, const char *address, int port_offset, weir_http_answer *answer, void *user,
                   struct weir_err *err)
{
    (void)port_offset, (void)answer, (void)user;
    *out = NULL;
    return weir_err_set(err, -ENOTSUP,
                        "%.100s: built without libmicrohttpd; install libmicrohttpd-dev and build again, or write the "
                        "metrics to a file (--prometheus)",
                        address);
}

const char *weir_http_url(const struct weir_http *http)
{
    (void)http;
    return "";
}

int weir_http_fd(const struct weir_http *http)
{
    (void)http;
    return -1;
}

int weir_http_run(struct weir_http *http)
{
    (void)http;
    return -1;
}

void weir_http_close(struct weir_http **http)
{
    *http = NULL;
}

void weir_http_forget(const struct weir_http *http)
{
    (void)http;
}

#endif
