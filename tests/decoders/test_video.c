/* Video: groups of pictures are decoded to the pixels that PyAV returns, independently of earlier groups, and damage is
 * an error. */
#include "base/numbers.h"
#include "decoders/video/video.h"
#include "tests/fixtures/video_streams.h"
#include "weir/decoder.h"
#include "weir/recorder.h"
#include "weir/stages.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CODECS = WEIR_VIDEO_CODECS, IMAGE_BYTES = 64 * 48 * 3 };

/* What a call decoded. */
struct seen {
    struct weir_decoder *decoder;
    enum weir_frame_kind kind;
    int n, end_after; /* end_after: number of pictures after which decoding ends; 0 = all */
    int64_t pts[VIDEO_PACKETS_MAX];
    uint64_t pixels[VIDEO_PACKETS_MAX];
    int stage; /* innermost zone during the last call */
};

static struct weir_video_decoder *video;
static char reason[WEIR_REASON_MAX];

static void open_video(void)
{
    cr_assert_eq(weir_video_open(&video, -1), 0);
}

static void close_video(void)
{
    weir_video_close(&video);
    cr_assert_null(video);
}

TestSuite(video, .init = open_video, .fini = close_video);

static uint64_t fnv1a(const uint8_t *bytes, size_t n)
{
    uint64_t value = 0xCBF29CE484222325;
    for (size_t i = 0; i < n; i++)
        value = (value ^ bytes[i]) * 0x100000001B3;
    return value;
}

static int take(void *user, int64_t pts, const struct weir_picture *picture)
{
    static uint8_t image[IMAGE_BYTES];
    struct seen *seen = user;
    struct weir_frame frame = {.kind = seen->kind,
                               .bytes = (const void *)picture,
                               .length = sizeof *picture,
                               .width = picture->width,
                               .height = picture->height};
    cr_assert(seen->n < VIDEO_PACKETS_MAX && picture->width <= 64 && picture->height <= 48);
    if (seen->decoder)
        cr_assert_eq(weir_decode(seen->decoder, &frame, image), 0, "%s", weir_decoder_reason(seen->decoder));
    size_t pixel_bytes = weir_frame_is_depth(seen->kind) ? 2 : 3;
    seen->stage = weir_zone_now().stage;
    seen->pts[seen->n] = pts;
    seen->pixels[seen->n++] = fnv1a(image, (size_t)(picture->width * picture->height) * pixel_bytes);
    return seen->n == seen->end_after;
}

static int split(const struct video_stream *stream, const uint8_t *bytes, struct weir_packet *packets)
{
    for (int i = 0; i < stream->n; bytes += stream->lengths[i++])
        packets[i] = (struct weir_packet){bytes, stream->lengths[i], stream->pts[i]};
    return stream->n;
}

static struct weir_video_format format_of(const struct video_stream *stream)
{
    return (struct weir_video_format){stream->codec, stream->config, stream->config_bytes, -1, -1};
}

static int decode_bytes(const struct video_stream *stream, const uint8_t *bytes, struct seen *seen)
{
    struct weir_packet packets[VIDEO_PACKETS_MAX];
    int n = split(stream, bytes, packets);
    struct weir_video_format format = format_of(stream);
    int rc = weir_video_decode(video, &format, packets, n, take, seen, reason);
    cr_assert(rc == 0 || *reason);
    return rc;
}

static struct weir_decoder *open_decoder(void)
{
    struct weir_pixel_format format = {.color = WEIR_COLOR_RGB, .dtype = WEIR_DTYPE_U8, .layout = WEIR_LAYOUT_NHWC};
    struct weir_decoder *decoder;
    cr_assert_eq(weir_decoder_open(&decoder, "turbo", &format, 4096, NULL), 0);
    return decoder;
}

static bool can_decode(enum weir_video_codec codec)
{
    const char *name, *summary, *why_not;
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert(weir_video_row((int)codec, &name, &summary, &why_not));
    return !why_not && weir_video_ready(name, &err) == 0;
}

static void expect_pictures(const struct video_stream *stream, enum weir_frame_kind kind)
{
    struct seen seen = {.decoder = open_decoder(), .kind = kind};
    int64_t times[VIDEO_PACKETS_MAX];
    cr_assert_eq(decode_bytes(stream, stream->bytes, &seen), 0, "%s", reason);
    cr_assert_eq(seen.n, stream->n);
    memcpy(times, stream->pts, sizeof times);
    qsort(times, (size_t)stream->n, sizeof *times, weir_compare_int64);
    for (int i = 0; i < stream->n; i++) {
        cr_assert_eq(seen.pts[i], times[i], "picture %d", i);
        cr_assert_eq(seen.pixels[i], stream->pixels[i], "picture %d", i);
    }
    weir_decoder_close(&seen.decoder);
}

static const struct video_stream *const streams[] = {&av1_stream, &av1_small_stream, &h264_stream, &hevc_stream};
enum { STREAMS = sizeof streams / sizeof *streams };

/* Streams of all codecs and sizes alternate, because a decoder serves all of them. */
Test(video, pixels_are_those_of_pyav)
{
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < STREAMS; i++)
            if (can_decode(streams[i]->codec))
                expect_pictures(streams[i], WEIR_FRAME_VIDEO);
}

Test(video, decoding_ends_early)
{
    for (int i = 0; i < STREAMS; i++) {
        struct seen seen = {.kind = WEIR_FRAME_VIDEO, .end_after = 1};
        if (!can_decode(streams[i]->codec))
            continue;
        cr_assert_eq(decode_bytes(streams[i], streams[i]->bytes, &seen), 0, "%s", reason);
        cr_assert_eq(seen.n, 1);
        expect_pictures(streams[i], WEIR_FRAME_VIDEO);
    }
}

static void expect_change(const struct weir_packet *packets, int n, const struct video_stream *stream, const char *size)
{
    char text[WEIR_REASON_MAX];
    struct seen seen = {.kind = WEIR_FRAME_VIDEO};
    if (!can_decode(stream->codec))
        return;
    struct weir_video_format format = format_of(stream);
    int rc = weir_video_decode(video, &format, packets, n, take, &seen, reason);
    cr_assert_eq(rc, -EBADMSG);
    snprintf(text, sizeof text, "the size of the video's pictures changes from 64x48 to %s", size);
    cr_assert_str_eq(reason, text);
}

Test(video, a_changed_size_is_named)
{
    struct weir_packet packets[2 * VIDEO_PACKETS_MAX];
    int n = split(&av1_stream, av1_stream.bytes, packets);
    n += split(&av1_small_stream, av1_small_stream.bytes, packets + n);
    expect_change(packets, n, &av1_stream, "34x30");
    n = split(&h264_changed_stream, h264_changed_stream.bytes, packets);
    expect_change(packets, n, &h264_changed_stream, "80x64");
}

static int note_tags(void *user, int64_t pts, const struct weir_picture *picture)
{
    (void)pts;
    *(struct weir_picture *)user = *picture;
    return 1;
}

/* The file's tags count for H.264 streams without tags, as in FFmpeg, and for no later call. */
Test(video, tags_of_the_file)
{
    static const int tags[][2] = {{-1, -1}, {WEIR_MATRIX_709, 0}, {WEIR_MATRIX_2020, 1}, {-1, -1}};
    for (size_t t = 0; t < sizeof tags / sizeof *tags; t++)
        for (int i = 0; i < STREAMS; i++) {
            struct weir_packet packets[VIDEO_PACKETS_MAX];
            struct weir_picture picture = {0};
            struct weir_video_format format = format_of(streams[i]);
            if (!can_decode(format.codec))
                continue;
            format.matrix = tags[t][0];
            format.full_range = tags[t][1];
            int n = split(streams[i], streams[i]->bytes, packets);
            cr_assert_eq(weir_video_decode(video, &format, packets, n, note_tags, &picture, reason), 0, "%s", reason);
            bool applies = format.codec == WEIR_VIDEO_H264;
            cr_assert_eq((int)picture.matrix, applies && tags[t][0] >= 0 ? tags[t][0] : WEIR_MATRIX_UNKNOWN);
            cr_assert_eq(picture.full_range, applies && tags[t][1] == 1);
        }
}

/* Replaces dlopen at link time, to simulate a machine without libavcodec. */
static bool no_libraries;
void *__real_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags)
{
    return no_libraries ? NULL : __real_dlopen(name, flags);
}

Test(video, without_libavcodec)
{
    struct weir_err err = WEIR_ERR_NONE;
    unsetenv("WEIR_LIBAVCODEC");
    no_libraries = true;
    cr_assert_eq(decode_bytes(&h264_stream, h264_stream.bytes, &(struct seen){.kind = WEIR_FRAME_VIDEO}), -ENOTSUP);
    cr_assert_not_null(strstr(reason, "H.264 video: libavcodec.so"), "%s", reason);
    cr_assert_not_null(strstr(reason, "; install FFmpeg's libavcodec"), "%s", reason);
    cr_assert_eq(weir_video_ready("hevc", &err), -ENODEV);
    cr_assert_not_null(strstr(err.text, "HEVC video: "), "%s", err.text);
}

Test(video, a_named_libavcodec_that_is_missing)
{
    setenv("WEIR_LIBAVCODEC", "/nowhere/libavcodec.so", 1);
    cr_assert_eq(decode_bytes(&h264_stream, h264_stream.bytes, &(struct seen){.kind = WEIR_FRAME_VIDEO}), -ENOTSUP);
    cr_assert_not_null(strstr(reason, "/nowhere/libavcodec.so"), "%s", reason);
}

Test(video, a_codec_that_is_not_built_in)
{
    const char *name, *summary, *why_not;
    cr_assert(weir_video_row(0, &name, &summary, &why_not));
    if (!why_not)
        cr_skip_test("all codecs are built in");
    cr_assert_eq(decode_bytes(&av1_stream, av1_stream.bytes, &(struct seen){.kind = WEIR_FRAME_VIDEO}), -ENOTSUP);
    cr_assert_not_null(strstr(reason, "a video with the codec av1, but this weir was built without dav1d"), "%s",
                       reason);
}

Test(video, depth)
{
    if (can_decode(WEIR_VIDEO_HEVC))
        expect_pictures(&hevc_depth_stream, WEIR_FRAME_VIDEO16);
}

/* Changes every third byte, and cuts the first packet at every length. Each result is an error or pictures, and a sound
 * stream decodes afterwards. */
Test(video, damage)
{
    for (int i = 0; i < STREAMS; i++) {
        const struct video_stream *stream = streams[i];
        struct video_stream cut = *stream;
        size_t length = 0;
        if (!can_decode(stream->codec))
            continue;
        for (int p = 0; p < stream->n; p++)
            length += stream->lengths[p];
        uint8_t *bytes = malloc(length); /* exact size, so that a sanitizer detects reads past the end */
        memcpy(bytes, stream->bytes, length);
        for (size_t at = 0; at < length; at += 3) {
            bytes[at] ^= (uint8_t)(1u << at % 8);
            int rc = decode_bytes(stream, bytes, &(struct seen){.kind = WEIR_FRAME_VIDEO});
            cr_assert(rc == 0 || rc == -EBADMSG || rc == -ENOTSUP, "%d", rc);
            bytes[at] ^= (uint8_t)(1u << at % 8);
        }
        for (cut.n = 1; cut.lengths[0] > 0; cut.lengths[0]--)
            decode_bytes(&cut, bytes, &(struct seen){.kind = WEIR_FRAME_VIDEO});
        cr_assert_eq(decode_bytes(&cut, bytes, &(struct seen){.kind = WEIR_FRAME_VIDEO}), -EBADMSG);
        cut.n = 0;
        cr_assert_eq(decode_bytes(&cut, bytes, &(struct seen){.kind = WEIR_FRAME_VIDEO}), -EBADMSG);
        cr_assert_not_null(strstr(reason, "no picture"), "%s", reason);
        free(bytes);
        expect_pictures(stream, WEIR_FRAME_VIDEO);
    }
}

Test(video, damaged_configuration)
{
    for (int i = 0; i < STREAMS; i++) {
        struct video_stream stream = *streams[i];
        uint8_t config[1024];
        cr_assert_leq(stream.config_bytes, sizeof config);
        if (!can_decode(stream.codec))
            continue;
        for (size_t n = 0; n <= stream.config_bytes; n++) {
            uint8_t *exact = malloc(n + 1);
            memcpy(exact, stream.config, n);
            stream = *streams[i];
            stream.config = exact;
            stream.config_bytes = n;
            decode_bytes(&stream, stream.bytes, &(struct seen){.kind = WEIR_FRAME_VIDEO});
            stream.config_bytes = streams[i]->config_bytes;
            memcpy(config, streams[i]->config, stream.config_bytes);
            config[n % stream.config_bytes] ^= 0xFF;
            stream.config = config;
            decode_bytes(&stream, stream.bytes, &(struct seen){.kind = WEIR_FRAME_VIDEO});
            free(exact);
        }
        expect_pictures(streams[i], WEIR_FRAME_VIDEO);
    }
}

Test(video, decoding_is_timed_without_the_conversion)
{
    struct weir_recorder *recorder;
    struct weir_snapshot *snapshot;
    if (!can_decode(WEIR_VIDEO_AV1))
        cr_skip_test("built without dav1d");
    cr_assert_eq(weir_recorder_open(&recorder), 0);
    cr_assert_eq(weir_loader_stages(), 0);
    cr_assert_eq(weir_thread_attach(recorder, "test", WEIR_ROLE_WORKER), 0);
    struct seen seen = {.decoder = open_decoder(), .kind = WEIR_FRAME_VIDEO, .end_after = 3};
    weir_zone_begin(WEIR_STAGE_ONE_CAMERA);
    cr_assert_eq(decode_bytes(&av1_stream, av1_stream.bytes, &seen), 0);
    cr_assert_eq(seen.stage, WEIR_STAGE_ONE_CAMERA);
    cr_assert_eq(weir_zone_now().stage, WEIR_STAGE_ONE_CAMERA);
    cr_assert(decode_bytes(&av1_stream, av1_stream.bytes + 1, &seen) < 0);
    cr_assert_eq(weir_zone_now().stage, WEIR_STAGE_ONE_CAMERA);
    weir_zone_end();
    cr_assert_eq(weir_snapshot_take(recorder, &snapshot), 0);
    cr_assert_eq(snapshot->stages[WEIR_STAGE_VIDEO_DECODE].count, 4, "one per picture, and the failure");
    cr_assert_eq(snapshot->stages[WEIR_STAGE_IMAGE_DECODE].count, 3);
    weir_snapshot_free(&snapshot);
    weir_decoder_close(&seen.decoder);
    weir_thread_detach();
    weir_recorder_close(&recorder);
}
