#include "datasets/index_file_priv.h"
#include "prof/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VERSION = 1, BYTE_ORDER_MARK = 0x01020304 };
static const char MAGIC[8] = "WEIRIDX";

struct head {
    char magic[8];
    uint32_t version, byte_order;
    uint64_t bytes, hash; /* of all that follows */
};

struct file_record {
    uint64_t size_bytes, header_hash;
    int64_t mtime_ns;
    uint64_t n_episodes, bytes; /* of its episodes */
};

struct episode_record {
    int32_t steps, rows_cut, qpos_dim, action_dim, n_tracks, reserved;
};

struct track_record {
    int32_t width, height, frames, storage, rows, has_lengths;
    uint64_t row_bytes, base;
};

struct blocks_record {
    struct weir_chunk_grid grid;
    struct weir_filters filters;
    uint8_t fill[16];
};

/* ---- writing ---- */

struct writer {
    uint8_t *bytes;
    size_t n, capacity;
    bool full; /* out of memory */
};

static void put(struct writer *w, const void *data, size_t n)
{
    size_t padded = (n + 7) & ~(size_t)7;
    if (w->capacity - w->n < padded) {
        size_t capacity = w->capacity * 2 > w->n + padded ? w->capacity * 2 : w->n + padded + 4096;
        uint8_t *bytes = w->full ? NULL : realloc(w->bytes, capacity);
        if (!bytes) {
            w->full = true;
            return;
        }
        w->bytes = bytes;
        w->capacity = capacity;
    }
    if (n)
        memcpy(w->bytes + w->n, data, n);
    memset(w->bytes + w->n + n, 0, padded - n);
    w->n += padded;
}

static void put_text(struct writer *w, const char *text)
{
    uint64_t n = text ? strlen(text) + 1 : 0;
    put(w, &n, sizeof n);
    put(w, text, n);
}

static void put_track(struct writer *w, const struct weir_track *track, const char *name)
{
    size_t frames = (size_t)track->frames;
    struct track_record record = {
        track->width,         track->height,          track->frames,    (int32_t)track->storage,
        (int32_t)track->rows, track->lengths != NULL, track->row_bytes, track->base};
    put(w, &record, sizeof record);
    put_text(w, track->key);
    put_text(w, track->codec);
    put_text(w, track->why);
    put(w, name, WEIR_NAME_MAX);
    if (track->storage == WEIR_STORED_CHUNKS)
        put(w, track->offsets, frames * sizeof *track->offsets);
    if (track->storage == WEIR_STORED_HEAP)
        put(w, track->slots, frames * sizeof *track->slots);
    if (track->lengths)
        put(w, track->lengths, frames * sizeof *track->lengths);
    if (track->storage == WEIR_STORED_BLOCKS) {
        struct blocks_record blocks = {track->blocks->grid, track->blocks->filters, {0}};
        memcpy(blocks.fill, track->blocks->fill, sizeof blocks.fill);
        put(w, &blocks, sizeof blocks);
        put(w, track->blocks->chunks, track->blocks->n_chunks * sizeof *track->blocks->chunks);
    }
}

static void put_episode(struct writer *w, const struct weir_episode *e)
{
    size_t steps = (size_t)e->steps;
    struct episode_record record = {e->steps, e->rows_cut, e->qpos_dim, e->action_dim, e->n_tracks, 0};
    put(w, &record, sizeof record);
    put_text(w, e->layout->name);
    put_text(w, e->root);
    put_text(w, e->qpos_key);
    put_text(w, e->action_key);
    put_text(w, e->passed_over);
    put(w, e->qpos, steps * (size_t)e->qpos_dim * sizeof(float));
    put(w, e->actions, steps * (size_t)e->action_dim * sizeof(float));
    for (int i = 0; i < e->n_tracks; i++)
        put_track(w, &e->tracks[i], e->names[i]);
}

static bool has_bad_lengths(const struct weir_episode *e)
{
    for (int i = 0; i < e->n_tracks; i++)
        for (int t = 0; t < e->tracks[i].frames && e->tracks[i].lengths; t++)
            if (e->tracks[i].lengths[t] == WEIR_LENGTH_BAD)
                return true;
    return false;
}

/* n episodes, all of one file. */
static bool may_be_kept(const struct weir_file_index *file, const struct weir_episode *episodes, int n)
{
    bool keep = file->n_bad == 0 && n == file->n_episodes && n > 0;
    for (int i = 0; i < n && keep; i++)
        keep = !has_bad_lengths(&episodes[i]);
    return keep;
}

static void put_file(struct writer *w, const struct weir_file_index *file, const struct weir_episode *episodes, int n)
{
    struct file_record record = {file->file.size_bytes, file->header_hash, file->file.mtime_ns, (uint64_t)n, 0};
    put_text(w, file->file.path);
    size_t at = w->n;
    put(w, &record, sizeof record);
    size_t from = w->n;
    for (int i = 0; i < n; i++)
        put_episode(w, &episodes[i]);
    record.bytes = w->n - from;
    if (!w->full)
        memcpy(w->bytes + at, &record, sizeof record);
}

/* What shapes an index besides the files. */
static char *recipe_of(const struct weir_dataset_config *config)
{
    char *text;
    int n = asprintf(&text, "cameras=%s;qpos=%s;action=%s;image=%s;ragged=%d", config->cameras ? config->cameras : "",
                     config->qpos_keys ? config->qpos_keys : "", config->action_keys ? config->action_keys : "",
                     config->image_keys ? config->image_keys : "", config->allow_ragged);
    return n < 0 ? NULL : text;
}

static void put_all(struct writer *w, const struct weir_dataset *dataset, const char *recipe)
{
    struct head head = {.version = VERSION, .byte_order = BYTE_ORDER_MARK};
    memcpy(head.magic, MAGIC, sizeof head.magic);
    put(w, &head, sizeof head);
    put_text(w, recipe);
    for (int first = 0; first < dataset->n_episodes;) {
        int file = dataset->episodes[first].file, n = 1;
        while (first + n < dataset->n_episodes && dataset->episodes[first + n].file == file)
            n++;
        if (may_be_kept(&dataset->files[file], &dataset->episodes[first], n))
            put_file(w, &dataset->files[file], &dataset->episodes[first], n);
        first += n;
    }
    if (w->full)
        return;
    head.bytes = w->n - sizeof head;
    head.hash = weir_hash64(w->bytes + sizeof head, head.bytes);
    memcpy(w->bytes, &head, sizeof head);
}

static int write_all(int fd, const uint8_t *bytes, size_t n)
{
    while (n > 0) {
        ssize_t done = write(fd, bytes, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done < 0 ? -errno : -EIO;
        bytes += done;
        n -= (size_t)done;
    }
    return 0;
}

static int write_file(const char *path, const struct writer *w)
{
    char *aside;
    if (asprintf(&aside, "%s.XXXXXX", path) < 0)
        return -ENOMEM;
    int fd = mkstemp(aside), rc = fd < 0 ? -errno : 0;
    if (rc == 0)
        rc = write_all(fd, w->bytes, w->n);
    if (rc == 0 && fchmod(fd, 0644) != 0)
        rc = -errno;
    if (fd >= 0 && close(fd) != 0 && rc == 0)
        rc = -errno;
    if (rc == 0 && rename(aside, path) != 0)
        rc = -errno;
    if (rc < 0 && fd >= 0)
        unlink(aside);
    free(aside);
    return rc;
}

int weir_index_file_save(const struct weir_dataset *dataset, const struct weir_dataset_config *config,
                         struct weir_err *err)
{
    struct writer w = {0};
    char *recipe = recipe_of(config);
    if (recipe)
        put_all(&w, dataset, recipe);
    int rc = recipe && !w.full ? write_file(config->index, &w) : -ENOMEM;
    free(recipe);
    free(w.bytes);
    return rc < 0 ? weir_err_set(err, rc,
                                 "%s: the index cannot be written: %s; give --index a file in a folder that "
                                 "may be written",
                                 config->index, strerror(-rc))
                  : 0;
}

/* ---- reading ---- */

struct cursor {
    uint8_t *at;
    size_t left;
    bool bad;
};

/* n bytes, padded to 8; NULL and bad when they are not there. */
static void *get(struct cursor *c, uint64_t n)
{
    uint64_t padded = n + (-n & 7);
    if (c->bad || padded < n || padded > c->left) {
        c->bad = true;
        return NULL;
    }
    void *data = c->at;
    c->at += padded;
    c->left -= padded;
    return data;
}

static void *get_array(struct cursor *c, uint64_t count, size_t element)
{
    uint64_t bytes;
    if (__builtin_mul_overflow(count, element, &bytes))
        c->bad = true;
    return c->bad ? NULL : get(c, bytes);
}

/* NULL for none as well. */
static char *get_text(struct cursor *c)
{
    const uint64_t *n = get(c, sizeof *n);
    char *text = n && *n ? get(c, *n) : NULL;
    if (text && text[*n - 1] != '\0')
        c->bad = true;
    return c->bad ? NULL : text;
}

struct record {
    const char *path;
    struct file_record *head;
    uint8_t *episodes;
};

struct weir_index_file {
    uint8_t *bytes;
    struct record *records; /* by path */
    int n;
};

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct record *)a)->path, ((const struct record *)b)->path);
}

/* False when the contents make no sense, or the recipe is another one. */
static bool list_records(struct weir_index_file *index, struct cursor c, const char *recipe)
{
    const char *made_by = get_text(&c);
    if (!made_by || strcmp(made_by, recipe) != 0)
        return false;
    int capacity = 0;
    while (c.left > 0 && !c.bad) {
        struct record record = {.path = get_text(&c)};
        record.head = get(&c, sizeof *record.head);
        record.episodes = record.head ? get(&c, record.head->bytes) : NULL;
        if (c.bad || !record.path)
            return false;
        if (index->n == capacity) {
            capacity = capacity ? 2 * capacity : 256;
            void *records = realloc(index->records, sizeof *index->records * (size_t)capacity);
            if (!records)
                return false;
            index->records = records;
        }
        index->records[index->n++] = record;
    }
    if (index->n > 1)
        qsort(index->records, (size_t)index->n, sizeof *index->records, by_path);
    return !c.bad;
}

/* The file's bytes when they are an index of this version and whole; NULL with rc 0 when they are not. */
static int read_whole(const char *path, uint8_t **bytes, size_t *n)
{
    *bytes = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    struct stat st;
    struct head head;
    int rc = fstat(fd, &st) == 0 ? 0 : -errno;
    if (rc == 0 && st.st_size > 0 &&
        (pread(fd, &head, sizeof head.magic, 0) != sizeof head.magic || memcmp(head.magic, MAGIC, sizeof MAGIC) != 0))
        rc = -EEXIST;
    if (rc == 0 && st.st_size >= (off_t)sizeof head) {
        *n = (size_t)st.st_size;
        *bytes = malloc(*n);
        rc = *bytes ? 0 : -ENOMEM;
    }
    for (size_t done = 0; rc == 0 && *bytes && done < *n;) {
        ssize_t got = pread(fd, *bytes + done, *n - done, (off_t)done);
        if (got <= 0)
            rc = got < 0 ? -errno : -ENODATA;
        done += got > 0 ? (size_t)got : 0;
    }
    close(fd);
    return rc;
}

int weir_index_file_load(struct weir_index_file **out, const struct weir_dataset_config *config, struct weir_err *err)
{
    *out = NULL;
    uint8_t *bytes;
    size_t n = 0;
    int rc = read_whole(config->index, &bytes, &n);
    if (rc < 0)
        return weir_err_set(err, rc, "%s: %s; give --index another file", config->index,
                            rc == -EEXIST ? "is there and is no index" : strerror(-rc));
    char *recipe = recipe_of(config);
    struct weir_index_file *index = calloc(1, sizeof *index);
    struct head head = {0};
    if (bytes)
        memcpy(&head, bytes, sizeof head);
    bool fine = bytes && recipe && index && head.version == VERSION && head.byte_order == BYTE_ORDER_MARK &&
                head.bytes == n - sizeof head && head.hash == weir_hash64(bytes + sizeof head, head.bytes);
    if (fine) {
        index->bytes = bytes;
        fine = list_records(index, (struct cursor){bytes + sizeof head, n - sizeof head, false}, recipe);
    }
    free(recipe);
    if (fine) {
        *out = index;
        return 0;
    }
    if (index)
        free(index->records);
    free(index);
    free(bytes);
    return 0;
}

int weir_index_file_count(const struct weir_index_file *index)
{
    return index ? index->n : 0;
}

uint8_t *weir_index_file_release(struct weir_index_file **index)
{
    if (!*index)
        return NULL;
    uint8_t *bytes = (*index)->bytes;
    free((*index)->records);
    free(*index);
    *index = NULL;
    return bytes;
}

/* ---- an episode of a record ---- */

static const char *known_codec(const char *name)
{
    static const char *const codecs[] = {"raw", "jpeg", "raw16", "png16"};
    for (size_t i = 0; i < sizeof codecs / sizeof codecs[0] && name; i++)
        if (strcmp(codecs[i], name) == 0)
            return codecs[i];
    return NULL;
}

static void get_blocks(struct cursor *c, struct weir_track *track)
{
    const struct blocks_record *record = get(c, sizeof *record);
    struct weir_blocks *blocks = record ? track->blocks = calloc(1, sizeof *blocks) : NULL;
    if (!blocks) {
        c->bad = true;
        return;
    }
    blocks->grid = record->grid;
    blocks->filters = record->filters;
    memcpy(blocks->fill, record->fill, sizeof blocks->fill);
    bool fine = blocks->grid.rank >= 1 && blocks->grid.rank <= WEIR_GRID_RANK_MAX && blocks->filters.n >= 0 &&
                blocks->filters.n <= WEIR_FILTERS_MAX && weir_blocks_init(blocks);
    if (!fine || blocks->row_bytes != track->row_bytes || blocks->grid.dims[0] < (uint64_t)track->frames)
        c->bad = true;
    blocks->chunks = get_array(c, blocks->n_chunks, sizeof *blocks->chunks);
}

static void get_track(struct cursor *c, struct weir_track *track, char name[WEIR_NAME_MAX], int steps)
{
    const struct track_record *record = get(c, sizeof *record);
    if (!record || record->frames < steps || record->storage < 0 || record->storage > WEIR_STORED_LIBRARY ||
        record->rows < 0 || record->rows > WEIR_ROWS_VLEN || record->row_bytes > INT32_MAX || record->width < 0 ||
        record->height < 0) {
        c->bad = true;
        return;
    }
    *track = (struct weir_track){.width = record->width,
                                 .height = record->height,
                                 .frames = record->frames,
                                 .storage = (enum weir_storage)record->storage,
                                 .rows = (enum weir_rows)record->rows,
                                 .row_bytes = record->row_bytes,
                                 .base = record->base};
    uint64_t frames = (uint64_t)track->frames;
    track->key = get_text(c);
    track->codec = known_codec(get_text(c));
    track->why = get_text(c);
    const char *kept = get(c, WEIR_NAME_MAX);
    if (kept)
        snprintf(name, WEIR_NAME_MAX, "%.*s", WEIR_NAME_MAX - 1, kept);
    if (track->storage == WEIR_STORED_CHUNKS)
        track->offsets = get_array(c, frames, sizeof *track->offsets);
    if (track->storage == WEIR_STORED_HEAP)
        track->slots = get_array(c, frames, sizeof *track->slots);
    if (record->has_lengths)
        track->lengths = get_array(c, frames, sizeof *track->lengths);
    for (uint64_t t = 0; t < frames && track->lengths; t++)
        if (track->lengths[t] > track->row_bytes)
            c->bad = true;
    if (track->storage == WEIR_STORED_BLOCKS && !c->bad)
        get_blocks(c, track);
    if (!track->key || !track->codec || (track->storage == WEIR_STORED_LIBRARY && !track->why))
        c->bad = true;
}

static void get_episode(struct cursor *c, struct weir_episode *e)
{
    const struct episode_record *record = get(c, sizeof *record);
    if (!record || record->steps < 1 || record->rows_cut < 0 || record->qpos_dim < 1 || record->action_dim < 1 ||
        record->n_tracks < 0 || record->n_tracks > WEIR_CAMERAS_MAX) {
        c->bad = true;
        return;
    }
    size_t before = c->left;
    *e = (struct weir_episode){.steps = record->steps,
                               .rows_cut = record->rows_cut,
                               .qpos_dim = record->qpos_dim,
                               .action_dim = record->action_dim,
                               .n_tracks = record->n_tracks,
                               .is_lent = true};
    const char *layout = get_text(c);
    e->layout = layout ? weir_layout_by_name(layout) : NULL;
    e->root = get_text(c);
    e->qpos_key = get_text(c);
    e->action_key = get_text(c);
    e->passed_over = get_text(c);
    e->qpos = get_array(c, (uint64_t)e->steps * (uint64_t)e->qpos_dim, sizeof(float));
    e->actions = get_array(c, (uint64_t)e->steps * (uint64_t)e->action_dim, sizeof(float));
    e->tracks = calloc((size_t)e->n_tracks + 1, sizeof *e->tracks);
    e->names = calloc((size_t)e->n_tracks + 1, sizeof *e->names);
    if (!e->tracks || !e->names || !e->layout || !e->root || !e->qpos_key || !e->action_key)
        c->bad = true;
    for (int i = 0; i < e->n_tracks && !c->bad; i++)
        get_track(c, &e->tracks[i], e->names[i], e->steps);
    e->bytes = sizeof *e + before - c->left;
}

bool weir_index_file_find(const struct weir_index_file *index, const char *path, struct weir_file_result *result)
{
    struct weir_file_index *file = &result->file;
    struct record wanted = {.path = path};
    const struct record *record =
        index->n ? bsearch(&wanted, index->records, (size_t)index->n, sizeof wanted, by_path) : NULL;
    struct weir_err err = WEIR_ERR_NONE;
    if (!record || weir_file_identify(file, path, &err) < 0)
        return false;
    const struct file_record *head = record->head;
    bool fine = head->size_bytes == file->file.size_bytes && head->mtime_ns == file->file.mtime_ns &&
                head->header_hash == file->header_hash &&
                head->n_episodes <= head->bytes / sizeof(struct episode_record);
    struct cursor c = {record->episodes, head->bytes, !fine};
    file->episodes = fine ? calloc(head->n_episodes + 1, sizeof *file->episodes) : NULL;
    if (file->episodes)
        for (; file->n_episodes < (int)head->n_episodes && !c.bad; file->n_episodes++)
            get_episode(&c, &file->episodes[file->n_episodes]);
    if (file->episodes && !c.bad) {
        file->from_index = true;
        return true;
    }
    weir_file_index_close(file);
    return false;
}
