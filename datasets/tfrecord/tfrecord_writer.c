/* Writes TFRecord files of tf.train.Example in RLDS's structure: a folder with one such file, which has one record per
 * episode, and features.json. */
#include "base/files.h"
#include "datasets/chunks/chunk_grid.h"
#include "datasets/tfrecord/example.h"
#include "datasets/tfrecord/tfrecord_writer_priv.h"

#include <dirent.h>
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
    struct weir_copy copy;
    char *folder, *path;
    int fd;
    uint64_t file_bytes; /* size up to the end of the last complete record */
    int episodes;        /* number of complete episodes */
    struct weir_tfw_texts texts;
    /* the episode being written */
    struct weir_copy_episode episode;
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
    uint64_t n = (uint64_t)w->episode.steps * (uint64_t)dim;
    add(w, type == WEIR_I64 ? WEIR_LIST_INTEGERS : WEIR_LIST_FLOATS, n, name)->values = values;
}

static void add_flags(struct writer *w)
{
    uint64_t steps = (uint64_t)w->episode.steps;
    add(w, WEIR_LIST_INTEGERS, steps, "steps/is_first")->values = w->flags;
    add(w, WEIR_LIST_INTEGERS, steps, "steps/is_last")->values = w->flags + steps;
    add(w, WEIR_LIST_INTEGERS, steps, "steps/is_terminal")->values = w->flags + steps;
}

static void add_text(struct writer *w, const char *name, const char *value)
{
    bool each = strncmp(name, "steps/", 6) == 0;
    add(w, WEIR_LIST_TEXTS, each ? (uint64_t)w->episode.steps : 1, name)->text = value;
}

/* Returns an empty string for features that only other episodes have, because readers based on tensorflow_datasets
 * require all features in every record. */
static const char *text_of(const struct writer *w, const char *feature)
{
    char name[WEIR_TFW_NAME_MAX];
    if (strcmp(feature, SOURCE) == 0)
        return w->episode.name;
    if (strcmp(feature, COLOR) == 0)
        return "bgr";
    for (int i = 0; i < w->episode.n_texts; i++)
        if (weir_tfw_text_feature(w->episode.texts[i].key, name) && strcmp(name, feature) == 0)
            return w->episode.texts[i].value;
    return "";
}

static void list_features(struct writer *w)
{
    uint64_t steps = (uint64_t)w->episode.steps;
    w->n = 0;
    add_numbers(w, "steps/action", w->copy.action_type, w->copy.action_dim, w->episode.actions);
    add_flags(w);
    for (int i = 0; i < w->texts.n; i++)
        add_text(w, w->texts.names[i], text_of(w, w->texts.names[i]));
    add_numbers(w, "steps/observation/state", w->copy.qpos_type, w->copy.qpos_dim, w->episode.qpos);
    for (int c = 0; c < w->copy.n_cameras; c++) {
        char name[WEIR_TFW_NAME_MAX];
        weir_tfw_camera_feature(&w->copy.cameras[c], name);
        add(w, WEIR_LIST_FRAMES, steps, name)->first = (size_t)c * (size_t)steps;
    }
}

static int fail(const struct writer *w, int code, const char *what, struct weir_err *err)
{
    return weir_err_set(err, code, "%s: episode %d (%s): %s", w->path, w->episode.number,
                        w->episode.name ? w->episode.name : "", what);
}

/* ---- the folder ---- */

static void drop(struct writer **writer)
{
    struct writer *w = *writer;
    if (!w)
        return;
    weir_spool_close(&w->spool);
    if (w->fd >= 0)
        close(w->fd);
    free(w->texts.names);
    free(w->lists);
    free(w->flags);
    weir_record_close(&w->record);
    free(w->folder);
    free(w->path);
    free(w);
    *writer = NULL;
}

/* Only the last record can be incomplete, because all earlier records had reached the storage device before it was
 * begun. */
static int find_complete(struct writer *w, int *complete, struct weir_err *err)
{
    struct stat st;
    struct weir_records records = {0};
    struct weir_byte_source source = {weir_raw_read, &w->fd};
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

/* Removes temporary files that an interrupted writer left. */
static int remove_hidden(const char *path, struct weir_err *err)
{
    DIR *folder = opendir(path);
    if (!folder)
        return weir_err_set(err, -errno, "%s: cannot be searched: %s", path, strerror(errno));
    int rc = 0;
    for (struct dirent *entry; rc == 0 && (entry = readdir(folder));)
        if (entry->d_name[0] == '.' && entry->d_name[strspn(entry->d_name, ".")] != '\0' &&
            unlinkat(dirfd(folder), entry->d_name, 0) != 0)
            rc = weir_err_set(err, -errno, "%s/%s: cannot be removed: %s", path, entry->d_name, strerror(errno));
    closedir(folder);
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
    if (mkdir(w->folder, 0777) != 0 && errno != EEXIST)
        return weir_err_set(err, -errno, "%s: cannot be created: %s", w->folder, strerror(errno));
    w->fd = weir_output_private(w->path, O_RDWR | O_CREAT, 0666, err);
    if (w->fd < 0)
        return w->fd;
    if (weir_record_open(&w->record, w->fd, &w->spool) < 0)
        return weir_err_set(err, -ENOMEM, "%s: out of memory", w->folder);
    int rc = remove_hidden(w->folder, err);
    if (rc == 0)
        rc = find_complete(w, complete, err);
    if (rc == 0)
        rc = weir_tfw_read_features(w->folder, &w->texts, err);
    return rc < 0 ? rc : weir_spool_open(&w->spool, w->folder, err);
}

static int open_tfrecord(void **out, const struct weir_copy *copy, const char *path, int *complete,
                         struct weir_err *err)
{
    *out = NULL;
    int rc = check_names(copy, err);
    struct writer *w = rc == 0 ? calloc(1, sizeof *w) : NULL;
    if (w) {
        w->copy = *copy;
        w->fd = -1;
        w->folder = strdup(path);
        w->lists = calloc(LISTS_MAX, sizeof *w->lists);
        if (asprintf(&w->path, "%s/" DATASET "-" SPLIT ".tfrecord-00000-of-00001", path) < 0)
            w->path = NULL;
    }
    if (rc == 0 && (!w || !w->folder || !w->lists || !w->path))
        rc = weir_err_set(err, -ENOMEM, "%s: out of memory", path);
    if (rc == 0)
        rc = open_folder(w, complete, err);
    if (rc < 0)
        drop(&w);
    *out = w;
    return rc;
}

/* ---- an episode ---- */

/* Adds new features to features.json before any record contains them. */
static int note_texts(struct writer *w, struct weir_err *err)
{
    int more = weir_tfw_add_text(&w->texts, SOURCE);
    if (more >= 0 && w->copy.is_bgr && weir_tfw_add_text(&w->texts, COLOR) < 0)
        more = -ENOMEM;
    for (int i = 0; i < w->episode.n_texts && more >= 0; i++) {
        char name[WEIR_TFW_NAME_MAX];
        bool kept = weir_tfw_text_feature(w->episode.texts[i].key, name);
        int added = kept ? weir_tfw_add_text(&w->texts, name) : 0;
        more = added < 0 ? added : more + added;
    }
    if (more < 0)
        return fail(w, more, "out of memory", err);
    return more > 0 ? weir_tfw_write_features(w->folder, &w->copy, &w->texts, err) : 0;
}

static int begin(void *writer, const struct weir_copy_episode *episode, struct weir_err *err)
{
    struct writer *w = writer;
    size_t steps = (size_t)episode->steps;
    w->episode = *episode;
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

static int frame(void *writer, int camera, int t, const uint8_t *bytes, size_t length, struct weir_err *err)
{
    struct writer *w = writer;
    (void)camera;
    (void)t;
    if (length > RECORD_MAX - (w->spool.bytes < RECORD_MAX ? w->spool.bytes : RECORD_MAX))
        return too_large(w, err);
    return weir_spool_add(&w->spool, bytes, length, err);
}

static int end_episode(void *writer, struct weir_err *err)
{
    struct writer *w = writer;
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

static int finish(void **writer, struct weir_err *err)
{
    struct writer *w = *writer;
    int rc = weir_tfw_write_info(w->folder, DATASET, SPLIT, w->episodes, w->file_bytes, err);
    drop((struct writer **)writer);
    return rc;
}

static void abandon(void **writer)
{
    drop((struct writer **)writer);
}

const struct weir_writer_ops weir_writer_tfrecord = {
    .name = "tfrecord",
    .summary = "TFRecord of tf.train.Example, as RLDS stores it: a folder, one episode per record",
    .suffix = "",
    .holds = WEIR_FRAMES_COLOR | WEIR_FRAMES_DEPTH,
    .ignores_exif = true,
    .number_types = 1u << WEIR_F32 | 1u << WEIR_I64,
    .resumes = true,
    .open = open_tfrecord,
    .begin = begin,
    .frame = frame,
    .end = end_episode,
    .finish = finish,
    .abandon = abandon,
};
