/* The videos of a LeRobot dataset. Times are compared as integers: float32 timestamps lose a frame's precision after
 * some hours. */
#include "base/grow.h"
#include "base/shortage.h"
#include "datasets/lerobot/lerobot_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int read_track(struct weir_lerobot *lerobot, const char *name, uint32_t part, struct weir_err *err)
{
    char path[WEIR_PART_PATH_MAX];
    struct weir_err why = WEIR_ERR_NONE;
    struct weir_lerobot_tracks *tracks = lerobot->tracks;
    for (; tracks->n <= part; tracks->n++) {
        if (!weir_grow(&tracks->tracks, tracks->n, sizeof *tracks->tracks))
            return weir_no_memory(err);
        tracks->tracks[tracks->n] = NULL;
    }
    weir_part_path(lerobot->parts, part, path, sizeof path);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return weir_err_set(err, -errno, "%s: cannot be opened: %s; %s", name, strerror(errno),
                            weir_open_advice(-errno));
    int rc = weir_mp4_open(&tracks->tracks[part], fd, lerobot->parts->parts[part].size_bytes, &why);
    close(fd);
    return rc < 0 ? weir_err_set(err, rc, "%s: %s", name, why.text) : 0;
}

/* Finds the video of the episode, which consecutive episodes can share. */
static int open_video(const struct weir_lerobot_view *view, const struct weir_lerobot_feature *feature, uint32_t *part,
                      struct weir_err *err)
{
    struct weir_lerobot *lerobot = view->lerobot;
    const struct weir_lerobot_clip *clip =
        &lerobot->clips[(size_t)view->number * (size_t)lerobot->n_videos + (size_t)feature->video];
    struct weir_lerobot_last *last = &lerobot->last[feature->video];
    struct weir_lerobot_names names = {view->episode->index, clip->chunk, clip->file, feature->key};
    char name[WEIR_PART_PATH_MAX];
    *part = last->part;
    if (last->chunk == clip->chunk && last->file == clip->file)
        return 0;
    int rc = weir_lerobot_name(lerobot->video_path, &names, name, sizeof name, err);
    if (rc < 0)
        return rc;
    int64_t number = weir_parts_add_file(lerobot->parts, name);
    if (number < 0)
        return weir_err_set(err, (int)number, "%s: %s; was the dataset copied completely?", name,
                            strerror((int)-number));
    rc = read_track(lerobot, name, (uint32_t)number, err);
    if (rc < 0)
        return rc;
    *last = (struct weir_lerobot_last){clip->chunk, clip->file, (uint32_t)number};
    *part = (uint32_t)number;
    return 0;
}

/* Computes the frame numbers of the episode's rows, counted from the video's first frame at the dataset's rate. */
static int frame_numbers(const struct weir_lerobot_view *view, double from_s, int64_t *numbers, struct weir_err *err)
{
    const struct weir_lerobot *lerobot = view->lerobot;
    int feature = weir_lerobot_feature(lerobot, "timestamp"), width = 0, rc = 0;
    double rate = (double)lerobot->fps_numerator / (double)lerobot->fps_denominator;
    enum weir_number_type type = WEIR_F64;
    const void *values = NULL;
    if (feature >= 0)
        rc = weir_lerobot_column(view->lerobot, view->episode, feature, &type, &values, &width, err);
    if (rc < 0)
        return rc;
    for (int64_t t = 0; t < view->episode->length; t++) {
        double s = (double)t / rate;
        if (values && width == 1)
            weir_numbers_convert(type, (const uint8_t *)values + (size_t)t * weir_number_bytes(type), 1, WEIR_F64, &s);
        s = (from_s + s) * rate;
        if (!(s > -1e12 && s < 1e12))
            return weir_err_set(err, -EBADMSG, "timestamp[%" PRId64 "]: is not a time; repair the dataset", t);
        numbers[t] = llround(s);
    }
    return 0;
}

/* Returns whether the picture is presented within half a frame of the wanted frame. */
static bool is_near(const struct weir_lerobot *lerobot, const struct weir_video_track *track, uint32_t rank,
                    int64_t number)
{
    __int128 frame = (__int128)lerobot->fps_denominator * weir_video_track_timescale(track);
    __int128 away = (__int128)weir_video_track_time(track, rank) * lerobot->fps_numerator - (__int128)number * frame;
    return 2 * (away < 0 ? -away : away) <= frame;
}

static int find_ranks(const struct weir_lerobot_view *view, const struct weir_lerobot_feature *feature,
                      const struct weir_video_track *track, const int64_t *numbers, struct weir_frame_map *map,
                      struct weir_err *err)
{
    const struct weir_lerobot *lerobot = view->lerobot;
    bool consecutive = true;
    for (int64_t t = 0; t < view->episode->length; t++) {
        uint32_t rank = weir_video_track_nearest(track, numbers[t] * lerobot->fps_denominator, lerobot->fps_numerator);
        if (!is_near(lerobot, track, rank, numbers[t]))
            return weir_err_set(err, -EBADMSG,
                                "%s[%" PRId64 "]: the video has no picture at %.6g s; its %" PRIu32
                                " pictures end at %.6g s. Copy it again, or record the episode again",
                                feature->key, t,
                                (double)numbers[t] * (double)lerobot->fps_denominator / (double)lerobot->fps_numerator,
                                weir_video_track_frames(track),
                                (double)weir_video_track_time(track, weir_video_track_frames(track) - 1) /
                                    (double)weir_video_track_timescale(track));
        if (t > 0 && rank < map->ranks[t - 1])
            return weir_err_set(err, -EBADMSG, "timestamp[%" PRId64 "]: goes back; repair the dataset", t);
        map->ranks[t] = rank;
        consecutive = consecutive && rank == map->ranks[0] + (uint32_t)t;
    }
    map->first_rank = map->ranks[0];
    if (consecutive) {
        free(map->ranks);
        map->ranks = NULL;
    }
    return 0;
}

int weir_lerobot_place_video(const struct weir_lerobot_view *view, int number, struct weir_frame_map *map,
                             struct weir_err *err)
{
    struct weir_lerobot *lerobot = view->lerobot;
    const struct weir_lerobot_feature *feature = &lerobot->features[number];
    const struct weir_lerobot_clip *clip =
        &lerobot->clips[(size_t)view->number * (size_t)lerobot->n_videos + (size_t)feature->video];
    uint32_t part;
    int rc = open_video(view, feature, &part, err);
    if (rc < 0)
        return rc;
    const struct weir_video_track *track = lerobot->tracks->tracks[part];
    int64_t *numbers = malloc((size_t)view->episode->length * sizeof *numbers);
    map->ranks = malloc((size_t)view->episode->length * sizeof *map->ranks);
    rc = numbers && map->ranks ? frame_numbers(view, clip->from_s, numbers, err) : weir_no_memory(err);
    if (rc == 0)
        rc = find_ranks(view, feature, track, numbers, map, err);
    free(numbers);
    if (rc < 0)
        return rc;
    map->kind = feature->is_depth ? WEIR_FRAME_VIDEO16 : WEIR_FRAME_VIDEO;
    map->storage = WEIR_STORED_VIDEO;
    map->width = weir_video_track_stream(track)->width;
    map->height = weir_video_track_stream(track)->height;
    map->video = track;
    map->first_part = part;
    map->block_frames = (int)weir_video_track_block_max(track);
    return 0;
}
