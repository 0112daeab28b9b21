/* annexb.h: the NAL units of H.264 and HEVC, and their form for hardware. An mp4 file states the length of each NAL
 * unit and keeps the parameter sets apart (ISO/IEC 14496-15); a byte stream (Annex B of both standards) starts each
 * unit with 0 0 0 1.
 *
 * The first two functions append to `to`, which has room for `capacity` bytes, and return the number of bytes appended,
 * or 0 if the input is damaged or has none. At most four times the input's bytes, and four, are appended. */
#ifndef WEIR_DECODERS_VIDEO_ANNEXB_H
#define WEIR_DECODERS_VIDEO_ANNEXB_H

#include "decoders/video/video.h"

/* Appends the parameter sets of an avcC or hvcC box. */
size_t weir_annexb_config(const struct weir_video_format *format, uint8_t *to, size_t capacity);
/* Appends the units of a packet. A packet that is not exactly one picture counts as damaged. */
size_t weir_annexb_packet(const struct weir_video_format *format, const struct weir_packet *packet, uint8_t *to,
                          size_t capacity);

/* Returns false if a group of H.264 pictures starts with another picture than an IDR picture: later pictures of the
 * group can then refer to pictures before it. True for HEVC, and for a damaged packet. */
bool weir_annexb_is_closed(const struct weir_video_format *format, const struct weir_packet *first);

/* Largest size of the result for so many bytes of input: each unit has at least one byte of length. */
static inline size_t weir_annexb_bytes(size_t input)
{
    return 4 * input + 4;
}

#endif
