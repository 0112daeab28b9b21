/* jpeg_fast.h: does in libjpeg-turbo's place what it spends most of its time on, for baseline JPEGs of one scan:
 * Huffman decoding, and the inverse DCT of blocks with few coefficients. Pixels are the same bit for bit.
 *
 * libjpeg-turbo has its modules behind structs of functions (jpegint.h): between jpeg_start_decompress and the first
 * row weir_jpeg_fast_begin puts its own entropy decoder and its own loop over the blocks there. Whatever is odd in the
 * data ends the decoding by the library's error_exit, and the caller decodes the frame again without: what is wrong
 * with it, and what is to be made of it, is only ever the library's to say. */
#ifndef WEIR_DECODERS_JPEG_FAST_H
#define WEIR_DECODERS_JPEG_FAST_H

#include <stdbool.h>
#include <stddef.h>

struct jpeg_decompress_struct;
struct weir_jpeg_fast; /* one thread's */

/* NULL when it is used: on x86-64 with AVX2 and BMI2, beside the libjpeg-turbo that it was built for, once it has
 * decoded a small JPEG in both ways to the same pixels. Else why not. */
const char *weir_jpeg_fast_why_not(void);

/* NULL when there is no memory. */
struct weir_jpeg_fast *weir_jpeg_fast_open(void);
void weir_jpeg_fast_close(struct weir_jpeg_fast *fast);

/* After jpeg_start_decompress and jpeg_crop_scanline, before a row is read or skipped. The data source must be
 * jpeg_mem_src. True: rows are made by it, and weir_jpeg_fast_open's struct must outlive them. False: nothing was
 * replaced. */
bool weir_jpeg_fast_begin(struct weir_jpeg_fast *fast, struct jpeg_decompress_struct *jpeg);

#endif
