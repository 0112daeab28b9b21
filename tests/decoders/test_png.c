/* PNG frames (colour and depth) and raw depth: every kind is compared with the values written, and every kind of
 * invalid data must be refused with its own reason. */
#include "datasets/synth/image_write.h"
#include "tests/fixtures/loader_fixture.h"
#include "tests/fixtures/png_fixture.h"
#include "weir/decoder.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FORMATS = 8, CANARY = 64, WIDTH_MAX = 256 };

static const struct {
    int width, height;
} sizes[] = {{1, 1}, {3, 2}, {2, 17}, {17, 15}, {31, 33}, {64, 48}, {251, 34}};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static struct weir_pixel_format format_of(int i)
{
    return (struct weir_pixel_format){.color = (enum weir_color)(i & 1),
                                      .dtype = (enum weir_dtype)(i >> 1 & 1),
                                      .layout = (enum weir_image_layout)(i >> 2 & 1)};
}

static struct weir_decoder *open_decoder(const char *engine, int format)
{
    struct weir_decoder *decoder;
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_pixel_format asked = format_of(format);
    cr_assert_eq(weir_decoder_open(&decoder, engine, &asked, WIDTH_MAX, &err), 0, "%s", err.text);
    return decoder;
}

static bool is_gray(enum pngfx_kind kind)
{
    return pngfx_channels(kind) == 1 && kind < PNGFX_PALETTE1;
}

/* Converts interleaved RGB to the given format. */
static void *color_of(const uint8_t *rgb, size_t pixels, struct weir_pixel_format format)
{
    bool f32 = format.dtype == WEIR_DTYPE_F32;
    void *image = malloc(pixels * 3 * (f32 ? sizeof(float) : 1));
    for (size_t i = 0; i < pixels; i++)
        for (size_t c = 0; c < 3; c++) {
            uint8_t value = rgb[3 * i + (format.color == WEIR_COLOR_BGR ? 2 - c : c)];
            size_t at = format.layout == WEIR_LAYOUT_NCHW ? c * pixels + i : 3 * i + c;
            if (f32)
                ((float *)image)[at] = (float)value / 255.0f;
            else
                ((uint8_t *)image)[at] = value;
        }
    return image;
}

/* Decodes bytes from a buffer of exact size into an image followed by a canary. */
static int decode(struct weir_decoder *decoder, int format, struct weir_frame frame, void **image)
{
    struct weir_pixel_format asked = format_of(format);
    size_t n = weir_frame_bytes(&asked, frame.kind, frame.width, frame.height);
    uint8_t *to = malloc(n + CANARY), *from = malloc(frame.length ? frame.length : 1);
    memset(to, 0xA5, n + CANARY);
    memcpy(from, frame.bytes, frame.length);
    frame.bytes = from;
    int rc = weir_decode(decoder, &frame, to);
    for (size_t i = 0; i < CANARY; i++)
        cr_assert_eq(to[n + i], 0xA5, "wrote past the image");
    cr_assert(rc == 0 || (rc == -EBADMSG && *weir_decoder_reason(decoder)), "%d", rc);
    free(from);
    *image = to;
    return rc;
}

static void check(int format, struct weir_frame frame, const void *want, const char *about)
{
    struct weir_pixel_format asked = format_of(format);
    size_t n = weir_frame_bytes(&asked, frame.kind, frame.width, frame.height);
    struct weir_decoder *decoder = open_decoder("turbo", format);
    for (int again = 0; again < 2; again++) {
        void *image;
        int rc = decode(decoder, format, frame, &image);
        cr_assert_eq(rc, 0, "%s, format %d: %s", about, format, weir_decoder_reason(decoder));
        cr_assert_eq(memcmp(image, want, n), 0, "%s, format %d", about, format);
        free(image);
    }
    weir_decoder_close(&decoder);
}

/* Checks the image as colour in every format and, if it is 8-bit or 16-bit grey, as depth. */
static void check_image(const struct pngfx_image *image)
{
    char about[96];
    snprintf(about, sizeof about, "kind %d, %dx%d, filter %d%s%s", image->kind, image->width, image->height,
             image->filter, image->interlaced ? ", interlaced" : "", image->transparent ? ", transparent" : "");
    size_t length, pixels = (size_t)image->width * (size_t)image->height;
    uint8_t *bytes = pngfx_write(image, &length), *rgb = pngfx_rgb(image);
    uint16_t *values = pngfx_values(image);
    struct weir_frame frame = {WEIR_FRAME_IMAGE, bytes, length, image->width, image->height, NULL};
    for (int f = 0; f < FORMATS && pngfx_bits(image->kind) <= 8; f++) {
        void *want = color_of(rgb, pixels, format_of(f));
        check(f, frame, want, about);
        free(want);
    }
    frame.kind = WEIR_FRAME_PNG16;
    for (int f = 0; f < FORMATS && is_gray(image->kind) && pngfx_bits(image->kind) >= 8; f++)
        check(f, frame, values, about);
    free(values);
    free(rgb);
    free(bytes);
}

Test(png, every_kind_and_size_in_every_format)
{
    for (int kind = 0; kind < PNGFX_KINDS; kind++)
        for (int s = 0; s < SIZES; s++)
            for (int interlaced = 0; interlaced < 2; interlaced++)
                check_image(&(struct pngfx_image){.kind = (enum pngfx_kind)kind,
                                                  .width = sizes[s].width,
                                                  .height = sizes[s].height,
                                                  .filter = PNGFX_MIXED,
                                                  .interlaced = interlaced,
                                                  .seed = s});
}

Test(png, every_filter)
{
    static const enum pngfx_kind some[] = {PNGFX_GRAY1, PNGFX_GRAY8, PNGFX_GRAY16,
                                           PNGFX_RGB8,  PNGFX_RGBA8, PNGFX_PALETTE4};
    for (size_t k = 0; k < sizeof some / sizeof some[0]; k++)
        for (int filter = 0; filter < PNGFX_FILTERS; filter++)
            for (int interlaced = 0; interlaced < 2; interlaced++)
                check_image(&(struct pngfx_image){.kind = some[k],
                                                  .width = 37,
                                                  .height = 21,
                                                  .filter = (enum pngfx_filter)filter,
                                                  .interlaced = interlaced});
}

/* Transparent pixels keep their colour, because alpha is dropped and not blended. It adds no channel to the output. */
Test(png, transparency_is_dropped)
{
    for (int kind = 0; kind < PNGFX_KINDS; kind++)
        check_image(&(struct pngfx_image){
            .kind = (enum pngfx_kind)kind, .width = 19, .height = 18, .filter = PNGFX_SUB, .transparent = true});
}

/* Gamma is ignored, and so is a broken colour profile. */
Test(png, descriptions_are_passed_over)
{
    for (int kind = 0; kind < PNGFX_KINDS; kind++)
        check_image(&(struct pngfx_image){
            .kind = (enum pngfx_kind)kind, .width = 19, .height = 18, .filter = PNGFX_UP, .described = true});
}

/* All 65,536 values survive the file's byte order and the project's own writer. */
Test(png, every_depth_is_as_stored)
{
    struct weir_bytes out = {0};
    uint16_t *values = malloc(65536 * sizeof *values);
    for (int i = 0; i < 65536; i++)
        values[i] = (uint16_t)(i * 40503);
    cr_assert_eq(weir_png_write_grey16(values, 256, 256, &out), 0);
    for (int f = 0; f < FORMATS; f++)
        check(f, (struct weir_frame){WEIR_FRAME_PNG16, out.data, out.size, 256, 256, NULL}, values, "all values");
    free(out.data);
    free(values);
}

/* A grey reference image of libjpeg-turbo, written by another program. As depth, its values equal the red channel. */
Test(png, a_file_of_another_program)
{
    size_t length;
    uint8_t *bytes = fixture_test_image("testimages/testorig.png", &length);
    if (!bytes)
        return;
    int width, height;
    uint8_t *rgb = pngfx_library_rgb(bytes, length, &width, &height);
    size_t pixels = (size_t)width * (size_t)height;
    uint16_t *values = malloc(pixels * sizeof *values);
    for (size_t i = 0; i < pixels; i++)
        values[i] = rgb[3 * i];
    for (int f = 0; f < FORMATS; f++) {
        void *want = color_of(rgb, pixels, format_of(f));
        check(f, (struct weir_frame){WEIR_FRAME_IMAGE, bytes, length, width, height, NULL}, want, "testorig");
        check(f, (struct weir_frame){WEIR_FRAME_PNG16, bytes, length, width, height, NULL}, values, "testorig");
        free(want);
    }
    free(values);
    free(rgb);
    free(bytes);
}

Test(png, what_follows_the_end_is_not_looked_at)
{
    struct pngfx_image image = {.kind = PNGFX_GRAY16, .width = 20, .height = 12};
    size_t length;
    uint8_t *bytes = pngfx_write(&image, &length), *row = calloc(1, length + 500);
    uint16_t *values = pngfx_values(&image);
    memcpy(row, bytes, length);
    check(0, (struct weir_frame){WEIR_FRAME_PNG16, row, length + 500, 20, 12, NULL}, values, "zeros");
    memset(row + length, 0x89, 500);
    check(0, (struct weir_frame){WEIR_FRAME_PNG16, row, length + 500, 20, 12, NULL}, values, "garbage");
    free(values);
    free(row);
    free(bytes);
}

/* ---- invalid data ---- */

static void refused(enum weir_frame_kind kind, const uint8_t *bytes, size_t length, int width, int height,
                    const char *reason)
{
    struct pngfx_image good = {.kind = PNGFX_GRAY8, .width = 9, .height = 5};
    size_t good_length;
    uint8_t *good_bytes = pngfx_write(&good, &good_length);
    for (int f = 0; f < FORMATS; f++) {
        struct weir_decoder *decoder = open_decoder("turbo", f);
        void *image;
        int rc = decode(decoder, f, (struct weir_frame){kind, bytes, length, width, height, NULL}, &image);
        cr_assert_eq(rc, -EBADMSG, "accepted, not refused with \"%s\"", reason);
        cr_assert_not_null(strstr(weir_decoder_reason(decoder), reason), "\"%s\" is not \"%s\"",
                           weir_decoder_reason(decoder), reason);
        free(image);
        rc = decode(decoder, f, (struct weir_frame){kind, good_bytes, good_length, 9, 5, NULL}, &image);
        cr_assert_eq(rc, 0, "after \"%s\": %s", reason, weir_decoder_reason(decoder));
        free(image);
        weir_decoder_close(&decoder);
    }
    free(good_bytes);
}

static void probe_refuses(enum weir_frame_kind kind, const uint8_t *bytes, size_t length, const char *reason)
{
    struct weir_decoder *decoder = open_decoder("turbo", 0);
    struct weir_image_info info;
    cr_assert_eq(weir_probe_image(decoder, kind, bytes, length, &info), -EBADMSG, "not refused with \"%s\"", reason);
    cr_assert_not_null(strstr(weir_decoder_reason(decoder), reason), "%s", weir_decoder_reason(decoder));
    weir_decoder_close(&decoder);
}

Test(png, kinds_that_a_codec_does_not_read)
{
    for (int kind = 0; kind < PNGFX_KINDS; kind++) {
        struct pngfx_image image = {.kind = (enum pngfx_kind)kind, .width = 16, .height = 8};
        size_t length;
        uint8_t *bytes = pngfx_write(&image, &length);
        if (pngfx_bits(image.kind) == 16) {
            refused(WEIR_FRAME_IMAGE, bytes, length, 16, 8,
                    "pixels of 16 bits per value; colour can have at most 8 bits per value");
            probe_refuses(WEIR_FRAME_IMAGE, bytes, length,
                          "pixels of 16 bits per value; colour can have at most 8 bits per value");
        }
        if (!is_gray(image.kind) || pngfx_bits(image.kind) < 8) {
            refused(WEIR_FRAME_PNG16, bytes, length, 16, 8, "depth must be 16-bit or 8-bit grayscale");
            probe_refuses(WEIR_FRAME_PNG16, bytes, length, "depth must be 16-bit or 8-bit grayscale");
        }
        free(bytes);
    }
}

Test(png, another_size)
{
    struct pngfx_image image = {.kind = PNGFX_GRAY8, .width = 32, .height = 16};
    size_t length;
    uint8_t *bytes = pngfx_write(&image, &length);
    for (int depth = 0; depth < 2; depth++) {
        enum weir_frame_kind kind = depth ? WEIR_FRAME_PNG16 : WEIR_FRAME_IMAGE;
        refused(kind, bytes, length, 24, 16, "the image is 32x16, but the camera's first frame was 24x16");
        refused(kind, bytes, length, 32, 24, "the image is 32x16, but the camera's first frame was 32x24");
        refused(kind, bytes, length, 16, 32, "the image is 32x16, but the camera's first frame was 16x32");
    }
    free(bytes);
}

Test(png, images_wider_than_planned)
{
    struct pngfx_image image = {.kind = PNGFX_GRAY8, .width = WIDTH_MAX + 1, .height = 2};
    size_t length;
    uint8_t *bytes = pngfx_write(&image, &length);
    refused(WEIR_FRAME_IMAGE, bytes, length, WIDTH_MAX + 1, 2, "wider than the maximum of 256 pixels");
    refused(WEIR_FRAME_PNG16, bytes, length, WIDTH_MAX + 1, 2, "wider than the maximum of 256 pixels");
    free(bytes);
}

static void put32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* Headers with a correct checksum, but with invalid values or sizes that a file of 100 bytes cannot contain. */
Test(png, headers_that_make_no_sense)
{
    enum { IHDR = 16 };
    static const struct {
        int at, bytes;
        uint32_t value;
        const char *reason;
    } rows[] = {
        {IHDR, 4, 0, "the PNG has an invalid size of 0x8 pixels"},
        {IHDR, 4, 0x7fffffff, "the PNG has an invalid size of 2147483647x8 pixels"},
        {IHDR, 4, 0xffffffff, "the PNG has an invalid size of 4294967295x8 pixels"},
        {IHDR, 4, 65536, "the PNG has an invalid size of 65536x8 pixels"},
        {IHDR + 4, 4, 0, "the PNG has an invalid size of 16x0 pixels"},
        {IHDR + 4, 4, 0x80000000, "the PNG has an invalid size of 16x2147483648 pixels"},
        {IHDR + 8, 1, 3, "has an invalid colour type or bit depth"},
        {IHDR + 8, 1, 0, "has an invalid colour type or bit depth"},
        {IHDR + 8, 1, 255, "has an invalid colour type or bit depth"},
        {IHDR + 9, 1, 1, "has an invalid colour type or bit depth"},
        {IHDR + 9, 1, 7, "has an invalid colour type or bit depth"},
        {IHDR + 9, 1, 255, "has an invalid colour type or bit depth"},
        {IHDR + 10, 1, 1, "unknown compression, filter or interlace method"},
        {IHDR + 11, 1, 64, "unknown compression, filter or interlace method"},
        {IHDR + 12, 1, 2, "unknown compression, filter or interlace method"},
    };
    struct pngfx_image image = {.kind = PNGFX_GRAY8, .width = 16, .height = 8};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t length;
        uint8_t *bytes = pngfx_write(&image, &length), value[4];
        put32(value, rows[i].value);
        memcpy(bytes + rows[i].at, value + 4 - rows[i].bytes, (size_t)rows[i].bytes);
        pngfx_mend(bytes, length);
        for (int depth = 0; depth < 2; depth++) {
            enum weir_frame_kind kind = depth ? WEIR_FRAME_PNG16 : WEIR_FRAME_IMAGE;
            refused(kind, bytes, length, 16, 8, rows[i].reason);
            probe_refuses(kind, bytes, length, rows[i].reason);
        }
        free(bytes);
    }
}

Test(png, what_is_no_png)
{
    struct pngfx_image image = {.kind = PNGFX_GRAY16, .width = 16, .height = 8};
    size_t length;
    uint8_t *bytes = pngfx_write(&image, &length), garbage[200];
    for (int i = 0; i < 200; i++)
        garbage[i] = (uint8_t)(i * 37 + 11);
    refused(WEIR_FRAME_PNG16, garbage, sizeof garbage, 16, 8, "Not a PNG file");
    refused(WEIR_FRAME_PNG16, garbage, 0, 16, 8, "Not a PNG file");
    refused(WEIR_FRAME_IMAGE, garbage, sizeof garbage, 16, 8, "Not a JPEG file");
    refused(WEIR_FRAME_IMAGE, bytes, 8, 16, 8, "Premature end of PNG file");
    probe_refuses(WEIR_FRAME_IMAGE, bytes, 32, "Premature end of PNG file");
    memcpy(bytes + 12, "IDAT", 4);
    refused(WEIR_FRAME_PNG16, bytes, length, 16, 8, "does not start with a header");
    free(bytes);
}

static const enum pngfx_kind damaged[] = {PNGFX_GRAY16, PNGFX_GRAY8, PNGFX_RGB8, PNGFX_PALETTE4, PNGFX_RGBA8};
enum { DAMAGED = sizeof damaged / sizeof damaged[0] };

static struct pngfx_image damaged_image(int i)
{
    return (struct pngfx_image){.kind = damaged[i / 2],
                                .width = 13,
                                .height = 11,
                                .filter = PNGFX_MIXED,
                                .interlaced = i % 2,
                                .described = true};
}

static enum weir_frame_kind damaged_codec(int i)
{
    return damaged[i / 2] == PNGFX_GRAY16 ? WEIR_FRAME_PNG16 : WEIR_FRAME_IMAGE;
}

Test(png, every_truncation_is_refused)
{
    for (int i = 0; i < 2 * DAMAGED; i++) {
        struct pngfx_image image = damaged_image(i);
        size_t length;
        uint8_t *bytes = pngfx_write(&image, &length), *padded = calloc(1, length);
        for (int f = 0; f < FORMATS; f++) {
            struct weir_decoder *decoder = open_decoder("turbo", f);
            for (size_t n = 0; n < length; n++) {
                void *to;
                struct weir_frame frame = {damaged_codec(i), bytes, n, 13, 11, NULL};
                cr_assert_eq(decode(decoder, f, frame, &to), -EBADMSG, "%zu of %zu bytes were accepted", n, length);
                free(to);
                memcpy(padded, bytes, n); /* like a padded row, which ends with zeros */
                frame = (struct weir_frame){damaged_codec(i), padded, length, 13, 11, NULL};
                cr_assert_eq(decode(decoder, f, frame, &to), -EBADMSG,
                             "%zu of %zu bytes, padded with zeros, were accepted", n, length);
                free(to);
                memset(padded, 0, length);
            }
            weir_decoder_close(&decoder);
        }
        free(padded);
        free(bytes);
    }
}

/* Checksums detect every flipped bit. With corrected checksums, any result is allowed, but writes must stay inside the
 * image. */
Test(png, every_flipped_bit)
{
    for (int i = 0; i < 2 * DAMAGED; i++) {
        struct pngfx_image image = damaged_image(i);
        size_t length;
        uint8_t *bytes = pngfx_write(&image, &length), *copy = malloc(length);
        int format = i * 3 % FORMATS, mended_refused = 0;
        struct weir_decoder *decoder = open_decoder("turbo", format);
        struct weir_frame frame = {damaged_codec(i), copy, length, 13, 11, NULL};
        for (size_t bit = 0; bit < 8 * length; bit++) {
            void *to;
            memcpy(copy, bytes, length);
            copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
            cr_assert_eq(decode(decoder, format, frame, &to), -EBADMSG, "bit %zu of byte %zu", bit % 8, bit / 8);
            free(to);
            pngfx_mend(copy, length);
            mended_refused += decode(decoder, format, frame, &to) < 0;
            free(to);
        }
        cr_assert_gt(mended_refused, 0);
        weir_decoder_close(&decoder);
        free(copy);
        free(bytes);
    }
}

/* Checksums of ignored chunks count too, since a wrong one shows that the file is damaged. */
Test(png, checksums_that_do_not_fit)
{
    static const char chunks[][5] = {"IHDR", "gAMA", "iCCP", "tIME", "IDAT", "IEND"};
    struct pngfx_image image = {.kind = PNGFX_GRAY16, .width = 16, .height = 8, .described = true};
    for (size_t i = 0; i < sizeof chunks / sizeof chunks[0]; i++) {
        char reason[64];
        size_t length;
        uint8_t *bytes = pngfx_write(&image, &length);
        size_t at = pngfx_chunk(bytes, length, chunks[i]), n = (size_t)bytes[at + 2] << 8 | bytes[at + 3];
        bytes[at + 8 + n] ^= 0x10;
        snprintf(reason, sizeof reason, "%s: CRC error", chunks[i]);
        refused(WEIR_FRAME_PNG16, bytes, length, 16, 8, reason);
        free(bytes);
    }
}

/* Missing and duplicate chunks, and unknown chunks that are critical. */
Test(png, chunks_that_are_missing_or_wrong)
{
    struct pngfx_image image = {.kind = PNGFX_PALETTE8, .width = 16, .height = 8};
    size_t length;
    uint8_t *bytes = pngfx_write(&image, &length);
    size_t palette = pngfx_chunk(bytes, length, "PLTE"), data = pngfx_chunk(bytes, length, "IDAT"),
           end = pngfx_chunk(bytes, length, "IEND");
    uint8_t *other = malloc(2 * length);
    memcpy(other, bytes, palette);
    memcpy(other + palette, bytes + data, length - data);
    refused(WEIR_FRAME_IMAGE, other, length - (data - palette), 16, 8, "PLTE");
    memcpy(other, bytes, data);
    memcpy(other + data, bytes + end, length - end);
    refused(WEIR_FRAME_IMAGE, other, length - (end - data), 16, 8, "IEND");
    memcpy(other, bytes, data);
    memcpy(other + data, bytes + palette, length - palette);
    refused(WEIR_FRAME_IMAGE, other, length + (data - palette), 16, 8, "PLTE: duplicate");
    memcpy(other, bytes, length);
    memcpy(other + palette + 4, "PALT", 4);
    pngfx_mend(other, length);
    refused(WEIR_FRAME_IMAGE, other, length, 16, 8, "PALT");
    free(other);
    free(bytes);
}

/* ---- probing ---- */

Test(png, probing_tells_size_and_kind)
{
    struct weir_decoder *decoder = open_decoder("turbo", 0);
    for (int kind = 0; kind < PNGFX_KINDS; kind++) {
        struct pngfx_image image = {.kind = (enum pngfx_kind)kind, .width = 123, .height = 45};
        struct weir_image_info info;
        size_t length;
        uint8_t *bytes = pngfx_write(&image, &length);
        bool palette = kind >= PNGFX_PALETTE1, depth = is_gray(image.kind) && pngfx_bits(image.kind) == 16;
        enum weir_frame_kind stored = depth ? WEIR_FRAME_PNG16 : WEIR_FRAME_IMAGE;
        if (depth || pngfx_bits(image.kind) <= 8) {
            cr_assert_eq(weir_probe_image(decoder, stored, bytes, length, &info), 0, "%s",
                         weir_decoder_reason(decoder));
            cr_assert(info.width == 123 && info.height == 45);
            cr_assert_eq(info.components, palette ? 3 : pngfx_channels(image.kind));
            cr_assert_eq(info.bit_depth, palette ? 8 : pngfx_bits(image.kind));
            cr_assert_eq(info.kind, WEIR_FRAME_PNG);
            cr_assert(!info.subsampling && !info.process);
        }
        bytes[20] ^= 1;
        cr_assert_eq(weir_probe_image(decoder, stored, bytes, length, &info), -EBADMSG);
        cr_assert_str_eq(weir_decoder_reason(decoder), "IHDR: CRC error");
        free(bytes);
    }
    weir_decoder_close(&decoder);
}

Test(png, names_and_sizes_of_kinds)
{
    struct weir_pixel_format f32 = format_of(2);
    cr_assert_eq(weir_frame_kind_from_name("raw16"), WEIR_FRAME_RAW16);
    cr_assert_eq(weir_frame_kind_from_name("png16"), WEIR_FRAME_PNG16);
    cr_assert_eq(weir_frame_kind_from_name("png"), WEIR_FRAME_PNG);
    cr_assert(weir_frame_is_depth(WEIR_FRAME_RAW16) && weir_frame_is_depth(WEIR_FRAME_PNG16));
    cr_assert(!weir_frame_is_depth(WEIR_FRAME_RAW) && !weir_frame_is_depth(WEIR_FRAME_IMAGE));
    cr_assert_eq(weir_frame_bytes(&f32, WEIR_FRAME_IMAGE, 7, 5), 7 * 5 * 3 * 4);
    cr_assert_eq(weir_frame_bytes(&f32, WEIR_FRAME_PNG16, 7, 5), 7 * 5 * 2);
    cr_assert_eq(weir_frame_bytes(&f32, WEIR_FRAME_RAW16, 7, 5), 7 * 5 * 2);
}

Test(png, an_engine_that_cannot_be_chosen)
{
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_decoder *decoder;
    struct weir_pixel_format format = {.dtype = WEIR_DTYPE_U16};
    cr_assert_eq(weir_decoder_check("png", &err), -EINVAL);
    cr_assert_not_null(strstr(err.text, "turbo, nvjpeg, hybrid, null"), "%s", err.text);
    cr_assert_eq(weir_decoder_open(&decoder, "turbo", &format, 8, NULL), -EINVAL);
    cr_assert_null(decoder);
}

/* ---- raw depth ---- */

Test(png, raw_depth_is_as_stored)
{
    for (int s = 0; s < SIZES; s++) {
        size_t n = (size_t)sizes[s].width * (size_t)sizes[s].height;
        uint8_t *bytes = malloc(2 * n);
        uint16_t *want = malloc(n * sizeof *want);
        for (size_t i = 0; i < n; i++) {
            want[i] = (uint16_t)(i * 40503 + 258);
            bytes[2 * i] = (uint8_t)want[i];
            bytes[2 * i + 1] = (uint8_t)(want[i] >> 8);
        }
        struct weir_frame frame = {WEIR_FRAME_RAW16, bytes, 2 * n, sizes[s].width, sizes[s].height, NULL};
        for (int f = 0; f < FORMATS; f++)
            check(f, frame, want, "raw depth");
        struct weir_decoder *decoder = open_decoder("turbo", 0);
        void *image;
        frame.length = 2 * n - 1;
        cr_assert_eq(decode(decoder, 0, frame, &image), -EBADMSG);
        cr_assert_not_null(strstr(weir_decoder_reason(decoder), "pixels of 2 bytes"));
        free(image);
        weir_decoder_close(&decoder);
        free(want);
        free(bytes);
    }
}

Test(png, raw_depth_is_read_into_place_whatever_the_format)
{
    for (int f = 0; f < FORMATS; f++) {
        struct weir_decoder *decoder = open_decoder("turbo", f);
        cr_assert(weir_decoder_is_direct(decoder, WEIR_FRAME_RAW16));
        cr_assert_not(weir_decoder_is_direct(decoder, WEIR_FRAME_PNG16));
        cr_assert_not(weir_decoder_is_direct(decoder, WEIR_FRAME_IMAGE));
        uint16_t image[3 * 2];
        uint8_t bytes[] = {0, 0, 1, 0, 0, 1, 2, 1, 255, 255, 0, 128};
        static const uint16_t want[] = {0, 1, 256, 258, 65535, 32768};
        memcpy(image, bytes, sizeof bytes);
        struct weir_frame frame = {WEIR_FRAME_RAW16, (const uint8_t *)image, sizeof image, 3, 2, NULL};
        cr_assert_eq(weir_decode(decoder, &frame, image), 0, "%s", weir_decoder_reason(decoder));
        cr_assert_eq(memcmp(image, want, sizeof want), 0);
        weir_decoder_close(&decoder);
    }
}

Test(png, null_decodes_no_depth)
{
    static const enum weir_frame_kind codecs[] = {WEIR_FRAME_RAW16, WEIR_FRAME_PNG16};
    struct weir_decoder *decoder = open_decoder("null", 0);
    for (int i = 0; i < 2; i++) {
        uint16_t image[6] = {1, 2, 3, 4, 5, 6};
        struct weir_frame frame = {codecs[i], NULL, 0, 3, 2, NULL};
        cr_assert_not(weir_decoder_is_direct(decoder, codecs[i]));
        cr_assert_eq(weir_decode(decoder, &frame, image), 0);
        for (int k = 0; k < 6; k++)
            cr_assert_eq(image[k], k + 1);
    }
    weir_decoder_close(&decoder);
}
