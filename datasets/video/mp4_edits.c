/* Reads edit lists (ISO/IEC 14496-12, 8.6.6) as FFmpeg's demuxer presents them, which training programs read with:
 *
 * - An edit shows the pictures that begin within it. If it begins within a picture, this picture is hidden.
 * - The first shown picture is at the end of the pauses before it, wherever the edit begins.
 * - A later edit begins where the durations before it end. The first of its pictures that is decoded is there, shifted
 *   by its composition offset.
 * - Only pauses before the first edit are pauses: later ones show the media from time -1. Speeds have no effect. */
#include "base/grow.h"
#include "base/shortage.h"
#include "datasets/video/mp4_priv.h"

#include <errno.h>
#include <inttypes.h>

enum { SHOWN_MAX = INT32_MAX, REPEATS_MAX = 64 /* of the whole video, so that a small file takes little time */ };
static const int64_t TIME_MAX = (int64_t)1 << 60;

/* An edit, in units of the track's time scale. */
struct edit {
    uint32_t number;
    int64_t duration, media_time; /* media_time: -1 for a pause */
    int64_t begin;                /* end of the edits before it */
};

static int too_large(const struct weir_mp4_reader *r)
{
    return weir_mp4_damaged(r->err, "elst", "its times are too large");
}

static int parse_edit(const struct weir_mp4_reader *r, const uint8_t *at, bool is_large, struct edit *edit)
{
    uint64_t duration = is_large ? weir_be(at, 8) : weir_be(at, 4); /* in units of the movie's time scale */
    __int128 units = ((__int128)duration * r->track->timescale + r->movie_timescale / 2) / r->movie_timescale;
    edit->media_time = is_large ? (int64_t)weir_be(at + 8, 8) : (int32_t)weir_be(at + 4, 4);
    if (units > TIME_MAX - edit->begin || edit->media_time > TIME_MAX || edit->media_time < -TIME_MAX)
        return too_large(r);
    edit->duration = (int64_t)units;
    return 0;
}

/* Returns the rank in the media of the first picture at or after a time, or the number of samples. */
static uint32_t first_from(const struct weir_video_track *track, int64_t time)
{
    return WEIR_FIRST(i, track->n, weir_video_media_time(track, i) >= time);
}

/* Returns the picture that is decoded first among n. */
static uint32_t first_decoded(const struct weir_video_track *track, uint32_t media, uint32_t n)
{
    if (!track->order)
        return media;
    uint32_t sample = track->order[media];
    for (uint32_t i = media + 1; i < media + n; i++)
        sample = track->order[i] < sample ? track->order[i] : sample;
    return sample;
}

static int show(struct weir_mp4_reader *r, const struct edit *edit)
{
    struct weir_video_track *track = r->track;
    uint32_t media = first_from(track, edit->media_time);
    uint32_t n = first_from(track, edit->media_time + edit->duration) - media, shown = track->n_shown;
    if (n == 0)
        return 0;
    if (n > SHOWN_MAX - shown || (shown + n) / REPEATS_MAX > track->n)
        return weir_err_set(r->err, -ENOTSUP,
                            "the video's edit list (box elst) shows its pictures more than %d times; "
                            "encode it again",
                            REPEATS_MAX);
    int64_t shift = edit->begin - weir_video_decoding_time(track, first_decoded(track, media, n));
    if (shown > 0 && weir_video_media_time(track, media) + shift <= weir_video_track_time(track, shown - 1))
        return weir_err_set(r->err, -ENOTSUP,
                            "edit %" PRIu32 " of the video's edit list (box elst) begins before the "
                            "end of the edit before it; encode it again",
                            edit->number);
    return weir_video_track_show(track, media, n, shift);
}

/* Moves the first shown picture back to the end of the pauses. */
static void move_first(struct weir_video_track *track, int64_t pauses)
{
    int64_t late = weir_video_track_time(track, 0) - pauses;
    for (uint32_t i = 0; late > 0 && i < track->n_edits; i++)
        track->edits[i].shift -= late;
}

/* Shows the pictures of n edits. */
static int show_edits(struct weir_mp4_reader *r, const uint8_t *at, uint32_t n, bool is_large)
{
    struct weir_video_track *track = r->track;
    struct edit edit = {0};
    int64_t pauses = 0;
    int rc = 0;
    for (bool is_shown = false; edit.number < n && rc == 0; edit.number++, at += is_large ? 20 : 12) {
        rc = parse_edit(r, at, is_large, &edit);
        is_shown = is_shown || edit.media_time != -1;
        if (rc == 0 && is_shown)
            rc = show(r, &edit);
        edit.begin += rc == 0 ? edit.duration : 0;
        pauses = is_shown ? pauses : edit.begin;
    }
    if (rc == 0 && track->n_shown == 0)
        return weir_err_set(r->err, -ENODATA, "the video's edit list (box elst) hides all pictures; encode it again");
    if (rc == 0)
        move_first(track, pauses);
    return rc;
}

int weir_mp4_read_edits(struct weir_mp4_reader *r)
{
    struct weir_video_track *track = r->track;
    bool is_large = r->elst.n > 0 && r->elst.data[0] == 1;
    uint32_t n = 0;
    const uint8_t *at = r->elst.data ? weir_mp4_entries(&r->elst, WEIR_MP4_FULL, is_large ? 20 : 12, &n) : NULL;
    if (r->elst.data && !at)
        return weir_mp4_damaged(r->err, "elst", "contains fewer edits than it announces");
    if (n > 0 && r->movie_timescale == 0)
        return weir_mp4_damaged(r->err, "mvhd", "is missing");
    int rc = n > 0 ? show_edits(r, at, n, is_large) : weir_video_track_show(track, 0, track->n, 0);
    if (rc == 0)
        weir_mp4_shrink(&track->edits, track->n_edits * sizeof *track->edits);
    return rc == -ENOMEM ? weir_no_memory(r->err) : rc;
}
