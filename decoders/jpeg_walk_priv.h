/* jpeg_walk_priv.h: markers and segments of a JPEG (ITU-T T.81, annex B), for those who walk over it without a codec.
 * Bytes are hostile: nothing outside bytes[0 .. length - 1] is read. */
#ifndef WEIR_DECODERS_JPEG_WALK_PRIV_H
#define WEIR_DECODERS_JPEG_WALK_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MARKER_SOF0 = 0xC0,
    MARKER_DHT = 0xC4,
    MARKER_JPG = 0xC8, /* reserved */
    MARKER_DAC = 0xCC, /* of arithmetic coding */
    MARKER_SOF15 = 0xCF,
    MARKER_RST0 = 0xD0,
    MARKER_RST7 = 0xD7,
    MARKER_SOI = 0xD8,
    MARKER_EOI = 0xD9,
    MARKER_SOS = 0xDA,
    MARKER_DQT = 0xDB,
    MARKER_DRI = 0xDD,
    MARKER_APP0 = 0xE0,
    MARKER_APP14 = 0xEE,
    MARKER_APP15 = 0xEF,
    MARKER_COM = 0xFE,
};

/* The body of a segment, without its length. */
struct weir_jpeg_segment {
    uint8_t marker;
    const uint8_t *body;
    size_t length;
};

static inline int weir_jpeg_u16(const uint8_t *bytes)
{
    return bytes[0] << 8 | bytes[1];
}

/* The next segment that has a length, fill bytes before it passed over; false, with *at as it was, when there is none.
 */
bool weir_jpeg_next_segment(const uint8_t *bytes, size_t length, size_t *at, struct weir_jpeg_segment *segment);

/* In coded data: where the next 0xFF is that is not stuffed; length when there is none with a byte behind it. */
size_t weir_jpeg_find_marker(const uint8_t *bytes, size_t at, size_t length);

/* The bytes begin as a JPEG does. */
bool weir_jpeg_begins(const uint8_t *bytes, size_t length);
/* Of bytes that do: to behind the end-of-image marker; 0 when there is none where it belongs. */
size_t weir_jpeg_end(const uint8_t *bytes, size_t length);

#endif
