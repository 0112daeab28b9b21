/* Video on a GPU's engines: pictures equal libavcodec's, also after damaged groups, and damaged groups end as on the
 * CPU.
 *
 *     build/release/tests/test_gpu_video [MUTANTS]
 *
 * Decodes the fixtures, and MUTANTS (default 2,000) damaged copies of the H.264 one, each with a decoder on the GPU and
 * with one on the CPU. The engines can hide damage that the CPU calls an error: such groups are counted and do not
 * fail. Exits with status 77 without a GPU that decodes H.264, or without libavcodec. */
#include "decoders/video/video.h"
#include "tests/fixtures/video_streams.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SKIPPED = 77, BYTES_MAX = 1 << 16 };

struct result {
    int rc, n, from_gpu;
    int64_t pts[VIDEO_PACKETS_MAX];
    uint64_t planes[VIDEO_PACKETS_MAX];
};

static uint64_t hash_rows(uint64_t value, const uint8_t *plane, ptrdiff_t stride, int width, int height)
{
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            value = (value ^ plane[y * stride + x]) * 0x100000001B3;
    return value;
}

static int take(void *user, int64_t pts, const struct weir_picture *picture)
{
    struct result *result = user;
    int half_width = (picture->width + 1) / 2, half_height = (picture->height + 1) / 2;
    uint64_t value = hash_rows(picture->matrix + 16u * picture->full_range, picture->planes[0], picture->strides[0],
                               picture->width, picture->height);
    for (int p = 1; p < 3 && picture->chroma == WEIR_CHROMA_420; p++)
        value = hash_rows(value, picture->planes[p], picture->strides[p], half_width, half_height);
    if (result->n == VIDEO_PACKETS_MAX)
        return 1;
    result->from_gpu += picture->from_gpu;
    result->pts[result->n] = pts;
    result->planes[result->n++] = value;
    return 0;
}

static void decode(struct weir_video_decoder *video, const struct video_stream *stream, const uint8_t *bytes,
                   struct result *result)
{
    char reason[WEIR_REASON_MAX];
    struct weir_video_format format = {stream->codec, stream->config, stream->config_bytes, -1, -1};
    struct weir_packet packets[VIDEO_PACKETS_MAX];
    *result = (struct result){0};
    for (int i = 0; i < stream->n; bytes += stream->lengths[i++])
        packets[i] = (struct weir_packet){bytes, stream->lengths[i], stream->pts[i]};
    result->rc = weir_video_decode(video, &format, packets, stream->n, take, result, reason);
}

static bool is_equal(const struct result *a, const struct result *b)
{
    return a->rc == b->rc && a->n == b->n && memcmp(a->pts, b->pts, sizeof a->pts) == 0 &&
           memcmp(a->planes, b->planes, sizeof a->planes) == 0;
}

/* Returns 1 and prints if they differ. */
static int compare(struct weir_video_decoder *const videos[2], const char *name, const struct video_stream *stream)
{
    struct result cpu, gpu;
    decode(videos[0], stream, stream->bytes, &cpu);
    decode(videos[1], stream, stream->bytes, &gpu);
    printf("%s: %d pictures, %d from the GPU, %s\n", name, gpu.n, gpu.from_gpu,
           is_equal(&cpu, &gpu) ? "equal" : "NOT EQUAL");
    return !is_equal(&cpu, &gpu);
}

static int compare_mutants(struct weir_video_decoder *const videos[2], const struct video_stream *stream, int mutants)
{
    static uint8_t bytes[BYTES_MAX];
    int equal = 0, hidden = 0, different = 0, spoilt = 0;
    size_t length = 0;
    struct result cpu, gpu, intact;
    for (int i = 0; i < stream->n; i++)
        length += stream->lengths[i];
    decode(videos[0], stream, stream->bytes, &intact);
    for (int m = 0; m < mutants; m++) {
        memcpy(bytes, stream->bytes, length);
        for (int k = rand() % 3; k >= 0; k--)
            bytes[(size_t)rand() % length] ^= (uint8_t)(1 << rand() % 8);
        decode(videos[0], stream, bytes, &cpu);
        decode(videos[1], stream, bytes, &gpu);
        if (is_equal(&cpu, &gpu))
            equal++;
        else if (cpu.rc < 0 && gpu.rc == 0)
            hidden++;
        else
            different++;
        decode(videos[1], stream, stream->bytes, &gpu);
        spoilt += !is_equal(&intact, &gpu);
    }
    printf(
        "%d damaged groups: %d as on the CPU, %d whose damage the engines hide, %d otherwise different; %d intact ones "
        "after them differ\n",
        mutants, equal, hidden, different, spoilt);
    return spoilt > 0;
}

int main(int argc, char **argv)
{
    struct weir_video_decoder *videos[2];
    struct weir_err err = WEIR_ERR_NONE;
    if (weir_video_ready("h264-nvdec", &err) < 0 || weir_video_ready("h264", &err) < 0) {
        printf("skipped: %s\n", err.text);
        return SKIPPED;
    }
    if (weir_video_open(&videos[0], -1) < 0 || weir_video_open(&videos[1], 0) < 0)
        return 1;
    int failed = compare(videos, "H.264", &h264_stream);
    failed += compare(videos, "HEVC", &hevc_stream);
    failed += compare(videos, "AV1", &av1_stream);
    failed += compare_mutants(videos, &h264_stream, argc > 1 ? atoi(argv[1]) : 2000);
    weir_video_close(&videos[0]);
    weir_video_close(&videos[1]);
    return failed > 0;
}
