/* h264-nvdec and hevc-nvdec: pictures from the GPU's video engines (a stand-in) come in order and whole, and the CPU
 * decodes what the engines do not. The real engines: tests/gpu/test_gpu_video.c. */
#include "decoders/video/video.h"
#include "tests/fakes/fake_nvcuvid.h"
#include "tests/fixtures/video_streams.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

enum { WIDTH = 50, HEIGHT = 34, PICTURES_MAX = 32 };

static struct weir_video_decoder *video;
static char reason[WEIR_REASON_MAX];
static bool no_driver, no_libavcodec;

/* The driver's libraries are this program. */
void *__real_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags)
{
    if (name && (strncmp(name, "libcuda.", 8) == 0 || strncmp(name, "libnvcuvid.", 11) == 0))
        return __real_dlopen(no_driver ? "libnowhere.so" : NULL, flags);
    return __real_dlopen(no_libavcodec && name ? "libnowhere.so" : name, flags);
}

static void open_video(void)
{
    fake_nvcuvid =
        (struct fake_nvcuvid){.width = WIDTH, .height = HEIGHT, .surfaces = 4, .damaged_at = -1, .lost_at = -1};
    cr_assert_eq(weir_video_open(&video, 0), 0);
}

static void close_video(void)
{
    weir_video_close(&video);
    cr_expect_eq(fake_nvcuvid.maps + fake_nvcuvid.decoders + fake_nvcuvid.parsers + fake_nvcuvid.contexts, 0);
}

TestSuite(video_gpu, .init = open_video, .fini = close_video);

struct seen {
    int n, from_gpu, wrong, end_after;
    int64_t pts[PICTURES_MAX];
};

static bool is_fake(const struct weir_picture *picture, unsigned char last)
{
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++)
            if (picture->planes[0][y * picture->strides[0] + x] != fake_luma(last, x, y))
                return false;
    for (int plane = 0; plane < 2; plane++)
        for (int y = 0; y < HEIGHT / 2; y++)
            for (int x = 0; x < WIDTH / 2; x++)
                if (picture->planes[1 + plane][y * picture->strides[1 + plane] + x] != fake_chroma(last, plane, x, y))
                    return false;
    return picture->width == WIDTH && picture->height == HEIGHT && picture->chroma == WEIR_CHROMA_420;
}

/* The packets of made groups end with their presentation time. */
static int take(void *user, int64_t pts, const struct weir_picture *picture)
{
    struct seen *seen = user;
    cr_assert(seen->n < PICTURES_MAX);
    seen->pts[seen->n++] = pts;
    seen->from_gpu += picture->from_gpu;
    seen->wrong += picture->from_gpu && picture->width == WIDTH && !is_fake(picture, (unsigned char)pts);
    return seen->n == seen->end_after;
}

/* A group of H.264: an IDR picture and others, with these presentation times. */
static int decode_group(const int64_t *pts, int n, struct seen *seen)
{
    static const uint8_t config[] = {1, 77, 0, 30, 0xFF, 0xE1, 0, 2, 0x67, 1, 1, 0, 2, 0x68, 1};
    struct weir_video_format format = {WEIR_VIDEO_H264, config, sizeof config, -1, -1};
    struct weir_packet packets[PICTURES_MAX];
    uint8_t bytes[PICTURES_MAX][7];
    for (int i = 0; i < n; i++) {
        memcpy(bytes[i], (uint8_t[]){0, 0, 0, 3, i == 0 ? 0x65 : 0x41, 0x88, (uint8_t)pts[i]}, 7);
        packets[i] = (struct weir_packet){bytes[i], 7, pts[i]};
    }
    return weir_video_decode(video, &format, packets, n, take, seen, reason);
}

static int decode_stream(const struct video_stream *stream, struct seen *seen)
{
    struct weir_video_format format = {stream->codec, stream->config, stream->config_bytes, -1, -1};
    struct weir_packet packets[VIDEO_PACKETS_MAX];
    const uint8_t *bytes = stream->bytes;
    for (int i = 0; i < stream->n; bytes += stream->lengths[i++])
        packets[i] = (struct weir_packet){bytes, stream->lengths[i], stream->pts[i]};
    return weir_video_decode(video, &format, packets, stream->n, take, seen, reason);
}

static bool has_libavcodec(void)
{
    struct weir_err err = WEIR_ERR_NONE;
    return weir_video_ready("h264", &err) == 0;
}

Test(video_gpu, pictures_in_order)
{
    static const int64_t pts[] = {10, 40, 20, 30, 80, 60, 50, 70};
    for (int repeat = 0; repeat < 3; repeat++) {
        struct seen seen = {0};
        cr_assert_eq(decode_group(pts, 8, &seen), 0, "%s", reason);
        cr_assert_eq(seen.n, 8);
        cr_assert_eq(seen.from_gpu, 8);
        cr_assert_eq(seen.wrong, 0);
        for (int i = 0; i < 8; i++)
            cr_assert_eq(seen.pts[i], 10 * (i + 1));
    }
    cr_assert_eq(fake_nvcuvid.decoders, 1, "one for all groups of a stream");
}

/* More pictures than the engine has surfaces. */
Test(video_gpu, a_long_group)
{
    int64_t pts[PICTURES_MAX];
    struct seen seen = {0};
    for (int i = 0; i < PICTURES_MAX; i++)
        pts[i] = i;
    cr_assert_eq(decode_group(pts, PICTURES_MAX, &seen), 0, "%s", reason);
    cr_assert(seen.n == PICTURES_MAX && seen.wrong == 0);
}

/* Pictures before the sync sample are left out, and nothing is decoded after the last wanted one. */
Test(video_gpu, only_what_is_wanted)
{
    struct seen seen = {.end_after = 2};
    cr_assert_eq(decode_group((int64_t[]){10, 5, 20, 30, 40}, 5, &seen), 0, "%s", reason);
    cr_assert(seen.n == 2 && seen.wrong == 0);
    cr_assert(seen.pts[0] == 10 && seen.pts[1] == 20);
    cr_assert_eq(fake_nvcuvid.decoded, 2);
}

/* The CPU continues after the pictures that the GPU has returned; none is delivered twice. */
Test(video_gpu, damage_is_left_to_the_cpu)
{
    if (!has_libavcodec())
        cr_skip_test("no libavcodec");
    for (int at = 0; at < h264_stream.n; at++) {
        struct seen seen = {0};
        fake_nvcuvid.decoded = 0;
        fake_nvcuvid.damaged_at = at;
        cr_assert_eq(decode_stream(&h264_stream, &seen), 0, "%s", reason);
        cr_assert_eq(seen.n, h264_stream.n);
        cr_assert(seen.from_gpu < h264_stream.n);
        for (int i = 1; i < seen.n; i++)
            cr_assert(seen.pts[i] > seen.pts[i - 1]);
    }
}

static void expect_all_from_the_cpu(void)
{
    struct seen seen = {0};
    cr_assert_eq(decode_stream(&h264_stream, &seen), 0, "%s", reason);
    cr_assert(seen.n == h264_stream.n && seen.from_gpu == 0);
}

Test(video_gpu, what_the_engines_cannot_decode)
{
    if (!has_libavcodec())
        cr_skip_test("no libavcodec");
    fake_nvcuvid.interlaced = true;
    expect_all_from_the_cpu();
    weir_video_close(&video);
    open_video();
    fake_nvcuvid.width = 4096; /* more than its maximum */
    expect_all_from_the_cpu();
    cr_assert_eq(fake_nvcuvid.decoders, 0);
    weir_video_close(&video);
    cr_assert_eq(weir_video_open(&video, 1), 0); /* there is no GPU 1 */
    expect_all_from_the_cpu();
}

Test(video_gpu, without_a_driver)
{
    struct weir_err err = WEIR_ERR_NONE;
    no_driver = true;
    cr_assert_eq(weir_video_ready("h264-nvdec", &err), -ENODEV);
    cr_assert_not_null(strstr(err.text, "no NVIDIA driver is installed"), "%s", err.text);
    cr_assert_eq(weir_video_ready("hevc-nvdec", &err), -ENODEV);
    if (has_libavcodec())
        expect_all_from_the_cpu();
}

/* Without libavcodec the GPU decodes alone, and its finding is the error. */
Test(video_gpu, without_libavcodec)
{
    struct seen seen = {0};
    unsetenv("WEIR_LIBAVCODEC");
    no_libavcodec = true;
    cr_assert_eq(decode_group((int64_t[]){1, 2}, 2, &seen), 0, "%s", reason);
    cr_assert_eq(seen.from_gpu, 2);
    fake_nvcuvid.decoded = 0;
    fake_nvcuvid.lost_at = 1;
    cr_assert_eq(decode_group((int64_t[]){1, 2}, 2, &seen), -EBADMSG);
    cr_assert_str_eq(reason, "H.264 video on the GPU: the stream is damaged");
    fake_nvcuvid.interlaced = true;
    weir_video_close(&video);
    cr_assert_eq(weir_video_open(&video, 0), 0);
    cr_assert_eq(decode_group((int64_t[]){1, 2}, 2, &seen), -ENOTSUP);
    cr_assert_not_null(strstr(reason, "install FFmpeg's libavcodec"), "%s", reason);
}
