/* frame_end.h: where an encoded image ends in a row of bytes that is longer than it: rows padded with zeros, strings of
 * fixed size. Found by its structure, as a decoder would meet it, not by looking for its last bytes: the thumbnail in a
 * JPEG's EXIF data has an end of its own, and a comment may hold anything. */
#ifndef WEIR_DECODERS_FRAME_END_H
#define WEIR_DECODERS_FRAME_END_H

#include <stddef.h>
#include <stdint.h>

/* Bytes from the start to behind the end of the encoded image that begins at bytes: a JPEG (end-of-image marker), a PNG
 * (IEND), or of another codec that says where its images end (decoder_ops.h). 0 when it does not end within length
 * bytes, is damaged in its structure, or is of no codec that is known. What a decoder makes of the image does not
 * depend on what follows that end. No allocation, any thread. */
size_t weir_frame_end(const uint8_t *bytes, size_t length);

#endif
