/* image_write.h: encodes images in the same way as OpenCV's imencode. Threads may encode simultaneously, each into its
 * own buffer. The functions replace the buffer's contents and return 0, -ENOMEM, or -EINVAL if the library refuses the
 * image. */
#ifndef WEIR_DATASETS_SYNTH_IMAGE_WRITE_H
#define WEIR_DATASETS_SYNTH_IMAGE_WRITE_H

#include <stddef.h>
#include <stdint.h>

/* A growing buffer. Initialise it with {0}; free data when done. */
struct weir_bytes {
    uint8_t *data;
    size_t size, capacity;
};

/* Encodes a JPEG: baseline, 4:2:0, standard Huffman tables, and the slow integer DCT, which gives the same bytes at
 * every SIMD level. rgb: height rows of width * 3 bytes; width and height at most 65500; quality 1..100; comment: NULL
 * = none. */
int weir_jpeg_write(const uint8_t *rgb, int width, int height, int quality, const char *comment,
                    struct weir_bytes *out);

/* Encode a PNG with fast compression and the "sub" filter, from 16-bit grey (height rows of width values) or from RGB.
 */
int weir_png_write_grey16(const uint16_t *grey, int width, int height, struct weir_bytes *out);
int weir_png_write_rgb8(const uint8_t *rgb, int width, int height, struct weir_bytes *out);

#endif
