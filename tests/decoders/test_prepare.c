/* The reference for GPU kernels (tests/fixtures/prepare_reference.c) converts planes and pixels to exactly the CPU
 * decoder's output for the same JPEGs and frames: every subsampling, all small sizes, crops, scaling, and every output
 * format. */
#include "decoders/view_priv.h"
#include "tests/fixtures/h5_fixture.h"
#include "tests/fixtures/jpeg_planes.h"
#include "tests/fixtures/loader_fixture.h"
#include "tests/fixtures/prepare_reference.h"
#include "weir/decoder.h"

#include <criterion/criterion.h>
#include <glob.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct weir_gpu_source source_of(const struct jpeg_planes *planes)
{
    struct weir_gpu_source source = {.kind = (uint32_t)planes->kind};
    for (int c = 0; c < 3; c++) {
        source.plane[c] = planes->plane[c];
        source.pitch[c] = (uint32_t)planes->plane_width[c];
    }
    return source;
}

/* Returns false for JPEGs that GPUs do not decode. */
static bool check_jpeg(const uint8_t *bytes, size_t length, const char *about)
{
    struct jpeg_planes planes;
    int width, height;
    if (jpeg_planes_read(&planes, bytes, length) < 0 || planes.kind < 0)
        return false;
    struct weir_gpu_source source = source_of(&planes);
    uint8_t *want = h5fx_pixels(bytes, length, false, &width, &height);
    cr_assert_eq(width, planes.width);
    cr_assert_eq(height, planes.height);
    uint8_t *got = malloc((size_t)width * (size_t)height * 3);
    prepare_reference_rgb(&source, width, height, got);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < 3 * width; x++)
            cr_assert_eq(got[y * 3 * width + x], want[y * 3 * width + x], "%s, %dx%d, kind %d: row %d, value %d", about,
                         width, height, planes.kind, y, x);
    free(got);
    free(want);
    jpeg_planes_free(&planes);
    return true;
}

static const enum h5fx_jpeg kinds[] = {H5FX_JPEG_420,  H5FX_JPEG_444,         H5FX_JPEG_422,     H5FX_JPEG_440,
                                       H5FX_JPEG_GRAY, H5FX_JPEG_PROGRESSIVE, H5FX_JPEG_RESTART, H5FX_JPEG_ARITHMETIC};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static void check_size(int width, int height)
{
    for (int k = 0; k < KINDS; k++) {
        size_t length;
        uint8_t *bytes = h5fx_jpeg(kinds[k], width, height, width * 100 + height, &length);
        cr_assert(check_jpeg(bytes, length, "made"));
        free(bytes);
    }
}

Test(prepare, planes_of_small_jpegs_become_their_pixels)
{
    for (int height = 1; height <= 19; height++)
        for (int width = 1; width <= 19; width++)
            check_size(width, height);
}

Test(prepare, planes_of_larger_jpegs_become_their_pixels)
{
    static const int sizes[][2] = {{1, 300}, {300, 1}, {2, 77}, {77, 3}, {33, 65}, {97, 61}, {250, 131}, {640, 480}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        check_size(sizes[i][0], sizes[i][1]);
}

Test(prepare, samplings_that_gpus_do_not_decode_have_no_kind)
{
    static const enum h5fx_jpeg others[] = {H5FX_JPEG_CMYK, H5FX_JPEG_411, H5FX_JPEG_410, H5FX_JPEG_2X4};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        size_t length;
        uint8_t *bytes = h5fx_jpeg(others[i], 40, 40, 1, &length);
        cr_assert_not(check_jpeg(bytes, length, "made"));
        free(bytes);
    }
}

static uint8_t *file_bytes(const char *path, size_t *length)
{
    enum { MOST = 1 << 22 };
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file, "%s", path);
    uint8_t *bytes = malloc(MOST);
    *length = fread(bytes, 1, MOST, file);
    fclose(file);
    return bytes;
}

Test(prepare, planes_of_real_jpegs_become_their_pixels)
{
    char pattern[1024];
    glob_t found = {0};
    int checked = 0;
    snprintf(pattern, sizeof pattern, "%s/jpeg/*/*.jpg", getenv("WEIR_DATA") ? getenv("WEIR_DATA") : "");
    if (!getenv("WEIR_DATA") || glob(pattern, 0, NULL, &found) != 0) {
        cr_log_info("skipped: no JPEGs match %s", pattern);
        return;
    }
    for (size_t i = 0; i < found.gl_pathc; i++) {
        size_t length;
        uint8_t *bytes = file_bytes(found.gl_pathv[i], &length);
        checked += check_jpeg(bytes, length, found.gl_pathv[i]);
        free(bytes);
    }
    cr_assert_gt(checked, 0);
    globfree(&found);
}

/* ---- formats, crops and sizes ---- */

static struct weir_pixel_format format_of(bool bgr, bool f32, bool planar, bool normalised)
{
    struct weir_pixel_format format = {.color = bgr ? WEIR_COLOR_BGR : WEIR_COLOR_RGB,
                                       .dtype = f32 ? WEIR_DTYPE_F32 : WEIR_DTYPE_U8,
                                       .layout = planar ? WEIR_LAYOUT_NCHW : WEIR_LAYOUT_NHWC};
    const float mean[3] = {0.485f, 0.456f, 0.406f}, std[3] = {0.229f, 0.224f, 0.225f};
    for (int c = 0; c < 3 && normalised; c++) {
        format.mean[c] = mean[c];
        format.std[c] = std[c];
    }
    return format;
}

static void *decoded(const struct weir_pixel_format *format, const struct weir_frame *frame)
{
    struct weir_decoder *decoder;
    struct weir_err err = WEIR_ERR_NONE;
    int width = frame->view ? frame->view->out_width : frame->width;
    int height = frame->view ? frame->view->out_height : frame->height;
    void *image = malloc(weir_image_bytes(format, width, height));
    cr_assert_eq(weir_decoder_open(&decoder, "turbo", format, frame->width, &err), 0, "%s", err.text);
    cr_assert_eq(weir_decode(decoder, frame, image), 0, "%s", weir_decoder_reason(decoder));
    weir_decoder_close(&decoder);
    return image;
}

/* Fills the table of output values: values[c * 256 + v] is the output for value v in output channel c, as the decoder
 * computes it. */
static void fill_values(const struct weir_pixel_format *format, float *values)
{
    for (int c = 0; c < 3; c++) {
        int rgb = format->color == WEIR_COLOR_BGR ? 2 - c : c;
        double std = format->std[0] > 0 ? (double)format->std[rgb] : 1;
        float scale = (float)(1 / (255 * std)), bias = (float)(-(double)format->mean[rgb] / std);
        for (int v = 0; v < 256; v++)
            values[c * 256 + v] = format->std[0] > 0 ? fmaf((float)v, scale, bias) : (float)v / 255.0f;
    }
}

struct taps {
    struct weir_taps made;
    int32_t *first, *n;
    struct weir_gpu_taps gpu;
};

static void taps_open(struct taps *taps, int from, int length, int n)
{
    cr_assert_eq(weir_taps_open(&taps->made, from, from + length, n, WEIR_RESIZE_FAST), 0);
    taps->first = malloc(sizeof(int32_t) * (size_t)n);
    taps->n = malloc(sizeof(int32_t) * (size_t)n);
    for (int i = 0; i < n; i++) {
        taps->first[i] = taps->made.taps[i].first;
        taps->n[i] = taps->made.taps[i].n;
    }
    taps->gpu = (struct weir_gpu_taps){taps->first, taps->n, taps->made.weights, taps->made.most};
}

static void taps_close(struct taps *taps)
{
    weir_taps_close(&taps->made);
    free(taps->first);
    free(taps->n);
}

static void check_view(const struct weir_gpu_source *source, const struct weir_frame *frame,
                       const struct weir_pixel_format *format)
{
    const struct weir_view *v = frame->view;
    bool resized = v->width != v->out_width || v->height != v->out_height;
    float values[768];
    size_t bytes = weir_image_bytes(format, v->out_width, v->out_height);
    void *want = decoded(format, frame), *got = malloc(bytes);
    struct taps columns, rows;
    struct weir_gpu_prepare prepare = {.sources = source,
                                       .n = 1,
                                       .width = frame->width,
                                       .height = frame->height,
                                       .x = resized ? 0 : v->x,
                                       .y = resized ? 0 : v->y,
                                       .out_width = v->out_width,
                                       .out_height = v->out_height,
                                       .planar = format->layout == WEIR_LAYOUT_NCHW,
                                       .bgr = format->color == WEIR_COLOR_BGR,
                                       .dtype = format->dtype == WEIR_DTYPE_U8 ? WEIR_GPU_U8 : WEIR_GPU_F32,
                                       .values = values,
                                       .tensor = got};
    fill_values(format, values);
    taps_open(&columns, v->x, v->width, v->out_width);
    taps_open(&rows, v->y, v->height, v->out_height);
    if (resized) {
        prepare.columns = &columns.gpu;
        prepare.rows = &rows.gpu;
    }
    prepare_reference(&prepare);
    cr_assert_eq(memcmp(got, want, bytes), 0, "%dx%d+%d+%d of %dx%d to %dx%d, kind %u, %s %s %s", v->width, v->height,
                 v->x, v->y, frame->width, frame->height, v->out_width, v->out_height, source->kind,
                 prepare.bgr ? "bgr" : "rgb", prepare.planar ? "nchw" : "nhwc", prepare.dtype ? "f32" : "u8");
    taps_close(&columns);
    taps_close(&rows);
    free(want);
    free(got);
}

/* The whole image, crops, and smaller and larger outputs. */
static const struct weir_view views[] = {{0, 0, 61, 47, 61, 47}, {3, 5, 50, 31, 50, 31}, {60, 46, 1, 1, 1, 1},
                                         {0, 0, 61, 47, 17, 13}, {7, 1, 43, 40, 20, 40}, {2, 3, 40, 20, 97, 33},
                                         {5, 6, 50, 40, 49, 81}, {0, 0, 61, 47, 1, 1},   {9, 9, 1, 1, 30, 20}};
enum { VIEWS = sizeof views / sizeof views[0], W = 61, H = 47 };

static void check_formats(const struct weir_gpu_source *source, struct weir_frame frame, int n_views)
{
    for (int i = 0; i < n_views; i++)
        for (int f = 0; f < 16; f++) {
            struct weir_pixel_format format = format_of(f & 1, f & 2, f & 4, f & 8);
            frame.view = &views[i];
            check_view(source, &frame, &format);
        }
}

Test(prepare, raw_frames_in_every_format_part_and_size)
{
    static uint8_t rgb[W * H * 3];
    srand(5);
    for (size_t i = 0; i < sizeof rgb; i++)
        rgb[i] = (uint8_t)rand();
    struct weir_gpu_source source = {.plane = {rgb}, .pitch = {W * 3}, .kind = WEIR_GPU_RGB};
    check_formats(&source, (struct weir_frame){WEIR_FRAME_RAW, rgb, sizeof rgb, W, H, NULL}, VIEWS);
}

/* The decoder scales JPEGs down with another DCT, so only the views at the stored size are compared. */
Test(prepare, jpegs_in_every_format_and_part)
{
    for (int k = 0; k < KINDS; k++) {
        struct jpeg_planes planes;
        size_t length;
        uint8_t *bytes = h5fx_jpeg(kinds[k], W, H, k, &length);
        cr_assert_eq(jpeg_planes_read(&planes, bytes, length), 0);
        struct weir_gpu_source source = source_of(&planes);
        check_formats(&source, (struct weir_frame){WEIR_FRAME_IMAGE, bytes, length, W, H, NULL}, 3);
        jpeg_planes_free(&planes);
        free(bytes);
    }
}

/* ---- half floats ---- */

static float half_value(unsigned bits)
{
    unsigned exponent = bits >> 10 & 31, mantissa = bits & 1023;
    float value = exponent ? ldexpf((float)(1024 + mantissa), (int)exponent - 25) : ldexpf((float)mantissa, -24);
    return bits & 0x8000 ? -value : value;
}

Test(prepare, f16_rounds_to_the_nearest_and_halves_to_even)
{
    for (unsigned sign = 0; sign <= 0x8000; sign += 0x8000)
        for (unsigned bits = 0; bits < 0x7c00; bits++) {
            float low = half_value(sign | bits), high = half_value(sign | (bits + 1)), middle = (low + high) / 2;
            cr_assert_eq(prepare_reference_f16(low), sign | bits);
            cr_assert_eq(prepare_reference_f16(middle), sign | (bits + (bits & 1)));
            cr_assert_eq(prepare_reference_f16(nextafterf(middle, low)), sign | bits);
            cr_assert_eq(prepare_reference_f16(nextafterf(middle, high)), sign | (bits + 1));
        }
    cr_assert_eq(prepare_reference_f16(1e9f), 0x7c00);
    cr_assert_eq(prepare_reference_f16(-INFINITY), 0xfc00);
}

static float bfloat_value(uint32_t bits)
{
    float value;
    bits <<= 16;
    memcpy(&value, &bits, sizeof value);
    return value;
}

Test(prepare, bf16_rounds_to_the_nearest_and_halves_to_even)
{
    for (unsigned sign = 0; sign <= 0x8000; sign += 0x8000)
        for (unsigned bits = 0x80; bits < 0x7f7f; bits++) {
            float low = bfloat_value(sign | bits), high = bfloat_value(sign | (bits + 1)),
                  middle = low + (high - low) / 2;
            cr_assert_eq(prepare_reference_bf16(low), sign | bits);
            cr_assert_eq(prepare_reference_bf16(middle), sign | (bits + (bits & 1)));
            cr_assert_eq(prepare_reference_bf16(nextafterf(middle, low)), sign | bits);
            cr_assert_eq(prepare_reference_bf16(nextafterf(middle, high)), sign | (bits + 1));
        }
    cr_assert_eq(prepare_reference_bf16(INFINITY), 0x7f80);
}
