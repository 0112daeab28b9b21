#include "decoders/jpeg_walk_priv.h"

#include <string.h>

enum { BLOCK = 256 };
enum { ZERO_STRIDE = 32 }; /* distance between tested words; any run of at least 39 zero bytes contains one */

bool weir_jpeg_next_segment(const uint8_t *bytes, size_t length, size_t *at, struct weir_jpeg_segment *segment)
{
    size_t i = *at;
    if (i >= length || bytes[i] != 0xFF)
        return false;
    while (i < length && bytes[i] == 0xFF)
        i++;
    if (i >= length || bytes[i] < MARKER_SOF0 || (bytes[i] >= MARKER_RST0 && bytes[i] <= MARKER_EOI))
        return false;
    segment->marker = bytes[i++];
    if (length - i < 2 || weir_jpeg_u16(bytes + i) < 2 || (size_t)weir_jpeg_u16(bytes + i) > length - i)
        return false;
    segment->body = bytes + i + 2;
    segment->length = (size_t)weir_jpeg_u16(bytes + i) - 2;
    *at = i + 2 + segment->length;
    return true;
}

/* Whether the block contains a marker. The loop has no branches, so that the compiler can vectorise it. At high quality
 * about every 64th byte is a stuffed 0xFF, and stopping at each would cost a branch misprediction. Reads BLOCK + 1
 * bytes. */
static bool block_has_marker(const uint8_t *bytes)
{
    uint8_t any = 0;
    for (int i = 0; i < BLOCK; i++)
        any |= (uint8_t)((bytes[i] == 0xFF) & (bytes[i + 1] != 0));
    return any;
}

size_t weir_jpeg_find_marker(const uint8_t *bytes, size_t at, size_t length)
{
    while (length - at > BLOCK && !block_has_marker(bytes + at))
        at += BLOCK;
    while (at < length) {
        const uint8_t *found = memchr(bytes + at, 0xFF, length - at);
        at = found ? (size_t)(found - bytes) : length;
        if (length - at < 2)
            return length;
        if (bytes[at + 1] != 0)
            return at;
        at += 2;
    }
    return length;
}

bool weir_jpeg_has_zeros(const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i + sizeof(uint64_t) <= n; i += ZERO_STRIDE) {
        uint64_t word;
        memcpy(&word, bytes + i, sizeof word);
        if (word == 0)
            return true;
    }
    return false;
}

/* Returns the position of the marker that ends the entropy-coded data, or of the first fill byte before it; length if
 * there is no marker. Follows libjpeg: one or more 0xFF bytes followed by a zero byte are data, and restart markers do
 * not end the data. */
static size_t skip_scan(const uint8_t *bytes, size_t at, size_t length)
{
    for (;;) {
        at = weir_jpeg_find_marker(bytes, at, length);
        size_t code = at;
        while (code < length && bytes[code] == 0xFF)
            code++;
        if (code >= length)
            return length;
        if (bytes[code] != 0 && (bytes[code] < MARKER_RST0 || bytes[code] > MARKER_RST7))
            return at;
        at = code + 1;
    }
}

size_t weir_jpeg_end(const uint8_t *bytes, size_t length)
{
    struct weir_jpeg_segment segment;
    size_t at = 2;
    for (;;) {
        at = at < length && bytes[at] != 0xFF ? weir_jpeg_find_marker(bytes, at, length) : at; /* extraneous bytes */
        if (!weir_jpeg_next_segment(bytes, length, &at, &segment))
            break;
        if (segment.marker == MARKER_SOS)
            at = skip_scan(bytes, at, length);
    }
    while (at + 1 < length && bytes[at] == 0xFF && bytes[at + 1] == 0xFF)
        at++;
    return at + 2 <= length && bytes[at] == 0xFF && bytes[at + 1] == MARKER_EOI ? at + 2 : 0;
}
