/* Prints the tables of MP4 files, for comparison with other readers: mp4_table FILE...
 *
 * Per file, a line "file PATH", then either "error CODE TEXT", or a line "stream" and one line per shown picture in
 * presentation order: offset, bytes, presentation time, sync (0 or 1), number of the sample. The stream's last two
 * numbers count the pictures that are not where the other functions of video_track.h expect them. */
#include "datasets/video/video_track.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Counts the pictures that are not the nearest to their own time, or whose order is wrong. */
static uint32_t count_misplaced(const struct weir_video_track *track)
{
    uint32_t n = 0, scale = weir_video_track_timescale(track);
    for (uint32_t rank = 0; rank < weir_video_track_frames(track); rank++) {
        int64_t time = weir_video_track_time(track, rank);
        n += weir_video_track_nearest(track, time, scale) != rank;
        n += rank > 0 && weir_video_track_time(track, rank - 1) >= time;
    }
    return n;
}

/* Returns true if the picture's block begins with the last sync sample that is not presented later. That one is hidden
 * if the block begins with another picture; pictures before the first sync sample belong to the first block. */
static bool is_block_right(const struct weir_video_track *track, uint32_t rank)
{
    struct weir_video_sample sample, sync;
    uint32_t block = weir_video_track_block_of(track, rank), at = weir_video_track_at_rank(track, rank);
    uint32_t from = weir_video_track_block_sync(track, block), first = weir_video_track_block_first(track, block);
    weir_video_track_sample(track, at, &sample);
    weir_video_track_sample(track, from, &sync);
    if (block >= weir_video_track_blocks(track) || !sync.is_sync || first > rank)
        return false;
    if (sample.is_sync && (from != at || (first != rank && block > 0)))
        return false;
    return (sync.time <= sample.time || block == 0) &&
           (first == rank || weir_video_track_block_of(track, rank - 1) == block);
}

static uint32_t count_wrong_blocks(const struct weir_video_track *track)
{
    uint32_t n = 0;
    for (uint32_t rank = 0; rank < weir_video_track_frames(track); rank++)
        n += !is_block_right(track, rank);
    return n;
}

static void print(const struct weir_video_track *track)
{
    const struct weir_video_stream *stream = weir_video_track_stream(track);
    printf("stream %s %d %d %d %d %zu %" PRIu32 " %" PRIu32 " %" PRIu32 " %zu %" PRIu32 " %" PRIu32 "\n",
           stream->fourcc, stream->width, stream->height, stream->matrix, stream->full_range, stream->config_bytes,
           weir_video_track_timescale(track), weir_video_track_frames(track), weir_video_track_blocks(track),
           weir_video_track_bytes(track), count_misplaced(track), count_wrong_blocks(track));
    for (uint32_t rank = 0; rank < weir_video_track_frames(track); rank++) {
        struct weir_video_sample sample;
        uint32_t at = weir_video_track_at_rank(track, rank);
        weir_video_track_sample(track, at, &sample);
        printf("%" PRIu64 " %" PRIu32 " %" PRId64 " %d %" PRIu32 "\n", sample.offset, sample.bytes,
               weir_video_track_time(track, rank), sample.is_sync, at);
    }
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        struct weir_video_track *track = NULL;
        struct weir_err err = WEIR_ERR_NONE;
        struct weir_file_id id;
        struct weir_source *source;
        if (weir_source_find(&source, NULL, argv[i], &id, &err) < 0) {
            fprintf(stderr, "%s: %s\n", argv[i], err.text);
            return EXIT_FAILURE;
        }
        printf("file %s\n", argv[i]);
        int rc = weir_mp4_open(&track, source, id.size_bytes, &err);
        if (rc == 0)
            print(track);
        else
            printf("error %d %s\n", rc, err.text);
        weir_video_track_close(&track);
        weir_source_close(&source);
    }
    return EXIT_SUCCESS;
}
