/* Decoders: every output format is compared with a simple reference, and every kind of invalid data must be refused
 * with its own reason. */
#include "decoders/decoder_ops.h"
#include "tests/fixtures/h5_fixture.h"
#include "tests/fixtures/jpeg_encode.h"
#include "tests/fixtures/loader_fixture.h"
#include "weir/decoder.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FORMATS = 8, CANARY = 64 };

static struct weir_pixel_format format_of(int i)
{
    return (struct weir_pixel_format){.color = (enum weir_color)(i & 1),
                                      .dtype = (enum weir_dtype)(i >> 1 & 1),
                                      .layout = (enum weir_image_layout)(i >> 2 & 1)};
}

static struct weir_decoder *open_decoder(const char *engine, struct weir_pixel_format format, int width_max)
{
    struct weir_decoder *decoder;
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_decoder_open(&decoder, engine, &format, width_max, &err), 0, "%s", err.text);
    return decoder;
}

/* Converts interleaved RGB to the given format. */
static uint8_t *reference(const uint8_t *rgb, int width, int height, struct weir_pixel_format format)
{
    size_t n = (size_t)width * (size_t)height;
    uint8_t *image = malloc(weir_image_bytes(&format, width, height));
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < 3; c++) {
            uint8_t value = rgb[3 * i + (format.color == WEIR_COLOR_BGR ? 2 - c : c)];
            size_t at = format.layout == WEIR_LAYOUT_NCHW ? c * n + i : 3 * i + c;
            if (format.dtype == WEIR_DTYPE_F32)
                ((float *)(void *)image)[at] = (float)value / 255.0f;
            else
                image[at] = value;
        }
    return image;
}

/* Decodes into a buffer followed by a canary. */
static int decode(struct weir_decoder *decoder, struct weir_frame frame, struct weir_pixel_format format,
                  uint8_t **image)
{
    size_t bytes = weir_image_bytes(&format, frame.width, frame.height);
    *image = malloc(bytes + CANARY);
    memset(*image, 0xA5, bytes + CANARY);
    int rc = weir_decode(decoder, &frame, *image);
    for (int i = 0; i < CANARY; i++)
        cr_assert_eq((*image)[bytes + (size_t)i], 0xA5, "wrote past the image");
    return rc;
}

static void check_all_formats(enum weir_frame_kind kind, const uint8_t *bytes, size_t length, const uint8_t *rgb,
                              int width, int height, const char *about)
{
    for (int f = 0; f < FORMATS; f++) {
        struct weir_pixel_format format = format_of(f);
        struct weir_decoder *decoder = open_decoder("turbo", format, width);
        uint8_t *image, *want = reference(rgb, width, height, format);
        for (int again = 0; again < 2; again++) {
            int rc = decode(decoder, (struct weir_frame){kind, bytes, length, width, height, NULL}, format, &image);
            cr_assert_eq(rc, 0, "%s, format %d: %s", about, f, weir_decoder_reason(decoder));
            cr_assert_eq(memcmp(image, want, weir_image_bytes(&format, width, height)), 0, "%s, format %d", about, f);
            free(image);
        }
        free(want);
        weir_decoder_close(&decoder);
        cr_assert_null(decoder);
    }
}

static const struct {
    int width, height;
} sizes[] = {{1, 1}, {3, 2}, {16, 16}, {17, 15}, {64, 48}, {31, 33}, {250, 97}};

Test(decoder, jpegs_of_every_kind_in_every_format)
{
    static const enum h5fx_jpeg kinds[] = {H5FX_JPEG_420,     H5FX_JPEG_444,         H5FX_JPEG_422,
                                           H5FX_JPEG_GRAY,    H5FX_JPEG_PROGRESSIVE, H5FX_JPEG_ARITHMETIC,
                                           H5FX_JPEG_RESTART, H5FX_JPEG_CMYK,        H5FX_JPEG_YCCK};
    char about[64];
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            int width, height;
            size_t length;
            uint8_t *bytes = h5fx_jpeg(kinds[k], sizes[s].width, sizes[s].height, (int)s, &length);
            uint8_t *rgb = h5fx_pixels(bytes, length, false, &width, &height);
            cr_assert_not_null(rgb);
            snprintf(about, sizeof about, "kind %d, %dx%d", kinds[k], width, height);
            check_all_formats(WEIR_FRAME_IMAGE, bytes, length, rgb, width, height, about);
            free(rgb);
            free(bytes);
        }
}

/* libjpeg's BGR output must equal its RGB output with swapped channels, so that one reference serves both. */
Test(decoder, bgr_is_rgb_swapped)
{
    int width, height;
    size_t length;
    uint8_t *bytes = h5fx_jpeg(H5FX_JPEG_420, 40, 30, 1, &length);
    uint8_t *rgb = h5fx_pixels(bytes, length, false, &width, &height);
    uint8_t *bgr = h5fx_pixels(bytes, length, true, &width, &height);
    for (int i = 0; i < 40 * 30; i++)
        for (int c = 0; c < 3; c++)
            cr_assert_eq(rgb[3 * i + c], bgr[3 * i + 2 - c]);
    free(rgb);
    free(bgr);
    free(bytes);
}

Test(decoder, raw_frames_in_every_format)
{
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        size_t length = (size_t)sizes[s].width * (size_t)sizes[s].height * 3;
        uint8_t *rgb = malloc(length);
        for (size_t i = 0; i < length; i++)
            rgb[i] = (uint8_t)(i * 7 + i / 256);
        check_all_formats(WEIR_FRAME_RAW, rgb, length, rgb, sizes[s].width, sizes[s].height, "raw");
        free(rgb);
    }
}

/* All 256 values, in both memory layouts. */
Test(decoder, floats_are_value_over_255_exactly)
{
    uint8_t rgb[768];
    for (int i = 0; i < 768; i++)
        rgb[i] = (uint8_t)(i / 3);
    for (int layout = 0; layout < 2; layout++) {
        struct weir_pixel_format format = {
            .color = WEIR_COLOR_RGB, .dtype = WEIR_DTYPE_F32, .layout = (enum weir_image_layout)layout};
        struct weir_decoder *decoder = open_decoder("turbo", format, 256);
        float image[768];
        struct weir_frame frame = {WEIR_FRAME_RAW, rgb, sizeof rgb, 256, 1, NULL};
        cr_assert_eq(weir_decode(decoder, &frame, image), 0);
        for (int v = 0; v < 256; v++)
            for (int c = 0; c < 3; c++) {
                volatile float exact = (float)v;
                exact /= 255.0f;
                cr_assert_eq(image[layout ? c * 256 + v : 3 * v + c], exact, "%d", v);
            }
        cr_assert_eq(image[0], 0.0f);
        cr_assert_eq(image[767], 1.0f);
        weir_decoder_close(&decoder);
    }
}

Test(decoder, raw_frames_may_be_read_into_place_only_when_nothing_is_left_to_do)
{
    for (int f = 0; f < FORMATS; f++) {
        struct weir_pixel_format format = format_of(f);
        struct weir_decoder *decoder = open_decoder("turbo", format, 8);
        bool plain =
            format.color == WEIR_COLOR_RGB && format.dtype == WEIR_DTYPE_U8 && format.layout == WEIR_LAYOUT_NHWC;
        cr_assert_eq(weir_decoder_is_direct(decoder, WEIR_FRAME_RAW), plain);
        uint8_t image[8 * 2 * 3];
        for (int i = 0; i < 48; i++)
            image[i] = (uint8_t)i;
        struct weir_frame frame = {WEIR_FRAME_RAW, image, sizeof image, 8, 2, NULL};
        if (plain)
            cr_assert_eq(weir_decode(decoder, &frame, image), 0);
        for (int i = 0; i < 48; i++)
            cr_assert_eq(image[i], i);
        weir_decoder_close(&decoder);
    }
}

/* ---- invalid data ---- */

static void refused(const uint8_t *bytes, size_t length, int width, int height, const char *reason, const char *about)
{
    for (int f = 0; f < FORMATS; f++) {
        struct weir_pixel_format format = format_of(f);
        struct weir_decoder *decoder = open_decoder("turbo", format, width);
        uint8_t *copy = malloc(length ? length : 1), *image; /* exact size, so that reads past the end are detected */
        memcpy(copy, bytes, length);
        int rc =
            decode(decoder, (struct weir_frame){WEIR_FRAME_IMAGE, copy, length, width, height, NULL}, format, &image);
        cr_assert_eq(rc, -EBADMSG, "%s was accepted", about);
        cr_assert_neq(strlen(weir_decoder_reason(decoder)), 0, "%s", about);
        if (reason)
            cr_assert_not_null(strstr(weir_decoder_reason(decoder), reason), "%s: %s", about,
                               weir_decoder_reason(decoder));
        free(image);
        /* The same decoder must still decode valid frames. */
        size_t good_length;
        uint8_t *good = h5fx_jpeg(H5FX_JPEG_420, width, height, 5, &good_length);
        rc = decode(decoder, (struct weir_frame){WEIR_FRAME_IMAGE, good, good_length, width, height, NULL}, format,
                    &image);
        cr_assert_eq(rc, 0, "after %s: %s", about, weir_decoder_reason(decoder));
        free(image);
        free(good);
        free(copy);
        weir_decoder_close(&decoder);
    }
}

Test(decoder, every_truncation_is_refused)
{
    size_t length;
    uint8_t *bytes = h5fx_jpeg(H5FX_JPEG_420, 48, 32, 2, &length);
    struct weir_pixel_format format = format_of(0);
    struct weir_decoder *decoder = open_decoder("turbo", format, 48);
    for (size_t n = 0; n < length; n++) {
        uint8_t *copy = malloc(n ? n : 1), *image;
        memcpy(copy, bytes, n);
        int rc = decode(decoder, (struct weir_frame){WEIR_FRAME_IMAGE, copy, n, 48, 32, NULL}, format, &image);
        cr_assert_eq(rc, -EBADMSG, "%zu of %zu bytes were accepted", n, length);
        free(image);
        free(copy);
    }
    weir_decoder_close(&decoder);
    refused(bytes, length / 2, 48, 32, "Premature end", "half a JPEG");
    refused(bytes, 0, 48, 32, "Empty input", "nothing");
    free(bytes);
}

/* For missing data, libjpeg outputs grey pixels and only issues a warning. */
Test(decoder, warnings_count_as_corrupt)
{
    for (int kind = H5FX_JPEG_420; kind < H5FX_JPEG_CMYK; kind++) {
        size_t length;
        uint8_t *bytes = h5fx_jpeg((enum h5fx_jpeg)kind, 320, 240, 3, &length);
        memset(bytes + length * 6 / 10, 0, length * 3 / 10);
        int width, height;
        uint8_t *painted = h5fx_pixels(bytes, length, false, &width, &height);
        cr_assert_not_null(painted, "the library fails, too");
        free(painted);
        refused(bytes, length, 320, 240, "Corrupt JPEG data", "zeroed scan data");
        free(bytes);
    }
}

/* ---- harmless flaws ---- */

/* A JPEG with restart markers, and how to make it flawed: `with` replaces n bytes at the next marker of this code. */
static const struct flaw {
    const char *about, *reason;
    uint8_t marker;
    int after, n; /* bytes between the beginning of the marker and those replaced; number of these */
    const char *with;
    int n_with;
} flaws[] = {
    {"bytes between segments", "extraneous bytes before marker 0xdb", 0xDB, 0, 0, "\x12\x34\x56", 3},
    {"bytes before SOS", "extraneous bytes before marker 0xda", 0xDA, 0, 0, "\0\0", 2},
    {"bytes before a restart", "extraneous bytes before marker 0xd1", 0xD1, 0, 0,
     "\x12\x34\x56\x78\x9a\xbc\xde\xf0\x11", 9},
    {"a zero before a restart", "extraneous bytes before marker", 0xD0, 0, 0, "\0\0\0\0\0\0\0\0\0", 9},
    {"bytes before EOI", "extraneous bytes before marker 0xd9", 0xD9, 0, 0, "0123456789abcdef0123", 20},
    {"JFIF version 9", "unknown JFIF revision number 9.01", 0xE0, 9, 1, "\x09", 1},
    {"zeros in the scan's parameters", "Invalid SOS parameters", 0xDA, 11, 3, "\0\0\0", 3},
};

static size_t find_marker(const uint8_t *bytes, size_t length, uint8_t marker)
{
    size_t at = 0;
    while (at + 1 < length && !(bytes[at] == 0xFF && bytes[at + 1] == marker))
        at++;
    cr_assert_lt(at + 1, length);
    return at;
}

static uint8_t *with_flaw(const struct flaw *flaw, const uint8_t *sound, size_t length, size_t *made)
{
    size_t at = find_marker(sound, length, flaw->marker) + (size_t)flaw->after;
    size_t rest = at + (size_t)flaw->n, n_with = (size_t)flaw->n_with;
    uint8_t *bytes = malloc(length + n_with);
    memcpy(bytes, sound, at);
    memcpy(bytes + at, flaw->with, n_with);
    memcpy(bytes + at + n_with, sound + rest, length - rest);
    *made = length - (size_t)flaw->n + n_with;
    return bytes;
}

static void check_flaw(const struct flaw *flaw, const char *engine, int f)
{
    struct weir_pixel_format format = format_of(f);
    const struct jpeg_encode how = {
        .width = 64, .height = 48, .quality = 90, .h = {2, 1, 1}, .v = {2, 1, 1}, .restart = 4};
    struct weir_decoder *decoder = open_decoder(engine, format, 64);
    struct weir_decoder_counts counts;
    size_t length, made;
    uint8_t *sound = jpeg_encode(&how, &length), *bytes = with_flaw(flaw, sound, length, &made), *want, *image;
    cr_assert_eq(decode(decoder, (struct weir_frame){WEIR_FRAME_IMAGE, sound, length, 64, 48, NULL}, format, &want), 0);
    for (int n = 1; n <= 2; n++) { /* decoders must not take one warning for that of the next frame */
        int rc = decode(decoder, (struct weir_frame){WEIR_FRAME_IMAGE, bytes, made, 64, 48, NULL}, format, &image);
        cr_assert_eq(rc, 0, "%s, %s: %s", flaw->about, engine, weir_decoder_reason(decoder));
        cr_assert_eq(memcmp(image, want, weir_image_bytes(&format, 64, 48)), 0, "%s, %s", flaw->about, engine);
        free(image);
        decode(decoder, (struct weir_frame){WEIR_FRAME_IMAGE, sound, length, 64, 48, NULL}, format, &image);
        free(image);
        weir_decoder_counts(decoder, &counts);
        cr_assert_eq(counts.warned_frames, (uint64_t)n, "%s, %s", flaw->about, engine);
    }
    weir_decoder_set_on_warning(decoder, WEIR_ON_WARNING_FAIL);
    cr_assert_eq(decode(decoder, (struct weir_frame){WEIR_FRAME_IMAGE, bytes, made, 64, 48, NULL}, format, &image),
                 -EBADMSG);
    cr_assert_not_null(strstr(weir_decoder_reason(decoder), flaw->reason), "%s", weir_decoder_reason(decoder));
    free(image);
    cr_assert_eq(weir_frame_end(bytes, made), made, "%s", flaw->about);
    free(want);
    free(bytes);
    free(sound);
    weir_decoder_close(&decoder);
}

Test(decoder, harmless_flaws_are_counted_or_refused)
{
    for (size_t i = 0; i < sizeof flaws / sizeof flaws[0]; i++)
        for (int f = 0; f < FORMATS; f++)
            for (int original = 0; original < 2; original++)
                check_flaw(&flaws[i], original ? "turbo-original" : "turbo", f);
}

/* If a part of the scan is lost, decoding may end early; the rest then resembles extraneous bytes. Zeros after the last
 * coefficient are padding. */
Test(decoder, zeros_in_the_scan_are_damage_and_zeros_after_it_are_padding)
{
    const struct jpeg_encode how = {
        .width = 320, .height = 240, .quality = 90, .picture = JPEG_ENCODE_NOISE, .h = {2, 1, 1}, .v = {2, 1, 1}};
    size_t length;
    uint8_t *bytes = jpeg_encode(&how, &length);
    bytes = realloc(bytes, length + 500);
    memmove(bytes + length - 2 + 500, bytes + length - 2, 2);
    memset(bytes + length - 2, 0, 500);
    struct weir_pixel_format format = format_of(0);
    struct weir_decoder *decoder = open_decoder("turbo", format, 320);
    uint8_t *image;
    cr_assert_eq(
        decode(decoder, (struct weir_frame){WEIR_FRAME_IMAGE, bytes, length + 500, 320, 240, NULL}, format, &image), 0,
        "%s", weir_decoder_reason(decoder));
    free(image);
    size_t refused_at_end = 0;
    for (size_t at = 2000; at + 200 < length; at += 500) {
        uint8_t *copy = malloc(length + 500);
        memcpy(copy, bytes, length + 500);
        memset(copy + at, 0, 200);
        cr_assert_eq(
            decode(decoder, (struct weir_frame){WEIR_FRAME_IMAGE, copy, length + 500, 320, 240, NULL}, format, &image),
            -EBADMSG, "zeros at %zu of %zu were accepted", at, length);
        refused_at_end += strstr(weir_decoder_reason(decoder), "extraneous") != NULL;
        free(image);
        free(copy);
    }
    cr_assert_gt(refused_at_end, 0, "no damage resembles extraneous bytes");
    free(bytes);
    weir_decoder_close(&decoder);
}

Test(decoder, what_is_no_jpeg_and_what_is_another)
{
    size_t length;
    uint8_t garbage[500];
    for (int i = 0; i < 500; i++)
        garbage[i] = (uint8_t)(i * 37 + 11);
    refused(garbage, sizeof garbage, 24, 16, "Not a JPEG file", "garbage");
    refused((const uint8_t *)"\xff\xd8", 2, 24, 16, NULL, "a start and nothing else");
    refused((const uint8_t *)"\xff\xd8\xff\xd9", 4, 24, 16, NULL, "a start and an end");
    uint8_t *bytes = h5fx_jpeg(H5FX_JPEG_420, 32, 16, 1, &length);
    refused(bytes, length, 24, 16, "the image is 32x16, but the camera's first frame was 24x16", "another width");
    refused(bytes, length, 32, 24, "the image is 32x16, but the camera's first frame was 32x24", "another height");
    free(bytes);
    bytes = h5fx_jpeg(H5FX_JPEG_MANY_SCANS, 24, 16, 1, &length);
    refused(bytes, length, 24, 16, "more than 500 progressive scans", "a thousand scans");
    free(bytes);
}

Test(decoder, images_wider_than_planned_are_refused)
{
    struct weir_pixel_format format = format_of(2);
    struct weir_decoder *decoder = open_decoder("turbo", format, 23);
    size_t length;
    uint8_t *image, *bytes = h5fx_jpeg(H5FX_JPEG_420, 24, 16, 1, &length);
    cr_assert_eq(decode(decoder, (struct weir_frame){WEIR_FRAME_IMAGE, bytes, length, 24, 16, NULL}, format, &image),
                 -EBADMSG);
    cr_assert_not_null(strstr(weir_decoder_reason(decoder), "23"), "%s", weir_decoder_reason(decoder));
    free(image);
    free(bytes);
    uint8_t rgb[24 * 3] = {0};
    cr_assert_eq(decode(decoder, (struct weir_frame){WEIR_FRAME_RAW, rgb, sizeof rgb, 24, 1, NULL}, format, &image),
                 -EBADMSG);
    free(image);
    weir_decoder_close(&decoder);
}

Test(decoder, raw_frames_of_another_length_are_refused)
{
    struct weir_pixel_format format = format_of(0);
    struct weir_decoder *decoder = open_decoder("turbo", format, 8);
    uint8_t rgb[8 * 2 * 3 + 1] = {0}, *image;
    for (size_t length = 0; length <= sizeof rgb; length++) {
        int rc = decode(decoder, (struct weir_frame){WEIR_FRAME_RAW, rgb, length, 8, 2, NULL}, format, &image);
        cr_assert_eq(rc, length == 48 ? 0 : -EBADMSG);
        cr_assert(rc == 0 || strstr(weir_decoder_reason(decoder), "8x2"));
        free(image);
    }
    weir_decoder_close(&decoder);
}

/* ---- probing ---- */

Test(decoder, probing_tells_size_subsampling_and_process)
{
    static const struct {
        enum h5fx_jpeg kind;
        int components;
        const char *subsampling, *process;
    } rows[] = {{H5FX_JPEG_420, 3, "4:2:0", "baseline"},          {H5FX_JPEG_444, 3, "4:4:4", "baseline"},
                {H5FX_JPEG_422, 3, "4:2:2", "baseline"},          {H5FX_JPEG_GRAY, 1, "gray", "baseline"},
                {H5FX_JPEG_CMYK, 4, "other", "baseline"},         {H5FX_JPEG_PROGRESSIVE, 3, "4:2:0", "progressive"},
                {H5FX_JPEG_ARITHMETIC, 3, "4:2:0", "arithmetic"}, {H5FX_JPEG_RESTART, 3, "4:2:0", "baseline"}};
    struct weir_pixel_format format = format_of(0);
    struct weir_decoder *decoder = open_decoder("turbo", format, 1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t length;
        struct weir_image_info info;
        uint8_t *bytes = h5fx_jpeg(rows[i].kind, 123, 45, 1, &length);
        cr_assert_eq(weir_probe_image(decoder, WEIR_FRAME_IMAGE, bytes, length, &info), 0, "%s",
                     weir_decoder_reason(decoder));
        cr_assert_eq(info.width, 123);
        cr_assert_eq(info.height, 45);
        cr_assert_eq(info.components, rows[i].components);
        cr_assert_eq(info.bit_depth, 8);
        cr_assert_eq(info.kind, WEIR_FRAME_JPEG);
        cr_assert_str_eq(info.subsampling, rows[i].subsampling);
        cr_assert_str_eq(info.process, rows[i].process);
        cr_assert_eq(weir_probe_image(decoder, WEIR_FRAME_IMAGE, bytes, 30, &info), -EBADMSG);
        cr_assert_eq(weir_probe_image(decoder, WEIR_FRAME_RAW, bytes, length, &info), -EINVAL);
        cr_assert_neq(strlen(weir_decoder_reason(decoder)), 0);
        free(bytes);
    }
    weir_decoder_close(&decoder);
}

/* ---- engines and names ---- */

Test(decoder, null_decodes_nothing)
{
    struct weir_pixel_format format = format_of(3);
    struct weir_decoder *decoder = open_decoder("null", format, 24);
    uint8_t *image;
    cr_assert_eq(decode(decoder, (struct weir_frame){WEIR_FRAME_IMAGE, NULL, 0, 24, 16, NULL}, format, &image), 0);
    for (size_t i = 0; i < weir_image_bytes(&format, 24, 16); i++)
        cr_assert_eq(image[i], 0xA5);
    cr_assert_not(weir_decoder_is_direct(decoder, WEIR_FRAME_RAW));
    free(image);
    weir_decoder_close(&decoder);
}

Test(decoder, names)
{
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_decoder *decoder;
    struct weir_pixel_format format = format_of(0);
    cr_assert_eq(weir_decoder_open(&decoder, "turbot", &format, 8, &err), -EINVAL);
    cr_assert_null(decoder);
    cr_assert_not_null(strstr(err.text, "turbo, nvjpeg, hybrid, null"), "%s", err.text);
    cr_assert_eq(weir_decoder_check("raw", NULL), -EINVAL);
    cr_assert_eq(weir_frame_kind_from_name("raw"), WEIR_FRAME_RAW);
    cr_assert_eq(weir_frame_kind_from_name("jpeg"), WEIR_FRAME_JPEG);
    cr_assert_eq(weir_frame_kind_from_name("jpg"), -EINVAL);
}

/* ---- decoder selection ---- */

static const char *row_for(const char *asked, enum weir_frame_kind kind, const void *bytes, size_t length)
{
    int preferred = weir_decoder_find(asked);
    cr_assert(preferred >= 0, "%s", asked);
    return weir_decoder_ops_at(weir_decoder_row_for(preferred, kind, bytes, length))->name;
}

Test(decoder, a_frame_goes_to_the_codec_that_recognises_its_bytes)
{
    static const uint8_t jpeg[] = {0xFF, 0xD8, 0xFF, 0xE0}, png[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
    static const char *const asked[] = {"turbo", "nvjpeg", "hybrid"};
    for (int i = 0; i < 3; i++) {
        cr_assert_str_eq(row_for(asked[i], WEIR_FRAME_IMAGE, jpeg, sizeof jpeg), "turbo");
        cr_assert_str_eq(row_for(asked[i], WEIR_FRAME_IMAGE, png, sizeof png), "png");
        cr_assert_str_eq(row_for(asked[i], WEIR_FRAME_PNG16, png, sizeof png), "png");
        cr_assert_str_eq(row_for(asked[i], WEIR_FRAME_RAW, jpeg, sizeof jpeg),
                         "raw"); /* raw pixels that happen to start like a JPEG */
        cr_assert_str_eq(row_for(asked[i], WEIR_FRAME_RAW16, png, sizeof png), "raw");
        /* Unrecognised bytes go to the decoder that explains what is wrong with them. */
        cr_assert_str_eq(row_for(asked[i], WEIR_FRAME_IMAGE, "", 0), "turbo");
        cr_assert_str_eq(row_for(asked[i], WEIR_FRAME_PNG16, jpeg, sizeof jpeg), "png");
    }
    cr_assert_str_eq(row_for("turbo-original", WEIR_FRAME_IMAGE, jpeg, sizeof jpeg), "turbo-original");
    cr_assert_str_eq(row_for("turbo-original", WEIR_FRAME_IMAGE, png, sizeof png), "png");
    for (int kind = 0; kind < WEIR_FRAME_KINDS; kind++)
        cr_assert_str_eq(row_for("null", (enum weir_frame_kind)kind, png, sizeof png), "null");
}

Test(decoder, every_kind_of_colour_image_is_recognised_and_decoded)
{
    uint8_t bytes[WEIR_MAGIC_BYTES];
    for (int i = 0; i < WEIR_FRAME_KINDS; i++) {
        enum weir_frame_kind kind = (enum weir_frame_kind)i;
        const struct weir_frame_kind_row *row = weir_frame_kind_row(kind);
        bool is_video = row->group == WEIR_FRAMES_VIDEO;
        bool is_color = weir_frame_is_encoded(kind) && !row->is_depth && !is_video && kind != WEIR_FRAME_IMAGE;
        cr_assert(*row->name && *row->title && row->group, "kind %d", i);
        cr_assert_eq(!row->imagecodecs, !weir_frame_is_encoded(kind) || is_video, "%s", row->name);
        cr_assert_eq(row->magic[0].bytes != NULL, is_color, "%s", row->name);
        /* A file cannot name a kind whose bytes are pointers. */
        int named = is_video ? -EINVAL : kind == WEIR_FRAME_IMAGE ? WEIR_FRAME_JPEG : i;
        int stored = row->group == WEIR_FRAMES_COLOR ? WEIR_FRAME_IMAGE : named;
        cr_assert_eq(weir_frame_kind_from_name(row->name), named);
        cr_assert_eq(weir_frame_kind_stored(row->name), stored);
        for (int m = 0; m < WEIR_MAGIC_MAX && row->magic[m].bytes; m++) {
            size_t n = row->magic[m].length;
            cr_assert(n > 0 && n <= WEIR_MAGIC_BYTES, "%s", row->name);
            memcpy(bytes, row->magic[m].bytes, n);
            cr_assert_eq(weir_frame_kind_of(bytes, n), kind, "%s", row->name);
            cr_assert_eq(weir_frame_kind_of(bytes, n - 1), WEIR_FRAME_IMAGE, "%s", row->name);
            bytes[n - 1] ^= 1;
            cr_assert_eq(weir_frame_kind_of(bytes, n), WEIR_FRAME_IMAGE, "%s", row->name);
        }
        int at = weir_decoder_row_for(-1, kind, NULL, 0);
        cr_assert(at >= 0 && weir_decoder_ops_at(at)->kinds & WEIR_KIND(is_color || i ? i : WEIR_FRAME_JPEG), "%s",
                  row->name);
    }
    cr_assert_eq(weir_frame_kind_stored("gif"), -EINVAL);
    cr_assert(weir_decoder_scales(WEIR_FRAME_IMAGE) && weir_decoder_scales(WEIR_FRAME_JPEG));
    cr_assert(!weir_decoder_scales(WEIR_FRAME_PNG) && !weir_decoder_scales(WEIR_FRAME_RAW));
    char list[16];
    weir_frame_kind_list(WEIR_FRAMES_RAW | WEIR_FRAMES_COLOR, ", ", list, sizeof list);
    cr_assert_str_eq(list, "jpeg, raw, raw1");
    weir_frame_kind_list(WEIR_FRAMES_RAW, "|", list, sizeof list);
    cr_assert_str_eq(list, "raw|raw16");
}

Test(decoder, the_table_is_whole)
{
    const struct weir_decoder_ops *ops;
    for (int row = 0; (ops = weir_decoder_ops_at(row)); row++) {
        cr_assert(ops->why_not || ops->no_pixels || ops->where != WEIR_DECODE_ON_CPU || (ops->decode && ops->kinds),
                  "%s", ops->name);
        cr_assert(!ops->open == !ops->close, "%s", ops->name);
        for (int kind = 0; kind < WEIR_FRAME_KINDS; kind++)
            if (ops->kinds & WEIR_KIND(kind) && weir_frame_is_encoded((enum weir_frame_kind)kind))
                cr_assert(ops->probe || ops->why_not, "%s has no frame size", ops->name);
        cr_assert_eq(weir_decoder_find(ops->name), ops->selectable ? row : -1, "%s", ops->name);
        cr_assert_eq(weir_decoder_check(ops->name, NULL) != -EINVAL, ops->selectable, "%s", ops->name);
    }
    cr_assert_null(weir_decoder_ops_at(-1));
    static const char *const at[] = {"turbo", "nvjpeg", "hybrid"};
    for (int where = WEIR_DECODE_ON_CPU; where <= WEIR_DECODE_ON_BOTH; where++) {
        cr_assert_str_eq(weir_decoder_at((enum weir_decode_where)where), at[where]);
        cr_assert_eq(weir_decoder_where(at[where]), (enum weir_decode_where)where);
    }
    cr_assert_eq(weir_decoder_where("auto"), WEIR_DECODE_ON_CPU);
}

/* ---- libjpeg-turbo's own images ---- */

/* The reference PPM was made with another IDCT, so values may differ by up to 3. */
Test(decoder, the_reference_image_of_the_library)
{
    size_t length, ppm_length;
    uint8_t *bytes = fixture_test_image("testimages/testorig.jpg", &length),
            *ppm = fixture_test_image("testimages/testorig.ppm", &ppm_length);
    if (bytes && ppm) {
        int width, height;
        uint8_t *rgb = h5fx_pixels(bytes, length, false, &width, &height);
        check_all_formats(WEIR_FRAME_IMAGE, bytes, length, rgb, 227, 149, "testorig");
        for (size_t i = 0, n = 227 * 149 * 3; i < n; i++)
            cr_assert_leq(abs(rgb[i] - ppm[ppm_length - n + i]), 3);
        free(rgb);
    }
    free(bytes);
    free(ppm);
}

Test(decoder, arithmetic_is_read_and_12_bits_are_refused)
{
    size_t length;
    int width, height;
    uint8_t *bytes = fixture_test_image("testimages/testimgari.jpg", &length);
    if (bytes) {
        uint8_t *rgb = h5fx_pixels(bytes, length, false, &width, &height);
        check_all_formats(WEIR_FRAME_IMAGE, bytes, length, rgb, width, height, "testimgari");
        free(rgb);
    }
    free(bytes);
    bytes = fixture_test_image("testimages/monkey12.jpg", &length);
    if (bytes)
        refused(bytes, length, 149, 227, "precision", "12 bits");
    free(bytes);
}
