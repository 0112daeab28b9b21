/* jpeg_walk_priv.h: markers and segments of a JPEG (ITU-T T.81, annex B), for walking over it without a codec. The
 * bytes are untrusted: nothing outside bytes[0 .. length - 1] is read. */
#ifndef WEIR_DECODERS_JPEG_WALK_PRIV_H
#define WEIR_DECODERS_JPEG_WALK_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MARKER_SOF0 = 0xC0,
    MARKER_DHT = 0xC4,
    MARKER_JPG = 0xC8, /* reserved */
    MARKER_DAC = 0xCC, /* arithmetic coding */
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

/* Body of a segment, without its length field. */
struct weir_jpeg_segment {
    uint8_t marker;
    const uint8_t *body;
    size_t length;
};

static inline int weir_jpeg_u16(const uint8_t *bytes)
{
    return bytes[0] << 8 | bytes[1];
}

/* Finds the next segment with a length field, skipping fill bytes; returns false and leaves *at unchanged if there is
 * none. */
bool weir_jpeg_next_segment(const uint8_t *bytes, size_t length, size_t *at, struct weir_jpeg_segment *segment);

/* In coded data: position of the next 0xFF that is not stuffed; length if none is followed by another byte. */
size_t weir_jpeg_find_marker(const uint8_t *bytes, size_t at, size_t length);

/* For a JPEG: its size including the end-of-image marker; 0 if that is missing. */
size_t weir_jpeg_end(const uint8_t *bytes, size_t length);

#endif
