/* frame_end.h: finds where an encoded image ends in a row that is longer than it (rows padded with zeros, strings of
 * fixed size). It walks the structure, as a decoder would, and does not look for the last bytes: the thumbnail in a
 * JPEG's EXIF data ends in the same ones, and a comment may hold anything. */
#ifndef WEIR_DECODERS_FRAME_END_H
#define WEIR_DECODERS_FRAME_END_H

#include <stddef.h>
#include <stdint.h>

/* Bytes from the start to behind the end of the encoded image that begins at bytes: a JPEG (end-of-image marker), a PNG
 * (IEND), or of another codec that has a function for it (decoder_ops.h). 0 when it does not end within length
 * bytes, is damaged in its structure, or is of no codec that is known. What a decoder makes of the image does not
 * depend on what follows that end. No allocation, any thread. */
size_t weir_frame_end(const uint8_t *bytes, size_t length);

#endif
