#include "datasets/hdf5/hdf5_helper.h"

#include "base/shortage.h"
#include "datasets/episode_bytes.h"
#include "datasets/hdf5/h5_read.h"
#include "datasets/hdf5/hdf5_helper_protocol_priv.h"
#include "datasets/helper/helper_spawner.h"
#include "datasets/index.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    TEXT_MAX = 65536,
    REPLY_TIMEOUT_S = 600, /* wall-clock time, because storage may be slow */
    LIBRARY_ENDED = 255,   /* exit status of HDF5 1.10 if it does not have enough memory to start */
    CPU_S = 60,            /* per request, plus 60 s for every 600 MB of the file */
    BYTES_PER_CPU_S = 10000000,
    ABI = 3 /* incremented when messages change but keep their sizes */
};
static const uint64_t REPLY_MAX_BYTES = (uint64_t)8 << 30;

struct weir_hdf5_helper {
    const struct weir_dataset_config *config;
    const char *root;
    bool allow_external;
    pid_t pid; /* 0 = none */
    int fd;
    bool crashed; /* the process crashed in the last request, after a failed allocation */
    struct weir_hdf5_supplier supplier;
};

struct weir_helper_hello weir_helper_hello(void)
{
    return (struct weir_helper_hello){.name = "weir-hdf5",
                                      .abi = ABI,
                                      .bytes = {sizeof(struct weir_helper_request), sizeof(struct weir_helper_reply),
                                                sizeof(struct weir_helper_described),
                                                sizeof(struct weir_h5_description)}};
}

uint64_t weir_helper_cpu_limit_s(const char *path)
{
    struct stat st;
    return CPU_S + (stat(path, &st) == 0 ? (uint64_t)st.st_size / BYTES_PER_CPU_S : 0);
}

struct weir_hdf5_helper *weir_hdf5_helper_open(const struct weir_dataset_config *config, const char *root,
                                               bool allow_external)
{
    struct weir_hdf5_helper *helper = calloc(1, sizeof *helper);
    if (helper) {
        helper->config = config;
        helper->root = root;
        helper->allow_external = allow_external;
        helper->fd = -1;
    }
    return helper;
}

void weir_hdf5_helper_use(struct weir_hdf5_helper *helper, struct weir_origin *origin)
{
    helper->supplier.origin = origin;
}

/* Ends the process and returns its wait status. */
static int end_process(struct weir_hdf5_helper *helper)
{
    close(helper->fd);
    helper->fd = -1;
    int status = weir_helper_reap(helper->pid);
    helper->pid = 0;
    return status;
}

void weir_hdf5_helper_close(struct weir_hdf5_helper **helper)
{
    if (*helper && (*helper)->pid)
        end_process(*helper);
    if (*helper)
        weir_hdf5_supplier_close(&(*helper)->supplier);
    free(*helper);
    *helper = NULL;
}

/* Reports that the kernel killed the process. Either memory is short, or this process has a lower CPU time limit than
 * the library needs for a file. */
static int report_killed(const char *path, struct weir_err *err)
{
    struct rlimit limit;
    bool limited = getrlimit(RLIMIT_CPU, &limit) == 0 && limit.rlim_max != RLIM_INFINITY;
    if (limited && limit.rlim_max <= weir_helper_cpu_limit_s(path))
        return weir_err_set(err, -ENOMEM,
                            "the HDF5 helper process was killed while it read the file: it ran out of memory, or "
                            "exceeded this process's CPU time limit of %llu s; raise these limits (ulimit -v, -t)",
                            (unsigned long long)limit.rlim_max);
    return weir_err_set(err, -ENOMEM,
                        "the HDF5 helper process was killed while it read the file: the machine or the container is "
                        "out of memory; %s",
                        weir_machine_advice(-ENOMEM));
}

/* Reports that the process ended or hangs. The file is blamed, unless memory was short or the process was killed. */
static int report_no_reply(struct weir_hdf5_helper *helper, const char *path, struct weir_err *err)
{
    struct pollfd gone = {.fd = helper->fd, .events = POLLIN};
    bool hangs = poll(&gone, 1, 0) == 0;
    int status = end_process(helper);
    if (hangs)
        return weir_err_set(err, -EBADMSG, "the HDF5 library did not reply for %d s; repair or remove the file",
                            REPLY_TIMEOUT_S);
    int ended = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    helper->crashed = ended == WEIR_HELPER_CRASHED_LACKING;
    if (ended == WEIR_HELPER_CRASHED_LACKING || ended == WEIR_HELPER_LACKED_MEMORY || ended == LIBRARY_ENDED)
        return weir_err_set(err, -ENOMEM, "out of memory in the HDF5 helper process");
    if (!WIFSIGNALED(status) || WTERMSIG(status) == SIGKILL)
        return report_killed(path, err);
    if (WTERMSIG(status) == SIGXCPU)
        return weir_err_set(
            err, -EBADMSG,
            "the HDF5 library exceeded its CPU time limit of %llu s on this file; repair or remove the file",
            (unsigned long long)weir_helper_cpu_limit_s(path));
    const char *how = strsignal(WTERMSIG(status));
    return weir_err_set(err, -EBADMSG, "the HDF5 library crashed on this file (%s); repair or remove the file",
                        how ? how : "by a signal");
}

/* A request and its answer. */
struct call {
    struct weir_helper_request request;
    const char *texts[WEIR_HELPER_TEXTS];
    struct weir_helper_reply reply;
    uint8_t *bytes;    /* where the data after the reply goes; NULL = new memory, which the caller frees */
    uint64_t capacity; /* maximum size of the data */
};

static struct call call_about(enum weir_helper_request_kind kind, const struct weir_dataset_file *file, const char *key)
{
    return (struct call){.request = {.kind = kind, .file = *file},
                         .texts = {[WEIR_HELPER_PATH] = file->path, [WEIR_HELPER_KEY] = key},
                         .capacity = REPLY_MAX_BYTES};
}

static int exchange(struct weir_hdf5_helper *helper, struct call *call, struct weir_err *err)
{
    struct weir_helper_request *request = &call->request;
    struct weir_helper_reply *reply = &call->reply;
    const char **texts = call->texts;
    helper->crashed = false;
    texts[WEIR_HELPER_ROOT] = helper->root;
    request->is_supplied = helper->supplier.origin != NULL;
    request->allow_external = helper->allow_external && !request->is_supplied;
    int rc = request->is_supplied
                 ? weir_hdf5_supplier_begin(&helper->supplier, texts[WEIR_HELPER_PATH], &request->file, err)
                 : 0;
    if (rc < 0)
        return rc;
    for (int i = 0; i < WEIR_HELPER_TEXTS; i++) {
        size_t bytes = texts[i] ? strlen(texts[i]) + 1 : 0;
        if (bytes > TEXT_MAX)
            return weir_err_set(err, -ENAMETOOLONG, "a name has over %d bytes", TEXT_MAX);
        request->text_bytes[i] = (uint32_t)bytes;
    }
    rc = helper->pid ? 0 : weir_helper_spawn(WEIR_HELPER_HDF5, &helper->pid, &helper->fd, err);
    if (rc < 0)
        return rc;
    bool fine = weir_helper_send(helper->fd, request, sizeof *request);
    for (int i = 0; i < WEIR_HELPER_TEXTS && fine; i++)
        fine = weir_helper_send(helper->fd, texts[i], request->text_bytes[i]);
    fine = fine && weir_helper_receive(helper->fd, reply, sizeof *reply, REPLY_TIMEOUT_S);
    while (fine && reply->rc == WEIR_HELPER_WANTS && request->is_supplied)
        fine = weir_hdf5_supplier_send(&helper->supplier, helper->fd, reply) &&
               weir_helper_receive(helper->fd, reply, sizeof *reply, REPLY_TIMEOUT_S);
    if (!fine)
        return report_no_reply(helper, texts[WEIR_HELPER_PATH], err);
    reply->err.text[sizeof reply->err.text - 1] = '\0';
    if (reply->rc == -ENOMEM) /* the library's state is unreliable after this */
        end_process(helper);
    if (reply->rc < 0 && request->is_supplied && helper->supplier.err.code < 0) { /* the cause, not the symptom */
        reply->rc = helper->supplier.err.code;
        return weir_err_set(err, reply->rc, "%s", helper->supplier.err.text);
    }
    if (reply->rc < 0 && reply->err.text[0])
        weir_err_set(err, reply->rc, "%s", reply->err.text);
    return reply->rc < 0 ? reply->rc : 0;
}

/* The helper never sends such a reply, so the library must have overwritten its memory. The process is not used again.
 */
static int report_bad_reply(struct weir_hdf5_helper *helper, struct weir_err *err)
{
    if (helper->pid)
        end_process(helper);
    return weir_err_set(
        err, -EBADMSG,
        "the HDF5 helper process sent an invalid reply: the HDF5 library overwrote its memory; repair or "
        "remove the file");
}

/* Reports that a second process crashed too, although it had checked that memory was available. */
static int report_second_crash(struct weir_err *err)
{
    *err = WEIR_ERR_NONE;
    return weir_err_set(err, -EBADMSG, "the HDF5 library crashed on this file; repair or remove the file");
}

static int request_once(struct weir_hdf5_helper *helper, struct call *call, struct weir_err *err)
{
    const struct weir_helper_reply *reply = &call->reply;
    int rc = exchange(helper, call, err);
    if (rc < 0)
        return rc;
    if (reply->bytes > call->capacity)
        return report_bad_reply(helper, err);
    uint8_t *bytes = call->bytes ? call->bytes : malloc(reply->bytes + 1);
    if (!bytes) {
        end_process(helper);
        return weir_no_memory(err);
    }
    if (!weir_helper_receive(helper->fd, bytes, reply->bytes, REPLY_TIMEOUT_S)) {
        if (!call->bytes)
            free(bytes);
        return report_no_reply(helper, call->texts[WEIR_HELPER_PATH], err);
    }
    call->bytes = bytes;
    return 0;
}

/* Sends the request to a second process if the first crashes after a failed allocation. */
static int request(struct weir_hdf5_helper *helper, struct call *call, struct weir_err *err)
{
    int rc = request_once(helper, call, err);
    if (rc >= 0 || !helper->crashed)
        return rc;
    *err = WEIR_ERR_NONE;
    call->request.again = true;
    rc = request_once(helper, call, err);
    return rc < 0 && helper->crashed ? report_second_crash(err) : rc;
}

int weir_hdf5_helper_read_row(struct weir_hdf5_helper *helper, const struct weir_dataset_file *file, const char *key,
                              uint64_t t, void *buffer, size_t capacity, size_t *length, struct weir_err *err)
{
    struct call call = call_about(WEIR_HELPER_READ_ROW, file, key);
    call.request.t = t;
    call.request.capacity = call.capacity = capacity;
    call.bytes = buffer;
    int rc = request(helper, &call, err);
    if (rc < 0 && rc != -ENOSPC)
        return rc;
    *length = call.reply.length;
    if (rc == -ENOSPC ? *length > capacity : *length == call.reply.bytes)
        return rc;
    return report_bad_reply(helper, err);
}

/* ---- arrays and names ---- */

/* If the reply is an array, moves its values to the start of bytes and returns true. */
static bool take_array(uint8_t *bytes, size_t n, struct weir_file_array *array)
{
    struct weir_helper_array head;
    if (n < sizeof head)
        return false;
    memcpy(&head, bytes, sizeof head);
    bool texts = head.type < 0;
    uint64_t wanted = texts ? WEIR_FILE_ARRAY_TEXT : 0, items = 1;
    if (!texts && head.type < WEIR_NUMBER_TYPES)
        wanted = weir_number_bytes((enum weir_number_type)head.type);
    bool fits = wanted > 0 && head.rank >= 0 && head.rank <= WEIR_FILE_ARRAY_RANK;
    for (int d = 0; fits && d < head.rank; d++)
        fits = !__builtin_mul_overflow(items, head.dims[d], &items);
    if (!fits || __builtin_mul_overflow(items, wanted, &wanted) || wanted != n - sizeof head)
        return false;
    memmove(bytes, bytes + sizeof head, n - sizeof head);
    for (uint64_t i = 0; texts && i < items; i++)
        if (!memchr(bytes + i * WEIR_FILE_ARRAY_TEXT, 0, WEIR_FILE_ARRAY_TEXT))
            return false;
    *array = (struct weir_file_array){
        .rank = head.rank, .items = items, .type = texts ? WEIR_U8 : (enum weir_number_type)head.type};
    memcpy(array->dims, head.dims, sizeof array->dims);
    array->values = texts ? NULL : bytes;
    array->texts = texts ? (void *)bytes : NULL;
    return true;
}

int weir_hdf5_helper_read_array(struct weir_hdf5_helper *helper, const struct weir_dataset_file *file, const char *key,
                                struct weir_file_array *array, struct weir_err *err)
{
    struct call call = call_about(WEIR_HELPER_READ_ARRAY, file, key);
    *array = (struct weir_file_array){0};
    int rc = request(helper, &call, err);
    if (rc < 0 || take_array(call.bytes, call.reply.bytes, array))
        return rc;
    free(call.bytes);
    return report_bad_reply(helper, err);
}

int weir_hdf5_helper_list(struct weir_hdf5_helper *helper, const struct weir_dataset_file *file, const char *group,
                          struct weir_hdf5_member **members, size_t *n, struct weir_err *err)
{
    struct call call = call_about(WEIR_HELPER_LIST, file, group);
    *members = NULL;
    *n = 0;
    int rc = request(helper, &call, err);
    if (rc < 0)
        return rc;
    struct weir_hdf5_member *all = (void *)call.bytes;
    size_t count = call.reply.bytes / sizeof *all;
    bool fits = call.reply.bytes % sizeof *all == 0;
    for (size_t i = 0; fits && i < count; i++)
        fits = memchr(all[i].name, 0, sizeof all[i].name) && all[i].is_group <= 1;
    if (!fits) {
        free(call.bytes);
        return report_bad_reply(helper, err);
    }
    *members = all;
    *n = count;
    return 0;
}

/* ---- descriptions ---- */

/* Returns true if the byte is 0 or 1, because it is undefined to read any other byte as a bool. */
static bool is_bool(const bool *value)
{
    unsigned char byte;
    memcpy(&byte, value, 1);
    return byte <= 1;
}

static bool bools_fit(const struct weir_h5_description *d)
{
    return is_bool(&d->other_file) && is_bool(&d->plain_sizes) && is_bool(&d->written) && is_bool(&d->filters_kept) &&
           is_bool(&d->fill_is_zero) && is_bool(&d->fill_is_known) && is_bool(&d->has_probe) &&
           is_bool(&d->shape.is_big_endian) && is_bool(&d->shape.is_signed) && is_bool(&d->grid.filtered);
}

/* Shapes that do not form blocks are left to the library. Blocks must have the row size of the map and at least as many
 * rows as it has frames. */
static bool grid_fits(const struct weir_frame_map *map, const struct weir_h5_description *d)
{
    enum { REF_BYTES = 16 };
    struct weir_blocks blocks = {.grid = d->grid};
    if (d->layout != WEIR_H5_CHUNKED || !weir_blocks_init(&blocks))
        return true;
    uint64_t row_bytes = map->rows == WEIR_ROWS_VLEN ? REF_BYTES : map->row_bytes;
    return blocks.row_bytes == row_bytes && d->grid.dims[0] >= (uint64_t)map->frames;
}

static bool description_fits(const struct weir_frame_map *map, const struct weir_h5_description *d)
{
    return map->storage == WEIR_STORED_CONTIGUOUS && (unsigned)d->layout <= WEIR_H5_EXTERNAL && bools_fit(d) &&
           d->shape.rank >= 0 && d->shape.rank <= WEIR_GRID_RANK_MAX && d->grid.rank >= 0 &&
           d->grid.rank <= WEIR_GRID_RANK_MAX && d->filters.n >= 0 && d->filters.n <= WEIR_FILTERS_MAX &&
           grid_fits(map, d);
}

bool weir_hdf5_described_is_sane(const struct weir_episode *episode, const struct weir_h5_description *cameras)
{
    /* An episode without any requested camera has no map; dataset.c reports this. */
    bool sane = weir_index_shapes_fit(episode);
    for (int i = 0; i < episode->n_maps && sane; i++)
        sane = description_fits(&episode->maps[i], &cameras[i]);
    return sane;
}

static void get_described_episode(struct weir_bytes_reader *c, struct weir_episode *episode,
                                  struct weir_h5_description **descriptions)
{
    weir_bytes_get_episode(c, episode);
    size_t bytes = (size_t)episode->n_maps * sizeof **descriptions;
    const struct weir_h5_description *sent = c->bad ? NULL : weir_bytes_get(c, bytes);
    if (!sent || !weir_hdf5_described_is_sane(episode, sent)) {
        c->bad = true;
        return;
    }
    *descriptions = malloc(bytes + 1);
    if (!*descriptions || weir_episode_copy_lent(episode) < 0) {
        c->bad = c->no_memory = true;
        return;
    }
    memcpy(*descriptions, sent, bytes);
    episode->bytes =
        sizeof *episode + (size_t)episode->steps * (size_t)(episode->qpos_dim + episode->action_dim) * sizeof(float);
}

static bool get_described(struct weir_bytes_reader *c, const char *path, const struct weir_dataset_file *supplied,
                          struct weir_file_result *result, struct weir_hdf5_described *described)
{
    struct weir_file_index *file = &result->file;
    const struct weir_helper_described *head = weir_bytes_get(c, sizeof *head);
    if (!head || head->n_episodes < 0 || head->n_bad < 0 || head->n_wanted != (int64_t)head->n_episodes + head->n_bad ||
        (uint64_t)head->n_episodes > c->left || (uint64_t)head->n_bad > c->left)
        return false;
    file->file = supplied ? *supplied : head->file;
    file->file.path = strdup(path);
    file->file.may_be_written = false;
    file->header_hash = supplied ? supplied->inode : head->header_hash;
    file->episodes = calloc((size_t)head->n_episodes + 1, sizeof *file->episodes);
    file->bad = calloc((size_t)head->n_bad + 1, sizeof *file->bad);
    described->cameras = calloc((size_t)head->n_wanted + 1, sizeof *described->cameras);
    described->n = head->n_wanted;
    described->base = head->base;
    result->n_wanted = head->n_wanted;
    const char *traits = weir_bytes_get_text(c);
    file->traits = traits ? strdup(traits) : NULL;
    c->no_memory =
        (traits && !file->traits) || !file->file.path || !file->episodes || !file->bad || !described->cameras;
    c->bad |= c->no_memory;
    for (; file->n_bad < head->n_bad && !c->bad; file->n_bad++) {
        const char *text = weir_bytes_get_text(c);
        file->bad[file->n_bad] = strdup(text ? text : "");
        c->no_memory |= !file->bad[file->n_bad];
        c->bad |= !text || c->no_memory;
    }
    for (; file->n_episodes < head->n_episodes && !c->bad; file->n_episodes++)
        get_described_episode(c, &file->episodes[file->n_episodes], &described->cameras[file->n_episodes]);
    return !c->bad;
}

void weir_hdf5_helper_describe(struct weir_hdf5_helper *helper, const char *path, struct weir_file_result *result,
                               struct weir_hdf5_described *described)
{
    const struct weir_dataset_config *config = helper->config;
    struct call call = {.request = {.kind = WEIR_HELPER_DESCRIBE,
                                    .depth = config->depth,
                                    .own_types = config->own_types,
                                    .allow_ragged = config->allow_ragged,
                                    .tolerant = config->tolerant,
                                    .list_unused = config->list_unused},
                        .texts = {[WEIR_HELPER_PATH] = path,
                                  [WEIR_HELPER_CAMERAS] = config->cameras,
                                  [WEIR_HELPER_QPOS_KEYS] = config->qpos_keys,
                                  [WEIR_HELPER_ACTION_KEYS] = config->action_keys,
                                  [WEIR_HELPER_IMAGE_KEYS] = config->image_keys,
                                  [WEIR_HELPER_FILTER_KEY] = config->filter_key,
                                  [WEIR_HELPER_DATA] = config->path},
                        .capacity = REPLY_MAX_BYTES};
    const struct weir_dataset_file *supplied = helper->supplier.origin ? &helper->supplier.file : NULL;
    *result = (struct weir_file_result){0};
    result->rc = request(helper, &call, &result->err);
    if (result->rc < 0)
        return;
    struct weir_bytes_reader c = {.at = call.bytes, .left = call.reply.bytes};
    if (!get_described(&c, path, supplied, result, described))
        result->rc = c.no_memory ? weir_no_memory(&result->err) : report_bad_reply(helper, &result->err);
    free(call.bytes);
}
