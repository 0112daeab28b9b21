/* JPEG 2000 and JPEG XL: losslessly encoded images are decoded exactly, and damage is an error. */
#include "tests/fixtures/codec_encode.h"
#include "weir/decoder.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 37, HEIGHT = 29, PIXELS = WIDTH * HEIGHT, ENCODED_MAX = 1 << 16 };

static uint8_t rgb[PIXELS * 3], encoded[ENCODED_MAX], image[PIXELS * 3];
static size_t encoded_bytes;

static void make_picture(void)
{
    for (int i = 0; i < PIXELS; i++) {
        int x = i % WIDTH, y = i / WIDTH;
        rgb[3 * i] = (uint8_t)(x * 6);
        rgb[3 * i + 1] = (uint8_t)(y * 8);
        rgb[3 * i + 2] = (uint8_t)((x ^ y) * 4);
    }
    memset(image, 0x55, sizeof image);
    encoded_bytes = 0;
}

TestSuite(codecs, .init = make_picture);

/* Copies the encoder's output, encoded_bytes long, and frees it. */
static inline void keep(uint8_t *bytes)
{
    cr_assert_leq(encoded_bytes, sizeof encoded);
    memcpy(encoded, bytes, encoded_bytes);
    free(bytes);
}

static struct weir_decoder *open_decoder(enum weir_color color)
{
    struct weir_pixel_format format = {.color = color, .dtype = WEIR_DTYPE_U8, .layout = WEIR_LAYOUT_NHWC};
    struct weir_decoder *decoder;
    cr_assert_eq(weir_decoder_open(&decoder, "turbo", &format, 4096, NULL), 0);
    return decoder;
}

static int decode(struct weir_decoder *decoder, enum weir_frame_kind kind, size_t length)
{
    uint8_t *exact = malloc(length + 1); /* exact size, so that a sanitizer detects reads past the end */
    memcpy(exact, encoded, length);
    int rc = weir_decode(decoder, &(struct weir_frame){kind, exact, length, WIDTH, HEIGHT, NULL}, image);
    free(exact);
    cr_assert(rc == 0 || (rc == -EBADMSG && *weir_decoder_reason(decoder)));
    return rc;
}

static void comes_back(enum weir_frame_kind kind, int components)
{
    struct weir_image_info info;
    struct weir_decoder *decoder = open_decoder(WEIR_COLOR_RGB), *bgr = open_decoder(WEIR_COLOR_BGR);
    cr_assert_eq(weir_probe_image(decoder, kind, encoded, encoded_bytes, &info), 0, "%s", weir_decoder_reason(decoder));
    cr_assert(info.width == WIDTH && info.height == HEIGHT && info.components == components && info.bit_depth == 8);
    cr_assert_eq(info.kind, kind);
    cr_assert_eq(decode(decoder, kind, encoded_bytes), 0, "%s", weir_decoder_reason(decoder));
    cr_assert_arr_eq(image, rgb, sizeof rgb);
    cr_assert_eq(decode(decoder, WEIR_FRAME_IMAGE, encoded_bytes), 0); /* recognised by its first bytes */
    cr_assert_arr_eq(image, rgb, sizeof rgb);
    cr_assert_eq(decode(bgr, kind, encoded_bytes), 0);
    for (int i = 0; i < PIXELS; i++)
        cr_assert(image[3 * i] == rgb[3 * i + 2] && image[3 * i + 2] == rgb[3 * i], "pixel %d", i);
    struct weir_view view = {5, 3, 20, 10, 20, 10};
    cr_assert_eq(weir_decode(decoder, &(struct weir_frame){kind, encoded, encoded_bytes, WIDTH, HEIGHT, &view}, image),
                 0);
    for (int y = 0; y < 10; y++)
        cr_assert_arr_eq(image + 60 * y, rgb + 3 * ((y + 3) * WIDTH + 5), 60);
    cr_assert_eq(weir_decode(decoder, &(struct weir_frame){kind, encoded, encoded_bytes, WIDTH, WIDTH, NULL}, image),
                 -EBADMSG);
    weir_decoder_close(&decoder);
    weir_decoder_close(&bgr);
}

/* Cuts the image at every length and changes every byte. Each result must be an error or an image. */
static void damage(enum weir_frame_kind kind, bool cuts_are_seen)
{
    struct weir_decoder *decoder = open_decoder(WEIR_COLOR_RGB);
    struct weir_image_info info;
    for (size_t n = 0; n + 2 < encoded_bytes; n++)
        cr_assert(decode(decoder, kind, n) < 0 || !cuts_are_seen, "%zu", n);
    for (size_t i = 0; i < encoded_bytes; i++) {
        encoded[i] ^= (uint8_t)(1u << i % 8);
        weir_probe_image(decoder, kind, encoded, encoded_bytes, &info);
        decode(decoder, kind, encoded_bytes);
        encoded[i] ^= (uint8_t)(1u << i % 8);
    }
    cr_assert_eq(decode(decoder, kind, encoded_bytes), 0, "%s", weir_decoder_reason(decoder));
    cr_assert_arr_eq(image, rgb, sizeof rgb);
    weir_decoder_close(&decoder);
}

Test(codecs, names)
{
    cr_assert_eq(weir_frame_kind_from_name("jpeg2000"), WEIR_FRAME_JPEG2000);
    cr_assert_eq(weir_frame_kind_from_name("jpegxl"), WEIR_FRAME_JPEGXL);
    cr_assert(weir_frame_is_encoded(WEIR_FRAME_JPEG2000) && !weir_frame_is_depth(WEIR_FRAME_JPEGXL));
}

/* ---- JPEG 2000 ---- */
#if WEIR_HAVE_OPENJPEG

static void encode(bool file, int components, bool transform)
{
    struct codec_encode how = {
        .rgb = rgb, .width = WIDTH, .height = HEIGHT, .components = components, .file = file, .transform = transform};
    keep(encode_jpeg2000(&how, &encoded_bytes));
}

Test(codecs, jpeg2000)
{
    encode(false, 3, true);
    comes_back(WEIR_FRAME_JPEG2000, 3);
    encode(true, 3, false);
    comes_back(WEIR_FRAME_JPEG2000, 3);
    encode(true, 4, false); /* alpha is dropped */
    comes_back(WEIR_FRAME_JPEG2000, 4);
    for (int i = 0; i < PIXELS; i++)
        rgb[3 * i + 1] = rgb[3 * i + 2] = rgb[3 * i];
    encode(true, 1, false);
    comes_back(WEIR_FRAME_JPEG2000, 1);
}

Test(codecs, jpeg2000_damaged)
{
    encode(true, 3, true);
    damage(WEIR_FRAME_JPEG2000, true);
}
#else
Test(codecs, jpeg2000_is_refused)
{
    struct weir_decoder *decoder = open_decoder(WEIR_COLOR_RGB);
    struct weir_image_info info;
    cr_assert_eq(weir_probe_image(decoder, WEIR_FRAME_JPEG2000, encoded, 0, &info), -EBADMSG);
    cr_assert_not_null(strstr(weir_decoder_reason(decoder), "built without libopenjp2"));
    weir_decoder_close(&decoder);
}
#endif

/* ---- JPEG XL ---- */
#if WEIR_HAVE_JXL

static void encode_xl(bool file, int components)
{
    struct codec_encode how = {.rgb = rgb, .width = WIDTH, .height = HEIGHT, .components = components, .file = file};
    keep(encode_jpegxl(&how, &encoded_bytes));
}

Test(codecs, jpegxl)
{
    encode_xl(false, 3);
    comes_back(WEIR_FRAME_JPEGXL, 3);
    encode_xl(true, 3);
    comes_back(WEIR_FRAME_JPEGXL, 3);
    for (int i = 0; i < PIXELS; i++)
        rgb[3 * i + 1] = rgb[3 * i + 2] = rgb[3 * i];
    encode_xl(false, 1);
    comes_back(WEIR_FRAME_JPEGXL, 1);
}

/* Replaces dlopen at link time, to simulate a machine without libjxl. */
static bool no_libraries;
void *__real_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags)
{
    return no_libraries ? NULL : __real_dlopen(name, flags);
}

Test(codecs, jpegxl_without_the_library)
{
    struct weir_decoder *decoder = open_decoder(WEIR_COLOR_RGB);
    struct weir_image_info info;
    struct weir_err err = WEIR_ERR_NONE;
    encode_xl(false, 3);
    no_libraries = true;
    cr_assert_eq(weir_probe_image(decoder, WEIR_FRAME_JPEGXL, encoded, encoded_bytes, &info), -EBADMSG);
    cr_assert_not_null(strstr(weir_decoder_reason(decoder), "a JPEG XL image: libjxl.so"));
    cr_assert_not_null(strstr(weir_decoder_reason(decoder), "; install libjxl"));
    cr_assert_eq(weir_decoder_ready("jpegxl", 0, &err), -ENODEV);
    cr_assert_not_null(strstr(err.text, "install libjxl"));
    weir_decoder_close(&decoder);
}

Test(codecs, jpegxl_damaged)
{
    encode_xl(true, 3);
    damage(WEIR_FRAME_JPEGXL, true);
}
#else
Test(codecs, jpegxl_is_refused)
{
    struct weir_decoder *decoder = open_decoder(WEIR_COLOR_RGB);
    struct weir_image_info info;
    cr_assert_eq(weir_probe_image(decoder, WEIR_FRAME_JPEGXL, encoded, 0, &info), -EBADMSG);
    cr_assert_not_null(strstr(weir_decoder_reason(decoder), "built without libjxl"));
    weir_decoder_close(&decoder);
}
#endif
