#include "bench/simplejpeg_side.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ANSWER_S = 60, LINE_MAX_BYTES = 512 };

#define SCRIPT  "bench/simplejpeg_side.py"
#define INSTALL "install it with bench/peers/setup.sh numpy simplejpeg (or make bench-peers)"

struct simplejpeg_side {
    pid_t pid;
    int socket, errors; /* socket is the process's stdin and stdout; errors is its stderr, in memory */
    char python[PATH_MAX + 64], library[LINE_MAX_BYTES];
};

/* ---- starting the process ---- */

/* Finds the nearest parent folder of this program that contains the script. This is the source tree, or the output of
 * tests/gpu/pack.sh. */
static bool find_root(char root[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", root, PATH_MAX - 1);
    root[n > 0 ? n : 0] = '\0';
    for (char *end = strrchr(root, '/'); end; end = strrchr(root, '/')) {
        char script[PATH_MAX + 64];
        *end = '\0';
        snprintf(script, sizeof script, "%s/" SCRIPT, root);
        if (access(script, R_OK) == 0)
            return true;
    }
    return false;
}

static void choose_python(struct simplejpeg_side *side, const char *python, const char *root)
{
    snprintf(side->python, sizeof side->python, "%s/build/peers-venv/bin/python", root);
    if (python || access(side->python, X_OK) != 0)
        snprintf(side->python, sizeof side->python, "%s", python ? python : "python3");
}

static int spawn(struct simplejpeg_side *side, const char *root, int end)
{
    extern char **environ;
    char script[PATH_MAX + 64];
    snprintf(script, sizeof script, "%s/" SCRIPT, root);
    char *arguments[] = {side->python, script, NULL};
    posix_spawn_file_actions_t actions;
    if (posix_spawn_file_actions_init(&actions) != 0)
        return -ENOMEM;
    posix_spawn_file_actions_adddup2(&actions, end, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, end, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, side->errors, STDERR_FILENO);
    int rc = posix_spawnp(&side->pid, side->python, &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (rc != 0)
        side->pid = 0;
    return -rc;
}

static int start(struct simplejpeg_side *side, const char *python, struct weir_err *err)
{
    char root[PATH_MAX];
    int ends[2];
    if (!find_root(root))
        return weir_err_set(err, -ENOENT, SCRIPT " is not in any parent folder of this program");
    choose_python(side, python, root);
    side->errors = memfd_create("simplejpeg-stderr", MFD_CLOEXEC);
    if (side->errors < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return weir_err_set(err, -errno, "cannot create a socket for " SCRIPT ": %s", strerror(errno));
    side->socket = ends[0];
    int rc = spawn(side, root, ends[1]);
    close(ends[1]);
    return rc < 0 ? weir_err_set(err, rc, "%s: %s; " INSTALL, side->python, strerror(-rc)) : 0;
}

/* ---- the protocol ---- */

/* Sets err to the failed operation and the last line of the process's stderr, if there is one. */
static int broke(struct simplejpeg_side *side, const char *what, struct weir_err *err)
{
    char text[4096];
    off_t size = lseek(side->errors, 0, SEEK_END), from = size > (off_t)sizeof text ? size - (off_t)sizeof text : 0;
    ssize_t n = pread(side->errors, text, sizeof text - 1, from);
    while (n > 0 && text[n - 1] == '\n')
        n--;
    text[n > 0 ? n : 0] = '\0';
    const char *line = strrchr(text, '\n');
    line = line ? line + 1 : text;
    return weir_err_set(err, -EPROTO, "%s " SCRIPT " %s%s%s (use --simplejpeg none to leave it out)", side->python,
                        what, *line ? ": " : "", line);
}

static int send_all(struct simplejpeg_side *side, const void *bytes, size_t length, struct weir_err *err)
{
    for (size_t done = 0; done < length;) {
        ssize_t n = send(side->socket, (const char *)bytes + done, length - done, MSG_NOSIGNAL);
        if (n < 0)
            return broke(side, errno == EAGAIN ? "does not read" : "ended", err);
        done += (size_t)n;
    }
    return 0;
}

static int read_line(struct simplejpeg_side *side, double seconds, char line[LINE_MAX_BYTES], struct weir_err *err)
{
    struct timeval limit = {.tv_sec = ANSWER_S + (time_t)seconds};
    setsockopt(side->socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    for (int n = 0; n < LINE_MAX_BYTES; n++) {
        ssize_t got = recv(side->socket, &line[n], 1, 0);
        if (got <= 0)
            return broke(side, got < 0 && errno == EAGAIN ? "does not answer" : "ended without an answer", err);
        if (line[n] == '\n') {
            line[n] = '\0';
            return 0;
        }
    }
    return broke(side, "sent a line that is too long", err);
}

static int is_ready(struct simplejpeg_side *side, struct weir_err *err)
{
    char line[LINE_MAX_BYTES];
    int rc = read_line(side, 0, line, err);
    if (rc < 0)
        return rc;
    if (strncmp(line, "left out: ", 10) == 0)
        return weir_err_set(err, -ENOENT, "%s (%s); " INSTALL, line + 10, side->python);
    if (strncmp(line, "ready ", 6) == 0) {
        snprintf(side->library, sizeof side->library, "%s", line + 6);
        return 0;
    }
    char what[LINE_MAX_BYTES + 64];
    snprintf(what, sizeof what, "answered \"%.100s\" instead of \"ready\"", line);
    return broke(side, what, err);
}

static int send_frames(struct simplejpeg_side *side, const struct raw_frames *frames, struct weir_err *err)
{
    char head[64];
    int n = snprintf(head, sizeof head, "%d %d %d\n", frames->n, frames->width, frames->height);
    int rc = send_all(side, head, (size_t)n, err);
    for (int i = 0; i < frames->n && rc == 0; i++) {
        size_t length = frames->lengths[i];
        rc = send_all(
            side,
            (uint8_t[]){(uint8_t)length, (uint8_t)(length >> 8), (uint8_t)(length >> 16), (uint8_t)(length >> 24)}, 4,
            err);
    }
    for (int i = 0; i < frames->n && rc == 0; i++)
        rc = send_all(side, frames->bytes[i], frames->lengths[i], err);
    return rc;
}

/* ---- public functions ---- */

int simplejpeg_side_open(struct simplejpeg_side **out, const char *python, const struct raw_frames *frames,
                         struct weir_err *err)
{
    struct timeval limit = {.tv_sec = ANSWER_S};
    struct simplejpeg_side *side = calloc(1, sizeof *side);
    *out = side;
    if (!side)
        return weir_err_set(err, -ENOMEM, "out of memory");
    side->socket = side->errors = -1;
    int rc = start(side, python, err);
    if (rc == 0)
        rc = is_ready(side, err);
    if (rc == 0) {
        setsockopt(side->socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
        rc = send_frames(side, frames, err);
    }
    if (rc < 0)
        simplejpeg_side_close(out);
    return rc;
}

/* Kills the process. Its workers end when it does. */
void simplejpeg_side_close(struct simplejpeg_side **sidep)
{
    struct simplejpeg_side *side = *sidep;
    *sidep = NULL;
    if (!side)
        return;
    if (side->pid > 0) {
        kill(side->pid, SIGKILL);
        waitpid(side->pid, NULL, 0);
    }
    if (side->socket >= 0)
        close(side->socket);
    if (side->errors >= 0)
        close(side->errors);
    free(side);
}

const char *simplejpeg_side_library(const struct simplejpeg_side *side)
{
    return side->library;
}

int simplejpeg_side_rate(struct simplejpeg_side *side, int workers, double seconds, int images_min,
                         double *images_per_s, struct weir_err *err)
{
    char line[LINE_MAX_BYTES], what[LINE_MAX_BYTES + 64], *end;
    int n = snprintf(line, sizeof line, "%d %.9g %d\n", workers, seconds, images_min);
    int rc = send_all(side, line, (size_t)n, err);
    if (rc == 0)
        rc = read_line(side, seconds, line, err);
    if (rc < 0)
        return rc;
    double images = strtod(line, &end), spent_s = *end == ' ' ? strtod(end + 1, &end) : 0;
    bool whole = *end == '\0' && isfinite(images) && images >= images_min && images > 0;
    if (whole && isfinite(spent_s) && spent_s >= 0.99 * seconds) {
        *images_per_s = images / spent_s;
        return 0;
    }
    snprintf(what, sizeof what, "answered \"%.100s\" instead of the images and seconds of a trial of %g s", line,
             seconds);
    return broke(side, what, err);
}
