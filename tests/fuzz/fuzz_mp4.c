/* libFuzzer: reads a hostile MP4 file, then locates all pictures and blocks of its track. */
#include "datasets/video/video_track.h"
#include "tests/fuzz/fuzz_bytes.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

/* Opens a file in memory that contains the bytes. */
static struct weir_source *make_file(const uint8_t *bytes, size_t n)
{
    static int fd = -1;
    char path[64];
    struct weir_source *source;
    struct weir_err err = WEIR_ERR_NONE;
    if (fd < 0)
        fd = memfd_create("mp4", MFD_CLOEXEC);
    require(fd >= 0 && ftruncate(fd, (off_t)n) == 0 && pwrite(fd, bytes, n, 0) == (ssize_t)n);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    require(weir_source_open(&source, NULL, path, NULL, &err) == 0);
    return source;
}

static void check_stream(const struct weir_video_stream *stream)
{
    uint8_t *copy = malloc(stream->config_bytes);
    require(copy && stream->width > 0 && stream->height > 0 && stream->codec < WEIR_VIDEO_CODECS);
    memcpy(copy, stream->config, stream->config_bytes);
    free(copy);
}

/* Checks a picture, and that its block contains it. */
static void check_picture(const struct weir_video_track *track, uint32_t rank, size_t size)
{
    struct weir_video_sample sample, sync;
    uint32_t n = weir_video_track_frames(track), at = weir_video_track_at_rank(track, rank);
    int64_t time = weir_video_track_time(track, rank);
    weir_video_track_sample(track, at, &sample);
    require(sample.offset <= size && sample.bytes <= size - sample.offset);
    require(sample.bytes <= weir_video_track_sample_max(track));
    require(rank == 0 || weir_video_track_time(track, rank - 1) < time);
    require(weir_video_track_nearest(track, time, weir_video_track_timescale(track)) == rank);

    uint32_t block = weir_video_track_block_of(track, rank), blocks = weir_video_track_blocks(track);
    require(block < blocks && weir_video_track_block_first(track, block) <= rank);
    uint32_t end = block + 1 < blocks ? weir_video_track_block_first(track, block + 1) : n;
    require(rank < end && end - weir_video_track_block_first(track, block) <= weir_video_track_block_max(track));
    uint32_t from = weir_video_track_block_sync(track, block);
    weir_video_track_sample(track, from, &sync);
    bool leads = block == 0 || time != sample.time; /* a later edit can begin in the first block of the media */
    require(sync.is_sync && (sync.time <= sample.time || from <= at || leads));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_video_track *track;
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_source *source = make_file(data, size);
    int rc = weir_mp4_open(&track, source, size, &err);
    weir_source_close(&source);
    require(rc == 0 || rc == -EBADMSG || rc == -ENOTSUP || rc == -ENODATA);
    require((rc == 0) == (track != NULL) && (rc == 0) == (*err.text == '\0') && !strchr(err.text, '\n'));
    if (track) {
        uint32_t n = weir_video_track_frames(track);
        check_stream(weir_video_track_stream(track));
        require(weir_video_track_bytes(track) < 4096 + 64 * size);
        for (uint32_t rank = 0; rank < n; rank += 1 + n / 1000)
            check_picture(track, rank, size);
        weir_video_track_nearest(track, INT64_MIN, INT64_MAX);
        weir_video_track_nearest(track, INT64_MAX, 1);
    }
    weir_video_track_close(&track);
    return 0;
}
