/* The JPEGs of h5_fixture.h. */
#include "tests/h5_fixture.h"
#include "tests/loader_fixture.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

/* Waves and a little noise: compresses like a photo, and no two seeds agree anywhere. */
static void paint(uint8_t *row, int y, int width, int components, int seed)
{
    for (int x = 0; x < width; x++)
        for (int c = 0; c < components; c++) {
            int wave = (x * (3 + c) + y * (5 - c) + seed * 29 + ((x / 5) ^ (y / 3)) * 11) % 256;
            row[x * components + c] = (uint8_t)(wave < 128 ? 2 * wave : 511 - 2 * wave);
        }
}

/* DC first, then every AC coefficient in a scan of its own: 64 scans and more for each component. */
static int many_scans(jpeg_scan_info *scans)
{
    int n = 0;
    scans[n++] = (jpeg_scan_info){3, {0, 1, 2}, 0, 0, 0, 0};
    for (int c = 0; c < 3; c++)
        for (int k = 1; k < 64; k++) {
            for (int bit = 4; bit >= 0; bit--)
                scans[n++] = (jpeg_scan_info){1, {c}, k, k, bit == 4 ? 0 : bit + 1, bit};
        }
    return n;
}

static void configure(struct jpeg_compress_struct *jpeg, enum h5fx_jpeg kind)
{
    static jpeg_scan_info scans[1 + 3 * 63 * 5];
    bool inks = kind == H5FX_JPEG_CMYK || kind == H5FX_JPEG_YCCK;
    jpeg->input_components = kind == H5FX_JPEG_GRAY ? 1 : inks ? 4 : 3;
    jpeg->in_color_space = kind == H5FX_JPEG_GRAY ? JCS_GRAYSCALE : inks ? JCS_CMYK : JCS_RGB;
    jpeg_set_defaults(jpeg);
    if (kind == H5FX_JPEG_YCCK)
        jpeg_set_colorspace(jpeg, JCS_YCCK);
    jpeg_set_quality(jpeg, 85, TRUE);
    if (kind == H5FX_JPEG_444 || kind == H5FX_JPEG_422)
        jpeg->comp_info[0].v_samp_factor = 1;
    if (kind == H5FX_JPEG_444)
        jpeg->comp_info[0].h_samp_factor = 1;
    static const int luma[H5FX_JPEGS][2] = {
        [H5FX_JPEG_411] = {4, 1}, [H5FX_JPEG_410] = {4, 2}, [H5FX_JPEG_440] = {1, 2}, [H5FX_JPEG_2X4] = {2, 4}};
    if (luma[kind][0]) {
        jpeg->comp_info[0].h_samp_factor = luma[kind][0];
        jpeg->comp_info[0].v_samp_factor = luma[kind][1];
    }
    if (kind == H5FX_JPEG_PROGRESSIVE)
        jpeg_simple_progression(jpeg);
    if (kind == H5FX_JPEG_RESTART)
        jpeg->restart_interval = 2;
    jpeg->arith_code = kind == H5FX_JPEG_ARITHMETIC;
    if (kind != H5FX_JPEG_MANY_SCANS)
        return;
    jpeg->num_scans = many_scans(scans);
    jpeg->scan_info = scans;
}

uint8_t *h5fx_jpeg(enum h5fx_jpeg kind, int width, int height, int seed, size_t *length)
{
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    unsigned char *bytes = NULL;
    unsigned long size = 0;
    jpeg_mem_dest(&jpeg, &bytes, &size);
    jpeg.image_width = (JDIMENSION)width;
    jpeg.image_height = (JDIMENSION)height;
    configure(&jpeg, kind);
    jpeg_start_compress(&jpeg, TRUE);
    uint8_t *row = malloc((size_t)width * 4);
    for (int y = 0; y < height; y++) {
        paint(row, y, width, jpeg.input_components, seed);
        jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    free(row);
    *length = size;
    return bytes;
}

struct catcher {
    struct jpeg_error_mgr errors;
    jmp_buf escape;
};

static void on_error(j_common_ptr common)
{
    longjmp(((struct catcher *)common->err)->escape, 1);
}

static void on_message(j_common_ptr common, int level)
{
    (void)common;
    (void)level;
}

/* In place: 4 samples become 3. */
static void from_inks(uint8_t *row, JDIMENSION width, bool bgr)
{
    for (JDIMENSION x = 0; x < width; x++) {
        const uint8_t *ink = row + 4 * x;
        int k = ink[3], r = k - (((255 - ink[0]) * k) >> 8), g = k - (((255 - ink[1]) * k) >> 8),
            b = k - (((255 - ink[2]) * k) >> 8);
        row[3 * x] = (uint8_t)(bgr ? b : r);
        row[3 * x + 1] = (uint8_t)g;
        row[3 * x + 2] = (uint8_t)(bgr ? r : b);
    }
}

uint8_t *h5fx_pixels(const uint8_t *bytes, size_t length, bool bgr, int *width, int *height)
{
    struct jpeg_decompress_struct jpeg;
    struct catcher catcher;
    uint8_t *volatile pixels = NULL;
    jpeg.err = jpeg_std_error(&catcher.errors);
    catcher.errors.error_exit = on_error;
    catcher.errors.emit_message = on_message;
    jpeg_create_decompress(&jpeg);
    if (setjmp(catcher.escape)) {
        jpeg_destroy_decompress(&jpeg);
        free(pixels);
        return NULL;
    }
    jpeg_mem_src(&jpeg, bytes, length);
    jpeg_read_header(&jpeg, TRUE);
    bool inks = jpeg.num_components == 4;
    jpeg.out_color_space = inks ? JCS_CMYK : bgr ? JCS_EXT_BGR : JCS_EXT_RGB;
    jpeg_start_decompress(&jpeg);
    size_t stride = (size_t)jpeg.output_width * 3;
    pixels = malloc(stride * jpeg.output_height + jpeg.output_width); /* and a row of inks at the end */
    while (jpeg.output_scanline < jpeg.output_height) {
        JSAMPROW row = pixels + jpeg.output_scanline * stride;
        jpeg_read_scanlines(&jpeg, &row, 1);
        if (inks)
            from_inks(row, jpeg.output_width, bgr);
    }
    *width = (int)jpeg.output_width;
    *height = (int)jpeg.output_height;
    jpeg_finish_decompress(&jpeg);
    jpeg_destroy_decompress(&jpeg);
    return pixels;
}
