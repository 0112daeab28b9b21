/* The HDF5 helper process: serves requests with the HDF5 library. It expects that the library may crash, hang or run
 * out of memory, and reports this through its exit status if it can. */
#include "base/shortage.h"
#include "datasets/episode_bytes.h"
#include "datasets/hdf5/h5_read_priv.h"
#include "datasets/hdf5/hdf5_helper.h"
#include "datasets/hdf5/hdf5_helper_protocol_priv.h"
#include "datasets/helper/helper_spawner.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECES = 8192 }; /* number of pieces and size of each, in bytes: 64 MiB in total */
static const size_t SPARE_BYTES = (size_t)256 << 20;

struct child {
    int fd;
    struct weir_h5 *h5; /* file of the last request for a row, an array or a list */
    struct weir_dataset_file file;
    char *path;
    bool is_supplied; /* the loader reads the file of the current request */
};

/* Requests bytes of the current request's file from the loader. */
static int read_from_loader(void *user, uint64_t at, void *buffer, size_t n)
{
    const struct child *child = user;
    uint8_t *to = buffer;
    while (n > 0) {
        size_t part = n < WEIR_HELPER_RANGE_MAX ? n : WEIR_HELPER_RANGE_MAX;
        const struct weir_helper_reply wants = {.rc = WEIR_HELPER_WANTS, .offset = at, .length = part};
        struct weir_helper_supply supply;
        if (!weir_helper_send(child->fd, &wants, sizeof wants) ||
            !weir_helper_receive(child->fd, &supply, sizeof supply, -1))
            _exit(0); /* the loader has closed the helper */
        if (supply.rc < 0)
            return supply.rc;
        if (!weir_helper_receive(child->fd, to, part, -1))
            _exit(0);
        to += part;
        at += part;
        n -= part;
    }
    return 0;
}

static void set_supply(struct child *child, const struct weir_helper_request *request)
{
    const struct weir_h5_supply supply = {request->file.size_bytes, read_from_loader, child}, none = {0};
    child->is_supplied = request->is_supplied;
    weir_h5_supply_from(request->is_supplied ? &supply : &none);
}

/* Limits the CPU time, because the library never returns from some damaged files. */
static void limit_time(const char *path)
{
    struct rusage used;
    struct rlimit limit;
    if (getrusage(RUSAGE_SELF, &used) != 0 || getrlimit(RLIMIT_CPU, &limit) != 0)
        return;
    limit.rlim_cur = (rlim_t)used.ru_utime.tv_sec + (rlim_t)used.ru_stime.tv_sec + weir_helper_cpu_limit_s(path);
    if (limit.rlim_cur > limit.rlim_max)
        limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_CPU, &limit);
}

/* After a failed allocation, the library may dereference the null pointer or use a half-built structure. The handler
 * detects this through errno, which is 0 when a request begins and which malloc sets to ENOMEM. */
static volatile sig_atomic_t has_begun; /* the library has started, and memory was available for a repeated request */

static void on_crash(int number)
{
    if (errno == ENOMEM)
        _exit(has_begun ? WEIR_HELPER_CRASHED_LACKING : WEIR_HELPER_LACKED_MEMORY);
    signal(number, SIG_DFL);
    raise(number); /* the signal is delivered again when this handler returns */
}

/* The handler needs its own stack, because some crashes are stack overflows. */
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

static void put_described(struct weir_bytes_writer *w, const struct weir_file_result *result,
                          const struct weir_hdf5_described *described)
{
    const struct weir_file_index *file = &result->file;
    struct weir_helper_described head = {.file = file->file,
                                         .header_hash = file->header_hash,
                                         .base = described->base,
                                         .n_wanted = result->n_wanted,
                                         .n_episodes = file->n_episodes,
                                         .n_bad = file->n_bad};
    head.file.path = NULL;
    weir_bytes_put(w, &head, sizeof head);
    weir_bytes_put_text(w, file->traits);
    for (int i = 0; i < file->n_bad; i++)
        weir_bytes_put_text(w, file->bad[i]);
    for (int i = 0; i < file->n_episodes; i++) {
        size_t maps = (size_t)file->episodes[i].n_maps;
        weir_bytes_put_episode(w, &file->episodes[i]);
        weir_bytes_put(w, described->cameras[i], maps * sizeof **described->cameras);
    }
}

static bool send_reply(const struct child *child, struct weir_helper_reply *reply, const void *bytes)
{
    return weir_helper_send(child->fd, reply, sizeof *reply) && weir_helper_send(child->fd, bytes, reply->bytes);
}

/* Returns true if the request ran out of memory, but memory for a file of this size is available now. If the second
 * attempt fails too, the damaged file makes the library allocate too much. Otherwise the machine was short of memory.
 */
static bool retry_is_worthwhile(int code, const char *path)
{
    struct stat st;
    size_t bytes = SPARE_BYTES + (stat(path, &st) == 0 ? (size_t)st.st_size : 0);
    void *spare = code == -ENOMEM ? malloc(bytes) : NULL;
    bool there = spare != NULL;
    free(spare);
    return there;
}

static int report_excessive_request(struct weir_err *err)
{
    *err = WEIR_ERR_NONE;
    return weir_err_set(err, -EBADMSG,
                        "the HDF5 library cannot allocate the memory that the file claims to need, although enough is "
                        "available for a file of this size; repair or remove the file");
}

static void describe(struct weir_file_result *result, struct weir_hdf5_described *described, const char *path,
                     const struct weir_dataset_file *supplied, const struct weir_dataset_config *config)
{
    weir_hdf5_describe(result, described, path, supplied, config);
    if (!retry_is_worthwhile(result->rc, path))
        return;
    struct weir_err first = result->err;
    weir_hdf5_described_free(described);
    weir_file_index_close(&result->file);
    weir_hdf5_describe(result, described, path, supplied, config);
    if (result->rc == 0)
        return;
    bool again = weir_h5_malloc_failed();
    result->rc = again ? report_excessive_request(&result->err) : -ENOMEM;
    result->err = again ? result->err : first;
}

static bool reply_description(const struct child *child, const struct weir_helper_request *request, char *const *texts)
{
    struct weir_file_result result;
    struct weir_hdf5_described described;
    struct weir_bytes_writer w = {0};
    struct weir_dataset_config config = {.cameras = texts[WEIR_HELPER_CAMERAS],
                                         .qpos_keys = texts[WEIR_HELPER_QPOS_KEYS],
                                         .action_keys = texts[WEIR_HELPER_ACTION_KEYS],
                                         .image_keys = texts[WEIR_HELPER_IMAGE_KEYS],
                                         .filter_key = texts[WEIR_HELPER_FILTER_KEY],
                                         .path = texts[WEIR_HELPER_DATA],
                                         .depth = request->depth,
                                         .own_types = request->own_types,
                                         .allow_ragged = request->allow_ragged,
                                         .tolerant = request->tolerant,
                                         .list_unused = request->list_unused};
    describe(&result, &described, texts[WEIR_HELPER_PATH], request->is_supplied ? &request->file : NULL, &config);
    if (result.rc == 0)
        put_described(&w, &result, &described);
    if (w.full)
        _exit(WEIR_HELPER_LACKED_MEMORY);
    struct weir_helper_reply reply = {.rc = result.rc, .err = result.err, .bytes = w.n};
    bool fine = send_reply(child, &reply, w.bytes);
    free(w.bytes);
    weir_hdf5_described_free(&described);
    weir_file_index_close(&result.file);
    return fine;
}

static int open_again(struct child *child, const struct weir_dataset_file *file, const char *path, struct weir_err *err)
{
    if (child->h5 && strcmp(child->path, path) == 0 && child->file.inode == file->inode &&
        child->file.mtime_ns == file->mtime_ns)
        return 0;
    weir_h5_close(&child->h5);
    free(child->path);
    child->path = strdup(path);
    if (!child->path)
        return weir_no_memory(err);
    child->file = *file;
    child->file.path = child->path;
    int rc = weir_h5_open(&child->h5, path, err);
    if (rc == 0 && !child->is_supplied) /* the loader checks its own reads */
        rc = weir_file_index_check(&child->file, err);
    if (rc < 0)
        weir_h5_close(&child->h5);
    return rc;
}

/* ---- rows, arrays and names ---- */

static int put_row(struct child *child, const struct weir_helper_request *request, const char *key,
                   struct weir_helper_reply *reply, struct weir_bytes_writer *w)
{
    static const uint64_t ROW_MAX_BYTES = (uint64_t)1 << 31;
    uint64_t capacity = request->capacity < ROW_MAX_BYTES ? request->capacity : ROW_MAX_BYTES;
    size_t length = 0;
    w->bytes = w->bytes ? w->bytes : malloc(capacity ? capacity : 1);
    if (!w->bytes)
        _exit(WEIR_HELPER_LACKED_MEMORY);
    int rc = weir_h5_read_row(child->h5, key, request->t, w->bytes, capacity, &length, &reply->err);
    reply->length = w->n = length;
    return rc;
}

static int put_array(struct child *child, const char *key, struct weir_bytes_writer *w, struct weir_err *err)
{
    struct weir_array_shape shape;
    struct weir_helper_array head = {.type = -1};
    enum weir_number_type type = WEIR_U8;
    void *values = NULL;
    char(*names)[64] = NULL;
    weir_h5_watch_errors();
    int rc = weir_h5_shape(child->h5, key, &shape, err);
    bool texts = rc == 0 && (shape.element == WEIR_ELEMENT_FIXED_BYTES || shape.element == WEIR_ELEMENT_VLEN_STRING);
    if (rc == 0)
        rc = texts ? weir_h5_read_names(child->h5, key, &names, &shape, err)
                   : weir_h5_read_numbers(child->h5, key, &type, &values, &shape, err);
    if (rc == 0) {
        size_t bytes = texts ? sizeof *names : weir_number_bytes(type);
        head.rank = shape.rank;
        head.type = texts ? -1 : (int32_t)type;
        for (int d = 0; d < shape.rank; d++) {
            head.dims[d] = shape.dims[d];
            bytes *= (size_t)shape.dims[d]; /* cannot overflow, because all elements are in memory */
        }
        weir_bytes_put(w, &head, sizeof head);
        weir_bytes_put(w, texts ? (void *)names : values, bytes);
        w->n = sizeof head + bytes; /* removes the padding */
    }
    free(names);
    free(values);
    return rc;
}

static int put_list(struct child *child, const char *group, struct weir_bytes_writer *w, struct weir_err *err)
{
    char(*names)[64];
    int n;
    weir_h5_watch_errors();
    int rc = weir_h5_list(child->h5, group, &names, &n, err);
    for (int i = 0; i < n && rc == 0; i++) {
        struct weir_hdf5_member member = {0};
        char path[WEIR_STORE_PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", strcmp(group, "/") == 0 ? "" : group, names[i]);
        memcpy(member.name, names[i], strlen(names[i]));
        member.is_group = weir_h5_is_group(child->h5, path);
        weir_bytes_put(w, &member, sizeof member);
    }
    free(names);
    return rc;
}

static int put_bytes(struct child *child, const struct weir_helper_request *request, const char *path, const char *key,
                     struct weir_helper_reply *reply, struct weir_bytes_writer *w)
{
    int rc = open_again(child, &request->file, path, &reply->err);
    w->n = 0;
    if (rc == 0) {
        rc = request->kind == WEIR_HELPER_READ_ROW ? put_row(child, request, key, reply, w)
             : request->kind == WEIR_HELPER_LIST   ? put_list(child, key, w, &reply->err)
                                                   : put_array(child, key, w, &reply->err);
        int machine = weir_h5_machine_error(&reply->err);
        rc = machine < 0 ? machine : rc;
    }
    if (weir_is_shortage(rc))
        weir_h5_close(&child->h5); /* its state is unreliable after a failed allocation */
    return rc;
}

static bool reply_bytes(struct child *child, const struct weir_helper_request *request, const char *path,
                        const char *key)
{
    struct weir_helper_reply reply = {0}, again = {0};
    struct weir_bytes_writer w = {0};
    reply.rc = put_bytes(child, request, path, key, &reply, &w);
    if (retry_is_worthwhile(reply.rc, path)) {
        again.rc = put_bytes(child, request, path, key, &again, &w);
        if (again.rc == 0 || again.rc == -ENOSPC)
            reply = (struct weir_helper_reply){.rc = again.rc, .length = again.length};
        else if (weir_h5_malloc_failed())
            reply.rc = report_excessive_request(&reply.err);
    }
    int refused = weir_h5_refused(&reply.err);
    reply.rc = refused < 0 ? refused : reply.rc;
    if (w.full)
        _exit(WEIR_HELPER_LACKED_MEMORY);
    reply.bytes = reply.rc == 0 ? w.n : 0;
    bool fine = send_reply(child, &reply, w.bytes);
    free(w.bytes);
    return fine;
}

/* Checks that memory for a file of this size is available, in one large piece and in many small ones. If the library
 * then runs out of memory again, the file is at fault. */
static bool has_memory_for(const char *path)
{
    void **first = NULL, **piece;
    int n = 0;
    if (!retry_is_worthwhile(-ENOMEM, path))
        return false;
    for (; n < PIECES && (piece = malloc(PIECES)); n++, first = piece)
        *piece = first;
    for (; first; first = piece) {
        piece = *first;
        free(first);
    }
    return n == PIECES;
}

static bool serve_request(struct child *child)
{
    struct weir_helper_request request;
    char *texts[WEIR_HELPER_TEXTS] = {NULL};
    bool fine = weir_helper_receive(child->fd, &request, sizeof request, -1);
    for (int i = 0; i < WEIR_HELPER_TEXTS && fine; i++) {
        if (request.text_bytes[i] == 0)
            continue;
        texts[i] = malloc(request.text_bytes[i]);
        if (!texts[i])
            _exit(WEIR_HELPER_LACKED_MEMORY);
        fine = weir_helper_receive(child->fd, texts[i], request.text_bytes[i], -1);
    }
    if (fine) {
        if (request.again && !has_memory_for(texts[WEIR_HELPER_PATH]))
            _exit(WEIR_HELPER_LACKED_MEMORY);
        has_begun = 1;
        limit_time(texts[WEIR_HELPER_PATH]);
        weir_h5_ask_about(texts[WEIR_HELPER_ROOT], texts[WEIR_HELPER_PATH], request.allow_external);
        set_supply(child, &request);
        errno = 0;
        fine = request.kind == WEIR_HELPER_DESCRIBE
                   ? reply_description(child, &request, texts)
                   : reply_bytes(child, &request, texts[WEIR_HELPER_PATH], texts[WEIR_HELPER_KEY]);
    }
    for (int i = 0; i < WEIR_HELPER_TEXTS; i++)
        free(texts[i]);
    return fine;
}

void weir_hdf5_helper_serve(int fd)
{
    struct child child = {.fd = fd};
    watch_for_crashes();
    if (weir_h5_start() < 0)
        _exit(WEIR_HELPER_LACKED_MEMORY);
    while (serve_request(&child))
        continue; /* serve_and_exit then calls _exit, because the library's exit handlers may crash */
}
