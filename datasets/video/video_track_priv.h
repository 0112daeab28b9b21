/* video_track_priv.h: the tables of a track, which readers of container formats fill. */
#ifndef WEIR_DATASETS_VIDEO_VIDEO_TRACK_PRIV_H
#define WEIR_DATASETS_VIDEO_VIDEO_TRACK_PRIV_H

#include "datasets/video/video_track.h"

enum { WEIR_TRACK_SUM_SAMPLES = 64 };

/* Samples from `first` on that are adjacent in the file. */
struct weir_track_run {
    uint64_t offset;
    uint32_t first;
};

/* Samples from `first` on that are `delta` apart in decoding time. */
struct weir_track_times {
    int64_t time;
    uint32_t first, delta;
};

/* Samples from `first` on that are presented this long after their decoding time. */
struct weir_track_shift {
    uint32_t first;
    int32_t shift;
};

struct weir_video_track {
    struct weir_video_stream stream;
    uint8_t *config;
    uint32_t n, timescale;
    uint32_t equal_bytes; /* size of every sample, if sizes is NULL */
    uint32_t *sizes;
    uint64_t *sums; /* bytes before sample i * WEIR_TRACK_SUM_SAMPLES */
    struct weir_track_run *runs;
    uint32_t n_runs;
    struct weir_track_times *times;
    uint32_t n_times;
    struct weir_track_shift *shifts; /* NULL = all 0 */
    uint32_t n_shifts;
    int64_t edit;   /* added to all presentation times */
    uint8_t *syncs; /* bit i: sample i is a sync sample; NULL = all are */
    /* Derived by weir_video_track_finish. */
    uint32_t *order;        /* sample of each rank; NULL = the same */
    uint32_t *block_firsts; /* rank of the first picture of each block; NULL = one picture per block */
    uint32_t n_blocks, block_max, sample_max;
};

/* Bytes of all samples before this one. */
uint64_t weir_track_bytes_before(const struct weir_video_track *track, uint32_t sample);
static inline uint32_t weir_track_size(const struct weir_video_track *track, uint32_t sample)
{
    return track->sizes ? track->sizes[sample] : track->equal_bytes;
}
/* Computes the sums of the sizes. Returns 0 or -ENOMEM. */
int weir_track_sum(struct weir_video_track *track);
/* Derives the presentation order and the blocks from complete tables. Returns 0; -EBADMSG with err if two pictures have
 * the same presentation time; or -ENOMEM. */
int weir_video_track_finish(struct weir_video_track *track, struct weir_err *err);

#endif
