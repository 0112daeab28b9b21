/* Derives the presentation order and the blocks of a track from its tables. */
#include "base/grow.h"
#include "base/shortage.h"
#include "datasets/video/video_track_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* ---- presentation order ---- */

struct timed {
    int64_t time;
    uint32_t sample;
};

static int by_time(const void *a, const void *b)
{
    const struct timed *left = a, *right = b;
    if (left->time != right->time)
        return left->time < right->time ? -1 : 1;
    return (left->sample > right->sample) - (left->sample < right->sample);
}

/* Returns true if samples have the same constant distance in both orders, so that they need not be compared. */
static bool is_even(const struct weir_video_track *track)
{
    return track->n_times == 1 && track->times->delta > 0 && track->n_shifts <= 1;
}

/* Lists the times of all samples. Returns true if each sample is presented after the one before it. */
static bool list_times(const struct weir_video_track *track, struct timed *timed)
{
    uint32_t times = 0, shift = 0; /* ranges that contain sample i */
    bool is_ordered = true;
    for (uint32_t i = 0; i < track->n; i++) {
        times += times + 1 < track->n_times && track->times[times + 1].first == i;
        shift += shift + 1 < track->n_shifts && track->shifts[shift + 1].first == i;
        const struct weir_video_times *range = &track->times[times];
        int64_t time = range->time + (int64_t)(i - range->first) * range->delta;
        timed[i] = (struct timed){time + (track->shifts ? track->shifts[shift].shift : 0), i};
        is_ordered = is_ordered && (i == 0 || timed[i].time > timed[i - 1].time);
    }
    return is_ordered;
}

/* Sorts nearly sorted samples in time proportional to their number. Gives up if they are far from their places. */
static bool sort_near(struct timed *timed, uint32_t n)
{
    uint64_t moves = 0;
    for (uint32_t i = 1; i < n && moves <= (uint64_t)n * 8; i++) {
        struct timed one = timed[i];
        uint32_t at = i;
        for (; at > 0 && timed[at - 1].time > one.time && moves <= (uint64_t)n * 8; at--, moves++)
            timed[at] = timed[at - 1];
        timed[at] = one;
    }
    return moves <= (uint64_t)n * 8;
}

static int keep_order(struct weir_video_track *track, struct timed *timed, struct weir_err *err)
{
    if (!sort_near(timed, track->n))
        qsort(timed, track->n, sizeof *timed, by_time);
    for (uint32_t i = 1; i < track->n; i++)
        if (timed[i].time == timed[i - 1].time)
            return weir_err_set(err, -EBADMSG,
                                "samples %" PRIu32 " and %" PRIu32 " of the video have the same presentation time; "
                                "encode it again",
                                timed[i - 1].sample, timed[i].sample);
    track->order = malloc(track->n * sizeof *track->order);
    if (!track->order)
        return weir_no_memory(err);
    for (uint32_t i = 0; i < track->n; i++)
        track->order[i] = timed[i].sample;
    return 0;
}

static int find_order(struct weir_video_track *track, struct weir_err *err)
{
    if (is_even(track))
        return 0;
    struct timed *timed = malloc(track->n * sizeof *timed);
    if (!timed)
        return weir_no_memory(err);
    int rc = list_times(track, timed) ? 0 : keep_order(track, timed, err);
    free(timed);
    return rc;
}

/* ---- blocks ---- */

/* Counts the members of a complete set. */
static uint32_t count(struct weir_video_set *set, uint32_t n)
{
    uint32_t members = 0;
    for (uint32_t word = 0; word <= n / 64; word++) {
        if (word % (WEIR_VIDEO_SET_STEP / 64) == 0)
            set->counts[word / (WEIR_VIDEO_SET_STEP / 64)] = members;
        members += (uint32_t)__builtin_popcountll(set->words[word]);
    }
    return members;
}

static bool is_sync(const struct weir_video_track *track, uint32_t rank)
{
    uint32_t sample = track->order ? track->order[rank] : rank;
    return track->syncs.words[sample / 64] >> sample % 64 & 1;
}

/* Blocks begin with the first picture, and with every sync sample after the first sync sample. */
static int list_starts(struct weir_video_track *track)
{
    if (!track->order && is_sync(track, 0)) {
        track->starts = track->syncs;
        return 0;
    }
    if (weir_video_set_open(&track->starts, track->n) < 0)
        return -ENOMEM;
    bool is_first = true;
    for (uint32_t rank = 0; rank < track->n; rank++)
        if (is_sync(track, rank)) {
            weir_video_set_add(&track->starts, is_first ? 0 : rank);
            is_first = false;
        }
    count(&track->starts, track->n);
    return 0;
}

/* Returns true if a picture is presented after a sync sample that is decoded after it. */
static bool is_crossed(const struct weir_video_track *track)
{
    uint32_t sync = 0;
    for (uint32_t rank = 0; track->order && rank < track->n; rank++) {
        sync = is_sync(track, rank) ? track->order[rank] : sync;
        if (track->order[rank] < sync)
            return true;
    }
    return false;
}

int weir_video_track_order(struct weir_video_track *track, struct weir_err *err)
{
    if (track->syncs.words && count(&track->syncs, track->n) == 0)
        return weir_err_set(err, -EBADMSG, "the video has no sync sample, so it cannot be decoded; encode it again");
    int rc = find_order(track, err);
    if (rc < 0 || !track->syncs.words)
        return rc;
    track->is_crossed = is_crossed(track);
    return list_starts(track) < 0 ? weir_no_memory(err) : 0;
}

/* ---- what is shown ---- */

/* Returns the most pictures of a block among those with ranks first .. end - 1 in the media. */
static uint32_t longest_block(const struct weir_video_track *track, uint32_t first, uint32_t end)
{
    uint32_t longest = 0;
    for (uint32_t word = first / 64; word <= (end - 1) / 64; word++)
        for (uint64_t bits = track->starts.words[word]; bits; bits &= bits - 1) {
            uint32_t rank = word * 64 + (uint32_t)__builtin_ctzll(bits);
            if (rank <= first || rank >= end)
                continue;
            longest = rank - first > longest ? rank - first : longest;
            first = rank;
        }
    return end - first > longest ? end - first : longest;
}

int weir_video_track_show(struct weir_video_track *track, uint32_t media, uint32_t n, int64_t shift)
{
    if (!weir_grow(&track->edits, track->n_edits, sizeof *track->edits))
        return -ENOMEM;
    uint32_t block = weir_video_media_block(track, media), longest = 1;
    track->edits[track->n_edits++] = (struct weir_video_edit){track->n_shown, track->n_blocks, media, block, shift};
    track->n_shown += n;
    track->n_blocks += weir_video_media_block(track, media + n - 1) - block + 1;
    if (track->starts.words)
        longest = longest_block(track, media, media + n);
    track->block_max = longest > track->block_max ? longest : track->block_max;
    return 0;
}
