/* The pictures of videos that are the frames of a LeRobot dataset. Times are compared as integers:
 * float32 timestamps lose a frame's precision after some hours. */
#include "base/shortage.h"
#include "datasets/lerobot/lerobot_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the picture of each row ---- */

enum { PARTS = 1000 }; /* of a frame: the unit of rows' times, which need not be multiples of a frame */

/* A search for the pictures of rows in presentation order. */
struct search {
    const struct weir_lerobot *lerobot;
    const struct weir_video_track *track;
    const char *name; /* of the video */
    uint32_t pictures;
    uint32_t rank; /* picture of the last row */
    int64_t at;    /* time of the last row, counted from the start of the video */
};

/* Returns the time between a picture and the row, in units of 1 / (time scale x fps_numerator x PARTS) seconds. */
static __int128 distance(const struct search *s, uint32_t rank)
{
    __int128 part = (__int128)s->lerobot->fps_denominator * weir_video_track_timescale(s->track);
    __int128 away = (__int128)weir_video_track_time(s->track, rank) * s->lerobot->fps_numerator * PARTS - s->at * part;
    return away < 0 ? -away : away;
}

/* Finds the picture nearest to a row. Returns false if it is more than half a frame away. Rows never go back, so the
 * next pictures are tried first. */
static bool find_picture(struct search *s, int64_t at)
{
    enum { NEAR = 64 * PARTS };
    bool is_near = at >= s->at && at - s->at <= NEAR;
    s->at = at;
    if (!is_near)
        s->rank =
            weir_video_track_nearest(s->track, at * s->lerobot->fps_denominator, s->lerobot->fps_numerator * PARTS);
    __int128 now = distance(s, s->rank), next;
    while (is_near && s->rank + 1 < s->pictures && (next = distance(s, s->rank + 1)) < now) {
        s->rank++;
        now = next;
    }
    return 2 * now <= (__int128)s->lerobot->fps_denominator * weir_video_track_timescale(s->track) * PARTS;
}

static int no_picture(const struct search *s, const char *key, int64_t t, struct weir_err *err)
{
    double scale = (double)weir_video_track_timescale(s->track);
    return weir_err_set(err, -EBADMSG,
                        "%s[%" PRId64 "]: %.200s has no picture at %.6g s; its %" PRIu32
                        " pictures are from %.6g to %.6g s; copy it again, or record the episode again",
                        key, t, s->name, (double)s->at / PARTS / weir_lerobot_fps(s->lerobot), s->pictures,
                        (double)weir_video_track_time(s->track, 0) / scale,
                        (double)weir_video_track_time(s->track, s->pictures - 1) / scale);
}

/* Allocates map->ranks for the first row whose picture does not follow that of the row before it. */
static int set_rank(struct weir_frame_map *map, int64_t t, int64_t length, uint32_t rank, struct weir_err *err)
{
    if (t == 0)
        map->first_rank = rank;
    if (!map->ranks && rank == map->first_rank + (uint32_t)t)
        return 0;
    if (!map->ranks) {
        map->ranks = malloc((size_t)length * sizeof *map->ranks);
        if (!map->ranks)
            return weir_no_memory(err);
        for (uint32_t i = 0; i < (uint32_t)t; i++)
            map->ranks[i] = map->first_rank + i;
    }
    map->ranks[t] = rank;
    return 0;
}

/* The numbers of a column; without the column, the times of the dataset's rate. */
int weir_lerobot_read_times(const struct weir_lerobot_view *view, double **times, struct weir_err *err)
{
    int feature = weir_lerobot_feature(view->lerobot, "timestamp"), width = 1, rc = 0;
    enum weir_number_type type = WEIR_F64;
    const void *values = NULL;
    *times = NULL;
    if (feature >= 0)
        rc = weir_lerobot_column(view->table, view->episode, feature, &type, &values, &width, err);
    if (rc == 0 && width != 1)
        rc = weir_err_set(err, -EBADMSG, "timestamp: must have one number per row; repair the dataset");
    if (rc < 0)
        return rc;
    *times = malloc((size_t)view->episode->length * sizeof **times);
    if (!*times)
        return weir_no_memory(err);
    if (values)
        weir_numbers_convert(type, values, (size_t)view->episode->length, WEIR_F64, *times);
    for (int64_t t = 0; t < view->episode->length && !values; t++)
        (*times)[t] = (double)t / weir_lerobot_fps(view->lerobot);
    return 0;
}

static int find_ranks(const struct weir_lerobot_view *view, const char *key, const struct weir_lerobot_clip *clip,
                      const double *times, struct weir_frame_map *map, struct weir_err *err)
{
    const struct weir_lerobot *lerobot = view->lerobot;
    double rate = weir_lerobot_fps(lerobot);
    /* no row comes before the first, whose picture is not searched near the last one's */
    struct search s = {lerobot, map->video, lerobot->parts->names[clip->part], weir_video_track_frames(map->video),
                       0,       INT64_MAX};
    int rc = 0;
    for (int64_t t = 0; t < view->episode->length && rc == 0; t++) {
        double frame = (clip->from_s + times[t]) * rate;
        uint32_t last = s.rank;
        if (!(frame > -0.5 && frame < INT32_MAX))
            return weir_err_set(err, -EBADMSG, "timestamp[%" PRId64 "]: %g is not a time of %s; repair the dataset", t,
                                times[t], key);
        if (!find_picture(&s, llround(frame * PARTS)))
            return no_picture(&s, key, t, err);
        if (t > 0 && s.rank < last)
            return weir_err_set(err, -EBADMSG, "timestamp[%" PRId64 "]: goes back; repair the dataset", t);
        rc = set_rank(map, t, view->episode->length, s.rank, err);
    }
    return rc;
}

int weir_lerobot_place_video(const struct weir_lerobot_view *view, int number, struct weir_frame_map *map,
                             struct weir_err *err)
{
    struct weir_lerobot *lerobot = view->lerobot;
    const struct weir_lerobot_feature *feature = &lerobot->features[number];
    const struct weir_lerobot_clip *clip =
        weir_lerobot_clip(lerobot, (size_t)(view->episode - lerobot->episodes), feature);
    double *times;
    int rc = weir_lerobot_track(lerobot, clip->part, &map->video, err);
    if (rc == 0)
        rc = weir_lerobot_read_times(view, &times, err);
    if (rc < 0)
        return rc;
    rc = find_ranks(view, feature->key, clip, times, map, err);
    free(times);
    map->depth_values = feature->depth_values;
    map->kind = feature->is_depth ? WEIR_FRAME_VIDEO16 : WEIR_FRAME_VIDEO;
    map->storage = WEIR_STORED_VIDEO;
    map->width = weir_video_track_stream(map->video)->width;
    map->height = weir_video_track_stream(map->video)->height;
    map->first_part = clip->part;
    map->block_frames = (int)weir_video_track_block_max(map->video);
    return rc;
}
