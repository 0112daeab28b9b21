/* Prints the samples of an MP4 file's video track, one per line in decoding order: offset, bytes, presentation time,
 * whether it is a sync sample; then the presentation order and the blocks. Usage: mp4_table FILE */
#include "datasets/video/video_track.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static void print(const struct weir_video_track *track)
{
    const struct weir_video_stream *stream = weir_video_track_stream(track);
    uint32_t n = weir_video_track_frames(track);
    printf("%s %dx%d timescale %" PRIu32 " samples %" PRIu32 " blocks %" PRIu32 " matrix %d full range %d\n",
           stream->fourcc, stream->width, stream->height, weir_video_track_timescale(track), n,
           weir_video_track_blocks(track), stream->matrix, stream->full_range);
    for (uint32_t i = 0; i < n; i++) {
        struct weir_video_sample sample;
        weir_video_track_sample(track, i, &sample);
        printf("%" PRIu64 " %" PRIu32 " %" PRId64 " %d\n", sample.offset, sample.bytes, sample.time, sample.is_sync);
    }
    for (uint32_t rank = 0; rank < n; rank++) {
        uint32_t block = weir_video_track_block_of(track, rank);
        printf("rank %" PRIu32 " sample %" PRIu32 " block %" PRIu32 " from %" PRIu32 " sync %" PRIu32 "\n", rank,
               weir_video_track_at_rank(track, rank), block, weir_video_track_block_first(track, block),
               weir_video_track_block_sync(track, block));
    }
}

int main(int argc, char **argv)
{
    struct weir_video_track *track;
    struct weir_err err = WEIR_ERR_NONE;
    struct stat st;
    int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0 || fstat(fd, &st) < 0)
        return 2;
    int rc = weir_mp4_open(&track, fd, (uint64_t)st.st_size, &err);
    close(fd);
    if (rc < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    print(track);
    weir_video_track_close(&track);
    return 0;
}
