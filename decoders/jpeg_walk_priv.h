/* jpeg_walk_priv.h: finds the markers and segments of a JPEG without decoding it (ITU-T T.81, annex B). The input is
 * untrusted, and no byte outside bytes[0 .. length - 1] is read. */
#ifndef WEIR_DECODERS_JPEG_WALK_PRIV_H
#define WEIR_DECODERS_JPEG_WALK_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MARKER_SOF0 = 0xC0,
    MARKER_DHT = 0xC4,
    MARKER_JPG = 0xC8, /* reserved for JPEG extensions */
    MARKER_DAC = 0xCC, /* arithmetic coding conditioning */
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

/* A marker segment. body and length exclude the marker and the length field. */
struct weir_jpeg_segment {
    uint8_t marker;
    const uint8_t *body;
    size_t length;
};

static inline int weir_jpeg_u16(const uint8_t *bytes)
{
    return bytes[0] << 8 | bytes[1];
}

/* Finds the marker segment at *at, skips fill bytes before it, and advances *at to its end. Returns false and leaves
 * *at unchanged if there is no complete segment with a length field. */
bool weir_jpeg_next_segment(const uint8_t *bytes, size_t length, size_t *at, struct weir_jpeg_segment *segment);

/* Returns the position of the next marker in entropy-coded data: an 0xFF byte that is not followed by a stuffed zero.
 * Returns length if none exists, or if it is the last byte. */
size_t weir_jpeg_find_marker(const uint8_t *bytes, size_t at, size_t length);

/* Whether entropy-coded data contains a long run of zero bytes. Such data is almost random, so the probability that a
 * given 8-byte word is zero by chance is only about 2^-64. */
bool weir_jpeg_has_zeros(const uint8_t *bytes, size_t n);

/* Returns the size of a JPEG including its end-of-image marker, or 0 if the marker is missing. */
size_t weir_jpeg_end(const uint8_t *bytes, size_t length);

#endif
