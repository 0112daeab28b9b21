/* LeRobot datasets, versions 2.1 and 3.0: a folder with meta/info.json, columns in Parquet files, and videos. */
#include "base/shortage.h"
#include "datasets/format_ops.h"
#include "datasets/lerobot/lerobot_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool is_lerobot(const char *name)
{
    (void)name;
    return false; /* recognised by its contents */
}

static bool is_dataset(int folder, const char *name)
{
    struct stat st;
    (void)name;
    return fstatat(folder, "meta/info.json", &st, 0) == 0 && S_ISREG(st.st_mode);
}

/* ---- opening and closing ---- */

static void release_tracks(void *held)
{
    struct weir_lerobot_tracks *tracks = held;
    for (uint32_t i = 0; i < tracks->n; i++)
        weir_video_track_close(&tracks->tracks[i]);
    free(tracks->tracks);
    free(tracks);
}

static void close_lerobot(struct weir_lerobot *lerobot)
{
    weir_lerobot_close_table(lerobot);
    for (int i = 0; i < lerobot->n_episodes; i++)
        free(lerobot->episodes[i].task);
    free(lerobot->episodes);
    free(lerobot->clips);
    free(lerobot->features);
    free(lerobot->data_path);
    free(lerobot->video_path);
    free(lerobot->last);
    weir_parts_close(&lerobot->parts);
    if (lerobot->tracks)
        release_tracks(lerobot->tracks);
    *lerobot = (struct weir_lerobot){0};
}

static int open_parts(struct weir_lerobot *lerobot, struct weir_err *err)
{
    struct stat st;
    struct weir_parts *parts = lerobot->parts = calloc(1, sizeof *parts);
    lerobot->tracks = calloc(1, sizeof *lerobot->tracks);
    lerobot->last = malloc(((size_t)lerobot->n_videos + 1) * sizeof *lerobot->last);
    if (!parts || !lerobot->tracks || !lerobot->last ||
        asprintf(&parts->stand_in, "%s/meta/info.json", lerobot->path) < 0)
        return weir_no_memory(err);
    parts->root = lerobot->path;
    for (int i = 0; i < lerobot->n_videos; i++)
        lerobot->last[i] = (struct weir_lerobot_last){-1, -1, 0};
    if (stat(parts->stand_in, &st) < 0)
        return weir_err_set(err, -errno, "meta/info.json: %s", strerror(errno));
    parts->looked = (struct weir_part){(uint64_t)st.st_size, st.st_dev, st.st_ino,
                                       (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec};
    return 0;
}

static int open_lerobot(struct weir_lerobot *lerobot, const char *path, struct weir_err *err)
{
    *lerobot = (struct weir_lerobot){.path = path};
    int rc = weir_lerobot_read_info(lerobot, err);
    if (rc == 0)
        rc = weir_lerobot_read_episodes(lerobot, err);
    return rc == 0 ? open_parts(lerobot, err) : rc;
}

/* ---- episodes ---- */

/* Checks that the episode's first and last row belong to it. */
static int check_rows(struct weir_lerobot *lerobot, const struct weir_lerobot_episode *episode, struct weir_err *err)
{
    enum weir_number_type type;
    const void *values;
    int64_t number;
    int width, feature = weir_lerobot_feature(lerobot, "episode_index");
    if (feature < 0)
        return 0;
    int rc = weir_lerobot_column(lerobot, episode, feature, &type, &values, &width, err);
    for (int64_t row = 0;
         rc == 0 && width == 1 && row<episode->length; row += episode->length> 1 ? episode->length - 1 : 1) {
        const uint8_t *at = (const uint8_t *)values + (size_t)row * weir_number_bytes(type);
        weir_numbers_convert(type, at, 1, WEIR_I64, &number);
        if (number != episode->index)
            return weir_err_set(err, -EBADMSG,
                                "row %" PRId64 " belongs to episode %" PRId64
                                ", so the list of episodes and the Parquet file disagree; copy the dataset again",
                                row, number);
    }
    return rc;
}

/* Version 2.1 has a Parquet file per episode, with exactly its rows. */
static int check_length(struct weir_lerobot *lerobot, const struct weir_lerobot_episode *episode, struct weir_err *err)
{
    int rc = weir_lerobot_open_table(lerobot, episode, err);
    if (rc < 0 || lerobot->is_third || weir_parquet_rows(lerobot->table.parquet) == episode->length)
        return rc;
    return weir_err_set(err, -EBADMSG,
                        "has %" PRId64 " rows in its Parquet file, but a length of %" PRId64
                        " in meta/episodes.jsonl; copy the dataset again",
                        weir_parquet_rows(lerobot->table.parquet), episode->length);
}

static int describe(void *user, int i, const struct weir_dataset_config *config, struct weir_episode *episode,
                    struct weir_err *err)
{
    struct weir_lerobot *lerobot = user;
    struct weir_lerobot_view view = {{&weir_store_lerobot}, lerobot, &lerobot->episodes[i], i};
    *episode = (struct weir_episode){.layout = &weir_layout_lerobot, .bytes = sizeof *episode};
    if (asprintf(&episode->root, "episode %" PRId64, view.episode->index) < 0)
        return weir_no_memory(err);
    int rc = check_length(lerobot, view.episode, err);
    if (rc == 0)
        rc = check_rows(lerobot, view.episode, err);
    return rc == 0 ? weir_episode_describe(&view.store, episode, config, err) : rc;
}

/* Moves the files that frames are read from, and their tables, to the index. */
static void take_parts(struct weir_file_index *file, struct weir_lerobot *lerobot)
{
    file->parts = lerobot->parts;
    file->parts->root = file->file.path;
    file->file.size_bytes = file->parts->looked.size_bytes;
    for (uint32_t i = 0; i < file->parts->n; i++)
        file->file.size_bytes += file->parts->parts[i].size_bytes;
    file->held = lerobot->tracks;
    file->release = release_tracks;
    lerobot->parts = NULL;
    lerobot->tracks = NULL;
}

static int open_dataset(struct weir_file_result *result, const char *path, struct weir_opening *opening)
{
    struct weir_lerobot lerobot;
    int rc = open_lerobot(&lerobot, path, &result->err);
    if (rc == 0 && opening->config->episodes)
        rc = weir_lerobot_choose_episodes(&lerobot, opening->config->episodes, &result->err);
    if (rc == 0 && opening->config->columns)
        rc = weir_lerobot_read_tasks(&lerobot, &result->file.tasks, &result->file.n_tasks, &result->err);
    if (rc == 0)
        rc = weir_file_describe_episodes(result, lerobot.n_episodes, opening->config, describe, &lerobot);
    if (rc == 0)
        take_parts(&result->file, &lerobot);
    close_lerobot(&lerobot);
    return rc;
}

/* ---- images in Parquet files ---- */

/* The values of one episode's images, which are kept because frames of an episode are often read together. */
struct kept {
    struct weir_lerobot lerobot;
    char *path;
    int episode, feature; /* of the bytes; -1 = none */
    struct weir_parquet_bytes bytes;
};

static void release_kept(void *user)
{
    struct kept *kept = user;
    weir_parquet_bytes_free(&kept->bytes);
    close_lerobot(&kept->lerobot);
    free(kept->path);
    free(kept);
}

static int keep(struct weir_opening *opening, const char *path, struct weir_err *err)
{
    struct kept *kept = opening->kept;
    if (kept && strcmp(kept->path, path) == 0)
        return 0;
    if (kept)
        opening->release(kept);
    opening->kept = kept = calloc(1, sizeof *kept);
    opening->release = release_kept;
    if (!kept || !(kept->path = strdup(path))) {
        free(kept);
        opening->kept = NULL;
        return weir_no_memory(err);
    }
    kept->episode = kept->feature = -1;
    return open_lerobot(&kept->lerobot, kept->path, err);
}

/* Parses a map's key, such as "episode 12/observation.images.top". */
static int find_images(const struct kept *kept, const char *key, int *episode, int *feature)
{
    int64_t index;
    int used = 0;
    if (sscanf(key, "episode %" SCNd64 "/%n", &index, &used) != 1 || used == 0)
        return -ENOENT;
    *feature = weir_lerobot_feature(&kept->lerobot, key + used);
    for (*episode = 0; *episode < kept->lerobot.n_episodes; ++*episode)
        if (kept->lerobot.episodes[*episode].index == index)
            return *feature;
    return -ENOENT;
}

static int read_images(struct kept *kept, int number, int feature, struct weir_err *err)
{
    struct weir_lerobot *lerobot = &kept->lerobot;
    const struct weir_lerobot_episode *episode = &lerobot->episodes[number];
    if (kept->episode == number && kept->feature == feature)
        return 0;
    weir_parquet_bytes_free(&kept->bytes);
    kept->episode = -1;
    int rc = weir_lerobot_open_table(lerobot, episode, err);
    int column = rc == 0 ? weir_parquet_find(lerobot->table.parquet, lerobot->features[feature].key, "bytes") : -1;
    if (rc == 0 && column < 0)
        rc = weir_err_set(err, -EBADMSG, "the Parquet file has no bytes of %s", lerobot->features[feature].key);
    if (rc == 0)
        rc = weir_parquet_bytes(lerobot->table.parquet, column, episode->first - lerobot->table.first, episode->length,
                                &kept->bytes, err);
    if (rc < 0)
        return rc;
    kept->episode = number;
    kept->feature = feature;
    return 0;
}

static int read_row(struct weir_opening *opening, const struct weir_dataset_file *file, const char *key, uint64_t t,
                    void *buffer, size_t capacity, size_t *length, struct weir_err *err)
{
    int number = 0, feature = 0, rc = keep(opening, file->path, err);
    struct kept *kept = opening->kept;
    if (rc == 0 && find_images(kept, key, &number, &feature) < 0)
        rc = weir_err_set(err, -ESTALE, "the dataset changed since it was opened; run again");
    if (rc == 0)
        rc = read_images(kept, number, feature, err);
    if (rc == 0 && t >= kept->bytes.n)
        rc = weir_err_set(err, -EBADMSG, "has no row %" PRIu64, t);
    if (rc < 0)
        return rc;
    uint64_t begin = t ? kept->bytes.ends[t - 1] : 0;
    *length = (size_t)(kept->bytes.ends[t] - begin);
    if (*length == 0)
        return weir_err_set(err, -EBADMSG, "the image is empty: the dataset stores only its path");
    if (*length > capacity)
        return -ENOSPC;
    memcpy(buffer, kept->bytes.data + begin, *length);
    return 0;
}

const struct weir_format_ops weir_format_lerobot = {
    .name = "lerobot",
    .summary = "LeRobot datasets v2.1 and v3.0: a folder with meta/info.json, Parquet files, and videos or images",
    .names = is_lerobot,
    .is_folder = is_dataset,
    .open = open_dataset,
    .read_row = read_row,
    .is_held = true,
};
