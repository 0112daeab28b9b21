/* Rows of a LeRobot dataset whose times are not those of their pictures, and pictures without rows. */
#include "base/shortage.h"
#include "datasets/lerobot/lerobot_review_priv.h"

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* LeRobot's default tolerance: it refuses frames that are further from their picture. */
#define TOLERANCE_S 1e-4

/* ---- times of rows and pictures ---- */

/* Returns how far a time of a row can be from the exact one without being wrong: it is a float32, and presentation
 * times are multiples of the time scale's unit. */
static double most_off(double time, uint32_t timescale)
{
    return TOLERANCE_S + fabs(time) * (FLT_EPSILON / 2) + (timescale > 0 ? 0.5 / timescale : 0);
}

struct weir_lerobot_drift weir_lerobot_drift_of(const struct weir_lerobot_view *view,
                                                const struct weir_lerobot_feature *feature,
                                                const struct weir_frame_map *map, const double *times)
{
    const struct weir_lerobot_clip *clip =
        weir_lerobot_clip(view->lerobot, (size_t)(view->episode - view->lerobot->episodes), feature);
    uint32_t timescale = weir_video_track_timescale(map->video);
    struct weir_lerobot_drift drift = {0};
    for (int64_t t = 0; t < view->episode->length; t++) {
        double at = clip->from_s + times[t];
        double shown = (double)weir_video_track_time(map->video, weir_map_rank(map, t)) / timescale;
        if (fabs(at - shown) <= most_off(times[t], timescale))
            continue;
        drift.rows++;
        if (fabs(at - shown) <= drift.off_s)
            continue;
        drift.off_s = fabs(at - shown);
        drift.worst = t;
        drift.row_s = at;
        drift.picture_s = shown;
    }
    return drift;
}

int64_t weir_lerobot_wrong_step(const struct weir_lerobot_view *view, const double *times)
{
    double frame = 1 / weir_lerobot_fps(view->lerobot), most = 0;
    int64_t worst = -1;
    for (int64_t t = 1; t < view->episode->length; t++) {
        double off = fabs(times[t] - times[t - 1] - frame);
        if (!(off > fmax(most, most_off(2 * times[t], 0)))) /* two times are rounded; NaN is another fault */
            continue;
        most = off;
        worst = t;
    }
    return worst;
}

int weir_lerobot_mark_times(const struct weir_lerobot_view *view, struct weir_episode *episode, struct weir_err *err)
{
    double *times = NULL;
    int rc = 0;
    for (int i = 0; i < episode->n_maps && rc == 0; i++) {
        const struct weir_frame_map *map = &episode->maps[i];
        const char *slash = strchr(map->key, '/'); /* the key is "episode N/FEATURE" */
        int number = slash ? weir_lerobot_feature(view->lerobot, slash + 1) : -1;
        if (!map->video || number < 0)
            continue;
        rc = times ? 0 : weir_lerobot_read_times(view, &times, err);
        if (rc < 0)
            continue;
        struct weir_lerobot_drift drift = weir_lerobot_drift_of(view, &view->lerobot->features[number], map, times);
        episode->drift_rows = drift.rows > episode->drift_rows ? (int)drift.rows : episode->drift_rows;
        episode->drift_frames = fmaxf(episode->drift_frames, (float)(drift.off_s * weir_lerobot_fps(view->lerobot)));
    }
    if (times && episode->drift_rows == 0)
        episode->is_rate_wrong = weir_lerobot_wrong_step(view, times) >= 0;
    free(times);
    return rc;
}

/* Reports the row that is furthest from its picture. Returns 1 if there is one. */
static int review_drift(const struct weir_lerobot_review *r, const struct weir_lerobot_view *view,
                        const struct weir_lerobot_feature *feature, const struct weir_frame_map *map,
                        const double *times)
{
    struct weir_lerobot_drift drift = weir_lerobot_drift_of(view, feature, map, times);
    if (drift.rows == 0)
        return 0;
    int rc = weir_lerobot_report(
        r, WEIR_REVIEW_VIDEO, weir_lerobot_place_of(view->episode->index, feature->key).text, drift.worst,
        "the row is at %.6g s of the video, %.3g s (%.2g frames) from its picture at %.6g s; %" PRId64 " of %" PRId64
        " rows drift by more than LeRobot's tolerance of %g s",
        drift.row_s, drift.off_s, drift.off_s * weir_lerobot_fps(r->lerobot), drift.picture_s, drift.rows,
        view->episode->length, TOLERANCE_S);
    return rc == 0 ? 1 : rc;
}

/* Offsets in seconds are counted in rows, so rows must be one frame apart. */
static int review_steps(struct weir_lerobot_review *r, const struct weir_lerobot_view *view, const double *times)
{
    int64_t worst = weir_lerobot_wrong_step(view, times);
    if (worst < 0)
        return 0;
    r->is_rate_wrong = true;
    return weir_lerobot_report(
        r, WEIR_REVIEW_TABLES, weir_lerobot_place_of(view->episode->index, "timestamp").text, worst,
        "is %.6g s after the row before it, but at the fps of meta/info.json, %.6g, rows are "
        "%.6g s apart",
        times[worst] - times[worst - 1], weir_lerobot_fps(r->lerobot), 1 / weir_lerobot_fps(r->lerobot));
}

/* Tools that cut videos use the recorded end of an episode. */
static int review_end(const struct weir_lerobot_review *r, const struct weir_lerobot_view *view,
                      const struct weir_lerobot_feature *feature)
{
    const struct weir_lerobot_clip *clip =
        weir_lerobot_clip(r->lerobot, (size_t)(view->episode - r->lerobot->episodes), feature);
    double fps = weir_lerobot_fps(r->lerobot), end = clip->from_s + (double)view->episode->length / fps;
    if (isnan(clip->to_s) || fabs(clip->to_s - end) <= 0.5 / fps)
        return 0;
    return weir_lerobot_report(r, WEIR_REVIEW_TABLES, weir_lerobot_place_of(view->episode->index, feature->key).text,
                               -1,
                               "to_timestamp in the list of episodes is %.6g s, but %" PRId64
                               " rows from %.6g s at %.6g fps end at %.6g s; correct it",
                               clip->to_s, view->episode->length, clip->from_s, fps, end);
}

static bool is_size_right(const struct weir_lerobot_feature *feature, const struct weir_frame_map *map)
{
    int width, height;
    return !weir_lerobot_picture_size(feature, &width, &height) || (width == map->width && height == map->height);
}

/* Returns 1 if the rows' times are faulty. */
static int review_video(struct weir_lerobot_review *r, const struct weir_lerobot_view *view, int number,
                        const double *times)
{
    const struct weir_lerobot_feature *feature = &r->lerobot->features[number];
    struct weir_frame_map map = {0};
    struct weir_err why = WEIR_ERR_NONE;
    int rc = weir_lerobot_place_video(view, number, &map, &why);
    if (rc < 0) { /* the episode cannot be opened */
        free(map.ranks);
        r->is_complete = false;
        return rc == -ENOMEM ? weir_no_memory(r->err) : 1;
    }
    if (!r->is_reported[number] && !is_size_right(feature, &map)) {
        r->is_reported[number] = true;
        rc = weir_lerobot_report(r, WEIR_REVIEW_TABLES, weir_lerobot_place_of(view->episode->index, feature->key).text,
                                 -1, "%.200s is %dx%d, but its shape in meta/info.json is %dx%dx%d",
                                 r->lerobot->parts->names[map.first_part], map.width, map.height, feature->dims[0],
                                 feature->dims[1], feature->dims[2]);
    }
    r->spans[r->n_spans++] =
        (struct weir_lerobot_span){map.first_part, weir_map_rank(&map, 0),
                                   weir_map_rank(&map, view->episode->length - 1), view->episode->index, feature};
    if (rc == 0)
        rc = review_drift(r, view, feature, &map, times);
    free(map.ranks);
    return rc;
}

int weir_lerobot_review_times(struct weir_lerobot_review *r, const struct weir_lerobot_view *view)
{
    double *times;
    struct weir_err why = WEIR_ERR_NONE;
    int rc = weir_lerobot_read_times(view, &times, &why), faults = 0;
    if (rc < 0)
        return rc == -ENOMEM ? weir_no_memory(r->err) : 0; /* the column is reviewed like others */
    for (int i = 0; i < r->lerobot->n_features && rc >= 0; i++) {
        rc = r->lerobot->features[i].kind == WEIR_LEROBOT_VIDEO ? review_video(r, view, i, times) : 0;
        faults += rc == 1;
    }
    if (rc >= 0)
        rc = faults ? 0 : review_steps(r, view, times);
    for (int i = 0; i < r->lerobot->n_features && rc == 0 && !faults && !r->is_rate_wrong; i++)
        if (r->lerobot->features[i].kind == WEIR_LEROBOT_VIDEO)
            rc = review_end(r, view, &r->lerobot->features[i]);
    free(times);
    return rc;
}

/* ---- pictures without rows ---- */

static int by_picture(const void *a, const void *b)
{
    const struct weir_lerobot_span *left = a, *right = b;
    if (left->part != right->part)
        return left->part < right->part ? -1 : 1;
    if (left->first != right->first)
        return left->first < right->first ? -1 : 1;
    return (left->episode > right->episode) - (left->episode < right->episode);
}

/* Returns whether a span, in the order of by_picture, begins before the one before it in its video ends. */
static bool is_overlapping(const struct weir_lerobot_span *spans, size_t i)
{
    return i > 0 && spans[i - 1].part == spans[i].part && spans[i].first <= spans[i - 1].last;
}

int weir_lerobot_mark_overlaps(struct weir_episode *episodes, int n, struct weir_err *err)
{
    size_t n_spans = 0, most = 0;
    for (int e = 0; e < n; e++)
        most += (size_t)episodes[e].n_maps;
    struct weir_lerobot_span *spans = calloc(most + 1, sizeof *spans);
    if (!spans)
        return weir_no_memory(err);
    for (int e = 0; e < n; e++)
        for (int m = 0; m < episodes[e].n_maps; m++) {
            const struct weir_frame_map *map = &episodes[e].maps[m];
            if (map->video)
                spans[n_spans++] = (struct weir_lerobot_span){map->first_part, weir_map_rank(map, 0),
                                                              weir_map_rank(map, map->frames - 1), e, NULL};
        }
    qsort(spans, n_spans, sizeof *spans, by_picture);
    for (size_t i = 0; i < n_spans; i++)
        if (is_overlapping(spans, i))
            episodes[spans[i].episode].is_overlapping = true;
    free(spans);
    return 0;
}

/* Returns the number of the dataset's frames from one picture to another. Videos can have a higher rate. */
static int64_t frames_between(const struct weir_lerobot_review *r, const struct weir_video_track *track, uint32_t from,
                              uint32_t to)
{
    double units = (double)weir_video_track_time(track, to) - (double)weir_video_track_time(track, from);
    double frames = units / weir_video_track_timescale(track) * weir_lerobot_fps(r->lerobot);
    return llround(fmin(fmax(frames, -1e15), 1e15) - 0.25);
}

/* Reports pictures before an episode that belong to no row, or to the episode before it (NULL = it is the first). */
static int report_begin(const struct weir_lerobot_review *r, const struct weir_video_track *track,
                        const struct weir_lerobot_span *before, const struct weir_lerobot_span *span)
{
    struct weir_lerobot_place place = weir_lerobot_place_of(span->episode, span->feature->key);
    const char *name = r->lerobot->parts->names[span->part];
    int64_t n =
        before ? frames_between(r, track, before->last, span->first) - 1 : frames_between(r, track, 0, span->first);
    if (before && is_overlapping(before, 1))
        return weir_lerobot_report(r, WEIR_REVIEW_VIDEO, place.text, 0,
                                   "the episode begins at picture %" PRIu32 " of %.200s, but episode %" PRId64
                                   " ends at %" PRIu32 "; correct its from_timestamp",
                                   span->first, name, before->episode, before->last);
    return n <= 0 ? 0
                  : weir_lerobot_report(r, WEIR_REVIEW_VIDEO, place.text, 0,
                                        "%" PRId64 " frame%s of %.200s before this row belong%s to no row", n,
                                        n == 1 ? "" : "s", name, n == 1 ? "s" : "");
}

static int report_end(const struct weir_lerobot_review *r, const struct weir_video_track *track,
                      const struct weir_lerobot_span *span)
{
    struct weir_lerobot_place place = weir_lerobot_place_of(span->episode, span->feature->key);
    uint32_t last = weir_video_track_frames(track) - 1;
    int64_t n = frames_between(r, track, span->last, last);
    return n <= 0 ? 0
                  : weir_lerobot_report(r, WEIR_REVIEW_VIDEO, place.text, -1,
                                        "%.200s is longer than its rows: %" PRId64
                                        " frame%s after the last row, to %.6g s",
                                        r->lerobot->parts->names[span->part], n, n == 1 ? "" : "s",
                                        (double)weir_video_track_time(track, last) / weir_video_track_timescale(track));
}

/* Episodes must follow each other in their videos. */
int weir_lerobot_review_spans(const struct weir_lerobot_review *r)
{
    int rc = 0;
    qsort(r->spans, r->n_spans, sizeof *r->spans, by_picture);
    for (size_t i = 0; i < r->n_spans && rc == 0; i++) {
        const struct weir_lerobot_span *span = &r->spans[i];
        bool first = i == 0 || span[-1].part != span->part, last = i + 1 == r->n_spans || span[1].part != span->part;
        const struct weir_video_track *track;
        rc = weir_lerobot_track(r->lerobot, span->part, &track, r->err);
        if (rc == 0)
            rc = report_begin(r, track, first ? NULL : &span[-1], span);
        if (rc == 0 && last)
            rc = report_end(r, track, span);
    }
    return rc;
}
