/* LMDB files: all episodes of a dataset in one. */
#include "base/shortage.h"
#include "datasets/builder.h"
#include "datasets/format_ops.h"
#include "datasets/lmdb/lmdb_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static int describe(struct weir_episode *episode, const struct weir_lmdb_store *store,
                    const struct weir_dataset_config *config, struct weir_err *err)
{
    int rc = weir_lmdb_episode_check(store, err);
    struct weir_h5_description *descriptions = NULL;
    if (rc == 0)
        rc = weir_episode_describe(&weir_store_lmdb, (void *)store, episode, config, &descriptions, err);
    free(descriptions);
    return rc;
}

static int open_episodes(struct weir_file_result *result, const struct weir_lmdb_episodes *found,
                         const struct weir_raw_file *raw, const struct weir_dataset_config *config)
{
    struct weir_file_index *file = &result->file;
    int rc = 0;
    result->n_wanted = found->n;
    file->episodes = calloc((size_t)found->n + 1, sizeof *file->episodes);
    if (!file->episodes)
        return weir_err_set(&result->err, -ENOMEM, "out of memory");
    for (int i = 0; i < found->n && rc == 0; i++) {
        struct weir_episode *episode = &file->episodes[file->n_episodes];
        struct weir_lmdb_store store = {&found->schema, &found->episodes[i], raw};
        struct weir_err why = WEIR_ERR_NONE;
        *episode = (struct weir_episode){.layout = &weir_layout_lmdb, .bytes = sizeof *episode};
        rc = asprintf(&episode->root, "e%08u", store.episode->number) < 0 ? weir_err_set(&why, -ENOMEM, "out of memory")
                                                                          : describe(episode, &store, config, &why);
        if (rc == 0) {
            weir_episode_shrink(episode);
            file->n_episodes++;
            continue;
        }
        weir_episode_close(episode);
        rc = weir_file_leave_out(result, config, rc, &why);
    }
    return rc;
}

static int open_lmdb(struct weir_file_result *result, const char *path, const struct weir_dataset_config *config)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return weir_err_set(&result->err, -errno, "%s; %s", strerror(errno), weir_open_advice(-errno));
    struct weir_raw_file raw = {weir_raw_read, &fd, 0, result->file.file.size_bytes};
    struct weir_lmdb_state states[2];
    struct weir_lmdb_episodes found = {0};
    int rc = weir_lmdb_states(states, &raw, &result->err);
    if (rc == 0)
        rc = weir_lmdb_episodes_find(&found, weir_lmdb_newest(states), &raw, &result->err);
    if (rc == 0)
        rc = open_episodes(result, &found, &raw, config);
    weir_lmdb_episodes_free(&found);
    close(fd);
    return rc;
}

/* "data.mdb" in a folder, which has a lock.mdb beside it; or a file alone (MDB_NOSUBDIR). */
static bool is_lmdb(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && (strcasecmp(dot, ".mdb") == 0 || strcasecmp(dot, ".lmdb") == 0) && strcmp(name, "lock.mdb") != 0;
}

const struct weir_format_ops weir_format_lmdb = {
    .name = "lmdb",
    .summary = "LMDB, one key a frame: a folder with data.mdb, or a file .mdb or .lmdb",
    .names = is_lmdb,
    .open = open_lmdb,
};
