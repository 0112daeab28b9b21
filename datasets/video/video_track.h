/* video_track.h: the samples of one video stream: where each is in the file, when it is presented, and which samples
 * can be decoded on their own.
 *
 * Samples are numbered in decoding order, from 0. Pictures are numbered in presentation order (rank). The two differ in
 * streams with reordered pictures (B-frames), and if the file's edit list hides pictures or shows them again. A block
 * is a group of pictures: the pictures that are decoded from the same sync sample, which is the last one presented at
 * or before them, even if it is hidden; in joined videos, an earlier one if some are decoded before that one. Blocks
 * are numbered in presentation order.
 *
 * A track is immutable, so any thread may use it. It takes about 4.5 bytes per sample, and 17 with reordered pictures.
 */
#ifndef WEIR_DATASETS_VIDEO_VIDEO_TRACK_H
#define WEIR_DATASETS_VIDEO_VIDEO_TRACK_H

#include "origin/source.h"
#include "weir/base.h"
#include "weir/frames.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_video_track;

struct weir_video_stream {
    enum weir_video_codec codec;
    char fourcc[5]; /* "av01", "avc1", ... */
    int width, height;
    const uint8_t *config; /* body of the box av1C, avcC or hvcC */
    size_t config_bytes;
    int number, tracks;     /* of the video track in the file, from 1, and of all of them */
    const char *turn;       /* what the display matrix asks for: "a rotation by 90 degrees clockwise"; NULL = nothing */
    int matrix, full_range; /* of H.264, from the box colr (ISO/IEC 23091-2); -1 = not tagged */
};

struct weir_video_sample {
    uint64_t offset;
    uint32_t bytes;
    int64_t time; /* presentation time in the media, without edits, in units of the time scale */
    bool is_sync;
};

/* Reads the best video track (as FFmpeg chooses it) of an MP4 file (ISO/IEC 14496-12) without its media data. All
 * samples are inside the file. Returns 0; -EBADMSG or -ENODATA if the file is damaged or truncated; -ENOTSUP if it uses
 * a feature that is not supported (fragments, edit lists that go back in time, other codecs); -EIO or another code of
 * pread; or -ENOMEM. The error does not contain the path. */
int weir_mp4_open(struct weir_video_track **out, struct weir_source *source, uint64_t file_bytes, struct weir_err *err);
void weir_video_track_close(struct weir_video_track **track);

const struct weir_video_stream *weir_video_track_stream(const struct weir_video_track *track);
/* Returns the number of pictures that are shown, at least 1. */
uint32_t weir_video_track_frames(const struct weir_video_track *track);
uint32_t weir_video_track_timescale(const struct weir_video_track *track);
/* Returns the memory that the track uses. */
size_t weir_video_track_bytes(const struct weir_video_track *track);
/* Returns the size of the largest sample. */
size_t weir_video_track_sample_max(const struct weir_video_track *track);

void weir_video_track_sample(const struct weir_video_track *track, uint32_t sample, struct weir_video_sample *out);
/* Returns the sample of the picture with this rank. */
uint32_t weir_video_track_at_rank(const struct weir_video_track *track, uint32_t rank);
/* Returns the presentation time of the picture with this rank. */
int64_t weir_video_track_time(const struct weir_video_track *track, uint32_t rank);
/* Returns the rank of the picture whose presentation time is nearest to numerator / denominator seconds; of two equally
 * near, the earlier one. denominator must be positive. */
uint32_t weir_video_track_nearest(const struct weir_video_track *track, int64_t numerator, int64_t denominator);

uint32_t weir_video_track_blocks(const struct weir_video_track *track);
/* Returns the maximum number of pictures in a block. */
uint32_t weir_video_track_block_max(const struct weir_video_track *track);
uint32_t weir_video_track_block_of(const struct weir_video_track *track, uint32_t rank);
/* Returns the rank of the block's first picture; the number of pictures for a block after the last one. */
uint32_t weir_video_track_block_first(const struct weir_video_track *track, uint32_t block);
/* Returns the block's sync sample. */
uint32_t weir_video_track_block_sync(const struct weir_video_track *track, uint32_t block);

#endif
