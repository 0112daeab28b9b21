/* delay_proxy PORT DELAY_US [BYTES_PER_S]: forwards connections to a server on this machine, and adds latency to it.
 *
 * Prints its own port. Requests are delayed, because they are short; responses are forwarded without a copy, at most at
 * the given rate over all connections. One thread, so that it takes little of the machine that it shares with tests. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { REQUEST_BYTES = 16 << 10, SPLICE_BYTES = 256 << 10, SLOW_BYTES = 16 << 10, DELAYED_MAX = 65536, EVENTS = 256 };

/* A connection and its counterpart. */
struct end {
    struct link *link;
    int fd;
};
struct link {
    struct end client, server;
    int pipe[2];
    int delayed; /* number of requests that refer to it */
    bool is_closed;
    struct link *next_closed;
};

struct request {
    struct link *link;
    uint64_t due_ns;
    size_t bytes;
    char *text;
};

static struct request queue[DELAYED_MAX];
static uint32_t first, last; /* of the queue, modulo its length; the delay is constant, so it is sorted */
static uint64_t delay_ns, bytes_per_s, free_ns;
static int poller, timer, server_port;
static struct link *closed; /* not freed yet */

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void fail(const char *what)
{
    fprintf(stderr, "delay_proxy: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void watch(int fd, void *user)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = user};
    if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event) < 0)
        fail("epoll");
}

static void set_timer(uint64_t at_ns)
{
    const struct itimerspec when = {
        .it_value = {.tv_sec = (time_t)(at_ns / 1000000000u), .tv_nsec = (long)(at_ns % 1000000000u)}};
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL);
}

/* Frees closed connections, except those that delayed requests refer to. No event may refer to them. */
static void free_closed(void)
{
    for (struct link **at = &closed; *at;) {
        struct link *link = *at;
        if (link->delayed > 0) {
            at = &link->next_closed;
            continue;
        }
        *at = link->next_closed;
        free(link);
    }
}

static void close_link(struct link *link)
{
    if (link->is_closed)
        return;
    link->is_closed = true;
    link->next_closed = closed;
    closed = link;
    close(link->client.fd);
    close(link->server.fd);
    close(link->pipe[0]);
    close(link->pipe[1]);
}

static void open_link(int listener)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)server_port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1, fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    struct link *link = calloc(1, sizeof *link);
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (!link || server < 0 || connect(server, (struct sockaddr *)&to, sizeof to) < 0 ||
        pipe2(link->pipe, O_CLOEXEC) < 0)
        fail("connection");
    fcntl(link->pipe[1], F_SETPIPE_SZ, SPLICE_BYTES);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    link->client = (struct end){link, fd};
    link->server = (struct end){link, server};
    watch(fd, &link->client);
    watch(server, &link->server);
}

static bool send_all(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        bytes += sent;
        n -= (size_t)sent;
    }
    return true;
}

/* Takes a request from the client. */
static void delay_request(struct link *link)
{
    char text[REQUEST_BYTES];
    ssize_t n = recv(link->client.fd, text, sizeof text, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0 || last - first == DELAYED_MAX) {
        close_link(link);
        return;
    }
    struct request *r = &queue[last % DELAYED_MAX];
    *r = (struct request){link, now_ns() + delay_ns, (size_t)n, malloc((size_t)n)};
    if (!r->text)
        fail("memory");
    memcpy(r->text, text, (size_t)n);
    link->delayed++;
    if (first == last++)
        set_timer(r->due_ns);
}

static void send_due(void)
{
    uint64_t now = now_ns();
    for (; first != last && queue[first % DELAYED_MAX].due_ns <= now; first++) {
        struct request *r = &queue[first % DELAYED_MAX];
        r->link->delayed--;
        if (!r->link->is_closed && !send_all(r->link->server.fd, r->text, r->bytes))
            close_link(r->link);
        free(r->text);
    }
    if (first != last)
        set_timer(queue[first % DELAYED_MAX].due_ns);
}

/* Forwards a part of a response. With a rate, it waits for the bytes before it, whoever they were for. */
static void forward(struct link *link)
{
    ssize_t n = splice(link->server.fd, NULL, link->pipe[1], NULL, bytes_per_s ? SLOW_BYTES : SPLICE_BYTES,
                       SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0) {
        close_link(link);
        return;
    }
    if (bytes_per_s) {
        uint64_t now = now_ns();
        free_ns = (free_ns > now ? free_ns : now) + (uint64_t)n * 1000000000u / bytes_per_s;
        const struct timespec until = {(time_t)(free_ns / 1000000000u), (long)(free_ns % 1000000000u)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    }
    while (n > 0) {
        ssize_t sent = splice(link->pipe[0], NULL, link->client.fd, NULL, (size_t)n, SPLICE_F_MOVE);
        if (sent <= 0) {
            close_link(link);
            return;
        }
        n -= sent;
    }
}

static int listen_here(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, size) < 0 || listen(fd, 1024) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &size) < 0)
        fail("socket");
    printf("%d\n", ntohs(at.sin_port));
    fflush(stdout);
    return fd;
}

static void handle(const struct epoll_event *event, const int *listener)
{
    uint64_t expirations;
    if (event->data.ptr == listener) {
        open_link(*listener);
    } else if (event->data.ptr == &timer) {
        if (read(timer, &expirations, sizeof expirations) > 0)
            send_due();
    } else {
        struct end *end = event->data.ptr;
        if (end->link->is_closed)
            return;
        if (end == &end->link->client)
            delay_request(end->link);
        else
            forward(end->link);
    }
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: delay_proxy PORT DELAY_US [BYTES_PER_S]\n");
        return 2;
    }
    server_port = atoi(argv[1]);
    delay_ns = strtoull(argv[2], NULL, 10) * 1000;
    bytes_per_s = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
    poller = epoll_create1(EPOLL_CLOEXEC);
    timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    int listener = listen_here();
    if (poller < 0 || timer < 0)
        fail("start");
    watch(listener, &listener);
    watch(timer, &timer);
    for (;;) {
        struct epoll_event events[EVENTS];
        int n = epoll_wait(poller, events, EVENTS, -1);
        for (int i = 0; i < n; i++)
            handle(&events[i], &listener);
        free_closed();
    }
}
