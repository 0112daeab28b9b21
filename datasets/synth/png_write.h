/* png_write.h: rows -> PNG, 16-bit grey as OpenCV's imencode writes depth images, or RGB: fast compression, "sub"
 * filter. */
#ifndef WEIR_DATASETS_SYNTH_PNG_WRITE_H
#define WEIR_DATASETS_SYNTH_PNG_WRITE_H

#include "datasets/synth/jpeg_write.h"

/* grey: height rows of width values. Replaces what out held. Returns 0, -ENOMEM or -EINVAL. Threads may encode at the
 * same time, each into its own out. */
int weir_png_write_grey16(const uint16_t *grey, int width, int height, struct weir_bytes *out);
/* rgb: height rows of width * 3 bytes. */
int weir_png_write_rgb8(const uint8_t *rgb, int width, int height, struct weir_bytes *out);

#endif
