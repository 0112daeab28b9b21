/* Rows of pixels from luma and chroma: every engine returns the bits of the definition in yuv_priv.h, for all widths,
 * and reads and writes only its own row. Views of a picture are parts of the whole. */
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
    struct weir_picture picture = {.matrix = (enum weir_matrix)matrix, .full_range = full_range};
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
        for (int kind = 0; kind < 3; kind++) {
            size_t chroma = kind == 1 ? (width + 1) / 2 : width;
            uint8_t *luma = random_bytes(width), *cb = random_bytes(chroma), *cr = random_bytes(chroma);
            struct weir_yuv_row row = {.luma = luma,
                                       .bit_depth = 8,
                                       .cb = kind ? cb : NULL,
                                       .cr = kind ? cr : NULL,
                                       .is_half = kind == 1,
                                       .width = width,
                                       .bgr = width % 2,
                                       .planes = width / 2 % 2};
            struct weir_yuv yuv = yuv_of(matrices[width % MATRICES], width / 4 % 2);
            check_engines(&yuv, &row);
            row.planes = !row.planes;
            check_engines(&yuv, &row);
            free(luma);
            free(cb);
            free(cr);
        }
    }
}

/* Extreme values overflow no engine's 16 bits. */
Test(video_rows, extremes)
{
    static const uint8_t values[] = {0, 1, 15, 16, 127, 128, 129, 235, 240, 254, 255};
    enum { VALUES = sizeof values, WIDTH = VALUES * VALUES * VALUES };
    static uint8_t luma[WIDTH], cb[WIDTH], cr[WIDTH];
    for (int i = 0; i < WIDTH; i++) {
        luma[i] = values[i % VALUES];
        cb[i] = values[i / VALUES % VALUES];
        cr[i] = values[i / VALUES / VALUES];
    }
    for (int m = 0; m < MATRICES; m++)
        for (int full = 0; full < 2; full++) {
            struct weir_yuv yuv = yuv_of(matrices[m], full);
            check_engines(&yuv,
                          &(struct weir_yuv_row){.luma = luma, .cb = cb, .cr = cr, .bit_depth = 8, .width = WIDTH});
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
        weir_yuv_plain_row(&yuv,
                           &(struct weir_yuv_row){values, values + 1, values + 2, 8, false, 1, false, false, rgb});
        for (int c = 0; c < 3; c++)
            cr_assert(abs(rgb[c] - cases[i].rgb[c]) <= 1, "case %zu: %d %d %d", i, rgb[0], rgb[1], rgb[2]);
    }
}

Test(video_rows, other_matrices_are_refused)
{
    char reason[WEIR_REASON_MAX];
    struct weir_yuv yuv;
    static const int refused[] = {-1, 0, 3, 8, 11, 255};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct weir_picture picture = {.matrix = (enum weir_matrix)refused[i]};
        cr_assert_eq(weir_yuv_init(&yuv, &picture, reason), -EBADMSG);
        cr_assert_not_null(strstr(reason, "colour matrix"), "%s", reason);
    }
}

/* ---- frames ---- */

enum { WIDTH = 67, HEIGHT = 45, PIXELS = WIDTH * HEIGHT };

static struct weir_picture picture;
static uint8_t planes[3][PIXELS * 2];

static void make_picture(enum weir_chroma chroma)
{
    bool half_x = chroma == WEIR_CHROMA_420 || chroma == WEIR_CHROMA_422;
    picture =
        (struct weir_picture){.width = WIDTH,
                              .height = HEIGHT,
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
    struct weir_frame frame = {kind, (const void *)&picture, sizeof picture, WIDTH, HEIGHT, view};
    cr_assert_eq(weir_decoder_open(&decoder, "turbo", format, WIDTH, NULL), 0);
    cr_assert_eq(weir_decode(decoder, &frame, image), 0, "%s", weir_decoder_reason(decoder));
    weir_decoder_close(&decoder);
}

/* Values of 8 bits in 10 or 12 bits become the same pixels. */
static void check_deeper(const uint8_t *whole)
{
    static uint16_t wide[3][PIXELS * 2];
    static uint8_t image[PIXELS * 3];
    struct weir_picture shallow = picture;
    for (int depth = 10; depth <= 12; depth += 2) {
        picture.bit_depth = depth;
        for (int p = 0; p < 3; p++) {
            for (size_t i = 0; i < sizeof planes[p]; i++)
                wide[p][i] = (uint16_t)(planes[p][i] << (depth - 8));
            picture.planes[p] = (const void *)wide[p];
            picture.strides[p] = 2 * shallow.strides[p];
        }
        decode(&(struct weir_pixel_format){.layout = WEIR_LAYOUT_NHWC}, WEIR_FRAME_VIDEO, NULL, image);
        cr_assert_arr_eq(image, whole, sizeof image, "%d bits", depth);
    }
    picture = shallow;
}

/* The definition: row y of the picture, with the nearest chroma sample. */
static void expected_pixel(int x, int y, uint8_t rgb[3])
{
    int half_x = picture.chroma == WEIR_CHROMA_420 || picture.chroma == WEIR_CHROMA_422;
    int half_y = picture.chroma == WEIR_CHROMA_420;
    size_t at = (size_t)((y >> half_y) * picture.strides[1] + (x >> half_x));
    struct weir_yuv yuv = yuv_of(picture.matrix, picture.full_range);
    struct weir_yuv_row row = {.luma = planes[0] + y * WIDTH + x, .bit_depth = 8, .width = 1, .to = rgb};
    row.cb = picture.chroma == WEIR_CHROMA_400 ? NULL : planes[1] + at;
    row.cr = picture.chroma == WEIR_CHROMA_400 ? NULL : planes[2] + at;
    weir_yuv_plain_row(&yuv, &row);
}

Test(video_rows, frames_in_every_format)
{
    static uint8_t whole[PIXELS * 3], bytes[PIXELS * 3];
    static float floats[PIXELS * 3];
    for (int chroma = WEIR_CHROMA_400; chroma <= WEIR_CHROMA_444; chroma++) {
        make_picture((enum weir_chroma)chroma);
        decode(&(struct weir_pixel_format){.layout = WEIR_LAYOUT_NHWC}, WEIR_FRAME_VIDEO, NULL, whole);
        for (int i = 0; i < PIXELS; i++) {
            uint8_t rgb[3];
            expected_pixel(i % WIDTH, i / WIDTH, rgb);
            cr_assert_arr_eq(whole + 3 * i, rgb, 3, "chroma %d, pixel %d", chroma, i);
        }
        check_deeper(whole);
        decode(&(struct weir_pixel_format){.layout = WEIR_LAYOUT_NCHW, .color = WEIR_COLOR_BGR}, WEIR_FRAME_VIDEO, NULL,
               bytes);
        decode(&(struct weir_pixel_format){.layout = WEIR_LAYOUT_NCHW, .dtype = WEIR_DTYPE_F32}, WEIR_FRAME_VIDEO, NULL,
               floats);
        for (int i = 0; i < PIXELS; i++)
            for (int c = 0; c < 3; c++) {
                cr_assert_eq(bytes[(2 - c) * PIXELS + i], whole[3 * i + c]);
                cr_assert_eq(floats[c * PIXELS + i], (float)whole[3 * i + c] / 255.0f);
            }
    }
}

Test(video_rows, views)
{
    static uint8_t whole[PIXELS * 3];
    static const struct weir_view views[] = {
        {0, 0, 30, 20, 30, 20}, {1, 1, 33, 17, 33, 17}, {7, 20, 60, 25, 60, 25},
        {66, 44, 1, 1, 1, 1},   {3, 5, 40, 30, 20, 15}, {0, 0, WIDTH, HEIGHT, 96, 64},
    };
    struct weir_pixel_format format = {.layout = WEIR_LAYOUT_NHWC};
    for (size_t layout = 0; layout < 2; layout++)
        for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
            make_picture(WEIR_CHROMA_420);
            decode(&format, WEIR_FRAME_VIDEO, NULL, whole);
            struct weir_pixel_format other = {.layout = layout ? WEIR_LAYOUT_NCHW : WEIR_LAYOUT_NHWC};
            static uint8_t image[96 * 64 * 3], expected[96 * 64 * 3];
            struct weir_decoder *decoder;
            struct weir_frame frame = {WEIR_FRAME_RAW, whole, sizeof whole, WIDTH, HEIGHT, &views[i]};
            decode(&other, WEIR_FRAME_VIDEO, &views[i], image);
            cr_assert_eq(weir_decoder_open(&decoder, "turbo", &other, WIDTH, NULL), 0);
            cr_assert_eq(weir_decode(decoder, &frame, expected), 0);
            weir_decoder_close(&decoder);
            cr_assert_arr_eq(image, expected, (size_t)(views[i].out_width * views[i].out_height * 3), "view %zu", i);
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
    picture.matrix = (enum weir_matrix)0;
    cr_assert_eq(weir_decode(decoder, &frame, image), -EBADMSG);
    cr_assert_not_null(strstr(weir_decoder_reason(decoder), "colour matrix 0"));
    weir_decoder_close(&decoder);
}
