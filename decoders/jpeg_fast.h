/* jpeg_fast.h: replaces the expensive parts of libjpeg-turbo for baseline JPEGs with a single scan: Huffman decoding
 * (jpeg_huffman.c, jpeg_scan_x86.c), the inverse DCT (jpeg_idct_x86.c), and for 4:4:4, 4:2:2 and 4:2:0 also chroma
 * upsampling and colour conversion (jpeg_color_rows.h). The pixels are bit-exact with libjpeg-turbo's.
 *
 * libjpeg-turbo calls its modules through structs of function pointers (jpegint.h). weir_jpeg_fast_begin, called
 * between jpeg_start_decompress and the first row, installs a different entropy decoder, block loop and row loop. If
 * the data is irregular, decoding ends through libjpeg's error_exit and the caller decodes the frame again without the
 * fast path. libjpeg-turbo alone therefore decides how damaged frames are handled. */
#ifndef WEIR_DECODERS_JPEG_FAST_H
#define WEIR_DECODERS_JPEG_FAST_H

#include <stdbool.h>
#include <stddef.h>

struct jpeg_decompress_struct;
struct weir_jpeg_fast; /* one per thread */

/* Returns NULL if the fast path is used, otherwise the reason why not. The fast path requires x86-64 with AVX2, BMI and
 * BMI2, the libjpeg-turbo version that Weir was built with, and equal pixels when a small sample JPEG is decoded with
 * and without it. */
const char *weir_jpeg_fast_why_not(void);

/* Returns NULL if this build and the CPU support the fast path, otherwise the missing requirement. */
const char *weir_jpeg_fast_lacks(void);

/* Returns NULL when out of memory. */
struct weir_jpeg_fast *weir_jpeg_fast_open(void);
void weir_jpeg_fast_close(struct weir_jpeg_fast *fast);

enum weir_jpeg_rows {
    WEIR_JPEG_ORIGINAL,    /* libjpeg-turbo is unchanged */
    WEIR_JPEG_INTERLEAVED, /* the fast path outputs interleaved rows */
    WEIR_JPEG_PLANES       /* the fast path outputs planar rows: output_width values of each channel in turn */
};

/* Destination of the decoded rows. */
struct weir_jpeg_output {
    bool planes;     /* the caller accepts WEIR_JPEG_PLANES */
    bool skips_rows; /* the caller skips rows before the first one that it reads */
    /* The final image, which is prefetched during decoding, if it consists of three f32 planes of the JPEG's size;
     * otherwise NULL. */
    const float *f32;
};

/* Call after jpeg_start_decompress and jpeg_crop_scanline, but before reading or skipping rows. The data source must be
 * jpeg_mem_src. fast must stay valid until the last row has been read. */
enum weir_jpeg_rows weir_jpeg_fast_begin(struct weir_jpeg_fast *fast, struct jpeg_decompress_struct *jpeg,
                                         const struct weir_jpeg_output *output);

#endif
