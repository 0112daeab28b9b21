#include "base/shortage.h"
#include "datasets/fork_server_priv.h"
#include "datasets/hdf5/h5_errors.h"
#include "datasets/index_file_priv.h"
#include "datasets/librarian_priv.h"
#include "datasets/record_priv.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    DESCRIBE,
    ROW,
    TEXT_MAX = 65536,
    CPU_S = 60, /* processor time for one question, and as much again for every 600 MB of the file */
    BYTES_PER_CPU_S = 10 * 1000 * 1000,
    ANSWER_S = 600,       /* wall time: file systems may be slow */
    LACKED_MEMORY = 77,   /* the child's exit status: it ended because an allocation failed */
    CRASHED_LACKING = 78, /* it crashed after one failed */
    PIECES = 8192,        /* of as many bytes: 64 MiB */
    LIBRARY_ENDED = 255   /* HDF5 1.10 ends its process like this when it finds no memory to begin */
};
static const uint64_t ANSWER_MAX_BYTES = (uint64_t)8 << 30;
static const size_t SPARE_BYTES = (size_t)256 << 20;

struct weir_librarian {
    const struct weir_dataset_config *config;
    const char *root;
    bool allow_external;
    pid_t pid; /* 0 = none */
    int fd;
    bool crashed; /* over the last question, after an allocation that failed */
};

enum { PATH, ROOT, KEY, CAMERAS, QPOS_KEYS, ACTION_KEYS, IMAGE_KEYS, TEXTS }; /* DESCRIBE: no key; ROW: no more */

struct question {
    uint32_t kind, text_bytes[TEXTS]; /* the texts follow, with their zeros; 0 bytes: none */
    uint64_t t, capacity;
    bool allow_ragged, tolerant, allow_external;
    bool again;                    /* memory was lacking: is there any? */
    struct weir_dataset_file file; /* ROW; path is sent as text */
};

struct answer {
    int rc;
    struct weir_err err;
    uint64_t length; /* ROW: of the row */
    uint64_t bytes;  /* that follow */
};

/* ---- both sides ---- */

/* Processor time that the library may take over a file. */
static uint64_t cpu_limit_s(const char *path)
{
    struct stat st;
    return CPU_S + (stat(path, &st) == 0 ? (uint64_t)st.st_size / BYTES_PER_CPU_S : 0);
}

static bool send_all(int fd, const void *data, size_t n)
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

static bool receive_all(int fd, void *data, size_t n, int timeout_s)
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

/* What describing found, before frames are placed. */
struct described {
    struct weir_dataset_file file; /* path is NULL */
    uint64_t header_hash, base;
    int32_t n_wanted, n_episodes, n_bad, reserved;
};

/* ---- the child ---- */

struct child {
    int fd;
    struct weir_h5 *h5; /* the file of the last row */
    struct weir_dataset_file file;
    char *path;
};

/* The library does not end over some damaged files. */
static void limit_time(const char *path)
{
    struct rusage used;
    struct rlimit limit;
    if (getrusage(RUSAGE_SELF, &used) != 0 || getrlimit(RLIMIT_CPU, &limit) != 0)
        return;
    limit.rlim_cur = (rlim_t)used.ru_utime.tv_sec + (rlim_t)used.ru_stime.tv_sec + cpu_limit_s(path);
    if (limit.rlim_cur > limit.rlim_max)
        limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_CPU, &limit);
}

/* The library follows a pointer from an allocation that failed, or finds its own state half made after one. errno is 0
 * when it is asked something, and malloc leaves ENOMEM in it. */
static volatile sig_atomic_t was_asked; /* the library began without a crash; memory was there when asked again */

static void on_crash(int number)
{
    if (errno == ENOMEM)
        _exit(was_asked ? CRASHED_LACKING : LACKED_MEMORY);
    signal(number, SIG_DFL);
    raise(number); /* once more, when this handler is left */
}

/* On a stack of its own: some crashes are an end of the stack. */
static void watch_for_crashes(void)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    static uint8_t bytes[16384];
    const stack_t stack = {.ss_sp = bytes, .ss_size = sizeof bytes};
    struct sigaction action = {.sa_handler = on_crash, .sa_flags = SA_ONSTACK};
    sigaltstack(&stack, NULL);
    for (size_t i = 0; i < sizeof crashes / sizeof crashes[0]; i++)
        sigaction(crashes[i], &action, NULL);
}

static void put_described(struct weir_record_writer *w, const struct weir_file_result *result)
{
    const struct weir_file_index *file = &result->file;
    struct described head = {.file = file->file,
                             .header_hash = file->header_hash,
                             .base = result->base,
                             .n_wanted = result->n_wanted,
                             .n_episodes = file->n_episodes,
                             .n_bad = file->n_bad};
    head.file.path = NULL;
    weir_record_put(w, &head, sizeof head);
    for (int i = 0; i < file->n_bad; i++)
        weir_record_put_text(w, file->bad[i]);
    for (int i = 0; i < file->n_episodes; i++) {
        size_t tracks = (size_t)file->episodes[i].n_tracks;
        weir_record_put_episode(w, &file->episodes[i]);
        weir_record_put(w, result->descriptions[i], tracks * sizeof **result->descriptions);
    }
}

static bool answer(const struct child *child, struct answer *answer, const void *bytes)
{
    return send_all(child->fd, answer, sizeof *answer) && send_all(child->fd, bytes, answer->bytes);
}

/* A damaged file may ask the library for more than there is. Then it does so again, while memory for a file of its size
 * is there; an allocation that failed but once does not. */
static bool may_try_again(int code, const char *path)
{
    struct stat st;
    size_t bytes = SPARE_BYTES + (stat(path, &st) == 0 ? (size_t)st.st_size : 0);
    void *spare = code == -ENOMEM ? malloc(bytes) : NULL;
    bool there = spare != NULL;
    free(spare);
    return there;
}

static int asks_too_much(struct weir_err *err)
{
    *err = WEIR_ERR_NONE;
    return weir_err_set(err, -EBADMSG,
                        "the HDF5 library finds no memory for what the file says it holds, though there is enough for "
                        "a file of its size; repair or remove the file");
}

static void describe(struct weir_file_result *result, const char *path, const struct weir_dataset_config *config)
{
    weir_file_describe(result, path, config);
    if (!may_try_again(result->rc, path))
        return;
    struct weir_err first = result->err;
    weir_file_result_close(result);
    weir_file_describe(result, path, config);
    if (result->rc == 0)
        return;
    bool again = weir_h5_malloc_failed();
    result->rc = again ? asks_too_much(&result->err) : -ENOMEM;
    result->err = again ? result->err : first;
}

static bool answer_describe(const struct child *child, const struct question *question, char *const *texts)
{
    struct weir_file_result result;
    struct weir_record_writer w = {0};
    struct weir_dataset_config config = {.cameras = texts[CAMERAS],
                                         .qpos_keys = texts[QPOS_KEYS],
                                         .action_keys = texts[ACTION_KEYS],
                                         .image_keys = texts[IMAGE_KEYS],
                                         .allow_ragged = question->allow_ragged,
                                         .tolerant = question->tolerant};
    describe(&result, texts[PATH], &config);
    if (result.rc == 0)
        put_described(&w, &result);
    if (w.full)
        _exit(LACKED_MEMORY);
    struct answer reply = {.rc = result.rc, .err = result.err, .bytes = w.n};
    bool fine = answer(child, &reply, w.bytes);
    free(w.bytes);
    weir_file_result_close(&result);
    return fine;
}

static int open_for_row(struct child *child, const struct weir_dataset_file *file, const char *path,
                        struct weir_err *err)
{
    if (child->h5 && strcmp(child->path, path) == 0 && child->file.inode == file->inode &&
        child->file.mtime_ns == file->mtime_ns)
        return 0;
    weir_h5_close(&child->h5);
    free(child->path);
    child->path = strdup(path);
    if (!child->path)
        return weir_err_set(err, -ENOMEM, "out of memory");
    child->file = *file;
    child->file.path = child->path;
    int rc = weir_h5_open(&child->h5, path, err);
    if (rc == 0)
        rc = weir_file_index_check(&child->file, err);
    if (rc < 0)
        weir_h5_close(&child->h5);
    return rc;
}

static int read_row(struct child *child, const struct question *question, const char *path, const char *key,
                    struct weir_err *err, uint8_t *row, uint64_t capacity, size_t *length)
{
    int rc = open_for_row(child, &question->file, path, err);
    if (rc == 0) {
        rc = weir_h5_read_row(child->h5, key, question->t, row, capacity, length, err);
        int machine = weir_h5_machine_error(err);
        rc = machine < 0 ? machine : rc;
    }
    if (weir_is_shortage(rc))
        weir_h5_close(&child->h5); /* who knows what is left in it */
    return rc;
}

static bool answer_row(struct child *child, const struct question *question, const char *path, const char *key)
{
    static const uint64_t ROW_MAX_BYTES = (uint64_t)1 << 31;
    struct answer reply = {0};
    uint64_t capacity = question->capacity < ROW_MAX_BYTES ? question->capacity : ROW_MAX_BYTES;
    uint8_t *row = malloc(capacity ? capacity : 1);
    size_t length = 0;
    if (!row)
        _exit(LACKED_MEMORY);
    reply.rc = read_row(child, question, path, key, &reply.err, row, capacity, &length);
    if (may_try_again(reply.rc, path)) {
        struct weir_err again = WEIR_ERR_NONE;
        int rc = read_row(child, question, path, key, &again, row, capacity, &length);
        if (rc < 0 && rc != -ENOSPC && weir_h5_malloc_failed())
            reply.rc = asks_too_much(&reply.err);
        else if (rc == 0 || rc == -ENOSPC) {
            reply.rc = rc;
            reply.err = WEIR_ERR_NONE;
        }
    }
    int refused = weir_h5_refused(&reply.err);
    reply.rc = refused < 0 ? refused : reply.rc;
    reply.length = length;
    reply.bytes = reply.rc == 0 ? length : 0;
    bool fine = answer(child, &reply, row);
    free(row);
    return fine;
}

/* For a file of its size, in one piece and in many small ones: then what lacks it the second time is the file. */
static bool has_memory(const char *path)
{
    void **first = NULL, **piece;
    int n = 0;
    if (!may_try_again(-ENOMEM, path))
        return false;
    for (; n < PIECES && (piece = malloc(PIECES)); n++, first = piece)
        *piece = first;
    for (; first; first = piece) {
        piece = *first;
        free(first);
    }
    return n == PIECES;
}

static bool serve_one(struct child *child)
{
    struct question question;
    char *texts[TEXTS] = {NULL};
    bool fine = receive_all(child->fd, &question, sizeof question, -1);
    for (int i = 0; i < TEXTS && fine; i++) {
        if (question.text_bytes[i] == 0)
            continue;
        texts[i] = malloc(question.text_bytes[i]);
        if (!texts[i])
            _exit(LACKED_MEMORY);
        fine = receive_all(child->fd, texts[i], question.text_bytes[i], -1);
    }
    if (fine) {
        if (question.again && !has_memory(texts[PATH]))
            _exit(LACKED_MEMORY);
        was_asked = 1;
        limit_time(texts[PATH]);
        weir_h5_ask_about(texts[ROOT], texts[PATH], question.allow_external);
        errno = 0;
        fine = question.kind == ROW ? answer_row(child, &question, texts[PATH], texts[KEY])
                                    : answer_describe(child, &question, texts);
    }
    for (int i = 0; i < TEXTS; i++)
        free(texts[i]);
    return fine;
}

static void serve(int fd)
{
    struct child child = {.fd = fd};
    watch_for_crashes();
    if (weir_h5_start() < 0)
        _exit(LACKED_MEMORY);
    while (serve_one(&child))
        continue; /* and then _exit: the library does not always survive its own end */
}

/* ---- the parent ---- */

struct weir_librarian *weir_librarian_open(const struct weir_dataset_config *config, const char *root,
                                           bool allow_external)
{
    struct weir_librarian *librarian = calloc(1, sizeof *librarian);
    if (librarian) {
        librarian->config = config;
        librarian->root = root;
        librarian->allow_external = allow_external;
        librarian->fd = -1;
    }
    return librarian;
}

/* Ends the child and returns its wait status. */
static int end(struct weir_librarian *librarian)
{
    close(librarian->fd);
    librarian->fd = -1;
    int status = weir_fork_server_end(librarian->pid);
    librarian->pid = 0;
    return status;
}

void weir_librarian_close(struct weir_librarian **librarian)
{
    if (*librarian && (*librarian)->pid)
        end(*librarian);
    free(*librarian);
    *librarian = NULL;
}

/* Somebody ended the child: the kernel when memory is short, or when this process may take no more processor time than
 * the library may take over a file. */
static int killed(const char *path, struct weir_err *err)
{
    struct rlimit limit;
    bool limited = getrlimit(RLIMIT_CPU, &limit) == 0 && limit.rlim_max != RLIM_INFINITY;
    if (limited && limit.rlim_max <= cpu_limit_s(path))
        return weir_err_set(err, -ENOMEM,
                            "the HDF5 helper process was killed while it read the file: out of memory, or over this "
                            "process's limit of CPU time, %llu s; raise these limits (ulimit -v, -t)",
                            (unsigned long long)limit.rlim_max);
    return weir_err_set(err, -ENOMEM,
                        "the HDF5 helper process was killed while it read the file: the machine or the container is "
                        "out of memory; %s",
                        weir_machine_advice(-ENOMEM));
}

/* The child is gone, or says nothing. That is the file's fault, as far as anybody can tell, unless memory was lacking
 * or somebody ended it. */
static int no_answer(struct weir_librarian *librarian, const char *path, struct weir_err *err)
{
    struct pollfd gone = {.fd = librarian->fd, .events = POLLIN};
    bool hangs = poll(&gone, 1, 0) == 0;
    int status = end(librarian);
    if (hangs)
        return weir_err_set(err, -EBADMSG, "the HDF5 library gave no answer for %d s; repair or remove the file",
                            ANSWER_S);
    int ended = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    librarian->crashed = ended == CRASHED_LACKING;
    if (ended == CRASHED_LACKING || ended == LACKED_MEMORY || ended == LIBRARY_ENDED)
        return weir_err_set(err, -ENOMEM, "out of memory in the HDF5 helper process");
    if (!WIFSIGNALED(status) || WTERMSIG(status) == SIGKILL)
        return killed(path, err);
    if (WTERMSIG(status) == SIGXCPU)
        return weir_err_set(
            err, -EBADMSG, "the HDF5 library exceeded its limit of %llu s of CPU time on it; repair or remove the file",
            (unsigned long long)cpu_limit_s(path));
    const char *how = sigdescr_np(WTERMSIG(status));
    return weir_err_set(err, -EBADMSG, "the HDF5 library crashed on it (%s); repair or remove the file",
                        how ? how : "by a signal");
}

static int ask(struct weir_librarian *librarian, struct question *question, const char *texts[TEXTS],
               struct answer *reply, struct weir_err *err)
{
    librarian->crashed = false;
    texts[ROOT] = librarian->root;
    question->allow_external = librarian->allow_external;
    for (int i = 0; i < TEXTS; i++) {
        size_t bytes = texts[i] ? strlen(texts[i]) + 1 : 0;
        if (bytes > TEXT_MAX)
            return weir_err_set(err, -ENAMETOOLONG, "a name of over %d bytes", TEXT_MAX);
        question->text_bytes[i] = (uint32_t)bytes;
    }
    int rc = librarian->pid ? 0 : weir_fork_server_new(serve, &librarian->pid, &librarian->fd, err);
    if (rc < 0)
        return rc;
    bool fine = send_all(librarian->fd, question, sizeof *question);
    for (int i = 0; i < TEXTS && fine; i++)
        fine = send_all(librarian->fd, texts[i], question->text_bytes[i]);
    fine = fine && receive_all(librarian->fd, reply, sizeof *reply, ANSWER_S);
    if (!fine)
        return no_answer(librarian, texts[PATH], err);
    reply->err.text[sizeof reply->err.text - 1] = '\0';
    if (reply->rc == -ENOMEM) /* who knows in what state the library is */
        end(librarian);
    if (reply->rc < 0 && reply->err.text[0])
        weir_err_set(err, reply->rc, "%s", reply->err.text);
    return reply->rc < 0 ? reply->rc : 0;
}

/* The answer is not one that the child gives: the library wrote over its memory. It is not asked again. */
static int bad_answer(struct weir_librarian *librarian, struct weir_err *err)
{
    if (librarian->pid)
        end(librarian);
    return weir_err_set(err, -EBADMSG,
                        "the HDF5 library damaged the memory of its process over it; repair or remove the file");
}

/* A second process, which had made sure that memory is there, crashed as well. */
static int crashes_again(struct weir_err *err)
{
    *err = WEIR_ERR_NONE;
    return weir_err_set(err, -EBADMSG, "the HDF5 library crashed on it; repair or remove the file");
}

static int ask_for_row(struct weir_librarian *librarian, const struct weir_dataset_file *file, const char *key,
                       uint64_t t, bool again, void *buffer, size_t capacity, size_t *length, struct weir_err *err)
{
    struct question question = {.kind = ROW, .t = t, .capacity = capacity, .again = again, .file = *file};
    struct answer reply;
    const char *texts[TEXTS] = {[PATH] = file->path, [KEY] = key};
    int rc = ask(librarian, &question, texts, &reply, err);
    if (rc < 0 && rc != -ENOSPC)
        return rc;
    *length = reply.length;
    if (rc == -ENOSPC)
        return reply.length > capacity ? rc : bad_answer(librarian, err);
    if (reply.bytes > capacity || reply.length != reply.bytes)
        return bad_answer(librarian, err);
    return receive_all(librarian->fd, buffer, reply.bytes, ANSWER_S) ? 0 : no_answer(librarian, file->path, err);
}

int weir_librarian_row(struct weir_librarian *librarian, const struct weir_dataset_file *file, const char *key,
                       uint64_t t, void *buffer, size_t capacity, size_t *length, struct weir_err *err)
{
    int rc = ask_for_row(librarian, file, key, t, false, buffer, capacity, length, err);
    if (rc >= 0 || !librarian->crashed)
        return rc;
    *err = WEIR_ERR_NONE;
    rc = ask_for_row(librarian, file, key, t, true, buffer, capacity, length, err);
    return rc < 0 && librarian->crashed ? crashes_again(err) : rc;
}

/* ---- descriptions ---- */

static void get_described_episode(struct weir_record_cursor *c, struct weir_episode *episode,
                                  struct weir_h5_description **descriptions)
{
    weir_record_episode(c, episode);
    size_t bytes = (size_t)episode->n_tracks * sizeof **descriptions;
    const struct weir_h5_description *sent = c->bad ? NULL : weir_record_get(c, bytes);
    if (!sent || !weir_described_is_sane(episode, sent)) {
        c->bad = true;
        return;
    }
    *descriptions = malloc(bytes + 1);
    if (!*descriptions || weir_record_own(episode) < 0) {
        c->bad = c->no_memory = true;
        return;
    }
    memcpy(*descriptions, sent, bytes);
    episode->bytes =
        sizeof *episode + (size_t)episode->steps * (size_t)(episode->qpos_dim + episode->action_dim) * sizeof(float);
}

static bool get_described(struct weir_record_cursor *c, const char *path, struct weir_file_result *result)
{
    struct weir_file_index *file = &result->file;
    const struct described *head = weir_record_get(c, sizeof *head);
    if (!head || head->n_episodes < 0 || head->n_bad < 0 || head->n_wanted != (int64_t)head->n_episodes + head->n_bad ||
        (uint64_t)head->n_episodes > c->left || (uint64_t)head->n_bad > c->left)
        return false;
    file->file = head->file;
    file->file.path = strdup(path);
    file->header_hash = head->header_hash;
    file->episodes = calloc((size_t)head->n_episodes + 1, sizeof *file->episodes);
    file->bad = calloc((size_t)head->n_bad + 1, sizeof *file->bad);
    result->descriptions = calloc((size_t)head->n_wanted + 1, sizeof *result->descriptions);
    result->base = head->base;
    result->n_wanted = head->n_wanted;
    c->no_memory = !file->file.path || !file->episodes || !file->bad || !result->descriptions;
    c->bad |= c->no_memory;
    for (; file->n_bad < head->n_bad && !c->bad; file->n_bad++) {
        const char *text = weir_record_text(c);
        file->bad[file->n_bad] = strdup(text ? text : "");
        c->no_memory |= !file->bad[file->n_bad];
        c->bad |= !text || c->no_memory;
    }
    for (; file->n_episodes < head->n_episodes && !c->bad; file->n_episodes++)
        get_described_episode(c, &file->episodes[file->n_episodes], &result->descriptions[file->n_episodes]);
    return !c->bad;
}

static int take_described(struct weir_librarian *librarian, uint8_t *bytes, size_t n, const char *path,
                          struct weir_file_result *result)
{
    struct weir_record_cursor c = {.at = bytes, .left = n};
    if (get_described(&c, path, result))
        return 0;
    return c.no_memory ? weir_err_set(&result->err, -ENOMEM, "out of memory") : bad_answer(librarian, &result->err);
}

static void ask_for_description(struct weir_librarian *librarian, const char *path, bool again,
                                struct weir_file_result *result)
{
    const struct weir_dataset_config *config = librarian->config;
    const char *texts[TEXTS] = {[PATH] = path,
                                [CAMERAS] = config->cameras,
                                [QPOS_KEYS] = config->qpos_keys,
                                [ACTION_KEYS] = config->action_keys,
                                [IMAGE_KEYS] = config->image_keys};
    struct question question = {
        .kind = DESCRIBE, .allow_ragged = config->allow_ragged, .tolerant = config->tolerant, .again = again};
    struct answer reply;
    *result = (struct weir_file_result){0};
    result->rc = ask(librarian, &question, texts, &reply, &result->err);
    if (result->rc < 0)
        return;
    uint8_t *bytes = reply.bytes < ANSWER_MAX_BYTES ? malloc(reply.bytes + 1) : NULL;
    if (!bytes) {
        end(librarian);
        result->rc = weir_err_set(&result->err, -ENOMEM, "out of memory");
    } else if (!receive_all(librarian->fd, bytes, reply.bytes, ANSWER_S)) {
        result->rc = no_answer(librarian, path, &result->err);
    } else {
        result->rc = take_described(librarian, bytes, reply.bytes, path, result);
    }
    free(bytes);
}

void weir_librarian_describe(struct weir_librarian *librarian, const char *path, struct weir_file_result *result)
{
    ask_for_description(librarian, path, false, result);
    if (result->rc >= 0 || !librarian->crashed)
        return;
    weir_file_result_close(result);
    ask_for_description(librarian, path, true, result);
    if (result->rc < 0 && librarian->crashed)
        result->rc = crashes_again(&result->err);
}
