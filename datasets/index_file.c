#include "base/claims.h"
#include "base/files.h"
#include "base/grow.h"
#include "base/gz_file.h"
#include "base/hash.h"
#include "base/text.h"
#include "datasets/episode_bytes.h"
#include "datasets/format_ops.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VERSION = 8, BYTE_ORDER_MARK = 0x01020304 };
static const char MAGIC[8] = "WEIRIDX";

struct head {
    char magic[8];
    uint32_t version, byte_order;
    uint64_t bytes, hash; /* size and hash of the rest of the file */
};

struct file_fields {
    uint64_t size_bytes, header_hash;
    int64_t mtime_ns;
    uint64_t n_episodes, bytes; /* number and serialised size of the file's episodes */
};

/* ---- writing ---- */

static bool can_be_described(const struct weir_file_index *file)
{
    const struct weir_format_ops *format = weir_format_of(file->file.path);
    return !(format && format->is_held) && !file->parts;
}

bool weir_dataset_can_have_index(const struct weir_dataset *dataset)
{
    for (int i = 0; i < dataset->n_files; i++)
        if (can_be_described(&dataset->files[i]))
            return true;
    return false;
}

/* n: number of episodes in the file */
static bool may_be_kept(const struct weir_file_index *file, int n)
{
    return can_be_described(file) && file->n_bad == 0 && n == file->n_episodes && n > 0;
}

static void put_file(struct weir_bytes_writer *w, const struct weir_file_index *file,
                     const struct weir_episode *episodes, int n)
{
    struct file_fields entry = {file->file.size_bytes, file->header_hash, file->file.mtime_ns, (uint64_t)n, 0};
    weir_bytes_put_text(w, file->file.path);
    weir_bytes_put_text(w, file->traits);
    size_t at = w->n;
    weir_bytes_put(w, &entry, sizeof entry);
    size_t from = w->n;
    for (int i = 0; i < n; i++)
        weir_bytes_put_episode(w, &episodes[i]);
    entry.bytes = w->n - from;
    if (!w->full)
        memcpy(w->bytes + at, &entry, sizeof entry);
}

/* Writes the options that an index depends on. */
static char *recipe_of(const struct weir_dataset_config *config)
{
    char *text;
    int n = asprintf(&text, "cameras=%s;qpos=%s;action=%s;image=%s;ragged=%d;external=%d%s%s%s%s",
                     config->cameras ? config->cameras : "", config->qpos_keys ? config->qpos_keys : "",
                     config->action_keys ? config->action_keys : "", config->image_keys ? config->image_keys : "",
                     config->allow_ragged, config->allow_external, config->depth ? ";depth=1" : "",
                     config->own_types ? ";types=1" : "", config->filter_key ? ";filter=" : "",
                     config->filter_key ? config->filter_key : "");
    return n < 0 ? NULL : text;
}

static void put_all(struct weir_bytes_writer *w, const struct weir_dataset *dataset, const char *recipe)
{
    struct head head = {.version = VERSION, .byte_order = BYTE_ORDER_MARK};
    memcpy(head.magic, MAGIC, sizeof head.magic);
    weir_bytes_put(w, &head, sizeof head);
    weir_bytes_put_text(w, recipe);
    for (int first = 0; first < dataset->n_episodes;) {
        int file = dataset->episodes[first].file, n = 1;
        while (first + n < dataset->n_episodes && dataset->episodes[first + n].file == file)
            n++;
        if (may_be_kept(&dataset->files[file], n))
            put_file(w, &dataset->files[file], &dataset->episodes[first], n);
        first += n;
    }
    if (w->full)
        return;
    head.bytes = w->n - sizeof head;
    head.hash = weir_hash64(w->bytes + sizeof head, head.bytes);
    memcpy(w->bytes, &head, sizeof head);
}

static int write_file(const char *path, const struct weir_bytes_writer *w)
{
    struct weir_gz_file *file;
    int rc = weir_gz_open(&file, path, WEIR_GZ_PLAIN, NULL);
    if (rc < 0)
        return rc;
    weir_gz_write(file, w->bytes, w->n);
    return weir_gz_commit(&file, NULL);
}

int weir_index_file_save(const struct weir_dataset *dataset, const struct weir_dataset_config *config,
                         struct weir_err *err)
{
    struct weir_bytes_writer w = {0};
    int spared = weir_dataset_spare(dataset, config->index, err);
    if (spared < 0)
        return spared;
    char *recipe = recipe_of(config);
    if (recipe)
        put_all(&w, dataset, recipe);
    int rc = recipe && !w.full ? write_file(config->index, &w) : -ENOMEM;
    free(recipe);
    free(w.bytes);
    return rc < 0 ? weir_err_set(err, rc,
                                 "%s: the index cannot be written: %s; choose a file in a writable folder with --index",
                                 config->index, strerror(-rc))
                  : 0;
}

/* ---- reading ---- */

struct entry {
    const char *path, *traits;
    struct file_fields *head;
    uint8_t *episodes;
};
_Static_assert(offsetof(struct entry, path) == 0, "for weir_compare_text_pointer");

struct weir_index_file {
    uint8_t *bytes;
    struct entry *entries; /* sorted by path */
    int n;
};

/* Returns false for malformed contents or different options. */
static bool list_entries(struct weir_index_file *index, struct weir_bytes_reader c, const char *recipe)
{
    const char *made_by = weir_bytes_get_text(&c);
    if (!made_by || strcmp(made_by, recipe) != 0)
        return false;
    while (c.left > 0 && !c.bad) {
        struct entry entry = {.path = weir_bytes_get_text(&c)};
        entry.traits = weir_bytes_get_text(&c);
        entry.head = weir_bytes_get(&c, sizeof *entry.head);
        entry.episodes = entry.head ? weir_bytes_get(&c, entry.head->bytes) : NULL;
        if (c.bad || !entry.path)
            return false;
        if (!weir_grow(&index->entries, (size_t)index->n, sizeof *index->entries))
            return false;
        index->entries[index->n++] = entry;
    }
    if (index->n > 1)
        qsort(index->entries, (size_t)index->n, sizeof *index->entries, weir_compare_text_pointer);
    return !c.bad;
}

/* Reads a whole index file. Returns 0 with *bytes NULL if the file does not exist, is too short or consists of holes,
 * and -EEXIST if it is not an index file. */
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
    uint64_t size = rc == 0 ? (uint64_t)st.st_size : 0, stored;
    if (rc == 0 && size >= sizeof head && weir_claim_fits_file(size, fd, size, &stored)) {
        *n = (size_t)size;
        *bytes = malloc(*n);
        rc = *bytes ? 0 : -ENOMEM;
    }
    if (rc == 0 && *bytes)
        rc = weir_read_at(fd, 0, *bytes, *n);
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
        return weir_err_set(err, rc, "%s: %s; choose another file with --index", config->index,
                            rc == -EEXIST ? "exists and is not an index file" : strerror(-rc));
    char *recipe = recipe_of(config);
    struct weir_index_file *index = calloc(1, sizeof *index);
    struct head head = {0};
    if (bytes)
        memcpy(&head, bytes, sizeof head);
    bool fine = bytes && recipe && index && head.version == VERSION && head.byte_order == BYTE_ORDER_MARK &&
                head.bytes == n - sizeof head && head.hash == weir_hash64(bytes + sizeof head, head.bytes);
    if (fine) {
        index->bytes = bytes;
        fine =
            list_entries(index, (struct weir_bytes_reader){.at = bytes + sizeof head, .left = n - sizeof head}, recipe);
    }
    free(recipe);
    if (fine) {
        *out = index;
        return 0;
    }
    if (index)
        free(index->entries);
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
    free((*index)->entries);
    free(*index);
    *index = NULL;
    return bytes;
}

static void get_episode(struct weir_bytes_reader *c, struct weir_episode *episode, uint64_t file_bytes)
{
    weir_bytes_get_episode(c, episode);
    c->bad = c->bad || !weir_index_file_is_sane(episode, file_bytes);
}

bool weir_index_file_find(const struct weir_index_file *index, struct weir_origin *origin, const char *path,
                          struct weir_file_result *result)
{
    struct weir_file_index *file = &result->file;
    const struct entry *entry =
        index->n ? bsearch(&path, index->entries, (size_t)index->n, sizeof *index->entries, weir_compare_text_pointer)
                 : NULL;
    struct weir_err err = WEIR_ERR_NONE;
    if (!entry || weir_file_identify(file, origin, path, NULL, &err) < 0)
        return false;
    const struct file_fields *head = entry->head;
    bool fine = head->size_bytes == file->file.size_bytes && head->mtime_ns == file->file.mtime_ns &&
                head->header_hash == file->header_hash && head->n_episodes > 0 && head->n_episodes <= INT_MAX / 2 &&
                head->n_episodes <= head->bytes / 24 /* every episode takes at least 24 bytes */;
    struct weir_bytes_reader c = {.at = entry->episodes, .left = head->bytes, .bad = !fine};
    file->traits = entry->traits ? strdup(entry->traits) : NULL;
    fine = fine && (!entry->traits || file->traits);
    file->episodes = fine ? calloc(head->n_episodes + 1, sizeof *file->episodes) : NULL;
    if (file->episodes)
        for (; file->n_episodes < (int)head->n_episodes && !c.bad; file->n_episodes++)
            get_episode(&c, &file->episodes[file->n_episodes], file->file.size_bytes);
    if (file->episodes && !c.bad && c.left == 0) {
        file->from_index = true;
        return true;
    }
    weir_file_index_close(file);
    return false;
}
