/* Rows of pixels from luma and chroma: every engine returns the bits of the definition in yuv_priv.h, for all widths,
 * and reads and writes only its own row. Other pictures have the pixels that FFmpeg's swscale computes. Views of a
 * picture are parts of the whole. */
#include "decoders/video/yuv_priv.h"
#include "weir/decoder.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH_MAX = 130 };

static uint64_t state = 1;

static uint8_t random_byte(void)
{
    state = state * 6364136223846793005 + 1442695040888963407;
    return (uint8_t)(state >> 56);
}

static uint8_t *random_bytes(size_t n)
{
    uint8_t *bytes = malloc(n); /* exact size, so that a sanitizer detects reads past the end */
    for (size_t i = 0; i < n; i++)
        bytes[i] = random_byte();
    return bytes;
}

static const int matrices[] = {WEIR_MATRIX_709, WEIR_MATRIX_UNKNOWN,   WEIR_MATRIX_FCC,
                               WEIR_MATRIX_601, WEIR_MATRIX_SMPTE240M, WEIR_MATRIX_2020};
enum { MATRICES = sizeof matrices / sizeof *matrices };

static struct weir_yuv yuv_of(int matrix, bool full_range)
{
    char reason[WEIR_REASON_MAX];
    struct weir_yuv yuv;
    struct weir_picture picture = {
        .chroma = WEIR_CHROMA_420, .matrix = (enum weir_matrix)matrix, .full_range = full_range};
    cr_assert_eq(weir_yuv_init(&yuv, &picture, reason), 0, "%s", reason);
    return yuv;
}

/* Every engine converts the same row to the same bytes. */
static void check_engines(const struct weir_yuv *yuv, struct weir_yuv_row *row)
{
    size_t n = 3 * row->width;
    uint8_t *expected = malloc(n), *got = malloc(n);
    const struct weir_yuv_engine *engine;
    row->to = expected;
    weir_yuv_plain_row(yuv, row);
    row->to = got;
    for (int i = 0; (engine = weir_yuv_engine(i)); i++) {
        if (!engine->usable())
            continue;
        memset(got, 0x55, n);
        engine->row(yuv, row);
        cr_assert_arr_eq(got, expected, n, "%s, width %zu", engine->name, row->width);
    }
    free(expected);
    free(got);
}

Test(video_rows, engines_agree)
{
    for (size_t width = 1; width <= WIDTH_MAX; width++) {
        size_t chroma = (width + 1) / 2;
        uint8_t *luma = random_bytes(width), *cb = random_bytes(chroma), *cr = random_bytes(chroma);
        struct weir_yuv_row row = {
            .luma = luma, .cb = cb, .cr = cr, .width = width, .bgr = width % 2, .planes = width / 2 % 2};
        struct weir_yuv yuv = yuv_of(matrices[width % MATRICES], width / 4 % 2);
        check_engines(&yuv, &row);
        row.planes = !row.planes;
        check_engines(&yuv, &row);
        free(luma);
        free(cb);
        free(cr);
    }
}

/* Extreme values overflow no engine's 16 bits. */
Test(video_rows, extremes)
{
    static const uint8_t values[] = {0, 1, 15, 16, 127, 128, 129, 235, 240, 254, 255, 64};
    enum { VALUES = sizeof values, WIDTH = VALUES * VALUES * VALUES };
    static uint8_t luma[WIDTH], cb[WIDTH / 2], cr[WIDTH / 2];
    for (int i = 0; i < WIDTH; i++) {
        luma[i] = values[i % VALUES];
        cb[i / 2] = values[i / VALUES % VALUES];
        cr[i / 2] = values[i / VALUES / VALUES];
    }
    for (int m = 0; m < MATRICES; m++)
        for (int full = 0; full < 2; full++) {
            struct weir_yuv yuv = yuv_of(matrices[m], full);
            check_engines(&yuv, &(struct weir_yuv_row){.luma = luma, .cb = cb, .cr = cr, .width = WIDTH});
        }
}

Test(video_rows, black_white_and_primaries)
{
    static const struct {
        int matrix;
        bool full_range;
        uint8_t yuv[3], rgb[3];
    } cases[] = {
        {WEIR_MATRIX_601, false, {16, 128, 128}, {0, 0, 0}},
        {WEIR_MATRIX_601, false, {235, 128, 128}, {255, 255, 255}},
        {WEIR_MATRIX_601, true, {0, 128, 128}, {0, 0, 0}},
        {WEIR_MATRIX_601, true, {255, 128, 128}, {255, 255, 255}},
        {WEIR_MATRIX_UNKNOWN, false, {81, 90, 240}, {254, 0, 0}},
        {WEIR_MATRIX_709, false, {63, 102, 240}, {255, 0, 0}},
        {WEIR_MATRIX_601, false, {41, 240, 110}, {0, 0, 255}},
        {WEIR_MATRIX_709, false, {32, 240, 118}, {0, 0, 254}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct weir_yuv yuv = yuv_of(cases[i].matrix, cases[i].full_range);
        uint8_t rgb[3];
        const uint8_t *values = cases[i].yuv;
        weir_yuv_plain_row(&yuv, &(struct weir_yuv_row){values, values + 1, values + 2, 1, false, false, rgb});
        for (int c = 0; c < 3; c++)
            cr_assert(abs(rgb[c] - cases[i].rgb[c]) <= 1, "case %zu: %d %d %d", i, rgb[0], rgb[1], rgb[2]);
    }
}

Test(video_rows, other_matrices_are_refused)
{
    char reason[WEIR_REASON_MAX];
    struct weir_yuv yuv;
    static const int refused[] = {-1, 8, 11, 255};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct weir_picture picture = {.matrix = (enum weir_matrix)refused[i]};
        cr_assert_eq(weir_yuv_init(&yuv, &picture, reason), -EBADMSG);
        cr_assert_not_null(strstr(reason, "colour matrix"), "%s", reason);
    }
}

/* ---- frames ---- */

/* An even height, for which no chroma is interpolated, or an odd one. */
enum { WIDTH = 67, HEIGHT = 45, PIXELS = WIDTH * HEIGHT };

static struct weir_picture picture;
static int height = HEIGHT;
static uint8_t planes[3][PIXELS * 2];

static void make_picture(enum weir_chroma chroma)
{
    bool half_x = chroma == WEIR_CHROMA_420 || chroma == WEIR_CHROMA_422;
    picture =
        (struct weir_picture){.width = WIDTH,
                              .height = height,
                              .bit_depth = 8,
                              .chroma = chroma,
                              .matrix = WEIR_MATRIX_601,
                              .planes = {planes[0], planes[1], planes[2]},
                              .strides = {WIDTH, half_x ? (WIDTH + 1) / 2 : WIDTH, half_x ? (WIDTH + 1) / 2 : WIDTH}};
    for (int p = 0; p < 3; p++)
        for (size_t i = 0; i < sizeof planes[p]; i++)
            planes[p][i] = random_byte();
}

static void decode(const struct weir_pixel_format *format, enum weir_frame_kind kind, const struct weir_view *view,
                   void *image)
{
    struct weir_decoder *decoder;
    struct weir_frame frame = {kind, (const void *)&picture, sizeof picture, WIDTH, height, view};
    cr_assert_eq(weir_decoder_open(&decoder, "turbo", format, WIDTH, NULL), 0);
    cr_assert_eq(weir_decode(decoder, &frame, image), 0, "%s", weir_decoder_reason(decoder));
    weir_decoder_close(&decoder);
}

/* The definition: row y of the picture, with the nearest chroma sample. */
static void expected_pixel(int x, int y, uint8_t rgb[3])
{
    int half_y = picture.chroma == WEIR_CHROMA_420;
    size_t at = (size_t)((y >> half_y) * picture.strides[1] + x / 2);
    struct weir_yuv yuv = yuv_of(picture.matrix, picture.full_range);
    weir_yuv_plain_row(
        &yuv,
        &(struct weir_yuv_row){
            .luma = planes[0] + y * WIDTH + x, .cb = planes[1] + at, .cr = planes[2] + at, .width = 1, .to = rgb});
}

Test(video_rows, frames_in_every_format)
{
    static uint8_t whole[PIXELS * 3], bytes[PIXELS * 3];
    static float floats[PIXELS * 3];
    for (int chroma = WEIR_CHROMA_400; chroma <= WEIR_CHROMA_444; chroma++)
        for (height = HEIGHT - 1; height <= HEIGHT; height++) {
            int pixels = WIDTH * height;
            make_picture((enum weir_chroma)chroma);
            decode(&(struct weir_pixel_format){.layout = WEIR_LAYOUT_NHWC}, WEIR_FRAME_VIDEO, NULL, whole);
            for (int i = 0; i < pixels && !weir_yuv_is_scaled(&picture); i++) {
                uint8_t rgb[3];
                expected_pixel(i % WIDTH, i / WIDTH, rgb);
                cr_assert_arr_eq(whole + 3 * i, rgb, 3, "chroma %d, pixel %d", chroma, i);
            }
            decode(&(struct weir_pixel_format){.layout = WEIR_LAYOUT_NCHW, .color = WEIR_COLOR_BGR}, WEIR_FRAME_VIDEO,
                   NULL, bytes);
            decode(&(struct weir_pixel_format){.layout = WEIR_LAYOUT_NCHW, .dtype = WEIR_DTYPE_F32}, WEIR_FRAME_VIDEO,
                   NULL, floats);
            for (int i = 0; i < pixels; i++)
                for (int c = 0; c < 3; c++) {
                    cr_assert_eq(bytes[(2 - c) * pixels + i], whole[3 * i + c]);
                    cr_assert_eq(floats[c * pixels + i], (float)whole[3 * i + c] / 255.0f);
                }
        }
}

/* ---- swscale ---- */

/* Random samples, 16 bits of them if deep. Returns a plane of exact size. */
static const uint8_t *random_plane(size_t samples, int bit_depth)
{
    uint16_t *deep = malloc(samples * sizeof *deep);
    if (bit_depth == 8) {
        free(deep);
        return random_bytes(samples);
    }
    for (size_t i = 0; i < samples; i++) {
        deep[i] = (uint16_t)(random_byte() << 8);
        deep[i] = (deep[i] | random_byte()) & ((1 << bit_depth) - 1);
    }
    return (const uint8_t *)deep;
}

static uint64_t fnv(const uint8_t *bytes, size_t n)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3;
    return hash;
}

/* The hashes are those of ffmpeg -vf scale=flags=bicubic:in_color_matrix=..:in_range=..,format=rgb24 of versions 5.1
 * and 7.1, for the same samples. */
Test(video_rows, pixels_of_swscale)
{
    static const struct {
        int width, height;
        enum weir_chroma chroma;
        int bit_depth;
        enum weir_matrix matrix;
        bool full_range;
        uint64_t hash;
    } cases[] = {
        {67, 45, WEIR_CHROMA_420, 8, WEIR_MATRIX_601, false, 0xaf9e417e3d82701b},
        {66, 45, WEIR_CHROMA_420, 8, WEIR_MATRIX_601, false, 0x36a14031d0d5f224},
        {67, 44, WEIR_CHROMA_420, 10, WEIR_MATRIX_601, false, 0x014c52029e27d4e7},
        {66, 44, WEIR_CHROMA_420, 10, WEIR_MATRIX_601, false, 0xf019d4513de50476},
        {67, 44, WEIR_CHROMA_422, 10, WEIR_MATRIX_601, false, 0x55fb719ef4af5fe9},
        {66, 44, WEIR_CHROMA_422, 12, WEIR_MATRIX_601, false, 0x66c1d8b96fcda585},
        {67, 45, WEIR_CHROMA_422, 8, WEIR_MATRIX_601, false, 0xcb344bfe79ae189b},
        {67, 45, WEIR_CHROMA_444, 8, WEIR_MATRIX_601, false, 0x711bc259fde92cd2},
        {66, 44, WEIR_CHROMA_444, 10, WEIR_MATRIX_601, false, 0xff46e8acee5ffe91},
        {66, 44, WEIR_CHROMA_444, 12, WEIR_MATRIX_709, false, 0x748e6994d4b62416},
        {67, 45, WEIR_CHROMA_420, 8, WEIR_MATRIX_709, true, 0xaf5e127c2975876b},
        {66, 44, WEIR_CHROMA_420, 10, WEIR_MATRIX_709, true, 0x499fc8be284d0938},
        {67, 44, WEIR_CHROMA_420, 12, WEIR_MATRIX_2020, false, 0x3d235020db84e666},
        {66, 45, WEIR_CHROMA_444, 8, WEIR_MATRIX_601, true, 0x039a3c2bee900b3a},
        {66, 45, WEIR_CHROMA_400, 8, WEIR_MATRIX_601, false, 0xe7180e79e7731169},
        {6, 5, WEIR_CHROMA_420, 8, WEIR_MATRIX_601, false, 0x7b894a85c33f9246},
        {5, 3, WEIR_CHROMA_420, 10, WEIR_MATRIX_601, false, 0x2a4f559ad8a98b82},
        {67, 45, WEIR_CHROMA_422, 8, WEIR_MATRIX_601, true, 0x5fd0c5622155cbba},
        {66, 44, WEIR_CHROMA_420, 10, WEIR_MATRIX_SMPTE240M, false, 0x9d095c5592af5b4d},
    };
    struct weir_decoder *decoder;
    struct weir_pixel_format format = {.layout = WEIR_LAYOUT_NHWC};
    cr_assert_eq(weir_decoder_open(&decoder, "turbo", &format, WIDTH, NULL), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int w = cases[i].width, h = cases[i].height, bytes = cases[i].bit_depth > 8 ? 2 : 1;
        bool half = cases[i].chroma == WEIR_CHROMA_420 || cases[i].chroma == WEIR_CHROMA_422;
        int chroma_width = half ? (w + 1) / 2 : w, chroma_height = cases[i].chroma == WEIR_CHROMA_420 ? (h + 1) / 2 : h;
        struct weir_picture of = {.strides = {w * bytes, chroma_width * bytes, chroma_width * bytes},
                                  .width = w,
                                  .height = h,
                                  .bit_depth = cases[i].bit_depth,
                                  .chroma = cases[i].chroma,
                                  .matrix = cases[i].matrix,
                                  .full_range = cases[i].full_range};
        state = (uint64_t)(w * h);
        for (int p = 0; p < (of.chroma == WEIR_CHROMA_400 ? 1 : 3); p++)
            of.planes[p] = random_plane((size_t)(p ? chroma_width * chroma_height : w * h), of.bit_depth);
        static uint8_t image[PIXELS * 3];
        struct weir_frame frame = {WEIR_FRAME_VIDEO, (const void *)&of, sizeof of, w, h, NULL};
        cr_assert_eq(weir_decode(decoder, &frame, image), 0, "%s", weir_decoder_reason(decoder));
        cr_expect_eq(fnv(image, (size_t)(w * h * 3)), cases[i].hash, "case %zu", i);
        for (int p = 0; p < 3; p++)
            free((void *)(uintptr_t)of.planes[p]);
    }
    weir_decoder_close(&decoder);
}

/* Gray is its luma, whatever its range. */
Test(video_rows, gray)
{
    static uint8_t image[PIXELS * 3];
    height = HEIGHT;
    make_picture(WEIR_CHROMA_400);
    decode(&(struct weir_pixel_format){.layout = WEIR_LAYOUT_NHWC}, WEIR_FRAME_VIDEO, NULL, image);
    for (int i = 0; i < PIXELS * 3; i++)
        cr_assert_eq(image[i], planes[0][i / 3]);
}

/* ---- views and depth ---- */

Test(video_rows, views)
{
    static uint8_t whole[(PIXELS + WIDTH) * 3];
    static const struct weir_view views[] = {
        {0, 0, 30, 20, 30, 20}, {1, 1, 33, 17, 33, 17}, {7, 20, 60, 25, 60, 25},
        {66, 44, 1, 1, 1, 1},   {3, 5, 40, 30, 20, 15}, {0, 0, WIDTH, HEIGHT, 96, 64},
    };
    struct weir_pixel_format format = {.layout = WEIR_LAYOUT_NHWC};
    for (size_t layout = 0; layout < 2; layout++)
        for (size_t i = 0; i < 2 * (sizeof views / sizeof *views); i++) {
            const struct weir_view *view = &views[i / 2];
            height = HEIGHT + (int)(i % 2);
            make_picture(WEIR_CHROMA_420);
            decode(&format, WEIR_FRAME_VIDEO, NULL, whole);
            struct weir_pixel_format other = {.layout = layout ? WEIR_LAYOUT_NCHW : WEIR_LAYOUT_NHWC};
            static uint8_t image[96 * 64 * 3], expected[96 * 64 * 3];
            struct weir_decoder *decoder;
            struct weir_frame frame = {WEIR_FRAME_RAW, whole, (size_t)(WIDTH * height * 3), WIDTH, height, view};
            decode(&other, WEIR_FRAME_VIDEO, view, image);
            cr_assert_eq(weir_decoder_open(&decoder, "turbo", &other, WIDTH, NULL), 0);
            cr_assert_eq(weir_decode(decoder, &frame, expected), 0);
            weir_decoder_close(&decoder);
            cr_assert_arr_eq(image, expected, (size_t)(view->out_width * view->out_height * 3), "view %zu", i);
        }
}

Test(video_rows, depth_is_not_scaled)
{
    static uint16_t image[PIXELS];
    make_picture(WEIR_CHROMA_400);
    decode(&(struct weir_pixel_format){.layout = WEIR_LAYOUT_NHWC}, WEIR_FRAME_VIDEO16, NULL, image);
    for (int i = 0; i < PIXELS; i++)
        cr_assert_eq(image[i], planes[0][i]);
    picture.bit_depth = 12;
    picture.strides[0] = 2 * WIDTH;
    decode(&(struct weir_pixel_format){.layout = WEIR_LAYOUT_NHWC}, WEIR_FRAME_VIDEO16, NULL, image);
    cr_assert_arr_eq(image, planes[0], sizeof image);
}

Test(video_rows, refusals)
{
    static uint8_t image[PIXELS * 3];
    struct weir_pixel_format format = {.layout = WEIR_LAYOUT_NHWC};
    struct weir_decoder *decoder;
    cr_assert_eq(weir_decoder_open(&decoder, "turbo", &format, WIDTH, NULL), 0);
    make_picture(WEIR_CHROMA_420);
    struct weir_frame frame = {WEIR_FRAME_VIDEO, (const void *)&picture, sizeof picture, WIDTH, HEIGHT + 1, NULL};
    cr_assert_eq(weir_decode(decoder, &frame, image), -EBADMSG);
    cr_assert_not_null(strstr(weir_decoder_reason(decoder), "67x45"));
    frame.height = HEIGHT;
    frame.length--;
    cr_assert_eq(weir_decode(decoder, &frame, image), -EBADMSG);
    frame.length++;
    picture.matrix = (enum weir_matrix)8;
    cr_assert_eq(weir_decode(decoder, &frame, image), -EBADMSG);
    cr_assert_not_null(strstr(weir_decoder_reason(decoder), "colour matrix 8"));
    weir_decoder_close(&decoder);
}
