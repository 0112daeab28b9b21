/* What a JPEG or PNG says about how to read it: EXIF orientations turn the image, and the comment XPL-RGB1 states true
 * colours where those of other frames are swapped. */
#include "decoders/frame_kind.h"
#include "tests/fixtures/jpeg_encode.h"
#include "weir/decoder.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 72, HEIGHT = 40, FORMATS = 8 };

struct bytes {
    uint8_t at[1 << 16];
    size_t n;
};

/* ---- marked images ---- */

static void make_jpeg(struct bytes *jpeg)
{
    const struct jpeg_encode how = {.width = WIDTH, .height = HEIGHT, .quality = 95, .h = {2, 1, 1}, .v = {2, 1, 1}};
    uint8_t *made = jpeg_encode(&how, &jpeg->n);
    cr_assert_lt(jpeg->n, sizeof jpeg->at / 2);
    memcpy(jpeg->at, made, jpeg->n);
    free(made);
}

static void insert_at(struct bytes *bytes, size_t at, const void *what, size_t n)
{
    memmove(bytes->at + at + n, bytes->at + at, bytes->n - at);
    memcpy(bytes->at + at, what, n);
    bytes->n += n;
}

/* Inserts a segment after SOI. */
static void insert_segment(struct bytes *jpeg, uint8_t marker, const void *body, size_t n)
{
    const uint8_t head[4] = {0xFF, marker, (uint8_t)((n + 2) >> 8), (uint8_t)(n + 2)};
    insert_at(jpeg, 2, body, n);
    insert_at(jpeg, 2, head, sizeof head);
}

/* Writes a TIFF header whose only directory has another tag and the orientation. Returns its size. */
static size_t write_tiff(uint8_t *to, int orientation, bool big)
{
    static const uint16_t words[2][3] = {{0x0110, 2, 1}, {0x0112, 3, 1}}; /* tag, type, count */
    size_t n = 0;
    memcpy(to, big ? "MM\0*\0\0\0\x08" : "II*\0\x08\0\0\0", 8);
    n = 8;
    to[n++] = big ? 0 : 2;
    to[n++] = big ? 2 : 0;
    for (int i = 0; i < 2; i++) {
        uint8_t entry[12] = {0};
        uint16_t value = i ? (uint16_t)orientation : 7;
        entry[big ? 1 : 0] = (uint8_t)words[i][0];
        entry[big ? 0 : 1] = (uint8_t)(words[i][0] >> 8);
        entry[big ? 3 : 2] = (uint8_t)words[i][1];
        entry[big ? 7 : 4] = (uint8_t)words[i][2];
        entry[big ? 9 : 8] = (uint8_t)value;
        entry[big ? 8 : 9] = (uint8_t)(value >> 8);
        memcpy(to + n, entry, sizeof entry);
        n += sizeof entry;
    }
    return n;
}

static void orient(struct bytes *jpeg, int orientation, bool big)
{
    uint8_t body[64] = "Exif\0";
    insert_segment(jpeg, 0xE1, body, 6 + write_tiff(body + 6, orientation, big));
}

/* ---- turning ---- */

/* The stored position of each pixel of the displayed image, for width and height of the latter. */
static void stored_at(int orientation, int x, int y, int width, int height, int *column, int *row)
{
    const int at[9][2] = {
        [1] = {x, y}, [2] = {width - 1 - x, y}, [3] = {width - 1 - x, height - 1 - y}, [4] = {x, height - 1 - y},
        [5] = {y, x}, [6] = {y, width - 1 - x}, [7] = {height - 1 - y, width - 1 - x}, [8] = {height - 1 - y, x}};
    *column = at[orientation][0];
    *row = at[orientation][1];
}

static struct weir_pixel_format format_of(int i)
{
    return (struct weir_pixel_format){.color = (enum weir_color)(i & 1),
                                      .dtype = (enum weir_dtype)(i >> 1 & 1),
                                      .layout = (enum weir_image_layout)(i >> 2 & 1)};
}

/* width: of turned images, which may be less than that of stored ones. */
static struct weir_decoder *open_decoder(const struct weir_pixel_format *format, struct weir_frame_rules rules,
                                         int width)
{
    struct weir_decoder *decoder;
    cr_assert_eq(weir_decoder_open(&decoder, "turbo", format, width, NULL), 0);
    weir_decoder_set_rules(decoder, &rules);
    return decoder;
}

static void *decode(struct weir_decoder *decoder, const struct weir_pixel_format *format, const struct bytes *bytes,
                    int width, int height, const struct weir_view *view)
{
    void *image = malloc(weir_image_bytes(format, view ? view->out_width : width, view ? view->out_height : height));
    const struct weir_frame frame = {WEIR_FRAME_IMAGE, bytes->at, bytes->n, width, height, view};
    cr_assert_eq(weir_decode(decoder, &frame, image), 0, "%s", weir_decoder_reason(decoder));
    return image;
}

/* Returns a value of a pixel's channel, whatever the format. */
static double value_of(const struct weir_pixel_format *format, const void *image, int width, int height, int x, int y,
                       int c)
{
    size_t pixel = (size_t)y * (size_t)width + (size_t)x, plane = (size_t)width * (size_t)height;
    size_t at = format->layout == WEIR_LAYOUT_NCHW ? (size_t)c * plane + pixel : 3 * pixel + (size_t)c;
    return format->dtype == WEIR_DTYPE_F32 ? (double)((const float *)image)[at] : ((const uint8_t *)image)[at];
}

/* The displayed part of the turned image (want: pixels as stored, of the same part) must equal what is decoded. */
static void check_turned(const struct weir_pixel_format *format, int orientation, const void *got, const void *want,
                         int width, int height)
{
    int stored_width = orientation >= 5 ? height : width, stored_height = orientation >= 5 ? width : height;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < 3; c++) {
                int column, row;
                stored_at(orientation, x, y, width, height, &column, &row);
                cr_assert_eq(value_of(format, got, width, height, x, y, c),
                             value_of(format, want, stored_width, stored_height, column, row, c),
                             "orientation %d, pixel (%d, %d), channel %d", orientation, x, y, c);
            }
}

static void turn_whole_and_cropped(int orientation, int f)
{
    struct weir_pixel_format format = format_of(f);
    static struct bytes plain, marked;
    bool swaps = orientation >= 5;
    int width = swaps ? HEIGHT : WIDTH, height = swaps ? WIDTH : HEIGHT;
    make_jpeg(&plain);
    marked = plain;
    orient(&marked, orientation, f % 2);
    struct weir_decoder *decoder;
    cr_assert_eq(weir_decoder_open(&decoder, "turbo", &format, WIDTH, NULL), 0);
    void *stored = decode(decoder, &format, &plain, WIDTH, HEIGHT, NULL);
    void *as_stored = decode(decoder, &format, &marked, WIDTH, HEIGHT, NULL); /* without the rule */
    cr_assert_eq(memcmp(stored, as_stored, weir_image_bytes(&format, WIDTH, HEIGHT)), 0);
    weir_decoder_close(&decoder);

    decoder = open_decoder(&format, (struct weir_frame_rules){.turns = true}, width);
    struct weir_image_info info;
    cr_assert_eq(weir_probe_image(decoder, WEIR_FRAME_IMAGE, marked.at, marked.n, &info), 0);
    cr_assert(info.width == width && info.height == height && info.turn == orientation, "%dx%d", info.width,
              info.height);
    void *turned = decode(decoder, &format, &marked, width, height, NULL);
    check_turned(&format, orientation, turned, stored, width, height);

    const struct weir_view crop = {5, 9, 22, 13, 22, 13};
    void *part = decode(decoder, &format, &marked, width, height, &crop);
    for (int y = 0; y < crop.height; y++)
        for (int x = 0; x < crop.width; x++)
            for (int c = 0; c < 3; c++)
                cr_assert_eq(value_of(&format, part, crop.width, crop.height, x, y, c),
                             value_of(&format, turned, width, height, crop.x + x, crop.y + y, c));
    free(part);
    free(turned);
    free(as_stored);
    free(stored);
    weir_decoder_close(&decoder);
}

Test(marks, images_are_turned_in_every_format)
{
    for (int orientation = 1; orientation <= 8; orientation++)
        for (int f = 0; f < FORMATS; f++)
            turn_whole_and_cropped(orientation, f);
}

/* The same turning for all frames of a dataset, also of raw ones, which then cannot be read into place. */
Test(marks, a_dataset_turns_all_its_frames)
{
    struct weir_pixel_format format = {0};
    static struct bytes raw;
    uint8_t turned[WIDTH * HEIGHT * 3];
    raw.n = sizeof turned;
    for (size_t i = 0; i < raw.n; i++)
        raw.at[i] = (uint8_t)(i * 7 + i / 256);
    for (int turn = 1; turn <= 4; turn++) {
        struct weir_decoder *decoder;
        cr_assert_eq(weir_decoder_open(&decoder, "turbo", &format, WIDTH, NULL), 0);
        weir_decoder_set_rules(decoder, &(struct weir_frame_rules){.turn = turn});
        cr_assert_eq(weir_decoder_is_direct(decoder, WEIR_FRAME_RAW), turn == 1);
        const struct weir_frame frame = {WEIR_FRAME_RAW, raw.at, raw.n, WIDTH, HEIGHT, NULL};
        cr_assert_eq(weir_decode(decoder, &frame, turned), 0);
        check_turned(&format, turn, turned, raw.at, WIDTH, HEIGHT);
        weir_decoder_close(&decoder);
    }
}

/* Resizing a turned image gives the size requested, and the pixels of turning the resized one. */
Test(marks, turned_images_are_resized)
{
    struct weir_pixel_format format = {0};
    static struct bytes plain, marked;
    for (int orientation = 2; orientation <= 8; orientation++)
        for (int exact = 0; exact < 2; exact++) {
            bool swaps = orientation >= 5;
            int width = swaps ? HEIGHT : WIDTH, height = swaps ? WIDTH : HEIGHT;
            make_jpeg(&plain);
            marked = plain;
            orient(&marked, orientation, true);
            const struct weir_view view = {0, 0, width, height, 20, 24};
            const struct weir_view stored_view = {0, 0, WIDTH, HEIGHT, swaps ? 24 : 20, swaps ? 20 : 24};
            struct weir_decoder *decoder = open_decoder(&format, (struct weir_frame_rules){.turns = true}, width),
                                *other;
            cr_assert_eq(weir_decoder_open(&other, "turbo", &format, WIDTH, NULL), 0);
            weir_decoder_set_resize(decoder, exact ? WEIR_RESIZE_EXACT : WEIR_RESIZE_FAST);
            weir_decoder_set_resize(other, exact ? WEIR_RESIZE_EXACT : WEIR_RESIZE_FAST);
            void *got = decode(decoder, &format, &marked, width, height, &view);
            void *want = decode(other, &format, &plain, WIDTH, HEIGHT, &stored_view);
            check_turned(&format, orientation, got, want, 20, 24);
            free(got);
            free(want);
            weir_decoder_close(&decoder);
            weir_decoder_close(&other);
        }
}

/* ---- reading marks ---- */

Test(marks, orientations_of_png)
{
    static const uint8_t png[] = "\x89PNG\r\n\x1a\n\0\0\0\x0DIHDR1234567890123crc0\0\0\0\0IENDcrc1";
    for (int big = 0; big < 2; big++)
        for (int named = 0; named < 2; named++) {
            struct bytes bytes = {.n = sizeof png - 1};
            struct weir_frame_marks marks;
            uint8_t chunk[128] = {0}, *body = chunk + 8;
            memcpy(bytes.at, png, bytes.n);
            weir_frame_marks(&marks, bytes.at, bytes.n);
            cr_assert_eq(marks.turn, 0);
            memcpy(body, "Exif\0", 6);
            size_t n = (named ? 6 : 0) + write_tiff(body + (named ? 6 : 0), 6, big);
            chunk[3] = (uint8_t)n;
            memcpy(chunk + 4, "eXIf", 4);
            insert_at(&bytes, 33, chunk, 8 + n + 4);
            weir_frame_marks(&marks, bytes.at, bytes.n);
            cr_assert_eq(marks.turn, 6, "big %d, named %d: %d", big, named, marks.turn);
        }
}

/* Marks that are cut off or have invalid values are none, and nothing past the end is read. */
Test(marks, damaged_marks)
{
    static struct bytes jpeg;
    struct weir_frame_marks marks;
    for (int orientation = 0; orientation <= 300; orientation += orientation == 9 ? 247 : 1) {
        make_jpeg(&jpeg);
        orient(&jpeg, orientation, false);
        weir_frame_marks(&marks, jpeg.at, jpeg.n);
        cr_assert_eq(marks.turn, orientation <= 8 ? orientation : 0, "%d", orientation);
    }
    for (size_t n = 0; n < 64; n++) {
        uint8_t *exact = malloc(n ? n : 1); /* exact size, so that a sanitizer detects reads past the end */
        make_jpeg(&jpeg);
        orient(&jpeg, 3, true);
        memcpy(exact, jpeg.at, n);
        weir_frame_marks(&marks, exact, n);
        cr_assert_eq(marks.turn, n >= 2 + 4 + 6 + 34 ? 3 : 0, "%zu", n);
        free(exact);
    }
    for (size_t at = 6; at < 60; at++) { /* offsets and counts that lead outside */
        make_jpeg(&jpeg);
        orient(&jpeg, 3, true);
        jpeg.at[at] = 0xFF;
        weir_frame_marks(&marks, jpeg.at, jpeg.n);
        cr_assert(marks.turn == 0 || marks.turn == 3, "%zu: %d", at, marks.turn);
    }
}

/* ---- colours ---- */

Test(marks, a_comment_states_true_colours)
{
    static struct bytes plain, marked, other;
    make_jpeg(&plain);
    marked = other = plain;
    insert_segment(&marked, 0xFE, "XPL-RGB1", 8);
    insert_segment(&other, 0xFE, "XPL-RGB12", 9);
    for (int f = 0; f < FORMATS; f += 2) {
        /* wanted: RGB, so the decoder of a dataset with swapped frames makes BGR of them */
        struct weir_pixel_format rgb = format_of(f), bgr = format_of(f + 1);
        rgb.mean[0] = 0.5f, rgb.mean[1] = 0.25f, rgb.std[0] = rgb.std[1] = rgb.std[2] = 0.5f;
        bgr.mean[2] = 0.5f, bgr.mean[1] = 0.25f, bgr.std[0] = bgr.std[1] = bgr.std[2] = 0.5f;
        size_t bytes = weir_image_bytes(&rgb, WIDTH, HEIGHT);
        struct weir_decoder *sound = NULL, *swapped = NULL;
        cr_assert_eq(weir_decoder_open(&sound, "turbo", &rgb, WIDTH, NULL), 0);
        cr_assert_eq(weir_decoder_open(&swapped, "turbo", &bgr, WIDTH, NULL), 0);
        void *as_stored = decode(sound, &rgb, &plain, WIDTH, HEIGHT, NULL);
        void *as_swapped = decode(swapped, &bgr, &plain, WIDTH, HEIGHT, NULL);
        weir_decoder_set_rules(swapped, &(struct weir_frame_rules){.swapped = true});
        const struct bytes *frames[] = {&marked, &plain, &other, &marked};
        for (int i = 0; i < 4; i++) {
            void *got = decode(swapped, &bgr, frames[i], WIDTH, HEIGHT, NULL);
            cr_assert_eq(memcmp(got, frames[i] == &marked ? as_stored : as_swapped, bytes), 0, "format %d, frame %d", f,
                         i);
            free(got);
        }
        free(as_stored);
        free(as_swapped);
        weir_decoder_close(&sound);
        weir_decoder_close(&swapped);
    }
}
