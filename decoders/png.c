/* png: libpng. Depth is decoded directly into its destination; colour is decoded in bands of rows, like JPEGs. The
 * header is checked here first, because libpng allocates memory for the image size that the header declares. libpng
 * therefore only receives images of the planned size and kind. */
#include "decoders/decoder_ops.h"

#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

enum { SIGNATURE_BYTES = 8, CHUNK_BYTES = 12 /* length, type, CRC */, IHDR_BYTES = 13 };
enum { HEADER_BYTES = SIGNATURE_BYTES + CHUNK_BYTES + IHDR_BYTES };
enum { INFLATE_MAX = 1032 }; /* maximum number of bytes that one byte of deflate data can expand to */
enum { SIDE_MAX = 65535 };   /* same limit as for JPEG, so that sizes in bytes cannot overflow */

struct header {
    uint32_t width, height;
    int bit_depth, color_type;
    bool interlaced;
};

struct png {
    png_structp read; /* created for each image, because libpng cannot reuse it */
    png_infop info;
    jmp_buf escape;
    const uint8_t *bytes;
    size_t length, at;
    struct weir_whole_image whole; /* buffer for an interlaced image, before conversion */
    int code;                      /* return code after a failure: -EBADMSG, or -ENOMEM if an allocation failed */
    char message[WEIR_REASON_MAX];
};

/* ---- the header ---- */

/* The colour types of the PNG standard. Bit n of bit_depths is set if n bits per sample are valid. */
static const struct {
    const char *name;
    int components;
    uint32_t bit_depths;
} kinds[] = {
    [PNG_COLOR_TYPE_GRAY] = {"grayscale", 1, 1u << 1 | 1u << 2 | 1u << 4 | 1u << 8 | 1u << 16},
    [PNG_COLOR_TYPE_RGB] = {"RGB", 3, 1u << 8 | 1u << 16},
    [PNG_COLOR_TYPE_PALETTE] = {"palette", 3, 1u << 1 | 1u << 2 | 1u << 4 | 1u << 8},
    [PNG_COLOR_TYPE_GRAY_ALPHA] = {"grayscale-alpha", 2, 1u << 8 | 1u << 16},
    [PNG_COLOR_TYPE_RGB_ALPHA] = {"RGBA", 4, 1u << 8 | 1u << 16},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* Returns the offset after the IEND chunk, or 0 if none exists. */
static size_t end(const uint8_t *bytes, size_t length)
{
    for (size_t at = SIGNATURE_BYTES; length - at >= CHUNK_BYTES;) {
        const uint8_t *chunk = bytes + at;
        size_t data = png_get_uint_32(chunk);
        if (data > length - at - CHUNK_BYTES)
            return 0;
        at += CHUNK_BYTES + data;
        if (memcmp(chunk + 4, "IEND", 4) == 0)
            return at;
    }
    return 0;
}

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

static int read_header(const uint8_t *bytes, size_t length, struct header *header, char *reason)
{
    static const uint8_t start[] = {0, 0, 0, IHDR_BYTES, 'I', 'H', 'D', 'R'};
    if (weir_frame_kind_of(bytes, length) != WEIR_FRAME_PNG)
        return weir_frame_refuse(reason, "Not a PNG file");
    if (length < HEADER_BYTES)
        return weir_frame_refuse(reason, "Premature end of PNG file");
    if (memcmp(bytes + SIGNATURE_BYTES, start, sizeof start) != 0)
        return weir_frame_refuse(reason, "the PNG does not start with a header");
    const uint8_t *ihdr = bytes + SIGNATURE_BYTES + sizeof start;
    if (crc32_of(ihdr - 4, 4 + IHDR_BYTES) != png_get_uint_32(ihdr + IHDR_BYTES))
        return weir_frame_refuse(reason, "IHDR: CRC error");
    *header = (struct header){png_get_uint_32(ihdr), png_get_uint_32(ihdr + 4), ihdr[8], ihdr[9], ihdr[12] == 1};
    if (header->color_type >= KINDS || header->bit_depth > 16 ||
        !(kinds[header->color_type].bit_depths >> header->bit_depth & 1))
        return weir_frame_refuse(reason, "the PNG header has an invalid colour type or bit depth");
    if (ihdr[10] != 0 || ihdr[11] != 0 || ihdr[12] > 1)
        return weir_frame_refuse(reason, "the PNG header has an unknown compression, filter or interlace method");
    if (header->width - 1 < SIDE_MAX && header->height - 1 < SIDE_MAX)
        return 0;
    snprintf(reason, WEIR_REASON_MAX, "the PNG has an invalid size of %ux%u pixels", header->width, header->height);
    return -EBADMSG;
}

static int check_kind(const struct header *header, enum weir_frame_kind kind, char *reason)
{
    bool depth = weir_frame_is_depth(kind);
    if (depth ? header->color_type == PNG_COLOR_TYPE_GRAY && header->bit_depth >= 8 : header->bit_depth <= 8)
        return 0;
    snprintf(reason, WEIR_REASON_MAX, "the PNG has %s pixels of %d bits per value; %s", kinds[header->color_type].name,
             header->bit_depth,
             depth ? "depth must be 16-bit or 8-bit grayscale" : "colour can have at most 8 bits per value");
    return -EBADMSG;
}

static int probe(void *self, enum weir_frame_kind kind, const uint8_t *bytes, size_t length,
                 struct weir_image_info *info, char *reason)
{
    (void)self;
    struct header header;
    int rc = read_header(bytes, length, &header, reason);
    if (rc == 0)
        rc = check_kind(&header, kind, reason);
    if (rc < 0)
        return rc;
    info->width = (int)header.width;
    info->height = (int)header.height;
    info->components = kinds[header.color_type].components;
    info->bit_depth = header.color_type == PNG_COLOR_TYPE_PALETTE ? 8 : header.bit_depth;
    info->kind = WEIR_FRAME_PNG;
    int values = header.color_type == PNG_COLOR_TYPE_PALETTE ? 1 : info->components;
    uint64_t row = ((uint64_t)header.width * (uint64_t)values * header.bit_depth + 7) / 8 + 1;
    return row * header.height / INFLATE_MAX <= length ? 0 : weir_probe_refuses(info, length, reason);
}

/* ---- callbacks for libpng ---- */

/* Handles errors and warnings alike: after a warning libpng would continue and output pixels, although the data is
 * corrupt. */
static void on_error(png_structp read, png_const_charp text)
{
    struct png *png = png_get_error_ptr(read);
    snprintf(png->message, sizeof png->message, "%s", text);
    longjmp(png->escape, 1);
}

static png_voidp on_malloc(png_structp read, png_alloc_size_t bytes)
{
    struct png *png = png_get_mem_ptr(read);
    void *memory = malloc(bytes);
    if (!memory)
        png->code = -ENOMEM;
    return memory;
}

static void on_read(png_structp read, png_bytep to, size_t n)
{
    struct png *png = png_get_io_ptr(read);
    if (n > png->length - png->at)
        png_error(read, "Premature end of PNG file");
    memcpy(to, png->bytes + png->at, n);
    png->at += n;
}

/* ---- decoding ---- */

static int png_open(void **self)
{
    *self = calloc(1, sizeof(struct png));
    return *self ? 0 : -ENOMEM;
}

static void png_close(void *self)
{
    struct png *png = self;
    free(png->whole.pixels);
    free(png);
}

static int fail(struct png *png, char *reason)
{
    png_destroy_read_struct(&png->read, &png->info, NULL);
    snprintf(reason, WEIR_REASON_MAX, "%s", png->code == -ENOMEM ? "out of memory during decoding" : png->message);
    return png->code;
}

/* Creates the libpng structs and reads the header. Ancillary chunks such as colour profiles, text and time are skipped,
 * because they do not change the stored values. Skipped chunks use no memory, and common mistakes in them (such as an
 * RGB profile in a gray image) do not make the frame fail. */
static void begin_image(struct png *png, const struct weir_frame *frame)
{
    png->bytes = frame->bytes;
    png->length = frame->length;
    png->at = 0;
    png->read = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, png, on_error, on_error, png, on_malloc, NULL);
    png->info = png->read ? png_create_info_struct(png->read) : NULL;
    if (!png->info) {
        snprintf(png->message, sizeof png->message, "out of memory");
        longjmp(png->escape, 1);
    }
    png_set_read_fn(png->read, png, on_read);
    png_set_user_limits(png->read, (png_uint_32)frame->width, (png_uint_32)frame->height);
    png_set_keep_unknown_chunks(png->read, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_read_info(png->read, png->info);
}

/* Makes libpng convert every colour type to three bytes per pixel in the requested channel order. */
static void ask_for_color(png_structp read, const struct header *header, enum weir_color color)
{
    if (header->color_type == PNG_COLOR_TYPE_PALETTE)
        png_set_palette_to_rgb(read);
    else if (header->bit_depth < 8)
        png_set_expand_gray_1_2_4_to_8(read);
    if (!(header->color_type & PNG_COLOR_MASK_COLOR))
        png_set_gray_to_rgb(read);
    png_set_strip_alpha(read);
    if (color == WEIR_COLOR_BGR)
        png_set_bgr(read);
}

static void read_rows(struct png *png, uint8_t *at, size_t stride, int n)
{
    for (int row = 0; row < n; row++)
        png_read_row(png->read, at + (size_t)row * stride, NULL);
}

/* Reads all passes of an image. In an interlaced image, each pass fills some pixels of every row. */
static void read_passes(struct png *png, const struct weir_rows *rows, int passes, uint8_t *image)
{
    for (int pass = 0; pass < passes; pass++)
        read_rows(png, image, rows->stride, rows->height);
}

/* Outputs the requested rows. PNG has no random access, so rows and columns before them are decoded as well. */
static void read_bands(struct png *png, struct weir_rows *rows, int passes)
{
    rows->first_column = 0;
    rows->end_column = rows->width;
    if (passes > 1)
        read_passes(png, rows, passes, png->whole.pixels);
    for (int y = 0; y < rows->first_row && passes == 1; y++)
        read_rows(png, rows->band, rows->stride, 1);
    for (int y = rows->first_row; y < rows->end_row; y += WEIR_BAND_ROWS) {
        int n = weir_rows_in_band(rows, y);
        if (passes > 1)
            rows->band = png->whole.pixels + (size_t)y * rows->stride;
        else
            read_rows(png, rows->band, rows->stride, n);
        weir_rows_done(rows, y, n);
    }
}

/* Converts a row to native u16. libpng outputs big-endian values for 16 bits. For 8 bits it outputs bytes in the first
 * half of the row, which are widened from the last byte backwards so that none is overwritten too early. */
static void finish_depth_row(uint16_t *row, size_t width, int bit_depth)
{
    const uint8_t *stored = (const uint8_t *)row;
    if (bit_depth == 16)
        for (size_t x = 0; x < width; x++)
            row[x] = be16toh(row[x]);
    else
        for (size_t x = width; x-- > 0;)
            row[x] = stored[x];
}

static void read_image(struct png *png, const struct header *header, bool depth, struct weir_rows *rows)
{
    size_t width = (size_t)rows->width;
    if (!depth)
        ask_for_color(png->read, header, rows->color);
    int passes = png_set_interlace_handling(png->read);
    png_read_update_info(png->read, png->info);
    if (png_get_rowbytes(png->read, png->info) != width * (depth ? (size_t)header->bit_depth / 8 : 3))
        png_error(png->read, "the row length does not match the header");
    if (rows->image)
        read_passes(png, rows, passes, rows->image);
    else
        read_bands(png, rows, passes);
    if (rows->end_row == rows->height || passes > 1)
        png_read_end(png->read, NULL);
    for (int y = 0; y < rows->height && depth; y++)
        finish_depth_row((uint16_t *)rows->target + (size_t)y * width, width, header->bit_depth);
}

static int decode(void *self, const struct weir_frame *frame, struct weir_rows *rows, char *reason)
{
    struct png *png = self;
    struct header header;
    int rc = read_header(frame->bytes, frame->length, &header, reason);
    if (rc == 0)
        rc = check_kind(&header, frame->kind, reason);
    if (rc == 0)
        rc = weir_check_frame_size(frame, header.width, header.height, reason);
    if (rc == 0 && header.interlaced && !rows->image)
        rc = weir_whole_image_grow(&png->whole, rows->stride * (size_t)rows->height, reason);
    if (rc < 0)
        return rc;
    png->code = -EBADMSG;
    if (setjmp(png->escape))
        return fail(png, reason);
    begin_image(png, frame);
    read_image(png, &header, weir_frame_is_depth(frame->kind), rows);
    png_destroy_read_struct(&png->read, &png->info, NULL);
    return 0;
}

const struct weir_decoder_ops weir_decoder_png = {
    .name = "png",
    .summary = "PNG with libpng: 16-bit depth, 8-bit colour",
    .kinds = WEIR_KIND(WEIR_FRAME_PNG) | WEIR_KIND(WEIR_FRAME_PNG16),
    .end = end,
    .open = png_open,
    .close = png_close,
    .decode = decode,
    .probe = probe,
};
