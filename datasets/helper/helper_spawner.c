/* The loader's side: starts the helper program, and requests processes from its spawner. */
#include "datasets/helper/helper_spawner.h"
#include "base/files.h"
#include "base/shortage.h"
#include "base/threads.h"
#include "prof/report/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { START_TIMEOUT_S = 60 /* file systems may be slow */ };
static const char PROGRAM[] = "weir-hdf5", VARIABLE[] = "WEIR_HDF5_HELPER";

static struct {
    pthread_mutex_t lock;
    pid_t owner; /* the process that started the spawner */
    int fd;
} spawner = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};
__attribute__((constructor)) static void watch_forks(void)
{
    weir_fork_lock(&spawner.lock);
}

/* ---- starting the program ---- */

/* Writes the path of the program. If the path contains no slash, the program is searched for on the PATH. Returns a
 * negative code if memory or descriptors run out during the search. */
static int find_program(char path[PATH_MAX])
{
    static const char *const folders[] = {"", "../bin/", "../../bin/", NULL};
    const char *named = getenv(VARIABLE);
    if (named && *named) {
        snprintf(path, PATH_MAX, "%s", named);
        return 0;
    }
    int rc = weir_path_installed(PROGRAM, PROGRAM, folders, path);
    if (rc == 0 || weir_is_shortage(rc))
        return rc;
    snprintf(path, PATH_MAX, "%s", PROGRAM);
    return 0;
}

/* Starts the program with /dev/null and the socket. The program closes all other descriptors that it inherits. Signals
 * are reset as in a new process. The order of the actions matters, because our end of the socket may be one of the
 * standard descriptors. It is copied twice, because a copy to the same number stays close-on-exec with glibc
 * before 2.29. */
static int spawn_program(const char *path, int fd, pid_t *pid)
{
    char *const arguments[] = {(char *)PROGRAM, (char *)"serve", NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    int rc = posix_spawn_file_actions_init(&actions);
    if (rc)
        return -rc;
    rc = posix_spawn_file_actions_adddup2(&actions, fd, WEIR_HELPER_FD + 1);
    rc = rc ? rc : posix_spawn_file_actions_adddup2(&actions, WEIR_HELPER_FD + 1, WEIR_HELPER_FD);
    for (int standard = 0; standard < 3 && rc == 0; standard++)
        rc = posix_spawn_file_actions_addopen(&actions, standard, "/dev/null", O_RDWR, 0);
    posix_spawnattr_init(&attributes); /* these functions cannot fail */
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setsigmask(&attributes, &none);
    rc = rc ? rc : posix_spawnp(pid, path, &actions, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return -rc;
}

static int report_not_started(const char *path, int rc, struct weir_err *err)
{
    if (rc == -ENOENT || rc == -EACCES || rc == -ENOEXEC || rc == -ENOTDIR)
        return weir_err_set(err, -ENOTSUP,
                            "the HDF5 helper program, %s, cannot be started: %s; install %s next to the program or "
                            "library, or specify its path with %s",
                            path, strerror(-rc), PROGRAM, VARIABLE);
    return weir_err_set(err, rc, "the HDF5 helper process cannot be started: %s", strerror(-rc));
}

/* Reports that the program sent no hello message, or a different one. */
static int report_no_hello(const char *path, int status, struct weir_err *err)
{
    enum { NOT_LOADED = 127 /* exit status if the dynamic linker fails */ };
    if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_LOADED)
        return weir_err_set(
            err, -ENOTSUP, "the HDF5 helper program, %s, cannot load a library that it needs; `ldd %s` shows which one",
            path, path);
    if (WIFEXITED(status) && (WEXITSTATUS(status) == ENOMEM || WEXITSTATUS(status) == EAGAIN))
        return report_not_started(path, -WEXITSTATUS(status), err);
    return weir_err_set(err, -ENOTSUP,
                        "%s is not the HDF5 helper program of this build of weir; build or install both again", path);
}

/* Waits for the spawner's hello message. The process that was started exits as soon as it has forked the spawner. */
static int await_spawner(const char *path, int fd, pid_t started, struct weir_err *err)
{
    struct weir_helper_hello hello, wanted = weir_helper_hello();
    bool came = weir_helper_receive(fd, &hello, sizeof hello, START_TIMEOUT_S);
    bool fine = came && memcmp(&hello, &wanted, sizeof hello) == 0;
    int status = 0;
    if (!fine)
        kill(started, SIGKILL); /* another program, which may keep running */
    while (waitpid(started, &status, 0) < 0 && errno == EINTR)
        continue;
    return fine ? 0 : report_no_hello(path, came ? 0 : status, err);
}

static int start_spawner(struct weir_err *err)
{
    char path[PATH_MAX];
    int ends[2];
    pid_t started;
    int rc = find_program(path);
    if (rc < 0)
        return report_not_started(path, rc, err);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return report_not_started(path, -errno, err);
    rc = spawn_program(path, ends[1], &started);
    close(ends[1]);
    rc = rc < 0 ? report_not_started(path, rc, err) : await_spawner(path, ends[0], started, err);
    if (rc < 0) {
        close(ends[0]);
        return rc;
    }
    spawner.fd = ends[0];
    spawner.owner = getpid();
    return 0;
}

/* ---- requests to the spawner ---- */

static int receive_result(struct weir_helper_result *result, int *fd)
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

static int have_spawner_locked(struct weir_err *err)
{
    if (spawner.fd >= 0 && spawner.owner != getpid()) {
        close(spawner.fd); /* this spawner belongs to the parent process */
        spawner.fd = -1;
    }
    return spawner.fd < 0 ? start_spawner(err) : 0;
}

/* Sends one command and receives its result. If the spawner is gone, starts a new one and tries again, once. */
static int send_command_locked(const struct weir_helper_command *command, struct weir_helper_result *result, int *fd,
                               struct weir_err *err)
{
    int rc = -EPIPE;
    for (int attempt = 0; attempt < 2 && rc == -EPIPE; attempt++) {
        rc = have_spawner_locked(err);
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

int weir_helper_spawn(enum weir_helper_kind kind, pid_t *pid, int *fd, struct weir_err *err)
{
    struct weir_helper_command command = {.kind = kind};
    struct weir_helper_result result;
    struct weir_err why = WEIR_ERR_NONE;
    pthread_mutex_lock(&spawner.lock);
    int rc = send_command_locked(&command, &result, fd, &why);
    pthread_mutex_unlock(&spawner.lock);
    if (rc == 0 && *fd < 0)
        rc = -EMFILE; /* this process has no free descriptor for the socket */
    if (rc < 0 && why.text[0])
        return weir_err_set(err, rc, "%s", why.text);
    if (rc < 0)
        return weir_err_set(err, rc, "the HDF5 helper process cannot be started: %s", strerror(-rc));
    *pid = result.pid;
    weir_helper_begins(*pid);
    return 0;
}

int weir_helper_reap(pid_t pid)
{
    struct weir_helper_command command = {.end = pid};
    struct weir_helper_result result;
    int fd;
    weir_helper_ends(pid);
    pthread_mutex_lock(&spawner.lock);
    int rc = spawner.fd >= 0 && spawner.owner == getpid() ? send_command_locked(&command, &result, &fd, NULL) : -ESRCH;
    pthread_mutex_unlock(&spawner.lock);
    return rc == 0 ? result.status : 0;
}

/* ---- messages ---- */

bool weir_helper_send(int fd, const void *data, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t sent = send(fd, (const char *)data + done, n - done, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        done += (size_t)sent;
    }
    return true;
}

bool weir_helper_receive(int fd, void *data, size_t n, int timeout_s)
{
    for (size_t done = 0; done < n;) {
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
        int ready = poll(&poll_fd, 1, timeout_s < 0 ? -1 : timeout_s * 1000);
        if (ready < 0 && errno == EINTR)
            continue;
        ssize_t got = ready > 0 ? recv(fd, (char *)data + done, n - done, 0) : 0;
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}
