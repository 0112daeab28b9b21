#include "datasets/synth/image_write.h"

#include <errno.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <png.h>

#include <jerror.h>

enum { FIRST_BYTES = 64 << 10 };

/* Makes room for n more bytes. */
static bool make_room(struct weir_bytes *out, size_t n)
{
    size_t capacity = out->capacity ? out->capacity : FIRST_BYTES;
    if (n <= out->capacity - out->size)
        return true;
    while (n > capacity - out->size)
        capacity *= 2;
    uint8_t *data = realloc(out->data, capacity);
    if (!data)
        return false;
    out->data = data;
    out->capacity = capacity;
    return true;
}

/* ---- JPEG ---- */

struct jpeg_encoder {
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_destination_mgr destination;
    struct weir_bytes *out;
    jmp_buf failed;
    int rc;
};

static void fail(struct jpeg_encoder *encoder, int rc)
{
    encoder->rc = rc;
    longjmp(encoder->failed, 1);
}

static void on_jpeg_error(j_common_ptr common)
{
    fail(common->client_data, common->err->msg_code == JERR_OUT_OF_MEMORY ? -ENOMEM : -EINVAL);
}

static void on_message(j_common_ptr common)
{
    (void)common;
}

static void on_start(j_compress_ptr jpeg)
{
    struct jpeg_encoder *encoder = jpeg->client_data;
    struct weir_bytes *out = encoder->out;
    if (!make_room(out, 1))
        fail(encoder, -ENOMEM);
    encoder->destination.next_output_byte = out->data + out->size;
    encoder->destination.free_in_buffer = out->capacity - out->size;
}

static boolean on_full(j_compress_ptr jpeg)
{
    struct jpeg_encoder *encoder = jpeg->client_data;
    encoder->out->size = encoder->out->capacity; /* free_in_buffer is not valid here */
    on_start(jpeg);
    return TRUE;
}

static void on_end(j_compress_ptr jpeg)
{
    struct jpeg_encoder *encoder = jpeg->client_data;
    encoder->out->size = encoder->out->capacity - encoder->destination.free_in_buffer;
}

static void start_jpeg(struct jpeg_encoder *encoder)
{
    struct jpeg_compress_struct *jpeg = &encoder->jpeg;
    jpeg->err = jpeg_std_error(&encoder->errors);
    encoder->errors.error_exit = on_jpeg_error;
    encoder->errors.output_message = on_message;
    jpeg->client_data = encoder;
    jpeg_create_compress(jpeg);
    jpeg->client_data = encoder; /* some versions of the library clear it */
    encoder->destination.init_destination = on_start;
    encoder->destination.empty_output_buffer = on_full;
    encoder->destination.term_destination = on_end;
    jpeg->dest = &encoder->destination;
}

int weir_jpeg_write(const uint8_t *rgb, int width, int height, int quality, const char *comment, struct weir_bytes *out)
{
    struct jpeg_encoder encoder = {.out = out};
    struct jpeg_compress_struct *jpeg = &encoder.jpeg;
    out->size = 0;
    if (setjmp(encoder.failed)) {
        jpeg_destroy_compress(jpeg);
        return encoder.rc;
    }
    start_jpeg(&encoder);
    jpeg->image_width = (JDIMENSION)width;
    jpeg->image_height = (JDIMENSION)height;
    jpeg->input_components = 3;
    jpeg->in_color_space = JCS_RGB;
    jpeg_set_defaults(jpeg); /* selects 4:2:0 */
    jpeg_set_quality(jpeg, quality, TRUE);
    jpeg->dct_method = JDCT_ISLOW;
    jpeg_start_compress(jpeg, TRUE);
    if (comment)
        jpeg_write_marker(jpeg, JPEG_COM, (const JOCTET *)comment, (unsigned int)strlen(comment));
    while (jpeg->next_scanline < jpeg->image_height) {
        JSAMPROW row = (JSAMPROW)(rgb + (size_t)jpeg->next_scanline * (size_t)width * 3);
        jpeg_write_scanlines(jpeg, &row, 1);
    }
    jpeg_finish_compress(jpeg);
    jpeg_destroy_compress(jpeg);
    return 0;
}

/* ---- PNG ---- */

static void on_png_error(png_structp png, png_const_charp text)
{
    (void)text;
    longjmp(png_jmpbuf(png), 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

static void on_write(png_structp png, png_bytep data, png_size_t n)
{
    struct weir_bytes *out = png_get_io_ptr(png);
    if (!make_room(out, n)) /* errno is ENOMEM */
        png_error(png, "no memory");
    memcpy(out->data + out->size, data, n);
    out->size += n;
}

static void on_flush(png_structp png)
{
    (void)png;
}

/* PNG stores the high byte of a value first. */
static void write_rows(png_structp png, const uint16_t *grey, int width, int height, uint8_t *row)
{
    for (int y = 0; y < height; y++) {
        const uint16_t *from = grey + (size_t)y * (size_t)width;
        for (int x = 0; x < width; x++) {
            row[2 * x] = (uint8_t)(from[x] >> 8);
            row[2 * x + 1] = (uint8_t)from[x];
        }
        png_write_row(png, row);
    }
}

struct picture {
    const uint8_t *rgb; /* NULL: the image is grey */
    const uint16_t *grey;
    int width, height;
};

static void write_picture(png_structp png, png_infop info, const struct picture *picture, uint8_t *row)
{
    png_set_compression_level(png, 1);
    png_set_filter(png, PNG_FILTER_TYPE_BASE, PNG_FILTER_SUB);
    png_set_IHDR(png, info, (png_uint_32)picture->width, (png_uint_32)picture->height, picture->rgb ? 8 : 16,
                 picture->rgb ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_BASE,
                 PNG_FILTER_TYPE_BASE);
    png_write_info(png, info);
    if (picture->grey)
        write_rows(png, picture->grey, picture->width, picture->height, row);
    for (int y = 0; y < picture->height && picture->rgb; y++)
        png_write_row(png, picture->rgb + (size_t)y * (size_t)picture->width * 3);
    png_write_end(png, info);
}

static int write_png(const struct picture *picture, struct weir_bytes *out)
{
    out->size = 0;
    errno = 0;
    uint8_t *row = malloc((size_t)picture->width * 2);
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, on_png_error, on_warning);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    if (!row || !info) {
        png_destroy_write_struct(&png, NULL);
        free(row);
        return -ENOMEM;
    }
    if (setjmp(png_jmpbuf(png))) {
        int rc = errno == ENOMEM ? -ENOMEM : -EINVAL; /* libpng reports lack of memory like any other error */
        png_destroy_write_struct(&png, &info);
        free(row);
        return rc;
    }
    png_set_write_fn(png, out, on_write, on_flush);
    write_picture(png, info, picture, row);
    png_destroy_write_struct(&png, &info);
    free(row);
    return 0;
}

int weir_png_write_grey16(const uint16_t *grey, int width, int height, struct weir_bytes *out)
{
    return write_png(&(struct picture){NULL, grey, width, height}, out);
}

int weir_png_write_rgb8(const uint8_t *rgb, int width, int height, struct weir_bytes *out)
{
    return write_png(&(struct picture){rgb, NULL, width, height}, out);
}
