/* Decodes groups of pictures and writes their pixels: video_pixels <GROUPS >PIXELS (tests/decoders/compare_video.py).
 *
 * A group is: codec (enum weir_video_codec), bytes of configuration, number of packets, tags (4 x u32), the
 * configuration, and for each packet pts (i64), length (u64) and bytes. A picture is: pts (i64), width and height
 * (u64), pixels. Tags are 1 for depth + (matrix + 1) << 8 + (full_range + 1) << 16. A group that fails ends the program
 * with a message. */
#include "decoders/video/video.h"

#include <stdio.h>
#include <stdlib.h>

enum { PACKETS_MAX = 1 << 16, BYTES_MAX = 1 << 30, WIDTH_MAX = 8192 };

static struct weir_decoder *decoder;
static bool is_depth;

static void fail(const char *what)
{
    fprintf(stderr, "video_pixels: %s\n", what);
    exit(1);
}

static void *take(size_t n)
{
    uint8_t *bytes = malloc(n + 1);
    if (n > BYTES_MAX || !bytes || (n && fread(bytes, n, 1, stdin) != 1))
        fail("the input is truncated");
    return bytes;
}

static int put(void *user, int64_t pts, const struct weir_picture *picture)
{
    (void)user;
    static uint8_t *image;
    static size_t capacity;
    struct weir_frame frame = {.kind = is_depth ? WEIR_FRAME_VIDEO16 : WEIR_FRAME_VIDEO,
                               .bytes = (const void *)picture,
                               .length = sizeof *picture,
                               .width = picture->width,
                               .height = picture->height};
    uint64_t head[] = {(uint64_t)pts, (uint64_t)picture->width, (uint64_t)picture->height};
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
    return 0;
}

int main(void)
{
    static struct weir_packet packets[PACKETS_MAX];
    struct weir_pixel_format format = {.layout = WEIR_LAYOUT_NHWC};
    struct weir_video_decoder *video;
    char reason[WEIR_REASON_MAX];
    uint32_t head[4];
    if (weir_video_open(&video, -1) < 0 || weir_decoder_open(&decoder, "turbo", &format, WIDTH_MAX, NULL) < 0)
        fail("out of memory");
    while (fread(head, sizeof head, 1, stdin) == 1) {
        uint8_t *config = take(head[1]);
        for (uint32_t i = 0; i < head[2] && i < PACKETS_MAX; i++) {
            uint64_t *packet = take(2 * sizeof *packet);
            packets[i] = (struct weir_packet){take(packet[1]), packet[1], (int64_t)packet[0]};
            free(packet);
        }
        is_depth = head[3] & 255;
        struct weir_video_format stream = {.codec = (enum weir_video_codec)head[0], .config = config};
        stream.config_bytes = head[1];
        stream.matrix = (int)(head[3] >> 8 & 255) - 1;
        stream.full_range = (int)(head[3] >> 16 & 255) - 1;
        if (weir_video_decode(video, &stream, packets, (int)head[2], put, NULL, reason) < 0)
            fail(reason);
        for (uint32_t i = 0; i < head[2]; i++)
            free((void *)(uintptr_t)packets[i].bytes);
        free(config);
    }
    weir_decoder_close(&decoder);
    weir_video_close(&video);
    return 0;
}
