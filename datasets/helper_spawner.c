#include "datasets/helper_spawner_priv.h"
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

struct command {
    pid_t end;             /* the helper to end; 0: fork a new one */
    void (*serve)(int fd); /* the same address on both sides of a fork */
};

struct result {
    int rc, status;
    pid_t pid;
};

static struct {
    pthread_mutex_t lock;
    pid_t owner; /* the process that started it */
    int fd;
} spawner = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

/* ---- in the spawner ---- */

/* Drops what was inherited: descriptors (a copy of one keeps its file's lock alive), signal handlers, and where
 * messages go. */
static void leave_parent(int fd)
{
    static const int defaults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGXCPU, SIGTERM, SIGCHLD};
    for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++)
        signal(defaults[i], SIG_DFL);
    signal(SIGINT, SIG_IGN); /* Ctrl-C reaches the whole group; the parent decides what it means */
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
static bool send_result(int to, const struct result *result, int fd)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec data = {(void *)result, sizeof *result};
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
    return sendmsg(to, &message, MSG_NOSIGNAL) == sizeof *result;
}

static bool fork_helper(int fd, const struct command *command)
{
    struct result result = {0};
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        result.rc = -errno;
        return send_result(fd, &result, -1);
    }
    pid_t spawner_pid = getpid();
    result.pid = fork();
    if (result.pid == 0) {
        leave_parent(ends[1]);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* even a hanging helper ends with the program that could use it */
        if (getppid() != spawner_pid)
            _exit(0);
        command->serve(ends[1]);
        _exit(0);
    }
    result.rc = result.pid < 0 ? -errno : 0;
    close(ends[1]);
    bool fine = send_result(fd, &result, result.rc < 0 ? -1 : ends[0]);
    close(ends[0]);
    return fine;
}

static bool end_helper(int fd, pid_t pid)
{
    struct result result = {.pid = pid};
    int gone = waitpid(pid, &result.status, WNOHANG);
    if (gone == 0) {
        kill(pid, SIGKILL);
        waitpid(pid, &result.status, 0);
    }
    return send_result(fd, &result, -1);
}

static void run_spawner(int fd)
{
    struct command command;
    bool fine = true;
    leave_parent(fd);
    while (fine && recv(fd, &command, sizeof command, MSG_WAITALL) == sizeof command)
        fine = command.end ? end_helper(fd, command.end) : fork_helper(fd, &command);
}

/* ---- in the parent ---- */

static int start_spawner(void)
{
    int ends[2], status;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return -errno;
    pid_t between = fork();
    if (between == 0) {
        pid_t spawner_pid = fork();
        if (spawner_pid == 0) {
            close(ends[0]);
            run_spawner(ends[1]);
        }
        _exit(spawner_pid < 0 ? errno : 0);
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
    spawner.fd = ends[0];
    spawner.owner = getpid();
    return 0;
}

static int receive_result(struct result *result, int *fd)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec data = {result, sizeof *result};
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    ssize_t got;
    do
        got = recvmsg(spawner.fd, &message, MSG_CMSG_CLOEXEC | MSG_WAITALL);
    while (got < 0 && errno == EINTR);
    if (got != sizeof *result)
        return -EPIPE;
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    *fd = -1;
    if (head && head->cmsg_type == SCM_RIGHTS)
        memcpy(fd, CMSG_DATA(head), sizeof *fd);
    return 0;
}

static int have_spawner_locked(void)
{
    if (spawner.fd >= 0 && spawner.owner != getpid()) {
        close(spawner.fd); /* it belongs to our parent */
        spawner.fd = -1;
    }
    return spawner.fd < 0 ? start_spawner() : 0;
}

/* One command, one result. A spawner that is gone is started once more. */
static int send_command_locked(const struct command *command, struct result *result, int *fd)
{
    int rc = -EPIPE;
    for (int attempt = 0; attempt < 2 && rc == -EPIPE; attempt++) {
        rc = have_spawner_locked();
        if (rc == 0)
            rc = send(spawner.fd, command, sizeof *command, MSG_NOSIGNAL) == sizeof *command ? 0 : -EPIPE;
        if (rc == 0)
            rc = receive_result(result, fd);
        if (rc == -EPIPE && spawner.fd >= 0) {
            close(spawner.fd);
            spawner.fd = -1;
        }
    }
    return rc < 0 ? rc : result->rc;
}

void weir_helper_spawner_start(void)
{
    pthread_mutex_lock(&spawner.lock);
    have_spawner_locked();
    pthread_mutex_unlock(&spawner.lock);
}

int weir_helper_spawn(void (*serve)(int fd), pid_t *pid, int *fd, struct weir_err *err)
{
    struct command command = {.serve = serve};
    struct result result;
    pthread_mutex_lock(&spawner.lock);
    int rc = send_command_locked(&command, &result, fd);
    pthread_mutex_unlock(&spawner.lock);
    if (rc == 0 && *fd < 0)
        rc = -EMFILE; /* the descriptor did not fit */
    if (rc < 0)
        return weir_err_set(err, rc, "the HDF5 helper process cannot be started: %s", strerror(-rc));
    *pid = result.pid;
    weir_helper_begins(*pid);
    return 0;
}

int weir_helper_reap(pid_t pid)
{
    struct command command = {.end = pid};
    struct result result;
    int fd;
    weir_helper_ends(pid);
    pthread_mutex_lock(&spawner.lock);
    int rc = spawner.fd >= 0 && spawner.owner == getpid() ? send_command_locked(&command, &result, &fd) : -ESRCH;
    pthread_mutex_unlock(&spawner.lock);
    return rc == 0 ? result.status : 0;
}
