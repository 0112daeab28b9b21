#include "base/shortage.h"
#include "base/terminal.h"
#include "origin/s3_credentials.h"
#include "weir/base.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SLICE_MS = 100, QUIET_PART = 6 }; /* QUIET_PART: of the limit; a longer wait is reported */

static const char name[] = "credential_process of the AWS profile";

extern char **environ;

/* ---- words ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Copies a word, whose end becomes *at. Returns false if a quote has no end. */
static bool take_word(char **at, char **to)
{
    char quote = '\0', *from = *at;
    for (; *from && (quote || !is_blank(*from)); from++) {
        bool escapes = *from == '\\' && quote != '\'' && from[1] && (!quote || from[1] == '"' || from[1] == '\\');
        if (escapes)
            *(*to)++ = *++from;
        else if (quote ? *from == quote : *from == '\'' || *from == '"')
            quote = quote ? '\0' : *from;
        else
            *(*to)++ = *from;
    }
    *at = from;
    return !quote;
}

int weir_words_split(char *command, char *words[WEIR_PROCESS_WORDS_MAX + 1])
{
    char *at = command, *to = command;
    int n = 0;
    for (;;) {
        while (is_blank(*at))
            at++;
        if (!*at)
            break;
        if (n == WEIR_PROCESS_WORDS_MAX)
            return -EINVAL;
        words[n++] = to;
        if (!take_word(&at, &to))
            return -EINVAL;
        at += *at != '\0'; /* the zero may take its place */
        *to++ = '\0';
    }
    words[n] = NULL;
    return n > 0 ? n : -EINVAL;
}

/* ---- running ---- */

/* Starts the program with its output in a pipe, and with the signals of a new program. */
static int start(char *const *words, int output, pid_t *process)
{
    static const int numbers[] = {SIGCHLD, SIGPIPE, SIGXFSZ};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t set;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    sigemptyset(&set);
    posix_spawnattr_setsigmask(&attributes, &set);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sigaddset(&set, numbers[i]);
    posix_spawnattr_setsigdefault(&attributes, &set);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    int rc = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    rc = rc ? rc : posix_spawnp(process, words[0], &actions, &attributes, words, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return -rc;
}

struct run {
    const struct weir_waiter *waiter;
    uint64_t begin_ns;
    int limit_s;
    bool reported;
    pid_t process;
    int output;
};

/* Waits for a slice of time, or for output. Returns -ECANCELED or -ETIMEDOUT if the wait is over. */
static int wait_slice(struct run *run, int output)
{
    int waited_s = (int)((weir_clock_monotonic_ns() - run->begin_ns) / 1000000000);
    bool is_long = waited_s >= run->limit_s / QUIET_PART;
    struct pollfd fd = {.fd = output, .events = POLLIN};
    if (weir_waiter_stopped(run->waiter))
        return -ECANCELED;
    if (waited_s >= run->limit_s)
        return -ETIMEDOUT;
    if (is_long && !run->reported)
        weir_notice("%s: has not ended for %d s; run it yourself to see why, or interrupt the program (it is ended "
                    "after %d s)",
                    name, waited_s, run->limit_s);
    run->reported |= is_long;
    poll(&fd, 1, output < 0 ? SLICE_MS / 10 : SLICE_MS);
    return 0;
}

static int read_output(struct run *run, char *text, size_t size)
{
    size_t n = 0;
    for (;;) {
        ssize_t got = read(run->output, text + n, size - 1 - n);
        if (got == 0)
            break;
        n += got > 0 ? (size_t)got : 0;
        if (n == size - 1)
            return -EFBIG;
        if (got < 0 && errno != EAGAIN && errno != EINTR)
            return -errno;
        int rc = got < 0 ? wait_slice(run, run->output) : 0;
        if (rc < 0)
            return rc;
    }
    text[n] = '\0';
    return (int)n;
}

/* Waits for the end of the process. Returns 0 if it succeeded. */
static int await_end(struct run *run)
{
    int status = 0, rc = 0;
    pid_t ended;
    while (rc == 0 && (ended = waitpid(run->process, &status, WNOHANG)) == 0)
        rc = wait_slice(run, -1);
    return rc < 0 ? rc : ended == run->process && status != 0 ? -ECHILD : 0;
}

static int run_words(char *const *words, struct run *run, char *text, size_t size)
{
    int fds[2], rc = pipe2(fds, O_CLOEXEC) == 0 ? 0 : -errno;
    if (rc < 0)
        return rc;
    run->output = fds[0];
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    rc = start(words, fds[1], &run->process);
    close(fds[1]);
    bool started = rc == 0;
    int n = started ? read_output(run, text, size) : rc;
    rc = n < 0 ? n : await_end(run);
    if (started && rc < 0 && rc != -ECHILD) {
        kill(run->process, SIGKILL);
        waitpid(run->process, NULL, 0);
    }
    close(fds[0]);
    return rc < 0 ? rc : n;
}

static const char *reason(int rc)
{
    return rc == -ECHILD ? "it failed" : rc == -EFBIG ? "its output is too long" : strerror(-rc);
}

int weir_process_output(const char *command, int limit_s, const struct weir_waiter *waiter, char *text, size_t size,
                        struct weir_err *err)
{
    char *copy = strdup(command), *words[WEIR_PROCESS_WORDS_MAX + 1];
    if (!copy)
        return weir_no_memory(err);
    struct run run = {.waiter = waiter, .begin_ns = weir_clock_monotonic_ns(), .limit_s = limit_s};
    int rc = weir_words_split(copy, words);
    if (rc < 0)
        weir_err_set(err, rc, "%s: has a quote without an end, or over %d words; correct it", name,
                     WEIR_PROCESS_WORDS_MAX);
    else if ((rc = run_words(words, &run, text, size)) == -ETIMEDOUT)
        weir_err_set(err, rc, "%s: took over %d s; run it yourself to see why", name, limit_s);
    else if (rc == -ECANCELED)
        weir_err_set(err, rc, "interrupted");
    else if (rc < 0)
        rc = weir_err_set(err, weir_is_shortage(rc) ? rc : -EACCES,
                          "%s: %s; run it yourself to see why (it is run without a shell)", name, reason(rc));
    free(copy);
    return rc;
}
