/* video_track_priv.h: the tables of a track, which readers of container formats fill. */
#ifndef WEIR_DATASETS_VIDEO_VIDEO_TRACK_PRIV_H
#define WEIR_DATASETS_VIDEO_VIDEO_TRACK_PRIV_H

#include "datasets/video/video_track.h"

/* The tables below list ranges of samples. The samples of a range begin at `first` and end where the next range begins.
 * The first range begins at sample 0. Edits are ranges of ranks. */

/* Samples that are adjacent in the file. */
struct weir_video_run {
    uint32_t first;
    uint64_t offset;
};

/* Samples whose decoding times are `delta` apart. */
struct weir_video_times {
    uint32_t first, delta;
    int64_t time; /* decoding time of the first sample */
};

/* Samples that are presented `shift` after their decoding time. */
struct weir_video_shift {
    uint32_t first;
    int32_t shift;
};

/* Pictures that an edit shows. They are adjacent in the presentation order of the media, and so are their blocks. */
struct weir_video_edit {
    uint32_t first, first_block; /* rank of the first picture, and its block */
    uint32_t media, media_block; /* the same in the media */
    int64_t shift;               /* added to times of the media */
};

/* A set of numbers less than the number of samples. */
struct weir_video_set {
    uint64_t *words;  /* bit i % 64 of word i / 64: i is a member */
    uint32_t *counts; /* element i: number of members less than i * WEIR_VIDEO_SET_STEP */
};

enum { WEIR_VIDEO_SET_STEP = 512 };

struct weir_video_track {
    struct weir_video_stream stream;
    uint8_t *config;
    uint32_t n, timescale;
    uint32_t equal_bytes; /* size of every sample, if sizes is NULL */
    uint32_t *sizes;
    struct weir_video_run *runs;
    struct weir_video_times *times;
    struct weir_video_shift *shifts; /* NULL: all 0 */
    uint32_t n_runs, n_times, n_shifts;
    struct weir_video_set syncs; /* sync samples; words is NULL if all are */
    /* Derived from the tables above. */
    uint64_t *sums;  /* element i: bytes of all samples before i * WEIR_VIDEO_SUM_STEP; NULL without sizes */
    uint32_t *order; /* sample of each rank in the media; NULL: the same number */
    struct weir_video_set starts; /* ranks in the media of the first pictures of blocks; words is NULL if all are */
    uint32_t sample_max;
    bool is_crossed; /* pictures are presented after a sync sample that is decoded after them (joined videos) */
    /* What is shown of the media: */
    struct weir_video_edit *edits;
    uint32_t n_edits, n_shown, n_blocks, block_max;
};

enum { WEIR_VIDEO_SUM_STEP = 64 };

/* Returns the size of all samples before this one; sample may be the number of samples. */
uint64_t weir_video_bytes_before(const struct weir_video_track *track, uint32_t sample);

/* Creates an empty set of numbers less than n. Returns 0 or -ENOMEM. */
int weir_video_set_open(struct weir_video_set *set, uint32_t n);
static inline void weir_video_set_add(struct weir_video_set *set, uint32_t i)
{
    set->words[i / 64] |= (uint64_t)1 << i % 64;
}

/* Adds up the sizes of the samples. Returns 0 or -ENOMEM. */
int weir_video_track_sum(struct weir_video_track *track);
/* Derives the presentation order and the blocks of the media from complete tables (video_order.c). Returns 0, or with
 * err -EBADMSG if no sample is a sync sample or two pictures have the same presentation time, or -ENOMEM. */
int weir_video_track_order(struct weir_video_track *track, struct weir_err *err);
/* Shows n (> 0) pictures from this rank in the media, after those shown before. There must be fewer than 2^31 in all.
 * Returns 0 or -ENOMEM. */
int weir_video_track_show(struct weir_video_track *track, uint32_t media, uint32_t n, int64_t shift);

/* Return the decoding time of a sample, and the presentation time of the picture with a rank in the media. */
int64_t weir_video_decoding_time(const struct weir_video_track *track, uint32_t sample);
int64_t weir_video_media_time(const struct weir_video_track *track, uint32_t media);
/* Returns the block in the media of a rank in the media. */
uint32_t weir_video_media_block(const struct weir_video_track *track, uint32_t media);

#endif
