/* The helper program's side: the spawner, which forks the helper processes. */
#include "base/files.h"
#include "datasets/helper/helper_spawner.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* If fd is not negative, sends this descriptor with the result. */
static bool send_result(int to, const struct weir_helper_result *result, int fd)
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

/* Runs in the new process, which closes all descriptors except the standard ones and its own socket. */
static void serve_and_exit(weir_helper_serve_fn *serve, int fd, pid_t spawner)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* even a helper that hangs ends with the program that uses it */
    if (getppid() != spawner)
        _exit(0);
    if (fd > 3)
        weir_descriptors_close(3, (unsigned)fd - 1);
    weir_descriptors_close((unsigned)fd + 1, ~0u);
    serve(fd);
    _exit(0);
}

static bool fork_helper(int fd, weir_helper_serve_fn *serve)
{
    struct weir_helper_result result = {0};
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        result.rc = -errno;
        return send_result(fd, &result, -1);
    }
    pid_t spawner = getpid();
    result.pid = fork();
    if (result.pid == 0)
        serve_and_exit(serve, ends[1], spawner);
    result.rc = result.pid < 0 ? -errno : 0;
    close(ends[1]);
    bool fine = send_result(fd, &result, result.rc < 0 ? -1 : ends[0]);
    close(ends[0]);
    return fine;
}

static bool end_helper(int fd, pid_t pid)
{
    struct weir_helper_result result = {.pid = pid};
    int gone = waitpid(pid, &result.status, WNOHANG);
    if (gone == 0) {
        kill(pid, SIGKILL);
        waitpid(pid, &result.status, 0);
    }
    return send_result(fd, &result, -1);
}

static void run_spawner(int fd, weir_helper_serve_fn *const *serve, int n)
{
    struct weir_helper_hello hello = weir_helper_hello();
    struct weir_helper_command command;
    bool fine = weir_helper_send(fd, &hello, sizeof hello);
    signal(SIGINT, SIG_IGN); /* Ctrl-C reaches the whole process group, but only the loader's process handles it */
    signal(SIGQUIT, SIG_IGN);
    while (fine && recv(fd, &command, sizeof command, MSG_WAITALL) == sizeof command) {
        if (command.end)
            fine = end_helper(fd, command.end);
        else
            fine = command.kind >= 0 && command.kind < n && fork_helper(fd, serve[command.kind]);
    }
}

int weir_helper_program(int argc, weir_helper_serve_fn *const *serve, int n)
{
    int type;
    socklen_t bytes = sizeof type;
    if (argc != 2 || getsockopt(WEIR_HELPER_FD, SOL_SOCKET, SO_TYPE, &type, &bytes) != 0) {
        fputs("weir-hdf5: weir starts this program to read HDF5 files; run weir instead\n", stderr);
        return 2;
    }
    weir_descriptors_close(WEIR_HELPER_FD + 1, ~0u); /* a copy would keep its file's lock alive */
    pid_t spawner = fork();
    if (spawner == 0) {
        run_spawner(WEIR_HELPER_FD, serve, n);
        _exit(0);
    }
    return spawner < 0 ? errno : 0;
}
