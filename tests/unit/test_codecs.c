/* JPEG 2000 and JPEG XL: what their libraries encode without loss comes back, and damage is an error. */
#include "decoders/decoder.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#if WEIR_HAVE_OPENJPEG
#include <openjpeg.h>
#endif
#if WEIR_HAVE_JXL
#include <jxl/encode.h>
#endif

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

static struct weir_decoder *open_decoder(enum weir_color color)
{
    struct weir_pixel_format format = {.color = color, .dtype = WEIR_DTYPE_U8, .layout = WEIR_LAYOUT_NHWC};
    struct weir_decoder *decoder;
    cr_assert_eq(weir_decoder_open(&decoder, "turbo", &format, 4096, NULL), 0);
    return decoder;
}

static int decode(struct weir_decoder *decoder, enum weir_codec codec, size_t length)
{
    uint8_t *exact = malloc(length + 1); /* so that a sanitizer sees reads past the end */
    memcpy(exact, encoded, length);
    int rc = weir_decode(decoder, &(struct weir_frame){codec, exact, length, WIDTH, HEIGHT, NULL}, image);
    free(exact);
    cr_assert(rc == 0 || (rc == -EBADMSG && *weir_decoder_reason(decoder)));
    return rc;
}

static void comes_back(enum weir_codec codec, const char *format, int components)
{
    struct weir_image_info info;
    struct weir_decoder *decoder = open_decoder(WEIR_COLOR_RGB), *bgr = open_decoder(WEIR_COLOR_BGR);
    cr_assert_eq(weir_probe_image(decoder, codec, encoded, encoded_bytes, &info), 0, "%s",
                 weir_decoder_reason(decoder));
    cr_assert(info.width == WIDTH && info.height == HEIGHT && info.components == components && info.bit_depth == 8);
    cr_assert_str_eq(info.format, format);
    cr_assert_eq(decode(decoder, codec, encoded_bytes), 0, "%s", weir_decoder_reason(decoder));
    cr_assert_arr_eq(image, rgb, sizeof rgb);
    cr_assert_eq(decode(decoder, WEIR_CODEC_JPEG, encoded_bytes), 0); /* by its first bytes */
    cr_assert_arr_eq(image, rgb, sizeof rgb);
    cr_assert_eq(decode(bgr, codec, encoded_bytes), 0);
    for (int i = 0; i < PIXELS; i++)
        cr_assert(image[3 * i] == rgb[3 * i + 2] && image[3 * i + 2] == rgb[3 * i], "pixel %d", i);
    struct weir_view view = {5, 3, 20, 10, 20, 10};
    cr_assert_eq(weir_decode(decoder, &(struct weir_frame){codec, encoded, encoded_bytes, WIDTH, HEIGHT, &view}, image),
                 0);
    for (int y = 0; y < 10; y++)
        cr_assert_arr_eq(image + 60 * y, rgb + 3 * ((y + 3) * WIDTH + 5), 60);
    cr_assert_eq(weir_decode(decoder, &(struct weir_frame){codec, encoded, encoded_bytes, WIDTH, WIDTH, NULL}, image),
                 -EBADMSG);
    weir_decoder_close(&decoder);
    weir_decoder_close(&bgr);
}

/* Cut off at every length, and with every byte changed: an error, or an image. */
static void damage(enum weir_codec codec, bool cuts_are_seen)
{
    struct weir_decoder *decoder = open_decoder(WEIR_COLOR_RGB);
    struct weir_image_info info;
    for (size_t n = 0; n + 2 < encoded_bytes; n++)
        cr_assert(decode(decoder, codec, n) < 0 || !cuts_are_seen, "%zu", n);
    for (size_t i = 0; i < encoded_bytes; i++) {
        encoded[i] ^= (uint8_t)(1u << i % 8);
        weir_probe_image(decoder, codec, encoded, encoded_bytes, &info);
        decode(decoder, codec, encoded_bytes);
        encoded[i] ^= (uint8_t)(1u << i % 8);
    }
    cr_assert_eq(decode(decoder, codec, encoded_bytes), 0, "%s", weir_decoder_reason(decoder));
    cr_assert_arr_eq(image, rgb, sizeof rgb);
    weir_decoder_close(&decoder);
}

Test(codecs, names)
{
    cr_assert_eq(weir_codec_from_name("jpeg2000"), WEIR_CODEC_JPEG2000);
    cr_assert_eq(weir_codec_from_name("jpegxl"), WEIR_CODEC_JPEGXL);
    cr_assert(weir_codec_is_encoded(WEIR_CODEC_JPEG2000) && !weir_codec_is_depth(WEIR_CODEC_JPEGXL));
}

/* ---- JPEG 2000 ---- */
#if WEIR_HAVE_OPENJPEG

static OPJ_SIZE_T put(void *bytes, OPJ_SIZE_T n, void *user)
{
    size_t *at = user;
    cr_assert(*at + n <= ENCODED_MAX);
    memcpy(encoded + *at, bytes, n);
    *at += n;
    encoded_bytes = *at > encoded_bytes ? *at : encoded_bytes;
    return n;
}

static OPJ_OFF_T skip(OPJ_OFF_T n, void *user)
{
    *(size_t *)user += (size_t)n;
    return n;
}

static OPJ_BOOL seek(OPJ_OFF_T to, void *user)
{
    *(size_t *)user = (size_t)to;
    return OPJ_TRUE;
}

/* Without loss, as imagecodecs does by default, with or without the transform of colours. */
static void encode_jpeg2000(bool file, int components, bool transform)
{
    opj_cparameters_t parameters;
    opj_image_cmptparm_t plane = {.dx = 1, .dy = 1, .w = WIDTH, .h = HEIGHT, .prec = 8, .bpp = 8}, planes[4];
    opj_set_default_encoder_parameters(&parameters);
    parameters.tcp_mct = transform;
    parameters.tcp_numlayers = 1;
    parameters.cp_disto_alloc = 1;
    parameters.numresolution = 3;
    for (int i = 0; i < 4; i++)
        planes[i] = plane;
    opj_image_t *source =
        opj_image_create((OPJ_UINT32)components, planes, components == 1 ? OPJ_CLRSPC_GRAY : OPJ_CLRSPC_SRGB);
    source->x1 = WIDTH;
    source->y1 = HEIGHT;
    for (int c = 0; c < components; c++)
        for (int i = 0; i < PIXELS; i++)
            source->comps[c].data[i] = c == 3 ? 200 : rgb[3 * i + c];
    size_t at = 0;
    opj_codec_t *codec = opj_create_compress(file ? OPJ_CODEC_JP2 : OPJ_CODEC_J2K);
    opj_stream_t *stream = opj_stream_create(1 << 16, OPJ_FALSE);
    opj_stream_set_user_data(stream, &at, NULL);
    opj_stream_set_write_function(stream, put);
    opj_stream_set_skip_function(stream, skip);
    opj_stream_set_seek_function(stream, seek);
    cr_assert(opj_setup_encoder(codec, &parameters, source) && opj_start_compress(codec, source, stream) &&
              opj_encode(codec, stream) && opj_end_compress(codec, stream));
    opj_stream_destroy(stream);
    opj_destroy_codec(codec);
    opj_image_destroy(source);
}

Test(codecs, jpeg2000)
{
    encode_jpeg2000(false, 3, true);
    comes_back(WEIR_CODEC_JPEG2000, "jpeg2000", 3);
    encoded_bytes = 0;
    encode_jpeg2000(true, 3, false);
    comes_back(WEIR_CODEC_JPEG2000, "jpeg2000", 3);
    encoded_bytes = 0;
    encode_jpeg2000(true, 4, false); /* alpha is left out */
    comes_back(WEIR_CODEC_JPEG2000, "jpeg2000", 4);
    for (int i = 0; i < PIXELS; i++)
        rgb[3 * i + 1] = rgb[3 * i + 2] = rgb[3 * i];
    encoded_bytes = 0;
    encode_jpeg2000(true, 1, false);
    comes_back(WEIR_CODEC_JPEG2000, "jpeg2000", 1);
}

Test(codecs, jpeg2000_damaged)
{
    encode_jpeg2000(true, 3, true);
    damage(WEIR_CODEC_JPEG2000, true);
}
#else
Test(codecs, jpeg2000_is_refused)
{
    struct weir_decoder *decoder = open_decoder(WEIR_COLOR_RGB);
    struct weir_image_info info;
    cr_assert_eq(weir_probe_image(decoder, WEIR_CODEC_JPEG2000, encoded, 0, &info), -EBADMSG);
    cr_assert_not_null(strstr(weir_decoder_reason(decoder), "built without libopenjp2"));
    weir_decoder_close(&decoder);
}
#endif

/* ---- JPEG XL ---- */
#if WEIR_HAVE_JXL

static void encode_jpegxl(bool file, int components)
{
    JxlEncoder *encoder = JxlEncoderCreate(NULL);
    JxlBasicInfo info;
    JxlColorEncoding colors;
    JxlPixelFormat format = {(uint32_t)components, JXL_TYPE_UINT8, JXL_NATIVE_ENDIAN, 0};
    JxlEncoderInitBasicInfo(&info);
    info.xsize = WIDTH;
    info.ysize = HEIGHT;
    info.bits_per_sample = 8;
    info.num_color_channels = (uint32_t)components;
    info.uses_original_profile = JXL_TRUE;
    JxlColorEncodingSetToSRGB(&colors, components == 1);
    JxlEncoderUseContainer(encoder, file);
    cr_assert_eq(JxlEncoderSetBasicInfo(encoder, &info), JXL_ENC_SUCCESS);
    cr_assert_eq(JxlEncoderSetColorEncoding(encoder, &colors), JXL_ENC_SUCCESS);
    JxlEncoderFrameSettings *settings = JxlEncoderFrameSettingsCreate(encoder, NULL);
    JxlEncoderSetFrameLossless(settings, JXL_TRUE);
    uint8_t gray[PIXELS];
    for (int i = 0; i < PIXELS; i++)
        gray[i] = rgb[3 * i];
    cr_assert_eq(
        JxlEncoderAddImageFrame(settings, &format, components == 1 ? gray : rgb, (size_t)PIXELS * (size_t)components),
        JXL_ENC_SUCCESS);
    JxlEncoderCloseInput(encoder);
    uint8_t *next = encoded;
    size_t left = sizeof encoded;
    cr_assert_eq(JxlEncoderProcessOutput(encoder, &next, &left), JXL_ENC_SUCCESS);
    encoded_bytes = sizeof encoded - left;
    JxlEncoderDestroy(encoder);
}

Test(codecs, jpegxl)
{
    encode_jpegxl(false, 3);
    comes_back(WEIR_CODEC_JPEGXL, "jpegxl", 3);
    encode_jpegxl(true, 3);
    comes_back(WEIR_CODEC_JPEGXL, "jpegxl", 3);
    for (int i = 0; i < PIXELS; i++)
        rgb[3 * i + 1] = rgb[3 * i + 2] = rgb[3 * i];
    encode_jpegxl(false, 1);
    comes_back(WEIR_CODEC_JPEGXL, "jpegxl", 1);
}

Test(codecs, jpegxl_damaged)
{
    encode_jpegxl(true, 3);
    damage(WEIR_CODEC_JPEGXL, true);
}
#else
Test(codecs, jpegxl_is_refused)
{
    struct weir_decoder *decoder = open_decoder(WEIR_COLOR_RGB);
    struct weir_image_info info;
    cr_assert_eq(weir_probe_image(decoder, WEIR_CODEC_JPEGXL, encoded, 0, &info), -EBADMSG);
    cr_assert_not_null(strstr(weir_decoder_reason(decoder), "built without libjxl"));
    weir_decoder_close(&decoder);
}
#endif
