/* jpeg_fast.h: does in libjpeg-turbo's place what it spends its time on, for baseline JPEGs of one scan: Huffman
 * decoding (jpeg_huffman.h, jpeg_scan_x86.c), the inverse DCT (jpeg_idct_x86.c), and for 4:4:4, 4:2:2 and 4:2:0 the
 * interpolation of chroma and the conversion of colours (jpeg_color_x86.c). Pixels are the same bit for bit.
 *
 * libjpeg-turbo has its modules behind structs of functions (jpegint.h): between jpeg_start_decompress and the first
 * row weir_jpeg_fast_begin puts its own entropy decoder, loop over the blocks and loop over the rows there. Whatever is
 * odd in the data ends the decoding by the library's error_exit, and the caller decodes the frame again without: what
 * is wrong with it, and what is to be made of it, is only ever the library's to say. */
#ifndef WEIR_DECODERS_JPEG_FAST_H
#define WEIR_DECODERS_JPEG_FAST_H

#include <stdbool.h>
#include <stddef.h>

struct jpeg_decompress_struct;
struct weir_jpeg_fast; /* one thread's */

/* NULL when it is used: on x86-64 with AVX2 and BMI2, beside the libjpeg-turbo that it was built for, once it has
 * decoded a small JPEG in both ways to the same pixels. Else why not. */
const char *weir_jpeg_fast_why_not(void);

/* NULL when this build and this CPU allow it; else what is missing. */
const char *weir_jpeg_fast_lacks(void);

/* NULL when there is no memory. */
struct weir_jpeg_fast *weir_jpeg_fast_open(void);
void weir_jpeg_fast_close(struct weir_jpeg_fast *fast);

enum weir_jpeg_rows {
    WEIR_JPEG_ORIGINAL,    /* nothing was replaced */
    WEIR_JPEG_INTERLEAVED, /* rows are made by it */
    WEIR_JPEG_PLANES       /* and a row is output_width values of its first channel, then of the second and the third */
};

/* What becomes of the rows. */
struct weir_jpeg_output {
    bool planes; /* they may be WEIR_JPEG_PLANES */
    /* Where such become f32, three planes of the image's size: this memory is fetched while they are decoded. Else
     * NULL.
     */
    const float *f32;
};

/* After jpeg_start_decompress and jpeg_crop_scanline, before a row is read or skipped. The data source must be
 * jpeg_mem_src; fast must outlive the rows. */
enum weir_jpeg_rows weir_jpeg_fast_begin(struct weir_jpeg_fast *fast, struct jpeg_decompress_struct *jpeg,
                                         const struct weir_jpeg_output *output);

#endif
