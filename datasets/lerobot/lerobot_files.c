/* A dataset and its files: their names, and the tracks of its videos. */
#include "base/shortage.h"
#include "datasets/lerobot/lerobot_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- names ---- */

/* A file that an episode needs. */
struct reference {
    int64_t chunk, file;
    int episode; /* number in the list of episodes */
};

static int by_place(const void *a, const void *b)
{
    const struct reference *left = a, *right = b;
    if (left->chunk != right->chunk)
        return left->chunk < right->chunk ? -1 : 1;
    if (left->file != right->file)
        return left->file < right->file ? -1 : 1;
    return left->episode - right->episode;
}

static int add_file(struct weir_lerobot *lerobot, const struct reference *reference,
                    const struct weir_lerobot_feature *video, struct weir_err *err)
{
    char name[WEIR_PART_PATH_MAX];
    struct weir_lerobot_names names = {.episode = lerobot->episodes[reference->episode].index,
                                       .chunk = reference->chunk,
                                       .file = reference->file,
                                       .video_key = video ? video->key : NULL};
    int rc = weir_lerobot_name(video ? lerobot->video_path : lerobot->data_path, &names, name, sizeof name, err);
    char path[WEIR_PART_PATH_MAX];
    rc = rc < 0 ? rc : weir_lerobot_path(lerobot, name, path, err);
    if (rc < 0)
        return rc;
    int64_t part = weir_parts_add_file(lerobot->parts, name);
    return part < 0 ? weir_err_set(err, (int)part, "%.200s: %s", name, strerror((int)-part)) : 0;
}

/* Lists the Parquet files (video NULL) or the videos of a feature. Episodes in the same file receive the same part. */
static int list_files(struct weir_lerobot *lerobot, const struct weir_lerobot_feature *video,
                      struct reference *references, struct weir_err *err)
{
    int n = lerobot->n_episodes, rc = 0;
    for (int i = 0; i < n; i++) {
        const struct weir_lerobot_episode *episode = &lerobot->episodes[i];
        const struct weir_lerobot_clip *clip = video ? weir_lerobot_clip(lerobot, (size_t)i, video) : NULL;
        references[i] = (struct reference){clip ? clip->chunk : episode->chunk, clip ? clip->file : episode->file, i};
    }
    qsort(references, (size_t)n, sizeof *references, by_place);
    for (int i = 0; i < n && rc == 0; i++) {
        const struct reference *r = &references[i];
        if (i == 0 || r->chunk != r[-1].chunk || r->file != r[-1].file)
            rc = add_file(lerobot, r, video, err);
        if (video)
            weir_lerobot_clip(lerobot, (size_t)r->episode, video)->part = lerobot->parts->n - 1;
        else
            lerobot->episodes[r->episode].part = lerobot->parts->n - 1;
    }
    return rc;
}

int weir_lerobot_list_files(struct weir_lerobot *lerobot, struct weir_err *err)
{
    struct reference *references = malloc((size_t)lerobot->n_episodes * sizeof *references);
    int rc = references ? list_files(lerobot, NULL, references, err) : weir_no_memory(err);
    for (int i = 0; i < lerobot->n_features && rc == 0; i++)
        if (lerobot->features[i].kind == WEIR_LEROBOT_VIDEO)
            rc = list_files(lerobot, &lerobot->features[i], references, err);
    free(references);
    if (rc < 0)
        return rc;
    lerobot->videos->n = lerobot->parts->n;
    lerobot->videos->videos = calloc((size_t)lerobot->parts->n + 1, sizeof *lerobot->videos->videos);
    return lerobot->videos->videos ? 0 : weir_no_memory(err);
}

/* ---- videos ---- */

static int open_track(struct weir_lerobot *lerobot, uint32_t part, struct weir_video_track **track,
                      struct weir_err *err)
{
    char path[WEIR_PART_PATH_MAX];
    struct weir_source *source;
    struct weir_file_id id;
    weir_part_path(lerobot->parts, part, path, sizeof path);
    int rc = weir_source_find(&source, lerobot->origin, path, &id, err);
    if (rc < 0)
        return rc;
    rc = weir_mp4_open(track, source, id.size_bytes, err);
    if (rc == 0)
        lerobot->parts->parts[part] = weir_part_of(&id);
    weir_source_close(&source);
    return rc;
}

int weir_lerobot_track(struct weir_lerobot *lerobot, uint32_t part, const struct weir_video_track **track,
                       struct weir_err *err)
{
    struct weir_lerobot_video *video = &lerobot->videos->videos[part];
    pthread_mutex_t *lock = &lerobot->locks[part % WEIR_LEROBOT_LOCKS];
    pthread_mutex_lock(lock);
    if (!video->track && video->rc == 0) {
        struct weir_err why = WEIR_ERR_NONE;
        video->rc = open_track(lerobot, part, &video->track, &why);
        video->why = video->rc < 0 ? strdup(why.text) : NULL;
    }
    pthread_mutex_unlock(lock);
    *track = video->track;
    return video->rc < 0 ? weir_err_set(err, video->rc, "%.300s: %s", lerobot->parts->names[part],
                                        video->why ? video->why : strerror(-video->rc))
                         : 0;
}

void weir_lerobot_videos_close(void *of)
{
    struct weir_lerobot_videos *videos = of;
    for (uint32_t i = 0; videos->videos && i < videos->n; i++) {
        weir_video_track_close(&videos->videos[i].track);
        free(videos->videos[i].why);
    }
    free(videos->videos);
    free(videos->depth_values);
    free(videos);
}

/* ---- opening and closing ---- */

void weir_lerobot_close(struct weir_lerobot *lerobot)
{
    for (int i = 0; i < lerobot->n_episodes; i++)
        weir_tasks_close(&lerobot->episodes[i].tasks);
    free(lerobot->episodes);
    free(lerobot->clips);
    for (int i = 0; i < lerobot->n_features; i++)
        free(lerobot->features[i].names);
    free(lerobot->features);
    free(lerobot->data_path);
    free(lerobot->video_path);
    weir_parts_close(&lerobot->parts);
    if (lerobot->videos)
        weir_lerobot_videos_close(lerobot->videos);
    for (int i = 0; i < WEIR_LEROBOT_LOCKS; i++)
        pthread_mutex_destroy(&lerobot->locks[i]);
    *lerobot = (struct weir_lerobot){0};
}

static int open_parts(struct weir_lerobot *lerobot, struct weir_err *err)
{
    struct stat st;
    struct weir_file_id id = {0};
    struct weir_err why = WEIR_ERR_NONE;
    struct weir_parts *parts = lerobot->parts = calloc(1, sizeof *parts);
    lerobot->videos = calloc(1, sizeof *lerobot->videos);
    if (!parts || !lerobot->videos || asprintf(&parts->stand_in, "%s/meta/info.json", lerobot->path) < 0)
        return weir_no_memory(err);
    parts->root = lerobot->path;
    int rc = lerobot->origin ? lerobot->origin->ops->identify(lerobot->origin, parts->stand_in, &id, &why)
             : stat(parts->stand_in, &st) < 0 ? weir_err_set(&why, -errno, "%s", strerror(errno))
                                              : 0;
    if (rc < 0)
        return weir_err_set(err, rc, "meta/info.json: %s", why.text);
    parts->looked = lerobot->origin ? weir_part_of(&id) : weir_part_identify(&st);
    return 0;
}

int weir_lerobot_open(struct weir_lerobot *lerobot, struct weir_origin *origin, const char *path, struct weir_err *err)
{
    *lerobot = (struct weir_lerobot){.path = path, .origin = origin};
    for (int i = 0; i < WEIR_LEROBOT_LOCKS; i++)
        pthread_mutex_init(&lerobot->locks[i], NULL);
    if (origin)
        weir_lerobot_look_at_files(lerobot);
    int rc = weir_lerobot_read_info(lerobot, err);
    if (rc == 0)
        rc = weir_lerobot_read_episodes(lerobot, err);
    return rc == 0 ? open_parts(lerobot, err) : rc;
}
