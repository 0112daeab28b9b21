#include "datasets/fork_server_priv.h"
#include "prof/record/recorder.h"
#include "prof/report/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct order {
    pid_t end;             /* 0: make a new one */
    void (*serve)(int fd); /* the same address on both sides of a fork */
};

struct report {
    int rc, status;
    pid_t pid;
};

static struct {
    pthread_mutex_t lock;
    pid_t owner; /* the process that started it */
    int fd;
} server = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

/* ---- in the server ---- */

/* Nothing of the parent's is of use here: its files, its handlers, its place to complain. A copy of a file's descriptor
 * would keep its lock alive. */
static void leave_parent(int fd)
{
    static const int as_usual[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGXCPU, SIGTERM, SIGCHLD};
    for (size_t i = 0; i < sizeof as_usual / sizeof as_usual[0]; i++)
        signal(as_usual[i], SIG_DFL);
    signal(SIGINT, SIG_IGN); /* the parent's to decide */
    signal(SIGQUIT, SIG_IGN);
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    if (fd > 3)
        close_range(3, (unsigned)fd - 1, 0);
    close_range((unsigned)fd + 1, ~0u, 0);
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int standard = 0; standard < 3 && nowhere >= 0; standard++)
        dup2(nowhere, standard);
    if (nowhere >= 3)
        close(nowhere);
    weir_thread_self = NULL;
}

/* Sends fd along when it is not negative. */
static bool send_report(int to, const struct report *report, int fd)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec data = {(void *)report, sizeof *report};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};
    if (fd >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(head), &fd, sizeof fd);
    }
    return sendmsg(to, &message, MSG_NOSIGNAL) == sizeof *report;
}

static bool make_one(int fd, const struct order *order)
{
    struct report report = {0};
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        report.rc = -errno;
        return send_report(fd, &report, -1);
    }
    pid_t server_pid = getpid();
    report.pid = fork();
    if (report.pid == 0) {
        leave_parent(ends[1]);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* whatever it hangs in, it does not outlive who could ask it */
        if (getppid() != server_pid)
            _exit(0);
        order->serve(ends[1]);
        _exit(0);
    }
    report.rc = report.pid < 0 ? -errno : 0;
    close(ends[1]);
    bool fine = send_report(fd, &report, report.rc < 0 ? -1 : ends[0]);
    close(ends[0]);
    return fine;
}

static bool end_one(int fd, pid_t pid)
{
    struct report report = {.pid = pid};
    int gone = waitpid(pid, &report.status, WNOHANG);
    if (gone == 0) {
        kill(pid, SIGKILL);
        waitpid(pid, &report.status, 0);
    }
    return send_report(fd, &report, -1);
}

static void run_server(int fd)
{
    struct order order;
    bool fine = true;
    leave_parent(fd);
    while (fine && recv(fd, &order, sizeof order, MSG_WAITALL) == sizeof order)
        fine = order.end ? end_one(fd, order.end) : make_one(fd, &order);
}

/* ---- in the parent ---- */

static int start_server(void)
{
    int ends[2], status;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return -errno;
    pid_t between = fork();
    if (between == 0) {
        pid_t server_pid = fork();
        if (server_pid == 0) {
            close(ends[0]);
            run_server(ends[1]);
        }
        _exit(server_pid < 0 ? errno : 0);
    }
    int rc = between < 0 ? -errno : 0;
    close(ends[1]);
    pid_t waited = -1;
    while (rc == 0 && (waited = waitpid(between, &status, 0)) < 0 && errno == EINTR)
        continue;
    if (waited > 0 && WIFEXITED(status))
        rc = -WEXITSTATUS(status);
    if (rc < 0) {
        close(ends[0]);
        return rc;
    }
    server.fd = ends[0];
    server.owner = getpid();
    return 0;
}

static int receive_report(struct report *report, int *fd)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec data = {report, sizeof *report};
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    ssize_t got;
    do
        got = recvmsg(server.fd, &message, MSG_CMSG_CLOEXEC | MSG_WAITALL);
    while (got < 0 && errno == EINTR);
    if (got != sizeof *report)
        return -EPIPE;
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    *fd = -1;
    if (head && head->cmsg_type == SCM_RIGHTS)
        memcpy(fd, CMSG_DATA(head), sizeof *fd);
    return 0;
}

static int have_server_locked(void)
{
    if (server.fd >= 0 && server.owner != getpid()) {
        close(server.fd); /* our parent's */
        server.fd = -1;
    }
    return server.fd < 0 ? start_server() : 0;
}

/* One order, one report; a server that has gone is started anew. */
static int order_locked(const struct order *order, struct report *report, int *fd)
{
    int rc = -EPIPE;
    for (int attempt = 0; attempt < 2 && rc == -EPIPE; attempt++) {
        rc = have_server_locked();
        if (rc == 0)
            rc = send(server.fd, order, sizeof *order, MSG_NOSIGNAL) == sizeof *order ? 0 : -EPIPE;
        if (rc == 0)
            rc = receive_report(report, fd);
        if (rc == -EPIPE && server.fd >= 0) {
            close(server.fd);
            server.fd = -1;
        }
    }
    return rc < 0 ? rc : report->rc;
}

void weir_fork_server_start(void)
{
    pthread_mutex_lock(&server.lock);
    have_server_locked();
    pthread_mutex_unlock(&server.lock);
}

int weir_fork_server_new(void (*serve)(int fd), pid_t *pid, int *fd, struct weir_err *err)
{
    struct order order = {.serve = serve};
    struct report report;
    pthread_mutex_lock(&server.lock);
    int rc = order_locked(&order, &report, fd);
    pthread_mutex_unlock(&server.lock);
    if (rc == 0 && *fd < 0)
        rc = -EMFILE; /* the descriptor did not fit */
    if (rc < 0)
        return weir_err_set(err, rc, "the process that asks the HDF5 library cannot be started: %s", strerror(-rc));
    *pid = report.pid;
    weir_helper_begins(*pid);
    return 0;
}

int weir_fork_server_end(pid_t pid)
{
    struct order order = {.end = pid};
    struct report report;
    int fd;
    weir_helper_ends(pid);
    pthread_mutex_lock(&server.lock);
    int rc = server.fd >= 0 && server.owner == getpid() ? order_locked(&order, &report, &fd) : -ESRCH;
    pthread_mutex_unlock(&server.lock);
    return rc == 0 ? report.status : 0;
}
