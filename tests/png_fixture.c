#include "tests/png_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

static const struct {
    int color_type, bits, channels;
} kinds[PNGFX_KINDS] = {
    [PNGFX_GRAY1] = {PNG_COLOR_TYPE_GRAY, 1, 1},
    [PNGFX_GRAY2] = {PNG_COLOR_TYPE_GRAY, 2, 1},
    [PNGFX_GRAY4] = {PNG_COLOR_TYPE_GRAY, 4, 1},
    [PNGFX_GRAY8] = {PNG_COLOR_TYPE_GRAY, 8, 1},
    [PNGFX_GRAY16] = {PNG_COLOR_TYPE_GRAY, 16, 1},
    [PNGFX_GRAY_ALPHA8] = {PNG_COLOR_TYPE_GRAY_ALPHA, 8, 2},
    [PNGFX_GRAY_ALPHA16] = {PNG_COLOR_TYPE_GRAY_ALPHA, 16, 2},
    [PNGFX_RGB8] = {PNG_COLOR_TYPE_RGB, 8, 3},
    [PNGFX_RGB16] = {PNG_COLOR_TYPE_RGB, 16, 3},
    [PNGFX_RGBA8] = {PNG_COLOR_TYPE_RGB_ALPHA, 8, 4},
    [PNGFX_RGBA16] = {PNG_COLOR_TYPE_RGB_ALPHA, 16, 4},
    [PNGFX_PALETTE1] = {PNG_COLOR_TYPE_PALETTE, 1, 1},
    [PNGFX_PALETTE2] = {PNG_COLOR_TYPE_PALETTE, 2, 1},
    [PNGFX_PALETTE4] = {PNG_COLOR_TYPE_PALETTE, 4, 1},
    [PNGFX_PALETTE8] = {PNG_COLOR_TYPE_PALETTE, 8, 1},
};

int pngfx_bits(enum pngfx_kind kind)
{
    return kinds[kind].bits;
}

int pngfx_channels(enum pngfx_kind kind)
{
    return kinds[kind].channels;
}

/* One stored value: waves with noise in the low bits, so that every filter has something to do; the two bytes of 16
 * bits differ. */
static unsigned value(const struct pngfx_image *image, int x, int y, int channel)
{
    unsigned wave = (unsigned)(x * 211 + y * 389 + channel * 20011 + image->seed * 7919);
    unsigned noise = ((unsigned)x * 2654435761u ^ (unsigned)y * 40503u ^ (unsigned)channel * 97u) >> 5;
    return ((wave ^ (noise & 0x1f1f)) & 0xffff) >> (16 - kinds[image->kind].bits);
}

static uint8_t palette_value(const struct pngfx_image *image, unsigned index, int channel)
{
    return (uint8_t)(index * 37 + (unsigned)channel * 91 + (unsigned)image->seed * 13);
}

/* ---- writing ---- */

struct file {
    uint8_t *bytes;
    size_t length;
};

static void on_error(png_structp png, png_const_charp text)
{
    (void)png;
    fprintf(stderr, "png_fixture: %s\n", text);
    abort();
}

static void on_write(png_structp png, png_bytep data, size_t n)
{
    struct file *file = png_get_io_ptr(png);
    file->bytes = realloc(file->bytes, file->length + n);
    memcpy(file->bytes + file->length, data, n);
    file->length += n;
}

static void on_flush(png_structp png)
{
    (void)png;
}

static void set_palette(png_structp png, png_infop info, const struct pngfx_image *image)
{
    png_color palette[256];
    png_byte alpha[256];
    int n = 1 << kinds[image->kind].bits;
    for (int i = 0; i < n; i++) {
        palette[i] = (png_color){palette_value(image, (unsigned)i, 0), palette_value(image, (unsigned)i, 1),
                                 palette_value(image, (unsigned)i, 2)};
        alpha[i] = (png_byte)(255 - i);
    }
    png_set_PLTE(png, info, palette, n);
    if (image->transparent)
        png_set_tRNS(png, info, alpha, n, NULL);
}

static void set_transparent(png_structp png, png_infop info, const struct pngfx_image *image)
{
    png_color_16 key = {.red = (png_uint_16)value(image, 0, 0, 0),
                        .green = (png_uint_16)value(image, 0, 0, 1),
                        .blue = (png_uint_16)value(image, 0, 0, 2),
                        .gray = (png_uint_16)value(image, 0, 0, 0)};
    png_set_tRNS(png, info, NULL, 0, &key);
}

static void describe(png_structp png, png_infop info)
{
    png_text text = {.compression = PNG_TEXT_COMPRESSION_zTXt, .key = "Comment", .text = "a frame", .text_length = 7};
    png_time time = {.year = 2024, .month = 2, .day = 29};
    png_set_gAMA_fixed(png, info, 100000 / 5);
    png_set_text(png, info, &text, 1);
    png_set_tIME(png, info, &time);
}

/* A chunk that libpng itself warns about when it looks at it. */
static void write_profile(png_structp png)
{
    static const uint8_t text[] = "no profile\0\0 and not compressed";
    png_write_chunk(png, (png_const_bytep) "iCCP", text, sizeof text);
}

static void pack_row(const struct pngfx_image *image, int y, uint8_t *row, size_t row_bytes)
{
    int bits = kinds[image->kind].bits, channels = kinds[image->kind].channels;
    memset(row, 0, row_bytes);
    for (int x = 0; x < image->width; x++)
        for (int c = 0; c < channels; c++) {
            unsigned v = value(image, x, y, c);
            size_t at = (size_t)x * (size_t)channels + (size_t)c;
            if (bits == 16) {
                row[2 * at] = (uint8_t)(v >> 8);
                row[2 * at + 1] = (uint8_t)v;
            } else {
                size_t bit = at * (size_t)bits;
                row[bit / 8] |= (uint8_t)(v << (8 - (size_t)bits - bit % 8));
            }
        }
}

static void write_image(png_structp png, png_infop info, const struct pngfx_image *image)
{
    size_t row_bytes = png_get_rowbytes(png, info), height = (size_t)image->height;
    uint8_t *pixels = malloc(row_bytes * height), **rows = malloc(height * sizeof *rows);
    for (size_t y = 0; y < height; y++) {
        rows[y] = pixels + y * row_bytes;
        pack_row(image, (int)y, rows[y], row_bytes);
    }
    png_write_image(png, rows);
    free(rows);
    free(pixels);
}

uint8_t *pngfx_write(const struct pngfx_image *image, size_t *length)
{
    static const int filters[PNGFX_FILTERS] = {PNG_FILTER_NONE, PNG_FILTER_SUB,   PNG_FILTER_UP,
                                               PNG_FILTER_AVG,  PNG_FILTER_PAETH, PNG_ALL_FILTERS};
    struct file file = {0};
    int color_type = kinds[image->kind].color_type;
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, on_error, on_error);
    png_infop info = png_create_info_struct(png);
    png_set_write_fn(png, &file, on_write, on_flush);
    png_set_filter(png, PNG_FILTER_TYPE_BASE, filters[image->filter]);
    png_set_IHDR(png, info, (png_uint_32)image->width, (png_uint_32)image->height, kinds[image->kind].bits, color_type,
                 image->interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_BASE,
                 PNG_FILTER_TYPE_BASE);
    if (color_type == PNG_COLOR_TYPE_PALETTE)
        set_palette(png, info, image);
    else if (image->transparent && !(color_type & PNG_COLOR_MASK_ALPHA))
        set_transparent(png, info, image);
    if (image->described)
        describe(png, info);
    png_write_info_before_PLTE(png, info);
    if (image->described)
        write_profile(png);
    png_write_info(png, info);
    write_image(png, info, image);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    *length = file.length;
    return file.bytes;
}

/* ---- what must come out ---- */

uint8_t *pngfx_rgb(const struct pngfx_image *image)
{
    uint8_t *rgb = malloc((size_t)image->width * (size_t)image->height * 3), *to = rgb;
    unsigned most = (1u << kinds[image->kind].bits) - 1;
    for (int y = 0; y < image->height; y++)
        for (int x = 0; x < image->width; x++)
            for (int c = 0; c < 3; c++) {
                int channel = kinds[image->kind].channels >= 3 ? c : 0;
                unsigned v = value(image, x, y, channel);
                bool indexed = kinds[image->kind].color_type == PNG_COLOR_TYPE_PALETTE;
                *to++ = indexed ? palette_value(image, v, c) : (uint8_t)(v * 255 / most);
            }
    return rgb;
}

uint16_t *pngfx_values(const struct pngfx_image *image)
{
    uint16_t *values = malloc((size_t)image->width * (size_t)image->height * sizeof *values), *to = values;
    for (int y = 0; y < image->height; y++)
        for (int x = 0; x < image->width; x++)
            *to++ = (uint16_t)value(image, x, y, 0);
    return values;
}

uint8_t *pngfx_library_rgb(const uint8_t *bytes, size_t length, int *width, int *height)
{
    png_image image = {.version = PNG_IMAGE_VERSION};
    if (!png_image_begin_read_from_memory(&image, bytes, length))
        abort();
    image.format = PNG_FORMAT_RGB;
    uint8_t *rgb = malloc(PNG_IMAGE_SIZE(image));
    if (!png_image_finish_read(&image, NULL, rgb, 0, NULL))
        abort();
    *width = (int)image.width;
    *height = (int)image.height;
    return rgb;
}

/* ---- damage ---- */

static uint32_t crc32_of(const uint8_t *bytes, size_t length)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < length; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
    }
    return ~crc;
}

void pngfx_mend(uint8_t *bytes, size_t length)
{
    for (size_t at = 8; at + 12 <= length;) {
        size_t n = png_get_uint_32(bytes + at);
        if (n > length - at - 12)
            return;
        png_save_uint_32(bytes + at + 8 + n, crc32_of(bytes + at + 4, 4 + n));
        at += 12 + n;
    }
}

size_t pngfx_chunk(const uint8_t *bytes, size_t length, const char *type)
{
    size_t at = 8;
    while (at + 12 <= length && memcmp(bytes + at + 4, type, 4) != 0)
        at += 12 + (size_t)png_get_uint_32(bytes + at);
    if (at + 12 > length)
        abort();
    return at;
}
