/* Processes forked by the spawner inherit nothing, always end, and are never confused with the program's other
 * children. */
#include "datasets/helper/helper_spawner.h"
#include "tests/fixtures/loader_fixture.h"
#include "tests/tools/spawned.h"
#include "weir/dataset.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void use_spawned(void)
{
    setenv("WEIR_HDF5_HELPER", SPAWNED, 1);
}

static int spawn(enum spawned_kind kind, pid_t *pid, int *fd, struct weir_err *err)
{
    return weir_helper_spawn((enum weir_helper_kind)kind, pid, fd, err);
}

static void make(enum spawned_kind kind, pid_t *pid, int *fd)
{
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(spawn(kind, pid, fd, &err), 0, "%s", err.text);
    cr_assert(*fd >= 0 && *pid > 0 && *pid != getpid());
}

static bool echoes(int fd)
{
    char c = 0;
    return send(fd, "x", 1, MSG_NOSIGNAL) == 1 && recv(fd, &c, 1, 0) == 1 && c == 'x';
}

/* Returns false for processes that have ended, including zombies. */
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

TestSuite(helper_spawner, .init = use_spawned);

Test(helper_spawner, they_answer_and_end)
{
    pid_t pid[3];
    int fd[3];
    for (int i = 0; i < 3; i++)
        make(SPAWNED_ECHO, &pid[i], &fd[i]);
    for (int i = 0; i < 3; i++)
        cr_assert(echoes(fd[i]));
    close(fd[1]); /* helper 1 must see its socket close, although helper 2 was spawned later */
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
    make(SPAWNED_CRASH, &pid, &fd);
    cr_assert_leq(recv(fd, &c, 1, 0), 0);
    int status = weir_helper_reap(pid);
    cr_assert(WIFSIGNALED(status) || WIFEXITED(status)); /* with a sanitizer, it exits instead */
    cr_assert(!WIFEXITED(status) || WEXITSTATUS(status) != 0);
    cr_assert(!WIFSIGNALED(status) || WTERMSIG(status) == SIGSEGV, "%d", WTERMSIG(status));
    make(SPAWNED_ECHO, &pid, &fd);
    cr_assert(echoes(fd));
}

Test(helper_spawner, one_that_hangs_is_ended)
{
    pid_t pid;
    int fd;
    char c;
    make(SPAWNED_HANG, &pid, &fd);
    cr_assert_eq(recv(fd, &c, 1, 0), 1);
    int status = weir_helper_reap(pid);
    cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* A helper that hangs must not outlive its program, even if the program is killed. */
Test(helper_spawner, one_that_hangs_ends_with_its_program)
{
    int told[2];
    char c;
    cr_assert_eq(pipe(told), 0); /* helpers do not inherit the pipe, so only the program in between holds it open */
    pid_t program = fork();
    if (program == 0) {
        pid_t pid;
        int fd;
        struct weir_err err = WEIR_ERR_NONE;
        if (spawn(SPAWNED_HANG, &pid, &fd, &err) == 0 && recv(fd, &c, 1, 0) == 1 &&
            write(told[1], &pid, sizeof pid) == sizeof pid)
            pause();
        _exit(1);
    }
    close(told[1]);
    pid_t pid;
    cr_assert_eq(read(told[0], &pid, sizeof pid), sizeof pid);
    cr_assert_eq(kill(program, SIGKILL), 0);
    cr_assert_eq(waitpid(program, NULL, 0), program);
    while (is_running(pid)) /* loops forever if the helper outlives the program */
        usleep(10000);
}

Test(helper_spawner, they_are_born_clean)
{
    struct spawned_facts told;
    pid_t pid;
    int fd, mine[20];
    sigset_t usr1;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigprocmask(SIG_BLOCK, &usr1, NULL);
    signal(SIGUSR1, SIG_IGN);
    for (int i = 0; i < 20; i++)
        mine[i] = open("/dev/null", O_RDONLY);
    make(SPAWNED_TELL, &pid, &fd);
    cr_assert_eq(recv(fd, &told, sizeof told, MSG_WAITALL), sizeof told);
    cr_assert_eq(told.descriptors, 4, "%d", told.descriptors); /* the three standard descriptors and its socket */
    cr_assert(told.ignores_int && told.default_usr1 && told.writes_nowhere);
    cr_assert_neq(told.parent, getpid());
    cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1);
    cr_assert_eq(errno, ECHILD, "a helper is visible as a child process");
    for (int i = 0; i < 20; i++)
        close(mine[i]);
}

/* Linux before 5.9 has no close_range. */
static void forbid_close_range(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    cr_assert_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    cr_assert_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

/* The program starts with no free descriptor. */
Test(helper_spawner, they_are_born_clean_with_an_old_kernel)
{
    enum { LIMIT = 64, NEEDED = 3 /* both ends of a socket, and a helper's */ };
    struct rlimit limit = {LIMIT, LIMIT};
    struct spawned_facts told;
    pid_t pid;
    int fd, last = -1;
    forbid_close_range();
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    while ((fd = open("/dev/null", O_RDONLY)) >= 0)
        last = fd;
    cr_assert_eq(last, LIMIT - 1);
    for (int i = 0; i < NEEDED; i++)
        close(last - i);
    make(SPAWNED_TELL, &pid, &fd);
    cr_assert_eq(recv(fd, &told, sizeof told, MSG_WAITALL), sizeof told);
    cr_assert_eq(told.descriptors, 4, "%d", told.descriptors);
}

Test(helper_spawner, a_spawner_that_was_killed_is_started_again)
{
    struct spawned_facts told;
    pid_t pid;
    int fd;
    make(SPAWNED_TELL, &pid, &fd);
    cr_assert_eq(recv(fd, &told, sizeof told, MSG_WAITALL), sizeof told);
    cr_assert_eq(kill(told.parent, SIGKILL), 0);
    make(SPAWNED_ECHO, &pid, &fd);
    cr_assert(echoes(fd));
}

/* A forked process, like a worker of PyTorch's DataLoader, spawns its own helpers and cannot reap its parent's. */
Test(helper_spawner, a_forked_process_has_its_own)
{
    pid_t pid;
    int fd, status;
    make(SPAWNED_ECHO, &pid, &fd);
    pid_t child = fork();
    if (child == 0) {
        pid_t own;
        int own_fd;
        struct weir_err err = WEIR_ERR_NONE;
        bool fine = spawn(SPAWNED_ECHO, &own, &own_fd, &err) == 0 && echoes(own_fd);
        fine = fine && weir_helper_reap(pid) == 0; /* the parent's helper is not reaped here */
        weir_helper_reap(own);
        _exit(fine ? 0 : 1);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    cr_assert(echoes(fd));
}

/* ---- threads ---- */

static int forks;

static void count_fork(void)
{
    __atomic_add_fetch(&forks, 1, __ATOMIC_RELAXED);
}

/* Forking a process with threads can leave locks held in the child, and CUDA does not work after a fork. */
Test(helper_spawner, opening_a_dataset_forks_nothing, .init = fixture_open, .fini = fixture_close)
{
    unsetenv("WEIR_HDF5_HELPER");
    struct weir_dataset *dataset;
    const char *path = fixture_synth("threads", "act", 12, 4, 32, 24, NULL);
    struct weir_dataset_config config = {.size = sizeof config, .path = path, .threads = 4};
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(pthread_atfork(count_fork, NULL, NULL), 0);
    cr_assert_eq(weir_dataset_open(&dataset, &config, &err), 0, "%s", err.text);
    weir_dataset_close(&dataset);
    cr_assert_eq(forks, 0, "%d", forks);
}

static void *make_many(void *user)
{
    int *made = user;
    for (int i = 0; i < 10; i++) {
        pid_t pid;
        int fd;
        struct weir_err err = WEIR_ERR_NONE;
        if (spawn(SPAWNED_ECHO, &pid, &fd, &err) < 0 || !echoes(fd))
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

/* ---- the program ---- */

static void expect_refusal(const char *program, const char *text)
{
    struct weir_err err = WEIR_ERR_NONE;
    pid_t pid;
    int fd;
    setenv("WEIR_HDF5_HELPER", program, 1);
    cr_assert_eq(spawn(SPAWNED_ECHO, &pid, &fd, &err), -ENOTSUP, "%s", program);
    cr_assert(strstr(err.text, program) && strstr(err.text, text), "%s", err.text);
    cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1, "%s remains as a child process", program);
}

Test(helper_spawner, another_program_or_none_is_one_line)
{
    expect_refusal("/nowhere/weir-hdf5", "cannot be started: No such file or directory; install weir-hdf5 next");
    expect_refusal("/etc/passwd", "cannot be started: Permission denied");
    expect_refusal("/bin/true", "is not the HDF5 helper program of this build");
    use_spawned();
    pid_t pid;
    int fd;
    make(SPAWNED_ECHO, &pid, &fd);
    cr_assert(echoes(fd));
}

/* A copy of this build's program, in a folder with a space in its name, started from another folder. */
Test(helper_spawner, it_is_found_wherever_it_lies, .init = fixture_open, .fini = fixture_close)
{
    const char *folder = fixture_path("with space");
    char command[4096], path[1024];
    pid_t pid;
    int fd;
    snprintf(path, sizeof path, "%s/weir hdf5", folder);
    snprintf(command, sizeof command, "mkdir '%s' && cp '%s' '%s'", folder, SPAWNED, path);
    cr_assert_eq(system(command), 0);
    setenv("WEIR_HDF5_HELPER", path, 1);
    cr_assert_eq(chdir("/"), 0);
    make(SPAWNED_ECHO, &pid, &fd);
    cr_assert(echoes(fd));
}

Test(helper_spawner, it_is_found_beside_this_program, .init = fixture_open, .fini = fixture_close)
{
    struct weir_dataset *dataset;
    const char *path = fixture_synth("beside", "act", 1, 4, 32, 24, NULL);
    struct weir_dataset_config config = {.size = sizeof config, .path = path};
    struct weir_err err = WEIR_ERR_NONE;
    unsetenv("WEIR_HDF5_HELPER");
    cr_assert_eq(chdir("/"), 0);
    cr_assert_eq(weir_dataset_open(&dataset, &config, &err), 0, "%s", err.text);
    weir_dataset_close(&dataset);
}

/* Spawning also works while the standard descriptors are closed. */
Test(helper_spawner, they_start_without_standard_descriptors)
{
    struct spawned_facts told;
    pid_t pid;
    int fd, kept[3];
    for (int i = 0; i < 3; i++) {
        kept[i] = fcntl(i, F_DUPFD_CLOEXEC, 10);
        close(i);
    }
    struct weir_err err = WEIR_ERR_NONE;
    int rc = spawn(SPAWNED_TELL, &pid, &fd, &err);
    bool fine = rc == 0 && recv(fd, &told, sizeof told, MSG_WAITALL) == sizeof told;
    for (int i = 0; i < 3; i++)
        dup2(kept[i], i);
    cr_assert(fine, "%s", err.text);
    cr_assert_eq(told.descriptors, 4, "%d", told.descriptors);
    cr_assert(told.writes_nowhere);
}
