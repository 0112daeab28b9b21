#include "analyze/trials/child.h"
#include "weir/base.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { TAIL = 4096, POLL_MS = 100, PATIENCE_MS = 2000 };

/* A pipe from the child, and the bytes read from it. */
struct stream {
    int fd; /* -1 = closed */
    char *bytes;
    size_t length, capacity, max;
    bool tail; /* keeps only the last bytes; otherwise more than max bytes are an error */
};

static void forget_front(struct stream *s, size_t n)
{
    memmove(s->bytes, s->bytes + n, s->length - n);
    s->length -= n;
}

static int room(struct stream *s)
{
    if (s->length < s->capacity)
        return 0;
    if (s->capacity >= s->max && !s->tail)
        return -E2BIG;
    if (s->capacity >= s->max) {
        forget_front(s, s->length / 2);
        return 0;
    }
    size_t capacity = s->capacity ? 2 * s->capacity : TAIL;
    char *bytes = realloc(s->bytes, capacity + 1);
    if (!bytes)
        return -ENOMEM;
    s->bytes = bytes;
    s->capacity = capacity;
    return 0;
}

static int take(struct stream *s)
{
    int rc = room(s);
    if (rc < 0)
        return rc;
    ssize_t n = read(s->fd, s->bytes + s->length, s->capacity - s->length);
    if (n < 0)
        return errno == EINTR || errno == EAGAIN ? 0 : -errno;
    s->length += (size_t)n;
    if (n == 0) {
        close(s->fd);
        s->fd = -1;
    }
    return 0;
}

/* Reads until both streams end, the user interrupts, or the time limit is reached. */
static int collect(struct stream *streams, const struct weir_child_config *config, uint64_t end_ns)
{
    while (streams[0].fd >= 0 || streams[1].fd >= 0) {
        if (config->interrupted && *config->interrupted)
            return -EINTR;
        if (weir_clock_monotonic_ns() > end_ns)
            return -ETIMEDOUT;
        struct pollfd fds[2] = {{streams[0].fd, POLLIN, 0}, {streams[1].fd, POLLIN, 0}};
        int n = poll(fds, 2, POLL_MS);
        if (n < 0 && errno != EINTR)
            return -errno;
        for (int i = 0; i < 2 && n > 0; i++) {
            int rc = fds[i].revents ? take(&streams[i]) : 0;
            if (rc < 0)
                return rc;
        }
    }
    return 0;
}

/* Waits for the child to end, killing it if it takes too long. Returns its wait status. */
static int reap(pid_t pid, bool end_now, uint64_t end_ns)
{
    int status = 0;
    uint64_t kill_ns = weir_clock_monotonic_ns() + PATIENCE_MS * 1000000ull;
    if (end_now)
        kill(pid, SIGTERM);
    else if (end_ns > kill_ns)
        kill_ns = end_ns;
    for (;;) {
        pid_t got = waitpid(pid, &status, WNOHANG);
        if (got == pid || (got < 0 && errno != EINTR))
            return status;
        if (weir_clock_monotonic_ns() > kill_ns)
            kill(pid, SIGKILL);
        poll(NULL, 0, 2);
    }
}

static int spawn(pid_t *pid, const struct weir_child_config *config, const int out[2], const int errors[2])
{
    posix_spawn_file_actions_t actions;
    int rc = posix_spawn_file_actions_init(&actions);
    if (rc != 0)
        return -rc;
    rc = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (rc == 0)
        rc = posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    if (rc == 0)
        rc = posix_spawn_file_actions_adddup2(&actions, errors[1], 2);
    if (rc == 0)
        rc = posix_spawn(pid, config->program ? config->program : "/proc/self/exe", &actions, NULL, config->argv,
                         environ);
    posix_spawn_file_actions_destroy(&actions);
    return -rc;
}

/* Returns the last line of the child's stderr, or NULL. */
static const char *last_line(struct stream *s)
{
    if (s->length == 0)
        return NULL;
    s->bytes[s->length] = '\0';
    while (s->length > 0 && s->bytes[s->length - 1] == '\n')
        s->bytes[--s->length] = '\0';
    char *line = memrchr(s->bytes, '\n', s->length);
    return line ? line + 1 : s->bytes;
}

static int verdict(int rc, int status, const struct weir_child_config *config, struct stream *errors,
                   struct weir_err *err)
{
    if (config->interrupted && *config->interrupted) /* Ctrl-C also reached the child, which may have ended first */
        return weir_err_set(err, -EINTR, "interrupted");
    if (rc == -ETIMEDOUT)
        return weir_err_set(err, rc, "it did not end within %.0f s", config->seconds);
    if (rc == -E2BIG)
        return weir_err_set(err, rc, "it printed more than %d bytes", WEIR_CHILD_OUTPUT_MAX);
    if (rc < 0)
        return weir_err_set(err, rc, "its output cannot be read: %s", strerror(-rc));
    if (WIFSIGNALED(status))
        return weir_err_set(err, -ECHILD, "it was killed by signal %d (%s)", WTERMSIG(status),
                            strsignal(WTERMSIG(status)));
    if (WEXITSTATUS(status) == 0)
        return 0;
    const char *line = last_line(errors);
    if (line)
        return weir_err_set(err, -ECHILD, "%s", line);
    return weir_err_set(err, -ECHILD, "it exited with status %d", WEXITSTATUS(status));
}

static void close_pair(int fds[2])
{
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    fds[0] = fds[1] = -1;
}

int weir_child_run(struct weir_child *child, const struct weir_child_config *config, struct weir_err *err)
{
    int out[2] = {-1, -1}, errors[2] = {-1, -1};
    pid_t pid;
    memset(child, 0, sizeof *child);
    int rc = pipe2(out, O_CLOEXEC) == 0 && pipe2(errors, O_CLOEXEC) == 0 ? 0 : -errno;
    if (rc == 0)
        rc = spawn(&pid, config, out, errors);
    if (rc < 0) {
        close_pair(out);
        close_pair(errors);
        return weir_err_set(err, rc, "%s cannot be started: %s", config->argv[0], strerror(-rc));
    }
    uint64_t end_ns = weir_clock_monotonic_ns() + (uint64_t)(config->seconds * 1e9);
    close(out[1]);
    close(errors[1]);
    struct stream streams[2] = {{.fd = out[0], .max = WEIR_CHILD_OUTPUT_MAX},
                                {.fd = errors[0], .max = TAIL, .tail = true}};
    rc = collect(streams, config, end_ns);
    int status = reap(pid, rc < 0, end_ns);
    for (int i = 0; i < 2; i++)
        if (streams[i].fd >= 0)
            close(streams[i].fd);
    rc = verdict(rc, status, config, &streams[1], err);
    free(streams[1].bytes);
    child->output = streams[0].bytes;
    child->length = streams[0].length;
    if (child->output)
        child->output[child->length] = '\0';
    return rc;
}

void weir_child_free(struct weir_child *child)
{
    free(child->output);
    memset(child, 0, sizeof *child);
}

/* ---- command lines ---- */

void weir_words_free(struct weir_words *words)
{
    for (int i = 0; words->argv && i < words->n; i++)
        free(words->argv[i]);
    free(words->argv);
    words->argv = NULL;
    words->n = 0;
}

void weir_words_add(struct weir_words *words, const char *word)
{
    if (words->failed)
        return;
    char *copy = strdup(word), **argv = realloc(words->argv, ((size_t)words->n + 2) * sizeof *argv);
    if (argv)
        words->argv = argv;
    words->failed = !copy || !argv;
    if (words->failed) {
        free(copy);
        weir_words_free(words);
        return;
    }
    argv[words->n++] = copy;
    argv[words->n] = NULL;
}

void weir_words_add_all(struct weir_words *words, const char *const *argv)
{
    for (const char *const *arg = argv; arg && *arg; arg++)
        weir_words_add(words, *arg);
}

void weir_words_add_option(struct weir_words *words, const char *name, const char *value)
{
    char option[64];
    snprintf(option, sizeof option, "--%s", name);
    weir_words_add(words, option);
    if (value)
        weir_words_add(words, value);
}

void weir_words_add_options(struct weir_words *words, const struct weir_opt *opts, unsigned users, const void *values)
{
    char buffer[WEIR_OPTION_TEXT];
    for (const struct weir_opt *opt = opts; opt->name; opt++) {
        const char *typed = opt->users & users ? weir_option_typed(opt, values, buffer) : NULL;
        if (typed)
            weir_words_add_option(words, opt->name, opt->kind == WEIR_OPT_FLAG ? NULL : typed);
    }
}

void weir_words_add_measured(struct weir_words *words, double seconds)
{
    char text[32];
    snprintf(text, sizeof text, "%.9g", seconds);
    weir_words_add_option(words, "seconds", text);
    weir_words_add_option(words, "every", "0");
    weir_words_add_option(words, "log", "-");
}

/* ---- Ctrl-C ---- */

volatile sig_atomic_t weir_interrupted;

static void on_signal(int number)
{
    if (!weir_interrupted)
        weir_interrupted = number;
}

static void catch_all(int flags)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags}, before;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        bool ignored = numbers[i] == SIGHUP && sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler == SIG_IGN;
        if (!ignored) /* keep ignoring a signal that nohup has set to be ignored */
            sigaction(numbers[i], &action, NULL);
    }
}

void weir_catch_interrupts(void)
{
    catch_all((int)SA_RESETHAND);
}

void weir_hold_interrupts(bool hold)
{
    catch_all(hold ? 0 : (int)SA_RESETHAND);
}
