#include "datasets/synth/image_write.h"

#include <errno.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

struct encoder {
    struct weir_bytes *out;
    int rc;
};

static void on_error(png_structp png, png_const_charp text)
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
    struct encoder *encoder = png_get_io_ptr(png);
    struct weir_bytes *out = encoder->out;
    if (n > out->capacity - out->size) {
        size_t capacity = (out->capacity + n) * 2;
        uint8_t *grown = realloc(out->data, capacity);
        if (!grown) {
            encoder->rc = -ENOMEM;
            png_error(png, "no memory");
        }
        out->data = grown;
        out->capacity = capacity;
    }
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
    struct encoder encoder = {.out = out, .rc = -EINVAL};
    out->size = 0;
    errno = 0;
    uint8_t *row = malloc((size_t)picture->width * 2);
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, on_error, on_warning);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    if (!row || !info) {
        png_destroy_write_struct(&png, NULL);
        free(row);
        return -ENOMEM;
    }
    if (setjmp(png_jmpbuf(png))) {
        int rc =
            errno == ENOMEM ? -ENOMEM : encoder.rc; /* libpng reports its own lack of memory like any other error */
        png_destroy_write_struct(&png, &info);
        free(row);
        return rc;
    }
    png_set_write_fn(png, &encoder, on_write, on_flush);
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
