/* Turns one file into episodes. Of HDF5 files the library describes how datasets are stored and reads state, in a
 * helper process (helper/hdf5_describe.c); where frames lie is found here, without it. */
#include "base/hash.h"
#include "base/shortage.h"
#include "datasets/builder.h"
#include "datasets/format_ops.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADER_BYTES = 4096 };

static int no_memory(struct weir_err *err)
{
    return weir_err_set(err, -ENOMEM, "out of memory");
}

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

/* Hash of the start of a file: superblock and root group. 0 when the file cannot be opened: the library then reports
 * why. */
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

int weir_file_identify(struct weir_file_index *file, const char *path, struct weir_err *err)
{
    char *copy = strdup(path);
    if (!copy)
        return no_memory(err);
    int rc = look_at(&file->file, copy, err);
    if (rc < 0) {
        free(copy);
        return rc;
    }
    file->header_hash = hash_header(path);
    return 0;
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
    return weir_err_set(err, -ESTALE, "the file changed since it was opened; run again to index it anew");
}

/* ---- an episode ---- */

static void count_text(struct weir_episode *episode, const char *text)
{
    enum { HEAP_BLOCK = 16 };
    episode->bytes += text ? strlen(text) + 1 + HEAP_BLOCK : 0;
}

/* Once its frames are located: gives back what was reserved for more cameras, and counts what is left. */
static void shrink(struct weir_episode *episode)
{
    size_t n = (size_t)episode->n_maps;
    void *maps = n ? realloc(episode->maps, n * sizeof *episode->maps) : NULL;
    void *names = n ? realloc(episode->names, n * sizeof *episode->names) : NULL;
    episode->maps = maps ? maps : episode->maps;
    episode->names = names ? names : episode->names;
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
    episode->bytes += episode->texts_bytes;
}

static int no_cameras(const struct weir_episode *episode, struct weir_err *err)
{
    if (episode->left_out)
        return weir_err_set(err, -EBADMSG, "layout %s, but it has no cameras that are read: %.*s",
                            episode->layout->name, (int)strcspn(episode->left_out, "\n"), episode->left_out);
    return weir_err_set(err, -EBADMSG, "layout %s, but it has no cameras%s%s; remove it, or record it anew",
                        episode->layout->name, episode->passed_over ? " but depth: " : "",
                        episode->passed_over ? episode->passed_over : "");
}

int weir_episode_describe(const struct weir_store_ops *store, void *opened, struct weir_episode *episode,
                          const struct weir_dataset_config *config, struct weir_h5_description **descriptions,
                          struct weir_err *err)
{
    struct weir_episode_builder *builder = calloc(1, sizeof *builder);
    if (!builder)
        return no_memory(err);
    builder->store = store;
    builder->opened = opened;
    builder->episode = episode;
    builder->config = config;
    int rc = episode->layout->index(opened, builder, err);
    if (rc == 0)
        rc = weir_builder_user_keys(builder, err);
    if (rc == 0 && episode->n_maps == 0 && !(config->cameras && *config->cameras))
        rc = no_cameras(episode, err);
    if (rc == 0)
        rc = weir_builder_complete(builder, err);
    if (rc == 0 && store->texts)
        rc = store->texts(opened, builder, err);
    weir_builder_drop(builder);
    *descriptions = builder->descriptions;
    free(builder);
    return rc;
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
    if (!episode->is_lent) {
        free(episode->passed_over);
        free(episode->left_out);
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
    char **bad = realloc(file->bad, sizeof *bad * (size_t)(file->n_bad + 1));
    if (!bad)
        return -ENOMEM;
    file->bad = bad;
    if (asprintf(&bad[file->n_bad], "%s: %s", file->file.path, why->text) < 0)
        return -ENOMEM;
    file->n_bad++;
    return 0;
}

/* An episode of a file of many, when config is tolerant; the file's only one fails with its file. */
static int leave_out(struct weir_file_result *r, const struct weir_dataset_config *config, int rc,
                     const struct weir_err *why)
{
    if (!config->tolerant || r->n_wanted == 1 || weir_is_shortage(rc) || rc == -EINVAL)
        return weir_err_set(&r->err, rc, "%s", why->text);
    return keep_bad(&r->file, why) < 0 ? no_memory(&r->err) : 0;
}

int weir_file_describe_episodes(struct weir_file_result *result, int n, const struct weir_dataset_config *config,
                                weir_describe_fn *describe, void *user)
{
    struct weir_file_index *file = &result->file;
    int rc = 0;
    result->n_wanted = n;
    file->episodes = calloc((size_t)n + 1, sizeof *file->episodes);
    if (!file->episodes)
        return no_memory(&result->err);
    for (int i = 0; i < n && rc == 0; i++) {
        struct weir_episode *episode = &file->episodes[file->n_episodes];
        struct weir_err why = WEIR_ERR_NONE;
        rc = describe(user, i, config, episode, &why);
        if (rc == 0) {
            shrink(episode);
            file->n_episodes++;
            continue;
        }
        if (episode->root && *episode->root && !weir_is_shortage(rc) && !strstr(why.text, episode->root))
            weir_err_prefix(&why, "%s", episode->root); /* stores report the array alone */
        weir_episode_close(episode);
        rc = leave_out(result, config, rc, &why);
    }
    return rc;
}

/* ---- where frames lie ---- */

static int locate_episode(struct weir_episode *episode, const struct weir_h5_description *descriptions,
                          const struct weir_raw_file *raw, uint64_t held_bytes, struct weir_unfilter_context *unfilter,
                          struct weir_err *err)
{
    int rc = 0;
    for (int c = 0; c < episode->n_maps && rc == 0; c++)
        rc = weir_locate_frames(&episode->maps[c], &descriptions[c], raw, held_bytes, unfilter, err);
    if (rc == 0)
        shrink(episode);
    return rc;
}

static int locate_all(struct weir_file_result *r, const struct weir_dataset_config *config,
                      const struct weir_raw_file *raw, uint64_t held_bytes, struct weir_unfilter_context *unfilter)
{
    struct weir_file_index *file = &r->file;
    int good = 0, rc = 0;
    for (int i = 0; i < file->n_episodes && rc == 0; i++) {
        struct weir_err why = WEIR_ERR_NONE;
        rc = locate_episode(&file->episodes[i], r->descriptions[i], raw, held_bytes, unfilter, &why);
        if (rc < 0) {
            weir_episode_close(&file->episodes[i]);
            rc = leave_out(r, config, rc, &why);
            continue;
        }
        struct weir_episode episode = file->episodes[i];
        file->episodes[i] = (struct weir_episode){0};
        file->episodes[good++] = episode;
    }
    if (rc == 0)
        file->n_episodes = good;
    return rc;
}

static int locate_file(struct weir_file_result *r, const char *path, const struct weir_dataset_config *config)
{
    struct weir_unfilter_context *unfilter = weir_unfilter_open();
    if (!unfilter)
        return no_memory(&r->err);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* it was a regular file when it was described */
    struct stat st = {0};
    struct weir_raw_file raw = {weir_raw_read, &fd, r->base, r->file.file.size_bytes};
    uint64_t held_bytes = fd >= 0 && fstat(fd, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
    int rc = fd < 0 ? weir_err_set(&r->err, -errno, "%s; %s", strerror(errno), weir_open_advice(-errno))
                    : locate_all(r, config, &raw, held_bytes, unfilter);
    if (fd >= 0)
        close(fd);
    weir_unfilter_close(&unfilter);
    return rc;
}

static void drop_descriptions(struct weir_file_result *result)
{
    for (int i = 0; i < result->n_wanted && result->descriptions; i++)
        free(result->descriptions[i]);
    free(result->descriptions);
    result->descriptions = NULL;
}

void weir_file_locate(struct weir_file_result *result, const char *path, const struct weir_dataset_config *config)
{
    if (result->rc == 0)
        result->rc = locate_file(result, path, config);
    drop_descriptions(result);
    if (result->rc < 0) {
        weir_err_prefix(&result->err, "%s", path);
        weir_file_index_close(&result->file);
    }
}

void weir_file_open(struct weir_file_result *result, const char *path, const struct weir_dataset_config *config,
                    const struct weir_format_ops *format)
{
    *result = (struct weir_file_result){0};
    result->rc = weir_file_identify(&result->file, path, &result->err);
    if (result->rc == 0)
        result->rc = format->open(result, path, config);
    if (result->rc < 0) {
        weir_err_prefix(&result->err, "%s", path);
        weir_file_index_close(&result->file);
    }
}

void weir_file_result_close(struct weir_file_result *result)
{
    drop_descriptions(result);
    weir_file_index_close(&result->file);
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
    free(file->note);
    if (file->held)
        file->release(file->held);
    *file = (struct weir_file_index){0};
}
