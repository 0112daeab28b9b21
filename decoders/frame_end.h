/* frame_end.h: finds the end of an encoded image in a longer row (padded rows, fixed-size strings). It walks the
 * image's structure as a decoder would, instead of searching for the end marker: an EXIF thumbnail ends with the same
 * bytes, and a comment may contain anything. */
#ifndef WEIR_DECODERS_FRAME_END_H
#define WEIR_DECODERS_FRAME_END_H

#include <stddef.h>
#include <stdint.h>

/* Returns the size of the encoded image that starts at bytes: a JPEG (to its end-of-image marker), a PNG (to IEND), or
 * an image of another codec with an end function (decoder_ops.h). Returns 0 when it does not end within length bytes,
 * its structure is damaged, or the codec is unknown. Bytes past that end do not affect decoding. Allocates nothing; any
 * thread. */
size_t weir_frame_end(const uint8_t *bytes, size_t length);

#endif
