/* jpeg_color_priv.h: rows of pixels out of rows of YCbCr samples, chroma interpolated between its samples as
 * libjpeg-turbo does ("fancy upsampling", jdsample.c) and converted as it does (jdcolor.c), bit for bit, in one pass.
 * Without libjpeg. */
#ifndef WEIR_DECODERS_JPEG_COLOR_PRIV_H
#define WEIR_DECODERS_JPEG_COLOR_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many pixels a sample of chroma is for. */
enum weir_jpeg_chroma { WEIR_JPEG_444, WEIR_JPEG_422, WEIR_JPEG_420 };

/* Values of sums on either side. Samples are read up to a multiple of 32: alloc_sarray of libjpeg-turbo's jmemmgr.c
 * makes rows of a multiple of 64. */
enum { WEIR_JPEG_ROW_SLACK = 64 };

struct weir_jpeg_row {
    enum weir_jpeg_chroma chroma;
    const uint8_t *luma;
    const uint8_t *near[2],
        *far[2];                /* Cb and Cr: the row that is nearest; with 4:2:0 the other one beside the pixels */
    size_t width, chroma_width; /* of the row of pixels; of near and far, at least 2 */
    uint16_t *sums[2];          /* for chroma_width values, with WEIR_JPEG_ROW_SLACK on either side; not 4:4:4 */
    bool bgr, planes;           /* channels in this order; width bytes of each, else interleaved */
    uint8_t *to;                /* 3 x width bytes */
};

#if defined(__x86_64__)
/* With AVX2. */
void weir_jpeg_color_row(const struct weir_jpeg_row *row);
#endif

#endif
