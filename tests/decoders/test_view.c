/* Views: a decoded crop equals that part of the whole frame bit for bit. A scaled frame equals the averaged or
 * interpolated whole frame, or is close to it if a JPEG is scaled during decoding. */
#include "decoders/view_priv.h"
#include "tests/fixtures/h5_fixture.h"
#include "tests/fixtures/loader_fixture.h"
#include "tests/fixtures/png_fixture.h"
#include "weir/decoder.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CANARY = 64 };

static struct weir_decoder *open_decoder(struct weir_pixel_format format, int width_max)
{
    struct weir_decoder *decoder;
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_decoder_open(&decoder, "turbo", &format, width_max, &err), 0, "%s", err.text);
    return decoder;
}

/* Decodes into an image followed by a canary. */
static void *decode(struct weir_decoder *decoder, const struct weir_pixel_format *format, struct weir_frame frame)
{
    size_t bytes = weir_frame_bytes(format, frame.kind, frame.view->out_width, frame.view->out_height);
    uint8_t *image = malloc(bytes + CANARY);
    memset(image, 0xA5, bytes + CANARY);
    cr_assert_eq(weir_decode(decoder, &frame, image), 0, "%s", weir_decoder_reason(decoder));
    for (int i = 0; i < CANARY; i++)
        cr_assert_eq(image[bytes + (size_t)i], 0xA5, "wrote past the image");
    return image;
}

static struct weir_view random_crop(int width, int height)
{
    struct weir_view view = {.width = 1 + rand() % width, .height = 1 + rand() % height};
    view.x = rand() % (width - view.width + 1);
    view.y = rand() % (height - view.height + 1);
    view.out_width = view.width;
    view.out_height = view.height;
    return view;
}

static void check_crop(const uint8_t *rgb, int width, const struct weir_view *view, const uint8_t *got,
                       const char *about)
{
    for (int y = 0; y < view->height; y++)
        for (int x = 0; x < view->width * 3; x++)
            cr_assert_eq(got[(size_t)y * (size_t)view->width * 3 + (size_t)x],
                         rgb[((size_t)(view->y + y) * (size_t)width + (size_t)view->x) * 3 + (size_t)x],
                         "%s, %dx%d+%d+%d: row %d, value %d", about, view->width, view->height, view->x, view->y, y, x);
}

Test(view, a_part_of_a_jpeg_is_that_part_of_the_whole)
{
    static const struct {
        int width, height;
    } sizes[] = {{97, 61}, {64, 48}, {250, 131}, {16, 200}};
    srand(3);
    struct weir_pixel_format format = {0};
    struct weir_decoder *decoder = open_decoder(format, 256);
    for (int kind = 0; kind < H5FX_JPEGS; kind++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            size_t length;
            int width, height;
            uint8_t *bytes = h5fx_jpeg((enum h5fx_jpeg)kind, sizes[s].width, sizes[s].height, (int)s, &length);
            uint8_t *rgb = h5fx_pixels(bytes, length, false, &width, &height);
            for (int i = 0; rgb && kind != H5FX_JPEG_MANY_SCANS && i < 60; i++) {
                struct weir_view view = random_crop(width, height);
                char about[64];
                snprintf(about, sizeof about, "JPEG kind %d of %dx%d", kind, width, height);
                uint8_t *got = decode(decoder, &format,
                                      (struct weir_frame){WEIR_FRAME_IMAGE, bytes, length, width, height, &view});
                check_crop(rgb, width, &view, got, about);
                free(got);
            }
            free(rgb);
            free(bytes);
        }
    weir_decoder_close(&decoder);
}

/* ---- scaling, compared with double-precision references ---- */

static double mean_of(const uint8_t *rgb, int width, int c, double x0, double x1, double y0, double y1)
{
    double sum = 0, area = 0;
    for (int y = (int)floor(y0); y < y1; y++)
        for (int x = (int)floor(x0); x < x1; x++) {
            double w = fmin(x1, x + 1.0) - fmax(x0, x), h = fmin(y1, y + 1.0) - fmax(y0, y);
            sum += w * h * rgb[((size_t)y * (size_t)width + (size_t)x) * 3 + (size_t)c];
            area += w * h;
        }
    return sum / area;
}

static double clamp(double v, double low, double high)
{
    return fmin(fmax(v, low), high);
}

/* Computes an output pixel. Each direction is averaged if it shrinks, and interpolated otherwise. */
static double value_of(const uint8_t *rgb, int width, const struct weir_view *v, int c, int x, int y)
{
    double sx = (double)v->width / v->out_width, sy = (double)v->height / v->out_height;
    double x0 = v->x + x * sx, x1 = x0 + sx, y0 = v->y + y * sy, y1 = y0 + sy, wx = 0, wy = 0;
    x1 = fmin(x1, v->x + v->width); /* rounding must not exceed the edge */
    y1 = fmin(y1, v->y + v->height);
    if (sx < 1) {
        double at = clamp((x0 + x1) / 2 - 0.5, v->x, v->x + v->width - 1);
        wx = at - floor(at), x0 = floor(at), x1 = x0 + 1;
    }
    if (sy < 1) {
        double at = clamp((y0 + y1) / 2 - 0.5, v->y, v->y + v->height - 1);
        wy = at - floor(at), y0 = floor(at), y1 = y0 + 1;
    }
    double a = mean_of(rgb, width, c, x0, x1, y0, y1);
    double b = wx > 0 ? mean_of(rgb, width, c, x0 + 1, x1 + 1, y0, y1) : a;
    double top = a * (1 - wx) + b * wx;
    if (wy == 0)
        return top;
    a = mean_of(rgb, width, c, x0, x1, y0 + 1, y1 + 1);
    b = wx > 0 ? mean_of(rgb, width, c, x0 + 1, x1 + 1, y0 + 1, y1 + 1) : a;
    return top * (1 - wy) + (a * (1 - wx) + b * wx) * wy;
}

/* Compares `got` with the reference. Stores the PSNR and returns the largest difference. */
static double compare(const uint8_t *rgb, int width, const struct weir_view *v, const uint8_t *got, double *psnr)
{
    double most = 0, squares = 0;
    for (int y = 0; y < v->out_height; y++)
        for (int x = 0; x < v->out_width; x++)
            for (int c = 0; c < 3; c++) {
                double want = value_of(rgb, width, v, c, x, y);
                double off = fabs(want - got[((size_t)y * (size_t)v->out_width + (size_t)x) * 3 + (size_t)c]);
                most = fmax(most, off);
                squares += off * off;
            }
    *psnr = 10 * log10(255.0 * 255.0 / (squares / (v->out_width * v->out_height * 3.0) + 1e-9));
    return most;
}

static void make_raw(uint8_t *rgb, size_t n)
{
    srand(7);
    for (size_t i = 0; i < n; i++)
        rgb[i] = (uint8_t)rand();
}

Test(view, raw_frames_in_another_size_are_exact)
{
    enum { W = 61, H = 47 };
    static uint8_t rgb[W * H * 3];
    make_raw(rgb, sizeof rgb);
    struct weir_pixel_format format = {0};
    struct weir_decoder *decoder = open_decoder(format, W);
    for (int i = 0; i < 200; i++) { /* more views than the cache of plans holds */
        struct weir_view view = random_crop(W, H);
        view.out_width = 1 + rand() % 90;
        view.out_height = 1 + rand() % 90;
        double psnr;
        uint8_t *got = decode(decoder, &format, (struct weir_frame){WEIR_FRAME_RAW, rgb, sizeof rgb, W, H, &view});
        double most = compare(rgb, W, &view, got, &psnr);
        cr_assert_lt(most, 0.51, "%dx%d+%d+%d to %dx%d: off by %g", view.width, view.height, view.x, view.y,
                     view.out_width, view.out_height, most);
        free(got);
    }
    weir_decoder_close(&decoder);
}

/* ---- WEIR_RESIZE_EXACT ---- */

/* Resizes one row or column of a channel as Pillow does: weights of a triangle, and a result rounded to u8. */
static void resize_line(const uint8_t *from, size_t from_step, int n, uint8_t *to, size_t to_step, int out)
{
    double step = (double)n / out, support = fmax(step, 1);
    for (int i = 0; i < out; i++) {
        double at = (i + 0.5) * step, sum = 0, weights = 0;
        for (int k = 0; k < n; k++) {
            double weight = fmax(0, 1 - fabs(k + 0.5 - at) / support);
            sum += weight * from[(size_t)k * from_step];
            weights += weight;
        }
        to[(size_t)i * to_step] = (uint8_t)(sum / weights + 0.5);
    }
}

/* Pillow resizes the rows first and rounds between the directions. */
static uint8_t *resize_as_pillow(const uint8_t *rgb, int width, const struct weir_view *v)
{
    size_t out = (size_t)v->out_width * 3;
    uint8_t *rows = malloc(out * (size_t)v->height), *image = malloc(out * (size_t)v->out_height);
    for (int y = 0; y < v->height; y++)
        for (size_t c = 0; c < 3; c++)
            resize_line(rgb + ((size_t)(v->y + y) * (size_t)width + (size_t)v->x) * 3 + c, 3, v->width,
                        rows + (size_t)y * out + c, 3, v->out_width);
    for (size_t x = 0; x < out; x++)
        resize_line(rows + x, out, v->height, image + x, out, v->out_height);
    free(rows);
    return image;
}

/* Decodes the view exactly and returns the largest difference from what Pillow makes of the decoded pixels. */
static int off_pillow(struct weir_frame frame, const uint8_t *rgb, uint64_t *decoded)
{
    const struct weir_pixel_format format = {0};
    struct weir_decoder *decoder = open_decoder(format, frame.width);
    struct weir_decoder_counts counts;
    weir_decoder_set_resize(decoder, WEIR_RESIZE_EXACT);
    uint8_t *got = decode(decoder, &format, frame), *want = resize_as_pillow(rgb, frame.width, frame.view);
    int most = 0;
    for (size_t i = 0; i < (size_t)frame.view->out_width * (size_t)frame.view->out_height * 3; i++)
        most = abs(got[i] - want[i]) > most ? abs(got[i] - want[i]) : most;
    weir_decoder_counts(decoder, &counts);
    *decoded = counts.decoded_pixels;
    weir_decoder_close(&decoder);
    free(want);
    free(got);
    return most;
}

Test(view, exact_sizes_are_those_of_pillow)
{
    enum { W = 61, H = 47 };
    static uint8_t rgb[W * H * 3];
    uint64_t decoded;
    make_raw(rgb, sizeof rgb);
    for (int i = 0; i < 100; i++) {
        struct weir_view view = random_crop(W, H);
        view.out_width = 1 + rand() % 90;
        view.out_height = 1 + rand() % (i % 2 ? 90 : 20);
        int most = off_pillow((struct weir_frame){WEIR_FRAME_RAW, rgb, sizeof rgb, W, H, &view}, rgb, &decoded);
        cr_assert_leq(most, 1, "%dx%d+%d+%d to %dx%d: off by %d", view.width, view.height, view.x, view.y,
                      view.out_width, view.out_height, most);
    }
}

Test(view, exact_jpegs_are_decoded_at_full_size)
{
    size_t length;
    int width, height;
    uint8_t *bytes = h5fx_jpeg(H5FX_JPEG_420, 320, 240, 5, &length);
    uint8_t *rgb = h5fx_pixels(bytes, length, false, &width, &height);
    uint64_t decoded;
    static const struct weir_view views[] = {
        {0, 0, 320, 240, 160, 120}, {0, 0, 320, 240, 40, 30}, {0, 0, 320, 240, 112, 112}, {33, 17, 200, 200, 112, 112}};
    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++) {
        int most = off_pillow((struct weir_frame){WEIR_FRAME_IMAGE, bytes, length, 320, 240, &views[i]}, rgb, &decoded);
        cr_assert_leq(most, 1, "view %zu: off by %d", i, most);
        cr_assert_geq(decoded, (uint64_t)views[i].width * (uint64_t)views[i].height);
    }
    free(rgb);
    free(bytes);
}

/* Resamples rgb with its best code and with plain C. Returns whether all rows are equal. */
static bool resamples_like_plain_c(const uint8_t *rgb, int width, const struct weir_view *v, enum weir_resize resize)
{
    struct weir_resampler both[2];
    bool equal = true;
    for (int i = 0; i < 2; i++) {
        struct weir_taps x = {0}, y = {0};
        cr_assert_eq(weir_taps_open(&x, v->x, v->x + v->width, v->out_width, resize), 0);
        cr_assert_eq(weir_taps_open(&y, v->y, v->y + v->height, v->out_height, resize), 0);
        cr_assert_eq(weir_resampler_open(&both[i], &x, v->out_width, &y, v->out_height), 0);
    }
    both[1].mix = weir_resampler_mix;
    for (int y = v->y; y < v->y + v->height; y++) {
        const uint8_t *row[2];
        int at[2];
        for (int i = 0; i < 2; i++)
            weir_resampler_put(&both[i], y, rgb + 3 * ((size_t)y * (size_t)width + (size_t)v->x));
        while ((row[0] = weir_resampler_row(&both[0], y, &at[0]))) {
            row[1] = weir_resampler_row(&both[1], y, &at[1]);
            equal = equal && row[1] && at[0] == at[1] && memcmp(row[0], row[1], 3 * (size_t)v->out_width) == 0;
        }
    }
    equal = equal && both[0].next == v->out_height && both[1].next == v->out_height;
    for (int i = 0; i < 2; i++)
        weir_resampler_close(&both[i]);
    return equal;
}

Test(view, every_cpu_resamples_to_the_same_bits)
{
    enum { W = 211, H = 97 };
    static uint8_t rgb[W * H * 3];
    make_raw(rgb, sizeof rgb);
    for (int i = 0; i < 400; i++) {
        struct weir_view view = random_crop(W, H);
        view.out_width = 1 + rand() % (i % 2 ? 250 : 30);
        view.out_height = 1 + rand() % (i % 3 ? 110 : 9);
        enum weir_resize resize = i % 4 ? WEIR_RESIZE_FAST : WEIR_RESIZE_EXACT;
        cr_assert(resamples_like_plain_c(rgb, W, &view, resize), "%dx%d+%d+%d to %dx%d", view.width, view.height,
                  view.x, view.y, view.out_width, view.out_height);
    }
}

Test(view, every_output_format_has_the_same_pixels)
{
    enum { W = 40, H = 30, OW = 17, OH = 23, N = OW * OH };
    static uint8_t rgb[W * H * 3];
    make_raw(rgb, sizeof rgb);
    struct weir_view views[] = {{3, 2, 33, 21, OW, OH}, {5, 4, OW, OH, OW, OH}};
    for (size_t v = 0; v < 2; v++) {
        struct weir_frame frame = {WEIR_FRAME_RAW, rgb, sizeof rgb, W, H, &views[v]};
        struct weir_pixel_format plain = {0};
        struct weir_decoder *decoder = open_decoder(plain, W);
        uint8_t *want = decode(decoder, &plain, frame);
        weir_decoder_close(&decoder);
        for (int f = 1; f < 8; f++) {
            struct weir_pixel_format format = {.color = (enum weir_color)(f & 1),
                                               .dtype = (enum weir_dtype)(f >> 1 & 1),
                                               .layout = (enum weir_image_layout)(f >> 2 & 1)};
            decoder = open_decoder(format, W);
            void *got = decode(decoder, &format, frame);
            for (size_t i = 0; i < N; i++)
                for (size_t c = 0; c < 3; c++) {
                    uint8_t value = want[3 * i + (format.color == WEIR_COLOR_BGR ? 2 - c : c)];
                    size_t at = format.layout == WEIR_LAYOUT_NCHW ? c * N + i : 3 * i + c;
                    if (format.dtype == WEIR_DTYPE_F32)
                        cr_assert_eq(((float *)got)[at], (float)value / 255.0f);
                    else
                        cr_assert_eq(((uint8_t *)got)[at], value);
                }
            free(got);
            weir_decoder_close(&decoder);
        }
        free(want);
    }
}

Test(view, png_rows_pass_through_the_same_resampler)
{
    struct weir_pixel_format format = {0};
    struct weir_decoder *decoder = open_decoder(format, 64);
    for (int interlaced = 0; interlaced < 2; interlaced++) {
        struct pngfx_image image = {.kind = PNGFX_RGB8, .width = 53, .height = 41, .interlaced = interlaced, .seed = 4};
        size_t length;
        uint8_t *bytes = pngfx_write(&image, &length), *rgb = pngfx_rgb(&image);
        for (int i = 0; i < 40; i++) {
            struct weir_view view = random_crop(53, 41);
            if (i % 2)
                view.out_width = 1 + rand() % 60, view.out_height = 1 + rand() % 60;
            uint8_t *png =
                decode(decoder, &format, (struct weir_frame){WEIR_FRAME_IMAGE, bytes, length, 53, 41, &view});
            uint8_t *raw =
                decode(decoder, &format, (struct weir_frame){WEIR_FRAME_RAW, rgb, 53 * 41 * 3, 53, 41, &view});
            cr_assert_eq(memcmp(png, raw, (size_t)view.out_width * (size_t)view.out_height * 3), 0);
            free(png);
            free(raw);
        }
        free(bytes);
        free(rgb);
    }
    weir_decoder_close(&decoder);
}

Test(view, depth_takes_the_nearest_pixel)
{
    enum { W = 20, H = 10 };
    static uint16_t depth[W * H], to[15 * 40];
    for (int i = 0; i < W * H; i++)
        depth[i] = (uint16_t)(1000 + i);
    struct weir_pixel_format format = {.dtype = WEIR_DTYPE_F32};
    struct weir_decoder *decoder = open_decoder(format, W);
    static const struct weir_view views[] = {{0, 0, 20, 10, 10, 5}, {4, 2, 10, 8, 15, 40}, {19, 9, 1, 1, 3, 3}};
    for (size_t v = 0; v < sizeof views / sizeof views[0]; v++) {
        const struct weir_view *view = &views[v];
        struct weir_frame frame = {WEIR_FRAME_RAW16, (const uint8_t *)depth, sizeof depth, W, H, view};
        cr_assert_eq(weir_decode(decoder, &frame, to), 0);
        for (int y = 0; y < view->out_height; y++)
            for (int x = 0; x < view->out_width; x++) {
                int sy = view->y + (int)((y + 0.5) * view->height / view->out_height);
                int sx = view->x + (int)((x + 0.5) * view->width / view->out_width);
                cr_assert_eq(to[y * view->out_width + x], 1000 + sy * W + sx, "view %zu (%d, %d)", v, y, x);
            }
    }
    weir_decoder_close(&decoder);
}

/* Compares a scaled crop of whole blocks with the same part of the whole image at that scale. */
static void check_scaled_crop(struct weir_decoder *decoder, const uint8_t *bytes, size_t length, int side, int by,
                              const char *about)
{
    struct weir_pixel_format format = {0};
    struct weir_view all = {0, 0, side, side, side / by, side / by};
    struct weir_frame frame = {WEIR_FRAME_IMAGE, bytes, length, side, side, &all};
    uint8_t *whole = decode(decoder, &format, frame);
    for (int i = 0; i < 12; i++) {
        struct weir_view part = random_crop(side / by, side / by), view = part;
        view.x *= by, view.y *= by, view.width *= by, view.height *= by;
        frame.view = &view;
        uint8_t *got = decode(decoder, &format, frame);
        check_crop(whole, side / by, &part, got, about);
        free(got);
    }
    free(whole);
}

Test(view, a_part_of_a_scaled_jpeg_is_that_part_of_the_scaled_whole)
{
    enum { SIDE = 160 };
    srand(11);
    struct weir_decoder *decoder = open_decoder((struct weir_pixel_format){0}, SIDE);
    for (int kind = 0; kind < H5FX_JPEGS; kind++) {
        if (kind == H5FX_JPEG_MANY_SCANS)
            continue;
        size_t length;
        uint8_t *bytes = h5fx_jpeg((enum h5fx_jpeg)kind, SIDE, SIDE, kind, &length);
        for (int by = 2; by <= 8; by *= 2) {
            char about[64];
            snprintf(about, sizeof about, "JPEG kind %d by %d", kind, by);
            check_scaled_crop(decoder, bytes, length, SIDE, by, about);
        }
        free(bytes);
    }
    weir_decoder_close(&decoder);
}

/* ---- JPEGs scaled during decoding ---- */

struct scaled_case {
    struct weir_view view;
    double share; /* maximum fraction of the stored pixels that is decoded */
};

/* Returns the lowest PSNR of all cases, compared with averaging the whole image. */
static double check_scaled(const uint8_t *bytes, size_t length, int width, int height)
{
    const struct scaled_case cases[] = {
        {{0, 0, width, height, width / 2, height / 2}, 0.26},
        {{0, 0, width, height, width / 4, height / 4}, 0.07},
        {{0, 0, width, height, width / 8, height / 8}, 0.02},
        {{0, 0, width, height, width / 3, height / 3}, 0.26},
        {{0, 0, width, height, width * 2 / 3, height / 2}, 1},
        {{width / 5, height / 4, width / 2, height / 2, width / 7, height / 7}, 0.1},
        {{0, 0, width, height, width / 5, height / 6}, 0.07},
    };
    int w, h;
    uint8_t *rgb = h5fx_pixels(bytes, length, false, &w, &h);
    double least = INFINITY;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir_pixel_format format = {0};
        struct weir_decoder *decoder = open_decoder(format, width);
        struct weir_decoder_counts counts;
        double psnr;
        uint8_t *got = decode(decoder, &format,
                              (struct weir_frame){WEIR_FRAME_IMAGE, bytes, length, width, height, &cases[i].view});
        compare(rgb, w, &cases[i].view, got, &psnr);
        weir_decoder_counts(decoder, &counts);
        cr_assert_eq(counts.frames, 1);
        cr_assert_eq(counts.stored_pixels, (uint64_t)width * (uint64_t)height);
        cr_assert_gt(counts.decoded_pixels, 0);
        cr_assert_leq((double)counts.decoded_pixels, cases[i].share * (double)counts.stored_pixels, "case %zu", i);
        printf("%dx%d, case %zu: %.1f dB, %.1f %% of the pixels\n", width, height, i, psnr,
               100 * (double)counts.decoded_pixels / (double)counts.stored_pixels);
        least = fmin(least, psnr);
        free(got);
        weir_decoder_close(&decoder);
    }
    free(rgb);
    return least;
}

Test(view, jpegs_in_another_size_are_near_the_averaged_whole)
{
    size_t length;
    uint8_t *bytes = h5fx_jpeg(H5FX_JPEG_444, 320, 240, 5, &length);
    cr_assert_gt(check_scaled(bytes, length, 320, 240), 20); /* hard edges everywhere, the worst case */
    free(bytes);
}

Test(view, real_jpegs_in_another_size_are_near_the_averaged_whole)
{
    static const char *const images[] = {"corridor/69.jpg", "corridor/6.jpg", "photo/tower.jpg",
                                         "photo/tower_progressive.jpg", "testimages/testorig.jpg"};
    for (size_t i = 0; i < sizeof images / sizeof images[0]; i++) {
        size_t length;
        int width, height;
        uint8_t *bytes = fixture_test_image(images[i], &length);
        if (!bytes)
            return;
        uint8_t *rgb = h5fx_pixels(bytes, length, false, &width, &height);
        cr_assert_not_null(rgb);
        printf("%s\n", images[i]);
        cr_assert_gt(check_scaled(bytes, length, width, height), 30, "%s", images[i]);
        free(rgb);
        free(bytes);
    }
}

Test(view, what_follows_the_last_row_needed_is_not_looked_at)
{
    size_t length;
    uint8_t *bytes = h5fx_jpeg(H5FX_JPEG_420, 128, 256, 5, &length), image[128 * 32 * 3];
    struct weir_decoder *decoder = open_decoder((struct weir_pixel_format){0}, 128);
    struct weir_view top = {0, 0, 128, 32, 128, 32}, bottom = {0, 224, 128, 32, 128, 32};
    struct weir_frame frame = {WEIR_FRAME_IMAGE, bytes, length / 2, 128, 256, &top};
    cr_assert_eq(weir_decode(decoder, &frame, image), 0, "%s", weir_decoder_reason(decoder));
    frame.view = &bottom;
    cr_assert_eq(weir_decode(decoder, &frame, image), -EBADMSG);
    cr_assert(*weir_decoder_reason(decoder));
    frame.length = length;
    cr_assert_eq(weir_decode(decoder, &frame, image), 0);
    weir_decoder_close(&decoder);
    free(bytes);
}
