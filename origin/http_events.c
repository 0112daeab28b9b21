#include "origin/http_transfer_priv.h"
#include "weir/base.h"

#include <curl/curl.h>
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { EVENTS = 64 };

static struct weir_event_group *group_of(struct weir_events *events, int place)
{
    return &events->groups[place / WEIR_EVENT_GROUP];
}

static uint64_t bit_of(const struct weir_event_group *group)
{
    return (uint64_t)1 << (group - group->events->groups);
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *user, void *known)
{
    struct weir_event_group *group = user;
    int poller = group->events->poller - 1;
    uint32_t in = what == CURL_POLL_IN || what == CURL_POLL_INOUT ? EPOLLIN : 0;
    uint32_t out = what == CURL_POLL_OUT || what == CURL_POLL_INOUT ? EPOLLOUT : 0;
    uint64_t number = (uint64_t)(group - group->events->groups);
    struct epoll_event event = {.events = in | out, .data.u64 = number << 32 | (uint32_t)fd};
    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(poller, EPOLL_CTL_DEL, fd, &event); /* fails if closing the socket has removed it */
        return 0;
    }
    if (!known)
        curl_multi_assign(group->multi, fd, group);
    return epoll_ctl(poller, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -1;
}

static int on_timer(CURLM *multi, long ms, void *user)
{
    struct weir_event_group *group = user;
    (void)multi;
    group->timer_ns = ms < 0 ? UINT64_MAX : weir_clock_monotonic_ns() + (uint64_t)ms * 1000000;
    return 0;
}

static bool open_group(struct weir_events *events, struct weir_event_group *group)
{
    CURLM *multi = curl_multi_init();
    *group = (struct weir_event_group){events, multi, UINT64_MAX};
    return multi && curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)WEIR_EVENT_GROUP) == CURLM_OK &&
           curl_multi_setopt(multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING) == CURLM_OK &&
           curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket) == CURLM_OK &&
           curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, group) == CURLM_OK &&
           curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer) == CURLM_OK &&
           curl_multi_setopt(multi, CURLMOPT_TIMERDATA, group) == CURLM_OK;
}

bool weir_events_open(struct weir_events *events)
{
    events->poller = epoll_create1(EPOLL_CLOEXEC) + 1;
    events->share = curl_share_init(); /* without locks: a client is used by one thread at a time */
    return events->poller > 0 && events->share &&
           curl_share_setopt(events->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_DNS) == CURLSHE_OK &&
           curl_share_setopt(events->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION) == CURLSHE_OK;
}

void weir_events_close(struct weir_events *events)
{
    for (int i = 0; i < WEIR_EVENT_GROUPS; i++)
        curl_multi_cleanup(events->groups[i].multi);
    curl_share_cleanup(events->share);
    if (events->poller > 0)
        close(events->poller - 1);
    *events = (struct weir_events){0};
}

bool weir_events_add(struct weir_events *events, int place, void *easy)
{
    struct weir_event_group *group = group_of(events, place);
    return (group->multi || open_group(events, group)) && curl_multi_add_handle(group->multi, easy) == CURLM_OK;
}

void weir_events_remove(struct weir_events *events, int place, void *easy)
{
    curl_multi_remove_handle(group_of(events, place)->multi, easy);
}

void *weir_events_done(struct weir_events *events, int *code)
{
    while (events->touched) {
        struct weir_event_group *group = &events->groups[__builtin_ctzll(events->touched)];
        CURLMsg *message;
        int left;
        while ((message = curl_multi_info_read(group->multi, &left)) != NULL)
            if (message->msg == CURLMSG_DONE) {
                *code = message->data.result;
                return message->easy_handle;
            }
        events->touched &= events->touched - 1;
    }
    return NULL;
}

static bool act(struct weir_event_group *group, curl_socket_t fd, int what)
{
    int running;
    group->events->touched |= bit_of(group);
    return curl_multi_socket_action(group->multi, fd, what, &running) == CURLM_OK;
}

/* Calls libcurl where its time has come; something may then be complete, so returns 0. Otherwise returns the ms until
 * then, at most wait_ms. Or returns -errno. */
static int run_timers(struct weir_events *events, int wait_ms)
{
    uint64_t now_ns = weir_clock_monotonic_ns();
    for (int i = 0; i < WEIR_EVENT_GROUPS; i++) {
        struct weir_event_group *group = &events->groups[i];
        if (!group->multi || group->timer_ns == UINT64_MAX)
            continue;
        if (group->timer_ns <= now_ns) {
            group->timer_ns = UINT64_MAX;
            wait_ms = 0;
            if (!act(group, CURL_SOCKET_TIMEOUT, 0))
                return -EIO;
        } else {
            uint64_t ms = (group->timer_ns - now_ns) / 1000000 + 1;
            wait_ms = ms < (uint64_t)wait_ms ? (int)ms : wait_ms;
        }
    }
    return wait_ms;
}

int weir_events_run(struct weir_events *events, int wait_ms)
{
    struct epoll_event ready[EVENTS];
    wait_ms = run_timers(events, wait_ms);
    if (wait_ms < 0)
        return wait_ms;
    int n = epoll_wait(events->poller - 1, ready, EVENTS, wait_ms);
    if (n < 0 && errno != EINTR)
        return -errno;
    for (int i = 0; i < n; i++) {
        uint32_t e = ready[i].events;
        int what = (e & EPOLLIN ? CURL_CSELECT_IN : 0) | (e & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                   (e & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
        if (!act(&events->groups[ready[i].data.u64 >> 32], (curl_socket_t)(uint32_t)ready[i].data.u64, what))
            return -EIO;
    }
    return 0;
}
