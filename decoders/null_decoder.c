/* null: leaves its output buffers unchanged, to measure the rest of the pipeline. */
#include "decoders/decoder_ops.h"

static int decode(void *self, const struct weir_frame *frame, struct weir_rows *rows, char *reason)
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
    .decode = decode,
};
