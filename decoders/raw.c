/* raw: frames stored as height x width x 3 bytes, or as u16 of depth. Colours are taken to be RGB; BGR swaps them. */
#include "decoders/decoder_ops.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static void copy_row(uint8_t *restrict dst, const uint8_t *restrict src, size_t width, enum weir_color color)
{
    if (color == WEIR_COLOR_RGB) {
        memcpy(dst, src, width * 3);
        return;
    }
    for (size_t x = 0; x < width; x++) {
        dst[3 * x] = src[3 * x + 2];
        dst[3 * x + 1] = src[3 * x + 1];
        dst[3 * x + 2] = src[3 * x];
    }
}

/* Swapping is no work on little-endian machines: nothing is left of the loop. */
static void copy_depth(uint16_t *to, const uint8_t *bytes, size_t length)
{
    if ((const uint8_t *)to != bytes)
        memcpy(to, bytes, length);
    for (size_t i = 0; i < length / sizeof *to; i++)
        to[i] = le16toh(to[i]);
}

static int decode(void *self, const struct weir_frame *frame, struct weir_rows *rows, char *reason)
{
    (void)self;
    bool depth = weir_codec_is_depth(frame->codec);
    size_t pixel_bytes = depth ? sizeof(uint16_t) : 3, row_bytes = (size_t)frame->width * pixel_bytes;
    if (frame->length != row_bytes * (size_t)frame->height) {
        snprintf(reason, WEIR_REASON_MAX, "%zu bytes are not %dx%d pixels of %zu bytes", frame->length, frame->width,
                 frame->height, pixel_bytes);
        return -EBADMSG;
    }
    if (depth) {
        copy_depth(rows->target, frame->bytes, frame->length);
        return 0;
    }
    if (frame->bytes == rows->image)
        return 0; /* was read into place */
    size_t skip = (size_t)rows->first_column * 3, columns = (size_t)(rows->end_column - rows->first_column);
    for (int y = rows->first_row; y < rows->end_row; y += WEIR_BAND_ROWS) {
        int n = weir_rows_in_band(rows, y);
        for (int row = 0; row < n; row++)
            copy_row(weir_rows_at(rows, y) + (size_t)row * rows->stride,
                     frame->bytes + (size_t)(y + row) * row_bytes + skip, columns, rows->color);
        weir_rows_done(rows, y, n);
    }
    return 0;
}

const struct weir_decoder_ops weir_decoder_raw = {
    .name = "raw",
    .summary = "uncompressed frames, copied or read into place",
    .kinds = WEIR_KIND(WEIR_CODEC_RAW) | WEIR_KIND(WEIR_CODEC_RAW16),
    .as_stored = true,
    .decode = decode,
};
