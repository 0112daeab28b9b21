/* weir top -- COMMAND: starts the command, and passes signals and its exit status on. */
#include "cli/commands.h"
#include "cli/top/top.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile pid_t child;
static const int passed[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
enum { PASSED = sizeof passed / sizeof *passed };

/* The terminal sends its signals to the whole foreground process group, so the command has got them already. */
static void pass_on(int number, siginfo_t *info, void *context)
{
    (void)context;
    int error = errno;
    if (child > 0 && info->si_code != SI_KERNEL)
        kill(child, number);
    errno = error;
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO | SA_RESTART}, before;
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < PASSED; i++)
        if (sigaction(passed[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(passed[i], &action, NULL);
}

/* Runs in the child. */
static void execute(char *const *argv, int report)
{
    weir_cli_exec(argv);
    int error = errno;
    if (write(report, &error, sizeof error) < 0)
        _exit(126);
    _exit(127);
}

pid_t top_command_start(char *const *argv, struct weir_err *err)
{
    int report[2], error = 0;
    sigset_t all, before;
    if (pipe2(report, O_CLOEXEC) < 0)
        return weir_err_set(err, -errno, "cannot create a pipe: %s", strerror(errno));
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before); /* a signal before `child` is set would be lost */
    pid_t pid = fork();
    if (pid == 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        execute(argv, report[1]);
    }
    int fork_error = errno;
    child = pid;
    if (pid > 0)
        catch_signals();
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(report[1]);
    ssize_t n = pid > 0 ? read(report[0], &error, sizeof error) : 0;
    close(report[0]);
    if (pid < 0)
        return weir_err_set(err, -fork_error, "cannot start %s: %s", argv[0], strerror(fork_error));
    if (n != (ssize_t)sizeof error)
        return pid;
    waitpid(pid, NULL, 0);
    child = 0;
    return weir_err_set(err, -error, "cannot start %s: %s; check the name and $PATH", argv[0], strerror(error));
}

bool top_command_ended(pid_t pid, int *status)
{
    int wait_status;
    if (waitpid(pid, &wait_status, WNOHANG) != pid)
        return false;
    child = 0;
    *status = WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
    return true;
}
