/* jpeg_write.h: RGB rows -> JPEG, as OpenCV's imencode writes them: baseline, 4:2:0, standard Huffman tables. The bytes
 * are the same for every SIMD level (the slow integer DCT is used). */
#ifndef WEIR_DATASETS_SYNTH_JPEG_WRITE_H
#define WEIR_DATASETS_SYNTH_JPEG_WRITE_H

#include <stddef.h>
#include <stdint.h>

/* Grows as needed; start from {0}; free data when done. */
struct weir_bytes {
    uint8_t *data;
    size_t size, capacity;
};

/* rgb: height rows of width * 3 bytes; width and height at most 65500; quality 1..100. Replaces what out held. Returns
 * 0, -ENOMEM, or -EINVAL when the library refuses. Threads may encode at the same time, each into its own out. */
int weir_jpeg_write(const uint8_t *rgb, int width, int height, int quality, struct weir_bytes *out);

#endif
