#include "datasets/video/video_track.h"
#include "base/shortage.h"
#include "datasets/video/video_track_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void weir_video_track_close(struct weir_video_track **track)
{
    struct weir_video_track *t = *track;
    *track = NULL;
    if (!t)
        return;
    free(t->config);
    free(t->sizes);
    free(t->sums);
    free(t->runs);
    free(t->times);
    free(t->shifts);
    free(t->syncs);
    free(t->order);
    free(t->block_firsts);
    free(t);
}

const struct weir_video_stream *weir_video_track_stream(const struct weir_video_track *track)
{
    return &track->stream;
}

uint32_t weir_video_track_frames(const struct weir_video_track *track)
{
    return track->n;
}

uint32_t weir_video_track_timescale(const struct weir_video_track *track)
{
    return track->timescale;
}

size_t weir_video_track_sample_max(const struct weir_video_track *track)
{
    return track->sample_max;
}

size_t weir_video_track_bytes(const struct weir_video_track *track)
{
    size_t n = track->n;
    return sizeof *track + track->stream.config_bytes + (track->sizes ? n * sizeof *track->sizes : 0) +
           (n / WEIR_TRACK_SUM_SAMPLES + 1) * sizeof *track->sums + track->n_runs * sizeof *track->runs +
           track->n_times * sizeof *track->times + track->n_shifts * sizeof *track->shifts +
           (track->syncs ? n / 8 + 1 : 0) + (track->order ? n * sizeof *track->order : 0) +
           (track->block_firsts ? track->n_blocks * sizeof *track->block_firsts : 0);
}

/* ---- samples ---- */

int weir_track_sum(struct weir_video_track *track)
{
    uint64_t sum = 0;
    track->sums = malloc(((size_t)track->n / WEIR_TRACK_SUM_SAMPLES + 1) * sizeof *track->sums);
    if (!track->sums)
        return -ENOMEM;
    track->sums[0] = 0;
    for (uint32_t i = 0; i < track->n; i++) {
        uint32_t size = weir_track_size(track, i);
        if (i % WEIR_TRACK_SUM_SAMPLES == 0)
            track->sums[i / WEIR_TRACK_SUM_SAMPLES] = sum;
        track->sample_max = size > track->sample_max ? size : track->sample_max;
        sum += size;
    }
    return 0;
}

uint64_t weir_track_bytes_before(const struct weir_video_track *track, uint32_t sample)
{
    uint32_t i = sample / WEIR_TRACK_SUM_SAMPLES * WEIR_TRACK_SUM_SAMPLES;
    uint64_t sum = i < track->n ? track->sums[i / WEIR_TRACK_SUM_SAMPLES] : 0;
    if (i == track->n && i > 0) { /* the end of a track whose last group is full */
        i -= WEIR_TRACK_SUM_SAMPLES;
        sum = track->sums[i / WEIR_TRACK_SUM_SAMPLES];
    }
    for (; i < sample; i++)
        sum += weir_track_size(track, i);
    return sum;
}

/* Returns the index of the last element whose first sample is at most `sample`. The first member of an element of
 * `stride` bytes is at `at`. */
static uint32_t find(const void *array, uint32_t n, size_t stride, size_t at, uint32_t sample)
{
    uint32_t low = 0, high = n - 1;
    while (low < high) {
        uint32_t middle = low + (high - low + 1) / 2, first;
        memcpy(&first, (const uint8_t *)array + middle * stride + at, sizeof first);
        if (first <= sample)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

#define FIND(array, n, sample)                                                                                         \
    (&(array)[find(array, n, sizeof *(array), (size_t)((const uint8_t *)&(array)->first - (const uint8_t *)(array)),   \
                   sample)])

static int64_t time_of(const struct weir_video_track *track, uint32_t sample)
{
    const struct weir_track_times *times = FIND(track->times, track->n_times, sample);
    int64_t time = times->time + (int64_t)(sample - times->first) * times->delta + track->edit;
    return track->shifts ? time + FIND(track->shifts, track->n_shifts, sample)->shift : time;
}

static bool is_sync(const struct weir_video_track *track, uint32_t sample)
{
    return !track->syncs || (track->syncs[sample / 8] >> sample % 8 & 1);
}

void weir_video_track_sample(const struct weir_video_track *track, uint32_t sample, struct weir_video_sample *out)
{
    const struct weir_track_run *run = FIND(track->runs, track->n_runs, sample);
    *out = (struct weir_video_sample){
        .offset = run->offset + weir_track_bytes_before(track, sample) - weir_track_bytes_before(track, run->first),
        .bytes = weir_track_size(track, sample),
        .time = time_of(track, sample),
        .is_sync = is_sync(track, sample),
    };
}

uint32_t weir_video_track_at_rank(const struct weir_video_track *track, uint32_t rank)
{
    return track->order ? track->order[rank] : rank;
}

int64_t weir_video_track_time(const struct weir_video_track *track, uint32_t rank)
{
    return time_of(track, weir_video_track_at_rank(track, rank));
}

uint32_t weir_video_track_nearest(const struct weir_video_track *track, int64_t numerator, int64_t denominator)
{
    __int128 want = (__int128)numerator * track->timescale;
    uint32_t low = 0, high = track->n - 1; /* the last picture that is not later, or the first */
    while (low < high) {
        uint32_t middle = low + (high - low + 1) / 2;
        if ((__int128)weir_video_track_time(track, middle) * denominator <= want)
            low = middle;
        else
            high = middle - 1;
    }
    if (low + 1 == track->n)
        return low;
    __int128 before = want - (__int128)weir_video_track_time(track, low) * denominator;
    __int128 after = (__int128)weir_video_track_time(track, low + 1) * denominator - want;
    return after < before ? low + 1 : low;
}

/* ---- blocks ---- */

uint32_t weir_video_track_blocks(const struct weir_video_track *track)
{
    return track->n_blocks;
}

uint32_t weir_video_track_block_max(const struct weir_video_track *track)
{
    return track->block_max;
}

uint32_t weir_video_track_block_of(const struct weir_video_track *track, uint32_t rank)
{
    return track->block_firsts ? find(track->block_firsts, track->n_blocks, sizeof *track->block_firsts, 0, rank)
                               : rank;
}

uint32_t weir_video_track_block_first(const struct weir_video_track *track, uint32_t block)
{
    return track->block_firsts ? track->block_firsts[block] : block;
}

uint32_t weir_video_track_block_sync(const struct weir_video_track *track, uint32_t block)
{
    uint32_t rank = weir_video_track_block_first(track, block);
    while (!is_sync(track, weir_video_track_at_rank(track, rank)))
        rank++; /* only in the first block, which may begin with pictures before its sync sample */
    return weir_video_track_at_rank(track, rank);
}

/* ---- derived tables ---- */

struct placed {
    int64_t time;
    uint32_t sample;
};

static int by_time(const void *a, const void *b)
{
    const struct placed *left = a, *right = b;
    if (left->time != right->time)
        return left->time < right->time ? -1 : 1;
    return left->sample < right->sample ? -1 : left->sample > right->sample;
}

static bool is_ordered(const struct weir_video_track *track)
{
    bool even = !track->shifts && track->n_times == 1 && track->times->delta > 0;
    for (uint32_t i = 1; i < track->n && !even; i++)
        if (time_of(track, i) <= time_of(track, i - 1))
            return false;
    return true;
}

static int sort_samples(struct weir_video_track *track)
{
    struct placed *placed = malloc(track->n * sizeof *placed);
    track->order = malloc(track->n * sizeof *track->order);
    if (!placed || !track->order) {
        free(placed);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < track->n; i++)
        placed[i] = (struct placed){time_of(track, i), i};
    qsort(placed, track->n, sizeof *placed, by_time);
    for (uint32_t i = 0; i < track->n; i++)
        track->order[i] = placed[i].sample;
    free(placed);
    return 0;
}

static int check_times(const struct weir_video_track *track, struct weir_err *err)
{
    for (uint32_t rank = 1; rank < track->n; rank++)
        if (weir_video_track_time(track, rank) == weir_video_track_time(track, rank - 1))
            return weir_err_set(err, -EBADMSG,
                                "samples %u and %u of the video have the same presentation time; encode it again",
                                weir_video_track_at_rank(track, rank - 1), weir_video_track_at_rank(track, rank));
    return 0;
}

/* Blocks begin with the first picture, and with every sync sample after the first sync sample. */
static int list_blocks(struct weir_video_track *track)
{
    uint32_t n = 0, syncs = 0;
    for (uint32_t rank = 0; rank < track->n && track->syncs; rank++)
        syncs += is_sync(track, weir_video_track_at_rank(track, rank));
    track->n_blocks = track->syncs ? syncs : track->n;
    track->block_max = 1;
    if (!track->syncs)
        return 0;
    track->block_firsts = malloc((size_t)syncs * sizeof *track->block_firsts);
    if (!track->block_firsts)
        return -ENOMEM;
    for (uint32_t rank = 0; rank < track->n; rank++)
        if (is_sync(track, weir_video_track_at_rank(track, rank)))
            track->block_firsts[n++] = rank;
    track->block_firsts[0] = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t end = i + 1 < n ? track->block_firsts[i + 1] : track->n, frames = end - track->block_firsts[i];
        track->block_max = frames > track->block_max ? frames : track->block_max;
    }
    return 0;
}

static bool has_sync(const struct weir_video_track *track)
{
    for (uint32_t i = 0; i < track->n; i++)
        if (is_sync(track, i))
            return true;
    return false;
}

int weir_video_track_finish(struct weir_video_track *track, struct weir_err *err)
{
    if (!has_sync(track))
        return weir_err_set(err, -EBADMSG, "the video has no sync sample, so it cannot be decoded; encode it again");
    bool ordered = is_ordered(track);
    int rc = ordered ? 0 : sort_samples(track);
    if (rc == 0 && !ordered)
        rc = check_times(track, err);
    if (rc == -EBADMSG)
        return rc;
    if (rc == 0)
        rc = list_blocks(track);
    return rc < 0 ? weir_no_memory(err) : 0;
}
