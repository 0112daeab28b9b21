#include "decoders/frame_end.h"
#include "decoders/jpeg_walk_priv.h"

#include <string.h>

enum { PNG_SIGNATURE = 8, PNG_CHUNK = 12 /* length, type, checksum */ };

/* From within coded data to the marker that ends it, its fill bytes included; length when there is none. As libjpeg
 * reads them: any number of 0xFF and a zero is data, and restart markers stay in it. */
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

static size_t jpeg_end(const uint8_t *bytes, size_t length)
{
    struct weir_jpeg_segment segment;
    size_t at = 2;
    while (weir_jpeg_next_segment(bytes, length, &at, &segment))
        if (segment.marker == MARKER_SOS)
            at = skip_scan(bytes, at, length);
    while (at + 1 < length && bytes[at] == 0xFF && bytes[at + 1] == 0xFF)
        at++;
    return at + 2 <= length && bytes[at] == 0xFF && bytes[at + 1] == MARKER_EOI ? at + 2 : 0;
}

static size_t png_end(const uint8_t *bytes, size_t length)
{
    for (size_t at = PNG_SIGNATURE; length - at >= PNG_CHUNK;) {
        const uint8_t *chunk = bytes + at;
        size_t data = (size_t)weir_jpeg_u16(chunk) << 16 | (size_t)weir_jpeg_u16(chunk + 2);
        if (data > length - at - PNG_CHUNK)
            return 0;
        at += PNG_CHUNK + data;
        if (memcmp(chunk + 4, "IEND", 4) == 0)
            return at;
    }
    return 0;
}

size_t weir_frame_end(const uint8_t *bytes, size_t length)
{
    static const uint8_t png[PNG_SIGNATURE] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
    if (length >= 4 && bytes[0] == 0xFF && bytes[1] == MARKER_SOI)
        return jpeg_end(bytes, length);
    if (length >= sizeof png && memcmp(bytes, png, sizeof png) == 0)
        return png_end(bytes, length);
    return 0;
}
