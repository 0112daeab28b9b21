/* jpeg_fast.h: replaces the expensive parts of libjpeg-turbo for baseline JPEGs with one scan: Huffman decoding
 * (jpeg_huffman.c, jpeg_scan_x86.c), the inverse DCT (jpeg_idct_x86.c), and for 4:4:4, 4:2:2 and 4:2:0 chroma
 * interpolation and colour conversion (jpeg_color_x86.c). Pixels are equal bit for bit.
 *
 * libjpeg-turbo calls its modules through structs of functions (jpegint.h). Between jpeg_start_decompress and the first
 * row, weir_jpeg_fast_begin installs its own entropy decoder, block loop and row loop. Any irregularity in the data
 * ends decoding through libjpeg's error_exit, and the caller decodes the frame again without the fast path, so that
 * libjpeg-turbo alone decides about damaged frames. */
#ifndef WEIR_DECODERS_JPEG_FAST_H
#define WEIR_DECODERS_JPEG_FAST_H

#include <stdbool.h>
#include <stddef.h>

struct jpeg_decompress_struct;
struct weir_jpeg_fast; /* per thread */

/* Returns NULL when the fast path is used: on x86-64 with AVX2 and BMI2, with the libjpeg-turbo version it was built
 * for, once a small JPEG decoded both ways gave equal pixels. Otherwise the reason. */
const char *weir_jpeg_fast_why_not(void);

/* Returns NULL when this build and CPU support it, else what is missing. */
const char *weir_jpeg_fast_lacks(void);

/* Returns NULL when out of memory. */
struct weir_jpeg_fast *weir_jpeg_fast_open(void);
void weir_jpeg_fast_close(struct weir_jpeg_fast *fast);

enum weir_jpeg_rows {
    WEIR_JPEG_ORIGINAL,    /* nothing replaced */
    WEIR_JPEG_INTERLEAVED, /* rows are output by the fast path */
    WEIR_JPEG_PLANES /* likewise; each row has output_width values of the first channel, then of the second and third */
};

/* Destination of the rows. */
struct weir_jpeg_output {
    bool planes; /* accepts WEIR_JPEG_PLANES */
    /* Destination when the planes become three planes of f32 of the image's size: prefetched during decoding. Else
     * NULL. */
    const float *f32;
};

/* Call after jpeg_start_decompress and jpeg_crop_scanline, before reading or skipping a row. The data source must be
 * jpeg_mem_src; fast must outlive the rows. */
enum weir_jpeg_rows weir_jpeg_fast_begin(struct weir_jpeg_fast *fast, struct jpeg_decompress_struct *jpeg,
                                         const struct weir_jpeg_output *output);

#endif
