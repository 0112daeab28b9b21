/* http_server.h: a small HTTP server that answers GET and HEAD. It has no thread: its owner waits until the descriptor
 * is readable or the time has come, and calls weir_http_run, which never blocks. All calls belong to one thread, or are
 * made one at a time.
 *
 * Clients are not trusted: connections, the size of a request and the time for it are limited. */
#ifndef WEIR_ANALYZE_LIVE_HTTP_SERVER_H
#define WEIR_ANALYZE_LIVE_HTTP_SERVER_H

#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

/* ---- addresses ---- */

struct weir_http_address {
    struct sockaddr_storage sockaddr;
    socklen_t size;
    bool loopback; /* only programs of this machine can connect */
};

/* Parses "127.0.0.1:9464", "[::1]:9464" or "localhost:9464". Port 0 is any free port; port_offset is added to other
 * ports. Returns 0, or -EINVAL with an error that names the text. */
int weir_http_address_parse(struct weir_http_address *address, const char *text, int port_offset, struct weir_err *err);

/* Returns whether a Host header names this machine by number or as localhost. A web page of another site cannot have
 * such a name, so its scripts cannot read answers meant for this machine (DNS rebinding). */
bool weir_http_host_is_literal(const char *host);

/* ---- the server ---- */

struct weir_http_reply {
    int status;       /* 200 unless the answer sets it */
    const char *type; /* media type */
    const char *body; /* copied after the answer returns */
    size_t size;
};

/* Answers a request for a path such as "/metrics". accept: the Accept header, or "". */
typedef void weir_http_answer(void *user, const char *path, const char *accept, struct weir_http_reply *reply);

struct weir_http;

/* Listens. Returns 0, -ENOTSUP if this build has no HTTP server, or another -errno; the error names the address. */
int weir_http_open(struct weir_http **out, const char *address, int port_offset, weir_http_answer *answer, void *user,
                   struct weir_err *err);
/* Returns "http://127.0.0.1:9464". */
const char *weir_http_url(const struct weir_http *http);
int weir_http_fd(const struct weir_http *http);
/* Serves clients that are ready, and ends connections that have taken too long. Returns the ms until the next call is
 * due although the descriptor is not readable; -1 = no time. */
int weir_http_run(struct weir_http *http);
void weir_http_close(struct weir_http **http);
/* In a child of fork(), closes the descriptors that belong to the parent. Async-signal-safe. */
void weir_http_forget(const struct weir_http *http);

/* Returns whether this build has the server. text: its library and version, or why it is missing and what to do. */
bool weir_http_library(char *text, size_t size);

#endif
