/* The index of one file: its identity, its episodes and their frame maps. */
#include "base/files.h"
#include "base/grow.h"
#include "base/hash.h"
#include "base/shortage.h"
#include "datasets/format_ops.h"
#include "origin/origin.h"
#include "origin/source.h"
#include "origin/url.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADER_BYTES = 4096 };

/* ---- files ---- */

static int look_at(struct weir_dataset_file *file, const char *path, struct weir_err *err)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return weir_err_set(err, -errno, "%s; %s", strerror(errno), weir_open_advice(-errno));
    *file = (struct weir_dataset_file){
        path, (uint64_t)st.st_size, st.st_dev, st.st_ino, (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec,
        false};
    return 0;
}

/* Hashes the start of a file, which contains the superblock and the root group. Returns 0 if the file cannot be opened;
 * the library then reports the reason. */
static uint64_t hash_header(const char *path)
{
    uint8_t bytes[HEADER_BYTES];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return 0;
    ssize_t n = pread(fd, bytes, sizeof bytes, 0);
    close(fd);
    return n > 0 ? weir_hash64(bytes, (size_t)n) : 0;
}

/* Like look_at, for a file of an origin. A folder has the identity of the file that stands for it. */
static int ask_origin(struct weir_dataset_file *file, struct weir_origin *origin, const char *path, const char *mark,
                      struct weir_err *err)
{
    char inner[WEIR_URL_MAX];
    struct weir_file_id id = {0};
    if (mark && !weir_url_join(inner, sizeof inner, path, mark))
        return weir_err_set(err, -ENAMETOOLONG, "the path is too long");
    int rc = origin->ops->identify(origin, mark ? inner : path, &id, err);
    if (rc < 0 && mark)
        weir_err_prefix(err, "%s", mark);
    if (rc == 0)
        *file = (struct weir_dataset_file){path, id.size_bytes, id.device, id.inode, id.mtime_ns, id.may_be_written};
    return rc;
}

int weir_file_identify(struct weir_file_index *file, struct weir_origin *origin, const char *path, const char *mark,
                       struct weir_err *err)
{
    char *copy = strdup(path);
    if (!copy)
        return weir_no_memory(err);
    int rc = origin ? ask_origin(&file->file, origin, copy, mark, err) : look_at(&file->file, copy, err);
    if (rc < 0) {
        free(copy);
        return rc;
    }
    file->header_hash = origin ? file->file.inode : hash_header(path); /* the inode is a hash of the ETag */
    return 0;
}

int weir_file_source(struct weir_source **source, struct weir_origin *origin, const struct weir_dataset_file *file,
                     struct weir_err *err)
{
    const struct weir_file_id id = {file->size_bytes, file->device, file->inode, file->mtime_ns, file->may_be_written};
    return weir_source_open(source, origin, file->path, &id, err);
}

int weir_file_index_check(const struct weir_dataset_file *file, struct weir_err *err)
{
    struct weir_dataset_file now = {0};
    int rc = look_at(&now, file->path, err);
    if (rc < 0)
        return rc;
    if (now.size_bytes == file->size_bytes && now.device == file->device && now.inode == file->inode &&
        now.mtime_ns == file->mtime_ns)
        return 0;
    return weir_err_set(err, -ESTALE, "the file changed since it was opened; run again to index it again");
}

/* ---- frame maps ---- */

size_t weir_frame_map_bytes(const struct weir_frame_map *map)
{
    size_t frames = (size_t)map->frames;
    return (map->offsets ? frames * sizeof *map->offsets : 0) + (map->ends ? frames * sizeof *map->ends : 0) +
           (map->slots ? frames * sizeof *map->slots : 0) + (map->extents ? frames * sizeof *map->extents : 0) +
           (map->ranks ? frames * sizeof *map->ranks : 0) +
           (map->blocks ? sizeof *map->blocks + map->blocks->n_chunks * sizeof *map->blocks->chunks : 0);
}

void weir_frame_map_close(struct weir_frame_map *map)
{
    free(map->key);
    free(map->offsets);
    weir_blocks_close(map->blocks);
    free(map->ends);
    free(map->slots);
    free(map->extents);
    free(map->ranks);
    free(atomic_load_explicit(&map->located, memory_order_relaxed)); /* relaxed: other threads no longer use the map */
}

static void chunk_text(const struct weir_blocks *blocks, char *text, size_t size)
{
    size_t n = 0;
    text[0] = '\0';
    for (int i = 0; i < blocks->filters.n && n < size; i++)
        n += (size_t)snprintf(text + n, size - n, "%s%s", i ? "+" : "", weir_filter_name(blocks->filters.filter[i].id));
    for (int i = 0; i < blocks->grid.rank && n < size; i++)
        n += (size_t)snprintf(text + n, size - n, "%s%llu",
                              i                   ? "x"
                              : blocks->filters.n ? " chunks of "
                                                  : "chunks of ",
                              (unsigned long long)blocks->grid.chunk[i]);
}

void weir_frame_map_storage_text(const struct weir_frame_map *map, char *text, size_t size)
{
    static const char *const rows[] = {"contiguous", "padded rows", "fixed strings", "variable length (global heap)"};
    switch (map->storage) {
    case WEIR_STORED_CONTIGUOUS:
    case WEIR_STORED_HEAP:
        snprintf(text, size, "%s", rows[map->rows]);
        return;
    case WEIR_STORED_CHUNKS:
        snprintf(text, size, "chunks of whole frames");
        return;
    case WEIR_STORED_BLOCKS:
        chunk_text(map->blocks, text, size);
        return;
    case WEIR_STORED_EXTENTS:
        snprintf(text, size, "one after another");
        return;
    case WEIR_STORED_VIDEO:
        snprintf(text, size, "video");
        return;
    case WEIR_STORED_LIBRARY:
        snprintf(text, size, map->located_max ? "%s" : "only through the HDF5 library: %s", map->why);
        return;
    }
}

/* ---- an episode ---- */

static void count_text(struct weir_episode *episode, const char *text)
{
    enum { HEAP_BLOCK = 16 };
    episode->bytes += text ? strlen(text) + 1 + HEAP_BLOCK : 0;
}

void weir_episode_finish(struct weir_episode *episode)
{
    size_t n = (size_t)episode->n_maps;
    episode->bytes += n * (sizeof *episode->maps + sizeof *episode->names);
    for (size_t i = 0; i < n; i++) {
        count_text(episode, episode->maps[i].key);
        episode->bytes += weir_frame_map_bytes(&episode->maps[i]);
    }
    count_text(episode, episode->root);
    count_text(episode, episode->qpos_key);
    count_text(episode, episode->action_key);
    count_text(episode, episode->passed_over);
    count_text(episode, episode->left_out);
    count_text(episode, episode->not_used);
    episode->bytes += episode->texts_bytes;
}

void weir_episode_close(struct weir_episode *episode)
{
    for (int i = 0; i < episode->n_maps && episode->maps; i++) {
        if (episode->is_lent)
            free(episode->maps[i].blocks);
        else
            weir_frame_map_close(&episode->maps[i]);
    }
    free(episode->maps);
    free(episode->names);
    weir_columns_close(episode);
    if (!episode->is_lent) {
        free(episode->passed_over);
        free(episode->left_out);
        free(episode->not_used);
        free(episode->texts);
        free(episode->qpos);
        free(episode->actions);
        free(episode->qpos_own.values);
        free(episode->actions_own.values);
        free(episode->qpos_key);
        free(episode->action_key);
        free(episode->root);
    }
    *episode = (struct weir_episode){0};
}

/* ---- a file ---- */

static int keep_bad(struct weir_file_index *file, const struct weir_err *why)
{
    if (!weir_grow(&file->bad, (size_t)file->n_bad, sizeof *file->bad))
        return -ENOMEM;
    if (asprintf(&file->bad[file->n_bad], "%s: %s", file->file.path, why->text) < 0)
        return -ENOMEM;
    file->n_bad++;
    return 0;
}

int weir_file_leave_out(struct weir_file_result *r, const struct weir_dataset_config *config, int rc,
                        const struct weir_err *why)
{
    if (!config->tolerant || r->n_wanted == 1 || weir_is_shortage(rc) || rc == -EINVAL)
        return weir_err_set(&r->err, rc, "%s", why->text);
    return keep_bad(&r->file, why) < 0 ? weir_no_memory(&r->err) : 0;
}

int weir_file_describe_episodes(struct weir_file_result *result, int n, const struct weir_dataset_config *config,
                                weir_describe_fn *describe, void *user)
{
    struct weir_file_index *file = &result->file;
    int rc = 0;
    result->n_wanted = n;
    file->episodes = calloc((size_t)n + 1, sizeof *file->episodes);
    if (!file->episodes)
        return weir_no_memory(&result->err);
    for (int i = 0; i < n && rc == 0; i++) {
        struct weir_episode *episode = &file->episodes[file->n_episodes];
        struct weir_err why = WEIR_ERR_NONE;
        rc = describe(user, i, config, episode, &why);
        if (rc == 0) {
            weir_episode_finish(episode);
            file->n_episodes++;
            continue;
        }
        if (episode->root && *episode->root && !weir_is_shortage(rc) && !strstr(why.text, episode->root))
            weir_err_prefix(&why, "%s", episode->root); /* messages of stores name only the array */
        weir_episode_close(episode);
        rc = weir_file_leave_out(result, config, rc, &why);
    }
    return rc;
}

void weir_opening_end(struct weir_opening *opening)
{
    if (opening->kept)
        opening->release(opening->kept);
    opening->kept = NULL;
}

/* Replaces the error of a file that cannot be opened because Git LFS has not fetched its contents. */
static void name_lfs_pointer(struct weir_file_result *result, struct weir_origin *origin, const char *path)
{
    char bytes[WEIR_LFS_BYTES];
    struct weir_source *source = NULL;
    struct weir_file_id id;
    struct weir_err ignored = WEIR_ERR_NONE;
    if (weir_source_find(&source, origin, path, &id, &ignored) == 0 &&
        weir_source_read(source, 0, bytes, sizeof bytes) == 0 && weir_is_lfs_pointer(bytes, sizeof bytes)) {
        result->err = (struct weir_err)WEIR_ERR_NONE;
        result->rc = weir_err_set(&result->err, -ENODATA, WEIR_LFS_ERROR);
    }
    weir_source_close(&source);
}

void weir_file_open(struct weir_file_result *result, const char *path, const struct weir_format_ops *format,
                    struct weir_opening *opening)
{
    *result = (struct weir_file_result){0};
    if (opening->origin && !format->reads_origins)
        result->rc = weir_err_set(&result->err, -ENOTSUP,
                                  "%s files cannot be read from a server; copy them to this machine", format->name);
    else if (opening->config && opening->config->filter_key && !format->has_filter_keys)
        result->rc = weir_err_set(&result->err, -EINVAL, "--filter-key: %s files have no lists of demos", format->name);
    else
        result->rc =
            weir_file_identify(&result->file, opening->origin, path, weir_format_mark(format, path), &result->err);
    result->file.format = format;
    if (result->rc == 0)
        result->rc = format->open(result, path, opening);
    if (result->rc == -EBADMSG || result->rc == -ENODATA)
        name_lfs_pointer(result, opening->origin, path);
    if (result->rc < 0) {
        weir_err_prefix(&result->err, "%s", path);
        weir_file_index_close(&result->file);
    }
}

void weir_file_index_close(struct weir_file_index *file)
{
    for (int i = 0; i < file->n_episodes && file->episodes; i++)
        weir_episode_close(&file->episodes[i]);
    free(file->episodes);
    for (int i = 0; i < file->n_bad; i++)
        free(file->bad[i]);
    free(file->bad);
    free((char *)file->file.path);
    weir_parts_close(&file->parts);
    free(file->about);
    free(file->note);
    free(file->traits);
    weir_tasks_close(&file->tasks);
    weir_tasks_close(&file->subtasks);
    if (file->held)
        file->release(file->held);
    *file = (struct weir_file_index){0};
}
