/* jpeg_color_priv.h: converts rows of YCbCr samples to rows of pixels in one pass, bit for bit like libjpeg-turbo:
 * "fancy" chroma upsampling (jdsample.c) and colour conversion (jdcolor.c). Does not use libjpeg. */
#ifndef WEIR_DECODERS_JPEG_COLOR_PRIV_H
#define WEIR_DECODERS_JPEG_COLOR_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Number of pixels per chroma sample. */
enum weir_jpeg_chroma { WEIR_JPEG_444, WEIR_JPEG_422, WEIR_JPEG_420 };

/* Margin of `sums` on either side, in values. Samples are read up to a multiple of 32; alloc_sarray of libjpeg-turbo's
 * jmemmgr.c pads rows to a multiple of 64. */
enum { WEIR_JPEG_ROW_SLACK = 64 };

struct weir_jpeg_row {
    enum weir_jpeg_chroma chroma;
    const uint8_t *luma;
    const uint8_t *near[2],
        *far[2]; /* Cb and Cr: near is the closest chroma row; with 4:2:0, far is the row on the other side */
    size_t width, chroma_width; /* of the pixel row; of near and far, at least 2 */
    uint16_t *sums[2];          /* chroma_width values plus WEIR_JPEG_ROW_SLACK on either side; unused for 4:4:4 */
    bool bgr, planes;           /* channel order; planes: width bytes of each channel, else interleaved */
    uint8_t *to;                /* 3 x width bytes */
};

#if defined(__x86_64__)
/* Requires AVX2. */
void weir_jpeg_color_row(const struct weir_jpeg_row *row);
#endif

#endif
