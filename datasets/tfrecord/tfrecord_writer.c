/* Writes TFRecord files of tf.train.Example in RLDS's structure: a folder with one such file, which has one record per
 * episode, and features.json. */
#include "base/files.h"
#include "datasets/chunks/chunk_grid.h"
#include "datasets/tfrecord/example.h"
#include "datasets/tfrecord/tfrecord_writer_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DATASET "episodes" /* name of the dataset for tensorflow_datasets */
#define SPLIT   "train"
#define SOURCE  "episode_metadata/weir_source" /* path of the episode's file */
#define COLOR   "episode_metadata/weir_color"  /* "bgr": red and blue are swapped */

enum { LISTS_MAX = 512 };
static const uint64_t RECORD_MAX = INT32_MAX; /* maximum message size of protocol buffers */

struct writer {
    struct weir_writer base;
    char *path; /* of the records */
    int fd;
    uint64_t file_bytes; /* size up to the end of the last complete record */
    int episodes;        /* number of complete episodes */
    struct weir_tfw_texts texts;
    /* the episode being written */
    struct weir_spool spool; /* frames of the episode, camera by camera */
    int64_t *flags;          /* is_first and is_last, `steps` values each */
    struct weir_list *lists; /* one list per feature */
    int n;
    struct weir_record_writer record;
};

/* ---- features ---- */

static struct weir_list *add(struct writer *w, enum weir_list_kind kind, uint64_t n, const char *name)
{
    struct weir_list *list = &w->lists[w->n++];
    *list = (struct weir_list){.kind = kind, .n = n};
    snprintf(list->name, sizeof list->name, "%s", name);
    return list;
}

static void add_numbers(struct writer *w, const char *name, enum weir_number_type type, int dim, const void *values)
{
    uint64_t n = (uint64_t)w->base.episode.steps * (uint64_t)dim;
    add(w, type == WEIR_I64 ? WEIR_LIST_INTEGERS : WEIR_LIST_FLOATS, n, name)->values = values;
}

static void add_flags(struct writer *w)
{
    uint64_t steps = (uint64_t)w->base.episode.steps;
    add(w, WEIR_LIST_INTEGERS, steps, "steps/is_first")->values = w->flags;
    add(w, WEIR_LIST_INTEGERS, steps, "steps/is_last")->values = w->flags + steps;
    add(w, WEIR_LIST_INTEGERS, steps, "steps/is_terminal")->values = w->flags + steps;
}

static void add_text(struct writer *w, const char *name, const char *value)
{
    bool each = strncmp(name, "steps/", 6) == 0;
    add(w, WEIR_LIST_TEXTS, each ? (uint64_t)w->base.episode.steps : 1, name)->text = value;
}

/* Returns an empty string for features that only other episodes have, because readers based on tensorflow_datasets
 * require all features in every record. */
static const char *text_of(const struct writer *w, const char *feature)
{
    char name[WEIR_TFW_NAME_MAX];
    if (strcmp(feature, SOURCE) == 0)
        return w->base.episode.name;
    if (strcmp(feature, COLOR) == 0)
        return "bgr";
    for (int i = 0; i < w->base.episode.n_texts; i++)
        if (weir_tfw_text_feature(w->base.episode.texts[i].key, name) && strcmp(name, feature) == 0)
            return w->base.episode.texts[i].value;
    return "";
}

static void list_features(struct writer *w)
{
    uint64_t steps = (uint64_t)w->base.episode.steps;
    w->n = 0;
    add_numbers(w, "steps/action", w->base.copy.action_type, w->base.copy.action_dim, w->base.episode.actions);
    add_flags(w);
    for (int i = 0; i < w->texts.n; i++)
        add_text(w, w->texts.names[i], text_of(w, w->texts.names[i]));
    add_numbers(w, "steps/observation/state", w->base.copy.qpos_type, w->base.copy.qpos_dim, w->base.episode.qpos);
    for (int c = 0; c < w->base.copy.n_cameras; c++) {
        char name[WEIR_TFW_NAME_MAX];
        weir_tfw_camera_feature(&w->base.copy.cameras[c], name);
        add(w, WEIR_LIST_FRAMES, steps, name)->first = (size_t)c * (size_t)steps;
    }
}

static int fail(const struct writer *w, int code, const char *what, struct weir_err *err)
{
    return weir_err_set(err, code, "%s: episode %d (%s): %s", w->path, w->base.episode.number,
                        w->base.episode.name ? w->base.episode.name : "", what);
}

/* ---- the folder ---- */

static void close_writer(struct weir_writer *writer)
{
    struct writer *w = (struct writer *)writer;
    weir_spool_close(&w->spool);
    if (w->fd >= 0)
        close(w->fd);
    free(w->texts.names);
    free(w->lists);
    free(w->flags);
    weir_record_close(&w->record);
    free(w->path);
}

/* Only the last record can be incomplete, because all earlier records had reached the storage device before it was
 * begun. */
static int find_complete(struct writer *w, int *complete, struct weir_err *err)
{
    struct stat st;
    struct weir_records records = {0};
    const struct weir_raw_file source = {.read = weir_raw_read, .user = &w->fd};
    struct weir_err cut = WEIR_ERR_NONE;
    if (fstat(w->fd, &st) != 0)
        return weir_err_set(err, -errno, "%s: %s", w->path, strerror(errno));
    int rc = weir_records_find(&records, &source, (uint64_t)st.st_size, &cut);
    int n = records.n, whole = n > 0 ? weir_record_is_whole(&records, n - 1, &source, w->record.buffer) : 1;
    if ((rc < 0 && rc != -EBADMSG) || whole < 0)
        rc = weir_err_set(err, rc < 0 && rc != -EBADMSG ? rc : whole, "%s: cannot be read: %s", w->path, cut.text);
    else
        rc = 0;
    n -= whole == 0;
    w->file_bytes = n > 0 ? records.at[n - 1] + records.bytes[n - 1] + WEIR_RECORD_FOOTER : 0;
    weir_records_free(&records);
    if (rc == 0 && ftruncate(w->fd, (off_t)w->file_bytes) != 0)
        rc = weir_err_set(err, -errno, "%s: cannot be truncated: %s", w->path, strerror(errno));
    *complete = w->episodes = n;
    return rc;
}

/* Refuses the only camera name that would be ambiguous. */
static int check_names(const struct weir_copy *copy, struct weir_err *err)
{
    for (int c = 0; c < copy->n_cameras; c++)
        if (strcmp(copy->cameras[c].name, "state") == 0 || strchr(copy->cameras[c].name, '/'))
            return weir_err_set(err, -EINVAL,
                                "camera %s: RLDS cannot contain a camera with this name; rename it with --image-keys",
                                copy->cameras[c].name);
    return 0;
}

static int open_folder(struct writer *w, int *complete, struct weir_err *err)
{
    int rc = weir_writer_make_folder(&w->base, err);
    if (rc < 0)
        return rc;
    w->fd = weir_output_private(w->path, O_RDWR | O_CREAT, 0666, err);
    if (w->fd < 0)
        return w->fd;
    if (weir_record_open(&w->record, w->fd, &w->spool) < 0)
        return weir_writer_no_memory(&w->base, err);
    rc = weir_writer_remove_parts(&w->base, NULL, 0, err);
    if (rc == 0)
        rc = find_complete(w, complete, err);
    if (rc == 0)
        rc = weir_tfw_read_features(&w->base, &w->texts, err);
    return rc < 0 ? rc : weir_spool_open(&w->spool, w->base.path, err);
}

static int open_tfrecord(struct weir_writer *writer, int *complete, struct weir_err *err)
{
    struct writer *w = (struct writer *)writer;
    w->fd = -1;
    int rc = check_names(&writer->copy, err);
    if (rc < 0)
        return rc;
    w->lists = calloc(LISTS_MAX, sizeof *w->lists);
    if (asprintf(&w->path, "%s/" DATASET "-" SPLIT ".tfrecord-00000-of-00001", writer->path) < 0)
        w->path = NULL;
    return w->lists && w->path ? open_folder(w, complete, err) : weir_writer_no_memory(writer, err);
}

/* ---- an episode ---- */

/* Adds new features to features.json before any record contains them. */
static int note_texts(struct writer *w, struct weir_err *err)
{
    int more = weir_tfw_add_text(&w->texts, SOURCE);
    if (more >= 0 && w->base.copy.is_bgr && weir_tfw_add_text(&w->texts, COLOR) < 0)
        more = -ENOMEM;
    for (int i = 0; i < w->base.episode.n_texts && more >= 0; i++) {
        char name[WEIR_TFW_NAME_MAX];
        bool kept = weir_tfw_text_feature(w->base.episode.texts[i].key, name);
        int added = kept ? weir_tfw_add_text(&w->texts, name) : 0;
        more = added < 0 ? added : more + added;
    }
    if (more < 0)
        return fail(w, more, "out of memory", err);
    return more > 0 ? weir_tfw_write_features(&w->base, &w->texts, err) : 0;
}

static int begin(struct weir_writer *writer, struct weir_err *err)
{
    struct writer *w = (struct writer *)writer;
    size_t steps = (size_t)writer->episode.steps;
    free(w->flags);
    w->flags = calloc(2 * steps, sizeof *w->flags);
    if (!w->flags)
        return fail(w, -ENOMEM, "out of memory", err);
    w->flags[0] = w->flags[2 * steps - 1] = 1;
    int rc = note_texts(w, err);
    return rc < 0 ? rc : weir_spool_reset(&w->spool, err);
}

static int too_large(const struct writer *w, struct weir_err *err)
{
    return fail(w, -EFBIG, "over 2 GiB, which no reader of tf.train.Example accepts; choose another format", err);
}

static int frame(struct weir_writer *writer, int camera, int t, const uint8_t *bytes, size_t length,
                 struct weir_err *err)
{
    struct writer *w = (struct writer *)writer;
    (void)camera;
    (void)t;
    if (length > RECORD_MAX - (w->spool.bytes < RECORD_MAX ? w->spool.bytes : RECORD_MAX))
        return too_large(w, err);
    return weir_spool_add(&w->spool, bytes, length, err);
}

static int end_episode(struct weir_writer *writer, struct weir_err *err)
{
    struct writer *w = (struct writer *)writer;
    uint64_t end;
    list_features(w);
    if (weir_record_bytes(&w->record, w->lists, w->n) > RECORD_MAX)
        return too_large(w, err);
    int rc = weir_record_put(&w->record, w->lists, w->n, w->file_bytes, &end, err);
    if (rc < 0)
        return fail(w, rc, strerror(-rc), err);
    if (fdatasync(w->fd) != 0)
        return fail(w, -errno, strerror(errno), err);
    w->file_bytes = end;
    w->episodes++;
    return 0;
}

static int finish(struct weir_writer *writer, struct weir_err *err)
{
    const struct writer *w = (const struct writer *)writer;
    return weir_tfw_write_info(writer, DATASET, SPLIT, w->episodes, w->file_bytes, err);
}

const struct weir_writer_ops weir_writer_tfrecord = {
    .name = "tfrecord",
    .summary = "TFRecord of tf.train.Example, as RLDS stores it: a folder, one episode per record",
    .suffix = "",
    .holds = WEIR_FRAMES_COLOR | WEIR_FRAMES_DEPTH,
    .ignores_exif = true,
    .number_types = 1u << WEIR_F32 | 1u << WEIR_I64,
    .resumes = true,
    .bytes = sizeof(struct writer),
    .open = open_tfrecord,
    .begin = begin,
    .frame = frame,
    .end = end_episode,
    .finish = finish,
    .close = close_writer,
};
