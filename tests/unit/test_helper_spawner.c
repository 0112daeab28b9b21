/* Processes that the spawner forks: they inherit nothing, they end for certain, and the program's other children are
 * not mixed up with them. */
#include "datasets/dataset.h"
#include "datasets/helper_spawner_priv.h"
#include "tests/fixtures/loader_fixture.h"

#include <criterion/criterion.h>
#include <dirent.h>
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
    cr_assert_eq(weir_helper_spawn(serve, pid, fd, &err), 0, "%s", err.text);
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

/* Not when it is gone, or dead and not yet waited for. */
static bool is_running(pid_t pid)
{
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    if (!f)
        return false;
    bool fine = fgets(line, sizeof line, f);
    fclose(f);
    const char *state = strrchr(line, ')');
    return fine && state && state[1] && state[2] != 'Z' && state[2] != 'X';
}

/* ---- tests ---- */

Test(helper_spawner, they_answer_and_end)
{
    pid_t pid[3];
    int fd[3];
    for (int i = 0; i < 3; i++)
        make(echo, &pid[i], &fd[i]);
    for (int i = 0; i < 3; i++)
        cr_assert(echoes(fd[i]));
    close(fd[1]); /* it sees the end of its socket, whoever was made after it */
    cr_assert(echoes(fd[0]) && echoes(fd[2]));
    int status = weir_helper_reap(pid[1]);
    cr_assert((WIFEXITED(status) && WEXITSTATUS(status) == 0) || WIFSIGNALED(status));
    cr_assert(echoes(fd[0]) && echoes(fd[2]));
    weir_helper_reap(pid[0]);
    char c;
    cr_assert_eq(recv(fd[0], &c, 1, 0), 0);
    cr_assert_neq(kill(pid[0], 0), 0);
    weir_helper_reap(pid[2]);
}

Test(helper_spawner, a_crash_is_reported)
{
    pid_t pid;
    int fd;
    char c;
    make(crash, &pid, &fd);
    cr_assert_leq(recv(fd, &c, 1, 0), 0);
    int status = weir_helper_reap(pid);
    cr_assert(WIFSIGNALED(status) || WIFEXITED(status)); /* a sanitizer exits */
    cr_assert(!WIFEXITED(status) || WEXITSTATUS(status) != 0);
    cr_assert(!WIFSIGNALED(status) || WTERMSIG(status) == SIGSEGV, "%d", WTERMSIG(status));
    make(echo, &pid, &fd);
    cr_assert(echoes(fd));
}

Test(helper_spawner, one_that_hangs_is_ended)
{
    pid_t pid;
    int fd;
    char c;
    make(hang, &pid, &fd);
    cr_assert_eq(recv(fd, &c, 1, 0), 1);
    int status = weir_helper_reap(pid);
    cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* A helper that hung stayed behind when its program was killed. */
Test(helper_spawner, one_that_hangs_ends_with_its_program)
{
    int told[2];
    char c;
    cr_assert_eq(pipe(told), 0); /* they are born without it: only the program in between holds it open */
    pid_t program = fork();
    if (program == 0) {
        pid_t pid;
        int fd;
        struct weir_err err = WEIR_ERR_NONE;
        if (weir_helper_spawn(hang, &pid, &fd, &err) == 0 && recv(fd, &c, 1, 0) == 1 &&
            write(told[1], &pid, sizeof pid) == sizeof pid)
            pause();
        _exit(1);
    }
    close(told[1]);
    pid_t pid;
    cr_assert_eq(read(told[0], &pid, sizeof pid), sizeof pid);
    cr_assert_eq(kill(program, SIGKILL), 0);
    cr_assert_eq(waitpid(program, NULL, 0), program);
    while (is_running(pid)) /* for ever: it outlives the program */
        usleep(10000);
}

Test(helper_spawner, they_are_born_clean)
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

Test(helper_spawner, a_spawner_that_was_killed_is_started_again)
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
Test(helper_spawner, a_forked_process_has_its_own)
{
    pid_t pid;
    int fd, status;
    make(echo, &pid, &fd);
    pid_t child = fork();
    if (child == 0) {
        pid_t own;
        int own_fd;
        struct weir_err err = WEIR_ERR_NONE;
        bool fine = weir_helper_spawn(echo, &own, &own_fd, &err) == 0 && echoes(own_fd);
        fine = fine && weir_helper_reap(pid) == 0; /* not its to end */
        weir_helper_reap(own);
        _exit(fine ? 0 : 1);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    cr_assert(echoes(fd));
}

/* ---- threads ---- */

static int forks, forks_beside_threads, threads_before;

static int count_threads(void)
{
    struct dirent *entry;
    int threads = 0;
    DIR *tasks = opendir("/proc/self/task");
    while (tasks && (entry = readdir(tasks)))
        threads += entry->d_name[0] != '.';
    if (tasks)
        closedir(tasks);
    return threads;
}

static void count_fork(void)
{
    __atomic_add_fetch(&forks, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&forks_beside_threads, count_threads() > threads_before, __ATOMIC_RELAXED);
}

/* A spawner that was forked by the first of the opening threads could have the allocator's lock of another one, and
 * hung in a free: one run in 150 or so under AddressSanitizer, whose allocator does not mind forks. */
Test(helper_spawner, opening_a_dataset_forks_before_it_starts_threads, .init = fixture_open, .fini = fixture_close)
{
    struct weir_dataset *dataset;
    const char *path = fixture_synth("threads", "act", 12, 4, 32, 24, NULL);
    struct weir_dataset_config config = {.path = path, .threads = 4};
    struct weir_err err = WEIR_ERR_NONE;
    threads_before = count_threads();
    cr_assert_eq(pthread_atfork(count_fork, NULL, NULL), 0);
    cr_assert_eq(weir_dataset_open(&dataset, &config, &err), 0, "%s", err.text);
    weir_dataset_close(&dataset);
    cr_assert_eq(forks, 1, "%d", forks);
    cr_assert_eq(forks_beside_threads, 0);
}

static void *make_many(void *user)
{
    int *made = user;
    for (int i = 0; i < 10; i++) {
        pid_t pid;
        int fd;
        struct weir_err err = WEIR_ERR_NONE;
        if (weir_helper_spawn(echo, &pid, &fd, &err) < 0 || !echoes(fd))
            return NULL;
        close(fd);
        weir_helper_reap(pid);
        (*made)++;
    }
    return NULL;
}

Test(helper_spawner, many_threads_at_once)
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
