/* LMDB with the keys of docs/internals/layouts.md, "LMDB": a folder with data.mdb. liblmdb keeps a transaction's data
 * in memory, so an episode is written in several transactions. The last of them contains the key "episode"; an episode
 * without this key is incomplete. */
#include "datasets/lmdb/lmdb_schema.h"
#include "datasets/writer.h"

#if WEIR_HAVE_LMDB
#include "base/files.h"
#include "datasets/lmdb/lmdb_tree.h"
#include "weir/base.h"

#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEY_ROOM = 128 };
/* A value takes up to twice its size in pages, plus space for the tree. */
static const size_t TRANSACTION_BYTES = (size_t)32 << 20, MAP_SPARE_BYTES = (size_t)256 << 20;

struct writer {
    struct weir_writer base;
    MDB_env *env;
    MDB_txn *txn; /* NULL = none open */
    MDB_dbi dbi;
    size_t pending; /* bytes in the current transaction */
};

/* rc: an errno, or a negative code of liblmdb. */
static int failed(const struct writer *w, int rc, struct weir_err *err)
{
    char at[64] = "";
    int code = rc > 0 ? -rc : -EIO;
    if (w->base.episode.name)
        snprintf(at, sizeof at, "episode %d: ", w->base.episode.number);
    if (rc == ENOSPC || rc == EDQUOT)
        return weir_err_set(err, code, "%s: %scannot be written: %s; free space, and convert again to resume",
                            w->base.path, at, strerror(rc));
    if (rc == EIO)
        return weir_err_set(err, code,
                            "%s: %scannot be written: the file system is full or the device failed; free space, and "
                            "convert again to resume",
                            w->base.path, at);
    return weir_err_set(err, code, "%s: %scannot be written: %s", w->base.path, at, mdb_strerror(rc));
}

/* ---- transactions ---- */

static int begin_transaction(struct writer *w, struct weir_err *err)
{
    if (w->txn)
        return 0;
    int rc = mdb_txn_begin(w->env, NULL, 0, &w->txn);
    if (rc == 0)
        rc = mdb_dbi_open(w->txn, NULL, 0, &w->dbi);
    w->pending = 0;
    return rc ? failed(w, rc, err) : 0;
}

/* When it returns, the data is on the storage device. */
static int commit(struct writer *w, struct weir_err *err)
{
    int rc = w->txn ? mdb_txn_commit(w->txn) : 0;
    w->txn = NULL;
    return rc ? failed(w, rc, err) : 0;
}

static int put(struct writer *w, const char *key, const void *bytes, size_t length, struct weir_err *err)
{
    MDB_val name = {strlen(key), (void *)key}, value = {length, (void *)bytes};
    int rc = begin_transaction(w, err);
    if (rc < 0)
        return rc;
    int put = mdb_put(w->txn, w->dbi, &name, &value,
                      MDB_APPEND); /* MDB_APPEND fills pages completely; it requires ascending keys */
    if (put == MDB_KEYEXIST)
        put = mdb_put(w->txn, w->dbi, &name, &value, 0);
    w->pending += length;
    return put ? failed(w, put, err) : 0;
}

/* The map size limits the size of the file, and can only change between transactions. */
static int grow_map(struct writer *w, size_t more, struct weir_err *err)
{
    MDB_envinfo info;
    MDB_stat stat;
    mdb_env_info(w->env, &info);
    mdb_env_stat(w->env, &stat);
    size_t needed = (info.me_last_pgno + 1) * stat.ms_psize + 2 * more + MAP_SPARE_BYTES;
    if (needed <= info.me_mapsize)
        return 0;
    int rc = mdb_env_set_mapsize(w->env, (needed + MAP_SPARE_BYTES) / MAP_SPARE_BYTES * MAP_SPARE_BYTES);
    return rc ? failed(w, rc, err) : 0;
}

/* ---- JSON ---- */

static void put_numbers(struct weir_json *json, const char *name, enum weir_number_type type, int dim)
{
    weir_json_object(json, name);
    weir_json_text(json, "dtype", weir_number_name(type));
    weir_json_int(json, "dim", dim);
    weir_json_end(json, '}');
}

static int write_dataset(const struct writer *w, struct weir_json_document *document, struct weir_err *err)
{
    const struct weir_copy *copy = &w->base.copy;
    struct weir_json *json = &document->json;
    int rc = weir_json_document_open(&w->base, document, false, err);
    if (rc < 0)
        return rc;
    weir_json_int(json, "version", 1);
    weir_json_int(json, "episodes", copy->n_episodes);
    weir_json_text(json, "color", copy->is_bgr ? "bgr" : "rgb");
    weir_json_array(json, "cameras");
    for (int c = 0; c < copy->n_cameras; c++) {
        const struct weir_copy_camera *camera = &copy->cameras[c];
        weir_json_object(json, NULL);
        weir_json_text(json, "name", camera->name);
        weir_json_text(json, "codec", weir_frame_kind_name(camera->kind));
        weir_json_int(json, "width", camera->width);
        weir_json_int(json, "height", camera->height);
        weir_json_end(json, '}');
    }
    weir_json_end(json, ']');
    put_numbers(json, "qpos", copy->qpos_type, copy->qpos_dim);
    put_numbers(json, "action", copy->action_type, copy->action_dim);
    return weir_json_document_close(&w->base, document, err);
}

static int write_episode(const struct writer *w, struct weir_json_document *document, struct weir_err *err)
{
    int rc = weir_json_document_open(&w->base, document, false, err);
    if (rc < 0)
        return rc;
    weir_json_int(&document->json, "steps", w->base.episode.steps);
    weir_writer_texts(&w->base, &document->json);
    return weir_json_document_close(&w->base, document, err);
}

/* ---- resuming ---- */

static int ignore(void *user, const struct weir_lmdb_entry *entry, struct weir_err *err)
{
    (void)user;
    (void)entry;
    (void)err;
    return 0;
}

/* liblmdb trusts an existing file, so a file that a power failure truncated is removed. */
static void remove_damaged(const char *path)
{
    struct weir_err ignored = WEIR_ERR_NONE;
    struct weir_lmdb_state states[2];
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    struct weir_raw_file raw = {weir_raw_read, &fd, 0, fstat(fd, &st) == 0 ? (uint64_t)st.st_size : 0};
    int rc = weir_lmdb_states(states, &raw, &ignored);
    if (rc == 0)
        rc = weir_lmdb_walk(weir_lmdb_newest(states), &raw, ignore, NULL, &ignored);
    close(fd);
    if (rc < 0)
        unlink(path);
}

static bool is_there(struct writer *w, const char *key, MDB_val *value)
{
    MDB_val name = {strlen(key), (void *)key};
    return mdb_get(w->txn, w->dbi, &name, value) == 0;
}

/* Removes this key and all keys after it, which belong to an incomplete episode. */
static int remove_from(struct writer *w, const char *key, struct weir_err *err)
{
    MDB_cursor *cursor;
    int rc = mdb_cursor_open(w->txn, w->dbi, &cursor);
    if (rc)
        return failed(w, rc, err);
    while (rc == 0) {
        MDB_val name = {strlen(key), (void *)key};
        rc = mdb_cursor_get(cursor, &name, NULL, MDB_SET_RANGE);
        if (rc == 0)
            rc = mdb_cursor_del(cursor, 0);
    }
    mdb_cursor_close(cursor);
    return rc == MDB_NOTFOUND ? 0 : failed(w, rc, err);
}

static int remove_all(struct writer *w, struct weir_err *err)
{
    int rc = mdb_drop(w->txn, w->dbi, 0);
    return rc ? failed(w, rc, err) : 0;
}

static int find_complete(struct writer *w, const char *json, size_t length, int *complete, struct weir_err *err)
{
    char key[KEY_ROOM];
    MDB_val value;
    int rc = begin_transaction(w, err);
    bool same = rc == 0 && is_there(w, "dataset", &value) && value.mv_size == length &&
                memcmp(value.mv_data, json, length) == 0;
    for (; same && *complete < w->base.copy.n_episodes; ++*complete) {
        snprintf(key, sizeof key, "e%08d/episode", *complete);
        if (!is_there(w, key, &value))
            break;
    }
    snprintf(key, sizeof key, "e%08d/", *complete);
    if (rc == 0)
        rc = same ? remove_from(w, key, err) : remove_all(w, err);
    if (rc == 0 && !same)
        rc = put(w, "dataset", json, length, err);
    return rc < 0 ? rc : commit(w, err);
}

/* ---- open and close ---- */

static void close_writer(struct weir_writer *writer)
{
    struct writer *w = (struct writer *)writer;
    if (w->txn)
        mdb_txn_abort(w->txn);
    if (w->env)
        mdb_env_close(w->env);
}

static int check_names(const struct weir_copy *copy, const char *path, struct weir_err *err)
{
    for (int c = 0; c < copy->n_cameras; c++) {
        const char *name = copy->cameras[c].name;
        if (strchr(name, '/') || strcmp(name, "qpos") == 0 || strcmp(name, "action") == 0)
            return weir_err_set(
                err, -EINVAL,
                "%s: camera \"%s\": the keys in LMDB cannot contain a camera with this name; leave it out with "
                "--cameras",
                path, name);
    }
    return 0;
}

static int open_environment(struct writer *w, struct weir_err *err)
{
    char *path;
    int rc = weir_writer_make_folder(&w->base, err);
    if (rc < 0)
        return rc;
    if (asprintf(&path, "%s/data.mdb", w->base.path) < 0)
        return weir_writer_no_memory(&w->base, err);
    remove_damaged(path);
    free(path);
    rc = mdb_env_create(&w->env);
    if (rc == 0)
        rc = mdb_env_open(w->env, w->base.path, MDB_NOTLS, 0666);
    return rc ? failed(w, rc, err) : grow_map(w, 0, err);
}

static int open_writer(struct weir_writer *writer, int *complete, struct weir_err *err)
{
    struct writer *w = (struct writer *)writer;
    struct weir_json_document dataset = {0};
    int rc = check_names(&writer->copy, writer->path, err);
    if (rc == 0)
        rc = write_dataset(w, &dataset, err);
    if (rc == 0)
        rc = open_environment(w, err);
    if (rc == 0)
        rc = find_complete(w, dataset.text, dataset.n, complete, err);
    free(dataset.text);
    return rc;
}

/* Removes lock.mdb, because only processes that have the file open need it. */
static int finish(struct weir_writer *writer, struct weir_err *err)
{
    struct writer *w = (struct writer *)writer;
    char *lock;
    mdb_env_close(w->env);
    w->env = NULL;
    if (asprintf(&lock, "%s/lock.mdb", writer->path) < 0)
        return weir_writer_no_memory(writer, err);
    unlink(lock);
    free(lock);
    return weir_durable_sync(writer->path, err);
}

/* ---- an episode ---- */

/* Ends the transaction if `bytes` more bytes would exceed its limit. */
static int make_room(struct writer *w, size_t bytes, struct weir_err *err)
{
    int rc = w->txn && w->pending + bytes > TRANSACTION_BYTES ? commit(w, err) : 0;
    return rc == 0 && !w->txn ? grow_map(w, TRANSACTION_BYTES + bytes, err) : rc;
}

static int frame(struct weir_writer *writer, int camera, int t, const uint8_t *bytes, size_t length,
                 struct weir_err *err)
{
    struct writer *w = (struct writer *)writer;
    char key[KEY_ROOM];
    int rc = make_room(w, length, err);
    snprintf(key, sizeof key, "e%08d/%08d/%s", w->base.episode.number, t, w->base.copy.cameras[camera].name);
    return rc < 0 ? rc : put(w, key, bytes, length, err);
}

static size_t state_bytes(const struct writer *w, int dim, enum weir_number_type type)
{
    return (size_t)w->base.episode.steps * (size_t)dim * weir_number_bytes(type);
}

static int put_state(struct writer *w, const char *name, const void *values, int dim, enum weir_number_type type,
                     struct weir_err *err)
{
    char key[KEY_ROOM];
    snprintf(key, sizeof key, "e%08d/%s", w->base.episode.number, name);
    return put(w, key, values, state_bytes(w, dim, type), err);
}

static int end(struct weir_writer *writer, struct weir_err *err)
{
    struct writer *w = (struct writer *)writer;
    const struct weir_copy *copy = &writer->copy;
    char key[KEY_ROOM];
    struct weir_json_document json = {0};
    snprintf(key, sizeof key, "e%08d/episode", writer->episode.number);
    int rc = write_episode(w, &json, err);
    if (rc == 0)
        rc = make_room(w,
                       json.n + state_bytes(w, copy->qpos_dim, copy->qpos_type) +
                           state_bytes(w, copy->action_dim, copy->action_type),
                       err);
    if (rc == 0)
        rc = put_state(w, "action", writer->episode.actions, copy->action_dim, copy->action_type, err);
    if (rc == 0)
        rc = put(w, key, json.text, json.n, err);
    if (rc == 0)
        rc = put_state(w, "qpos", writer->episode.qpos, copy->qpos_dim, copy->qpos_type, err);
    free(json.text);
    return rc < 0 ? rc : commit(w, err);
}

#define WHY_NOT NULL
#define CALLS                                                                                                          \
    .bytes = sizeof(struct writer), .open = open_writer, .frame = frame, .end = end, .finish = finish,                 \
    .close = close_writer
#else
#define WHY_NOT "built without liblmdb"
#define CALLS   .open = NULL
#endif

const struct weir_writer_ops weir_writer_lmdb = {
    .name = "lmdb",
    .summary = "LMDB, one key per frame: a folder with data.mdb",
    .why_not = WHY_NOT,
    .suffix = ".lmdb",
    .holds = WEIR_LMDB_HOLDS,
    .read_rank = 2,
    .number_types = ((uint32_t)1 << WEIR_NUMBER_TYPES) - 1,
    .by_step = true,
    .resumes = true,
    CALLS,
};
