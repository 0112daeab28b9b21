#include "datasets/video/video_track.h"
#include "base/grow.h"
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
    if (t->starts.words != t->syncs.words) {
        free(t->starts.words);
        free(t->starts.counts);
    }
    free(t->syncs.words);
    free(t->syncs.counts);
    free(t->config);
    free(t->sizes);
    free(t->sums);
    free(t->runs);
    free(t->times);
    free(t->shifts);
    free(t->order);
    free(t->edits);
    free(t);
}

const struct weir_video_stream *weir_video_track_stream(const struct weir_video_track *track)
{
    return &track->stream;
}

uint32_t weir_video_track_frames(const struct weir_video_track *track)
{
    return track->n_shown;
}

uint32_t weir_video_track_timescale(const struct weir_video_track *track)
{
    return track->timescale;
}

size_t weir_video_track_sample_max(const struct weir_video_track *track)
{
    return track->sample_max;
}

static size_t set_bytes(const struct weir_video_set *set, uint32_t n)
{
    return set->words
               ? ((size_t)n / 64 + 1) * sizeof *set->words + ((size_t)n / WEIR_VIDEO_SET_STEP + 1) * sizeof *set->counts
               : 0;
}

size_t weir_video_track_bytes(const struct weir_video_track *track)
{
    size_t n = track->n, bytes = sizeof *track + track->stream.config_bytes;
    bytes += track->sizes ? n * sizeof *track->sizes + (n / WEIR_VIDEO_SUM_STEP + 1) * sizeof *track->sums : 0;
    bytes += track->n_runs * sizeof *track->runs + track->n_times * sizeof *track->times;
    bytes += track->n_shifts * sizeof *track->shifts + (track->order ? n * sizeof *track->order : 0);
    bytes += track->n_edits * sizeof *track->edits;
    bytes += track->starts.words != track->syncs.words ? set_bytes(&track->starts, track->n) : 0;
    return bytes + set_bytes(&track->syncs, track->n);
}

/* ---- sets ---- */

int weir_video_set_open(struct weir_video_set *set, uint32_t n)
{
    set->words = calloc((size_t)n / 64 + 1, sizeof *set->words);
    set->counts = malloc(((size_t)n / WEIR_VIDEO_SET_STEP + 1) * sizeof *set->counts);
    return set->words && set->counts ? 0 : -ENOMEM;
}

static bool contains(const struct weir_video_set *set, uint32_t i)
{
    return !set->words || (set->words[i / 64] >> i % 64 & 1);
}

/* Returns the number of members that are at most i. */
static uint32_t count_up_to(const struct weir_video_set *set, uint32_t i)
{
    uint32_t n = set->counts[i / WEIR_VIDEO_SET_STEP], word = i / WEIR_VIDEO_SET_STEP * (WEIR_VIDEO_SET_STEP / 64);
    for (; word < i / 64; word++)
        n += (uint32_t)__builtin_popcountll(set->words[word]);
    return n + (uint32_t)__builtin_popcountll(set->words[word] & (UINT64_MAX >> (63 - i % 64)));
}

/* Returns the member that has `before` members before it, of a set of numbers less than n. */
static uint32_t member(const struct weir_video_set *set, uint32_t n, uint32_t before)
{
    uint32_t low = WEIR_FIRST(i, n / WEIR_VIDEO_SET_STEP, set->counts[i + 1] > before);
    uint32_t left = before - set->counts[low], word = low * (WEIR_VIDEO_SET_STEP / 64), in_word;
    while ((in_word = (uint32_t)__builtin_popcountll(set->words[word])) <= left) {
        left -= in_word;
        word++;
    }
    uint64_t bits = set->words[word];
    for (; left > 0; left--)
        bits &= bits - 1;
    return word * 64 + (uint32_t)__builtin_ctzll(bits);
}

/* ---- samples ---- */

int weir_video_track_sum(struct weir_video_track *track)
{
    uint64_t sum = 0;
    track->sample_max = track->equal_bytes;
    if (!track->sizes)
        return 0;
    track->sums = malloc(((size_t)track->n / WEIR_VIDEO_SUM_STEP + 1) * sizeof *track->sums);
    if (!track->sums)
        return -ENOMEM;
    for (uint32_t i = 0; i < track->n; i++) {
        if (i % WEIR_VIDEO_SUM_STEP == 0)
            track->sums[i / WEIR_VIDEO_SUM_STEP] = sum;
        sum += track->sizes[i];
        track->sample_max = track->sizes[i] > track->sample_max ? track->sizes[i] : track->sample_max;
    }
    if (track->n % WEIR_VIDEO_SUM_STEP == 0)
        track->sums[track->n / WEIR_VIDEO_SUM_STEP] = sum;
    return 0;
}

uint64_t weir_video_bytes_before(const struct weir_video_track *track, uint32_t sample)
{
    if (!track->sizes)
        return (uint64_t)sample * track->equal_bytes;
    uint64_t sum = track->sums[sample / WEIR_VIDEO_SUM_STEP];
    for (uint32_t i = sample / WEIR_VIDEO_SUM_STEP * WEIR_VIDEO_SUM_STEP; i < sample; i++)
        sum += track->sizes[i];
    return sum;
}

/* Returns the number of the range that contains i, of n ranges of `size` bytes, which begin at *firsts. */
static uint32_t find_range(const uint32_t *firsts, uint32_t n, size_t size, uint32_t i)
{
    uint32_t first;
    return WEIR_FIRST(range, n - 1,
                      (memcpy(&first, (const uint8_t *)firsts + (range + 1) * size, sizeof first), first > i));
}

int64_t weir_video_decoding_time(const struct weir_video_track *track, uint32_t sample)
{
    const struct weir_video_times *times = track->times;
    times += find_range(&times->first, track->n_times, sizeof *times, sample);
    return times->time + (int64_t)(sample - times->first) * times->delta;
}

static int64_t time_of(const struct weir_video_track *track, uint32_t sample)
{
    const struct weir_video_shift *shift = track->shifts;
    int64_t time = weir_video_decoding_time(track, sample);
    return shift ? time + shift[find_range(&shift->first, track->n_shifts, sizeof *shift, sample)].shift : time;
}

void weir_video_track_sample(const struct weir_video_track *track, uint32_t sample, struct weir_video_sample *out)
{
    const struct weir_video_run *run = track->runs;
    run += find_range(&run->first, track->n_runs, sizeof *run, sample);
    *out = (struct weir_video_sample){
        .offset = run->offset + weir_video_bytes_before(track, sample) - weir_video_bytes_before(track, run->first),
        .bytes = track->sizes ? track->sizes[sample] : track->equal_bytes,
        .time = time_of(track, sample),
        .is_sync = contains(&track->syncs, sample),
    };
}

static uint32_t sample_at(const struct weir_video_track *track, uint32_t media)
{
    return track->order ? track->order[media] : media;
}

int64_t weir_video_media_time(const struct weir_video_track *track, uint32_t media)
{
    return time_of(track, sample_at(track, media));
}

/* Returns the edit that shows the picture with this rank. */
static const struct weir_video_edit *edit_of(const struct weir_video_track *track, uint32_t rank)
{
    return track->edits + find_range(&track->edits->first, track->n_edits, sizeof *track->edits, rank);
}

/* Returns the edit that shows pictures of this block. */
static const struct weir_video_edit *edit_of_block(const struct weir_video_track *track, uint32_t block)
{
    return track->edits + find_range(&track->edits->first_block, track->n_edits, sizeof *track->edits, block);
}

uint32_t weir_video_track_at_rank(const struct weir_video_track *track, uint32_t rank)
{
    const struct weir_video_edit *edit = edit_of(track, rank);
    return sample_at(track, rank - edit->first + edit->media);
}

int64_t weir_video_track_time(const struct weir_video_track *track, uint32_t rank)
{
    const struct weir_video_edit *edit = edit_of(track, rank);
    return weir_video_media_time(track, rank - edit->first + edit->media) + edit->shift;
}

/* ---- the nearest picture ---- */

/* A time in seconds, with `unit` pieces to one unit of the track's time scale. */
struct moment {
    const struct weir_video_track *track;
    __int128 time;
    int64_t unit;
};

/* Returns how much later the time is than the picture. */
static __int128 lateness(const struct moment *moment, uint32_t rank)
{
    return moment->time - (__int128)weir_video_track_time(moment->track, rank) * moment->unit;
}

/* Narrows the ranks *low (not later than the moment) and *high (later, and not the next one) to a few around a guess,
 * because most videos have a constant frame rate. */
static void narrow(const struct moment *moment, uint32_t *low, uint32_t *high)
{
    uint32_t n = *high - *low, middle = *high - 1, step = 1;
    int64_t span = weir_video_track_time(moment->track, *high) - weir_video_track_time(moment->track, *low);
    __int128 guess = lateness(moment, *low) / ((__int128)span * moment->unit / n); /* span >= n: times increase */
    if (guess < n - 1)
        middle = *low + (guess > 0 ? (uint32_t)guess : 1);
    bool is_later = lateness(moment, middle) < 0, same = true;
    while (same) {
        *(is_later ? high : low) = middle;
        uint32_t room = is_later ? middle - *low : *high - middle;
        step = step < room ? step : room;
        middle = is_later ? middle - step : middle + step;
        step *= 2;
        same = middle > *low && middle < *high && (lateness(moment, middle) < 0) == is_later;
    }
    if (middle > *low && middle < *high)
        *(is_later ? low : high) = middle;
}

uint32_t weir_video_track_nearest(const struct weir_video_track *track, int64_t numerator, int64_t denominator)
{
    struct moment moment = {track, (__int128)numerator * track->timescale, denominator};
    uint32_t low = 0, high = track->n_shown - 1;
    if (lateness(&moment, low) <= 0)
        return low;
    if (lateness(&moment, high) >= 0)
        return high;
    if (high - low > 1)
        narrow(&moment, &low, &high);
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (lateness(&moment, middle) >= 0)
            low = middle;
        else
            high = middle;
    }
    return lateness(&moment, low) <= -lateness(&moment, high) ? low : high;
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

uint32_t weir_video_media_block(const struct weir_video_track *track, uint32_t media)
{
    return track->starts.words ? count_up_to(&track->starts, media) - 1 : media;
}

/* Returns the rank in the media of the first picture of a block in the media. */
static uint32_t media_first(const struct weir_video_track *track, uint32_t block)
{
    return track->starts.words ? member(&track->starts, track->n, block) : block;
}

uint32_t weir_video_track_block_of(const struct weir_video_track *track, uint32_t rank)
{
    const struct weir_video_edit *edit = edit_of(track, rank);
    return weir_video_media_block(track, rank - edit->first + edit->media) - edit->media_block + edit->first_block;
}

uint32_t weir_video_track_block_first(const struct weir_video_track *track, uint32_t block)
{
    if (block >= track->n_blocks)
        return track->n_shown;
    const struct weir_video_edit *edit = edit_of_block(track, block);
    if (block == edit->first_block)
        return edit->first; /* the edit can begin within the block */
    return media_first(track, block - edit->first_block + edit->media_block) - edit->media + edit->first;
}

/* Returns the last sync sample that is decoded before all pictures of the block. */
static uint32_t earlier_sync(const struct weir_video_track *track, uint32_t block, uint32_t sync)
{
    uint32_t end = weir_video_track_block_first(track, block + 1), from = sync;
    for (uint32_t rank = weir_video_track_block_first(track, block); rank < end; rank++) {
        uint32_t sample = weir_video_track_at_rank(track, rank);
        from = sample < from ? sample : from;
    }
    while (from > 0 && !contains(&track->syncs, from))
        from--;
    return contains(&track->syncs, from) ? from : sync;
}

uint32_t weir_video_track_block_sync(const struct weir_video_track *track, uint32_t block)
{
    const struct weir_video_edit *edit = edit_of_block(track, block);
    uint32_t media = media_first(track, block - edit->first_block + edit->media_block);
    while (!contains(&track->syncs, sample_at(track, media)))
        media++; /* only in the first block, whose sync sample may follow other pictures */
    uint32_t sync = sample_at(track, media);
    return track->is_crossed && block > 0 ? earlier_sync(track, block, sync) : sync;
}
