/* null: leaves its output buffers unchanged, to measure the rest of the pipeline. raw: frames stored as height x width
 * x 3 bytes or as u16 depth. Colours are assumed to be RGB, and are swapped if BGR is requested. */
#include "decoders/decoder_ops.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Converts little-endian values to native order; `to` may be equal to bytes. On a little-endian CPU, the conversion
 * compiles to nothing. */
static void copy_depth(uint16_t *to, const uint8_t *bytes, size_t length)
{
    if ((const uint8_t *)to != bytes)
        memcpy(to, bytes, length);
    for (size_t i = 0; i < length / sizeof *to; i++)
        to[i] = le16toh(to[i]);
}

static int decode_raw(void *self, const struct weir_frame *frame, struct weir_rows *rows, char *reason)
{
    (void)self;
    bool depth = weir_frame_is_depth(frame->kind);
    size_t pixel_bytes = depth ? sizeof(uint16_t) : 3, row_bytes = (size_t)frame->width * pixel_bytes;
    if (frame->length != row_bytes * (size_t)frame->height) {
        snprintf(reason, WEIR_REASON_MAX, "the frame has %zu bytes, which is not %dx%d pixels of %zu bytes each",
                 frame->length, frame->width, frame->height, pixel_bytes);
        return -EBADMSG;
    }
    if (depth) {
        copy_depth(rows->target, frame->bytes, frame->length);
        return 0;
    }
    if (frame->bytes == rows->image)
        return 0; /* the frame was read directly into its destination */
    weir_rows_put(rows, frame->bytes, row_bytes);
    return 0;
}

const struct weir_decoder_ops weir_decoder_raw = {
    .name = "raw",
    .summary = "uncompressed frames, copied or read directly",
    .kinds = WEIR_KIND(WEIR_FRAME_RAW) | WEIR_KIND(WEIR_FRAME_RAW16),
    .as_stored = true,
    .decode = decode_raw,
};

static int decode_nothing(void *self, const struct weir_frame *frame, struct weir_rows *rows, char *reason)
{
    (void)self;
    (void)frame;
    (void)rows;
    (void)reason;
    return 0;
}

const struct weir_decoder_ops weir_decoder_null = {
    .name = "null",
    .summary = "no decoding, to measure the rest of the pipeline",
    .selectable = true,
    .no_pixels = true,
    .decode = decode_nothing,
};
