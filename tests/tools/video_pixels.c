/* Decodes the pictures that an MP4 file shows and writes their pixels (tests/decoders/compare_video.py):
 * video_pixels FILE SEED [depth]
 *
 * The groups of pictures are decoded in a random order. A picture is: presentation time (i64), width and height (u64),
 * pixels. A group that fails ends the program with a message. */
#include "datasets/video/video_track.h"
#include "decoders/video/video.h"

#include <stdio.h>
#include <stdlib.h>

enum { PACKETS_MAX = 1 << 16, WIDTH_MAX = 8192 };

static struct weir_decoder *decoder;
static struct weir_video_track *track;
static struct weir_source *source;
static bool is_depth;
static uint32_t first, end; /* ranks of the group's pictures */

static void fail(const char *what)
{
    fprintf(stderr, "video_pixels: %s\n", what);
    exit(1);
}

static void write_picture(int64_t time, const struct weir_picture *picture)
{
    static uint8_t *image;
    static size_t capacity;
    struct weir_frame frame = {.kind = is_depth ? WEIR_FRAME_VIDEO16 : WEIR_FRAME_VIDEO,
                               .bytes = (const void *)picture,
                               .length = sizeof *picture,
                               .width = picture->width,
                               .height = picture->height};
    uint64_t head[] = {(uint64_t)time, (uint64_t)picture->width, (uint64_t)picture->height};
    size_t n = (size_t)(head[1] * head[2]) * (is_depth ? 2 : 3);
    if (n > capacity) {
        free(image);
        image = malloc(n);
        capacity = n;
    }
    if (!image || weir_decode(decoder, &frame, image) < 0)
        fail(image ? weir_decoder_reason(decoder) : "out of memory");
    fwrite(head, sizeof head, 1, stdout);
    fwrite(image, n, 1, stdout);
}

/* Writes a picture if the group shows it. The decoder names it by its time in the media. */
static int put(void *user, int64_t time, const struct weir_picture *picture)
{
    struct weir_video_sample sample;
    (void)user;
    for (uint32_t rank = first; rank < end; rank++) {
        weir_video_track_sample(track, weir_video_track_at_rank(track, rank), &sample);
        if (sample.time == time)
            write_picture(weir_video_track_time(track, rank), picture);
    }
    return 0;
}

/* Decodes the samples from the group's sync sample to the last one that it shows. */
static void decode_group(struct weir_video_decoder *video, uint32_t block)
{
    static struct weir_packet packets[PACKETS_MAX];
    const struct weir_video_stream *stream = weir_video_track_stream(track);
    struct weir_video_format format = {stream->codec, stream->config, stream->config_bytes, stream->matrix,
                                       stream->full_range};
    char reason[WEIR_REASON_MAX];
    uint32_t sync = weir_video_track_block_sync(track, block), last = sync;
    first = weir_video_track_block_first(track, block);
    end = weir_video_track_block_first(track, block + 1);
    for (uint32_t rank = first; rank < end; rank++)
        last = weir_video_track_at_rank(track, rank) > last ? weir_video_track_at_rank(track, rank) : last;
    for (uint32_t i = sync; i <= last && i - sync < PACKETS_MAX; i++) {
        struct weir_video_sample sample;
        weir_video_track_sample(track, i, &sample);
        uint8_t *bytes = malloc(sample.bytes + (size_t)1);
        if (!bytes || weir_source_read(source, sample.offset, bytes, sample.bytes) < 0)
            fail("a sample cannot be read");
        packets[i - sync] = (struct weir_packet){bytes, sample.bytes, sample.time};
    }
    if (weir_video_decode(video, &format, packets, (int)(last - sync + 1), put, NULL, reason) < 0)
        fail(reason);
    for (uint32_t i = sync; i <= last; i++)
        free((void *)(uintptr_t)packets[i - sync].bytes);
}

/* Decodes all groups, in the order that the seed gives. */
static void decode_groups(struct weir_video_decoder *video, unsigned seed)
{
    uint32_t n = weir_video_track_blocks(track), *blocks = calloc(n, sizeof *blocks);
    if (!blocks)
        fail("out of memory");
    srand(seed);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = (uint32_t)rand() % (i + 1);
        blocks[i] = blocks[at];
        blocks[at] = i;
    }
    for (uint32_t i = 0; i < n; i++)
        decode_group(video, blocks[i]);
    free(blocks);
}

int main(int argc, char **argv)
{
    struct weir_pixel_format format = {.layout = WEIR_LAYOUT_NHWC};
    struct weir_video_decoder *video;
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_file_id id;
    if (argc < 3)
        fail("usage: video_pixels FILE SEED [depth]");
    is_depth = argc > 3;
    if (weir_source_find(&source, NULL, argv[1], &id, &err) < 0 ||
        weir_mp4_open(&track, source, id.size_bytes, &err) < 0)
        fail(err.text);
    if (weir_video_open(&video, -1) < 0 || weir_decoder_open(&decoder, "turbo", &format, WIDTH_MAX, NULL) < 0)
        fail("out of memory");
    decode_groups(video, (unsigned)strtoul(argv[2], NULL, 10));
    weir_decoder_close(&decoder);
    weir_video_close(&video);
    weir_video_track_close(&track);
    weir_source_close(&source);
    return 0;
}
