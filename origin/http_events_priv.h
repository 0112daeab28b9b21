/* http_events_priv.h: libcurl's events by epoll, whose cost, unlike that of poll, does not grow with the
 * number of requests in flight. */
#ifndef WEIR_ORIGIN_HTTP_EVENTS_PRIV_H
#define WEIR_ORIGIN_HTTP_EVENTS_PRIV_H

#include <stdbool.h>
#include <stdint.h>

/* libcurl searches all connections of a multi handle for a free one, so each handle has only a few places for
 * requests. They share addresses of hosts and sessions of TLS. */
enum { WEIR_EVENT_GROUP = 16, WEIR_EVENT_GROUPS = 64 };

struct weir_event_group {
    struct weir_events *events;
    void *multi;       /* NULL: not used yet */
    uint64_t timer_ns; /* when libcurl must be called even without an event; UINT64_MAX = never */
};

/* Begin with zeros. */
struct weir_events {
    int poller;       /* plus one */
    uint64_t touched; /* a bit per group: something in it may be complete */
    void *share;      /* for CURLOPT_SHARE of the handles */
    struct weir_event_group groups[WEIR_EVENT_GROUPS];
};

/* Returns false if resources are missing. */
bool weir_events_open(struct weir_events *events);
/* Call after all handles were removed and closed. */
void weir_events_close(struct weir_events *events);
/* Start and end the request of a handle. place: below WEIR_EVENT_GROUP * WEIR_EVENT_GROUPS. */
bool weir_events_add(struct weir_events *events, int place, void *easy);
void weir_events_remove(struct weir_events *events, int place, void *easy);
/* Returns a handle whose request has ended, with its CURLcode, or NULL. */
void *weir_events_done(struct weir_events *events, int *code);
/* Lets libcurl work, and waits at most wait_ms for events. Returns 0 or -errno. */
int weir_events_run(struct weir_events *events, int wait_ms);

#endif
