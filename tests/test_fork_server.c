/* Processes made by the fork server: born clean, ended for certain, and nobody else's business. */
#include "datasets/fork_server_priv.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void make(void (*serve)(int fd), pid_t *pid, int *fd)
{
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_fork_server_new(serve, pid, fd, &err), 0, "%s", err.text);
    cr_assert(*fd >= 0 && *pid > 0 && *pid != getpid());
}

/* ---- what they run ---- */

static void echo(int fd)
{
    char c;
    while (recv(fd, &c, 1, 0) == 1)
        send(fd, &c, 1, MSG_NOSIGNAL);
}

static void crash(int fd)
{
    (void)fd;
    raise(SIGSEGV);
}

static void hang(int fd)
{
    send(fd, "!", 1, 0);
    for (;;)
        pause();
}

/* Says what it has inherited: its parent, how many descriptors, what it does with SIGINT and SIGUSR1, where it writes.
 */
static void tell(int fd)
{
    struct {
        pid_t parent;
        int descriptors, ignores_int, writes_nowhere;
    } told = {.parent = getppid()};
    struct sigaction action;
    char to[64] = "";
    for (int i = 0; i < 256; i++)
        told.descriptors += fcntl(i, F_GETFD) >= 0;
    sigaction(SIGINT, NULL, &action);
    told.ignores_int = action.sa_handler == SIG_IGN;
    told.writes_nowhere = readlink("/proc/self/fd/1", to, sizeof to - 1) > 0 && strcmp(to, "/dev/null") == 0;
    send(fd, &told, sizeof told, 0);
}

static bool echoes(int fd)
{
    char c = 0;
    return send(fd, "x", 1, MSG_NOSIGNAL) == 1 && recv(fd, &c, 1, 0) == 1 && c == 'x';
}

/* ---- tests ---- */

Test(fork_server, they_answer_and_end)
{
    pid_t pid[3];
    int fd[3];
    for (int i = 0; i < 3; i++)
        make(echo, &pid[i], &fd[i]);
    for (int i = 0; i < 3; i++)
        cr_assert(echoes(fd[i]));
    close(fd[1]); /* it sees the end of its socket, whoever was made after it */
    cr_assert(echoes(fd[0]) && echoes(fd[2]));
    int status = weir_fork_server_end(pid[1]);
    cr_assert((WIFEXITED(status) && WEXITSTATUS(status) == 0) || WIFSIGNALED(status));
    cr_assert(echoes(fd[0]) && echoes(fd[2]));
    weir_fork_server_end(pid[0]);
    char c;
    cr_assert_eq(recv(fd[0], &c, 1, 0), 0);
    cr_assert_neq(kill(pid[0], 0), 0);
    weir_fork_server_end(pid[2]);
}

Test(fork_server, a_crash_is_told)
{
    pid_t pid;
    int fd;
    char c;
    make(crash, &pid, &fd);
    cr_assert_leq(recv(fd, &c, 1, 0), 0);
    int status = weir_fork_server_end(pid);
    cr_assert(WIFSIGNALED(status) || WIFEXITED(status)); /* a sanitizer exits */
    cr_assert(!WIFEXITED(status) || WEXITSTATUS(status) != 0);
    cr_assert(!WIFSIGNALED(status) || WTERMSIG(status) == SIGSEGV, "%d", WTERMSIG(status));
    make(echo, &pid, &fd);
    cr_assert(echoes(fd));
}

Test(fork_server, one_that_hangs_is_ended)
{
    pid_t pid;
    int fd;
    char c;
    make(hang, &pid, &fd);
    cr_assert_eq(recv(fd, &c, 1, 0), 1);
    int status = weir_fork_server_end(pid);
    cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

Test(fork_server, they_are_born_clean)
{
    struct {
        pid_t parent;
        int descriptors, ignores_int, writes_nowhere;
    } told;
    pid_t pid;
    int fd, mine[20];
    for (int i = 0; i < 20; i++)
        mine[i] = open("/dev/null", O_RDONLY);
    make(tell, &pid, &fd);
    cr_assert_eq(recv(fd, &told, sizeof told, MSG_WAITALL), sizeof told);
    cr_assert_eq(told.descriptors, 4, "%d", told.descriptors); /* the standard ones and its socket */
    cr_assert(told.ignores_int && told.writes_nowhere);
    cr_assert_neq(told.parent, getpid());
    cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1);
    cr_assert_eq(errno, ECHILD, "who waits for children must not meet them");
    for (int i = 0; i < 20; i++)
        close(mine[i]);
}

Test(fork_server, a_server_that_was_killed_is_made_anew)
{
    struct {
        pid_t parent;
        int others[3];
    } told;
    pid_t pid;
    int fd;
    make(tell, &pid, &fd);
    cr_assert_eq(recv(fd, &told, sizeof told, MSG_WAITALL), sizeof told);
    cr_assert_eq(kill(told.parent, SIGKILL), 0);
    make(echo, &pid, &fd);
    cr_assert(echoes(fd));
}

/* As PyTorch's DataLoader does: what the parent started is the parent's. */
Test(fork_server, a_forked_process_has_its_own)
{
    pid_t pid;
    int fd, status;
    make(echo, &pid, &fd);
    pid_t child = fork();
    if (child == 0) {
        pid_t own;
        int own_fd;
        struct weir_err err = WEIR_ERR_NONE;
        bool fine = weir_fork_server_new(echo, &own, &own_fd, &err) == 0 && echoes(own_fd);
        fine = fine && weir_fork_server_end(pid) == 0; /* not its to end */
        weir_fork_server_end(own);
        _exit(fine ? 0 : 1);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    cr_assert(echoes(fd));
}

static void *make_many(void *user)
{
    int *made = user;
    for (int i = 0; i < 10; i++) {
        pid_t pid;
        int fd;
        struct weir_err err = WEIR_ERR_NONE;
        if (weir_fork_server_new(echo, &pid, &fd, &err) < 0 || !echoes(fd))
            return NULL;
        close(fd);
        weir_fork_server_end(pid);
        (*made)++;
    }
    return NULL;
}

Test(fork_server, many_threads_at_once)
{
    pthread_t threads[8];
    int made[8] = {0};
    for (int i = 0; i < 8; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, make_many, &made[i]), 0);
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
        cr_assert_eq(made[i], 10);
    }
}
