/* An LZF stream is a sequence of pieces. If the first byte of a piece is below 32, it is the number of literal bytes
 * that follow, minus one. Otherwise the piece is a repetition. The upper 3 bits are its length minus 2; if they are 7,
 * the next byte is added to the length. The lower 5 bits and the following byte are the distance back, minus one. */
#include "datasets/chunks/filters.h"

#include <string.h>

/* Most pieces are short. A copy of fixed size needs no call to memcpy, and later pieces overwrite the excess bytes. */
enum { WIDE = 32, HALF = WIDE / 2 };

enum { PLAIN_END = 32, LENGTH_SHIFT = 5, LENGTH_LONG = 7, LENGTH_LEAST = 2, DISTANCE_HIGH = 31 };

/* The data before `out` repeats with a period of `distance`, so each copy can be twice as long as the previous one. */
static void repeat(uint8_t *out, size_t distance, size_t length)
{
    while (length > distance) {
        memcpy(out, out - distance, distance);
        out += distance;
        length -= distance;
        distance *= 2;
    }
    memcpy(out, out - distance, length);
}

long weir_lzf_decompress(const uint8_t *in, size_t n, uint8_t *out, size_t out_bytes)
{
    size_t at = 0, made = 0;
    while (at < n) {
        size_t first = in[at++];
        if (first < PLAIN_END) {
            size_t length = first + 1;
            if (length > n - at || length > out_bytes - made)
                return -1;
            if (n - at >= WIDE && out_bytes - made >= WIDE)
                memcpy(out + made, in + at, WIDE);
            else
                memcpy(out + made, in + at, length);
            at += length;
            made += length;
            continue;
        }
        size_t length = (first >> LENGTH_SHIFT) + LENGTH_LEAST;
        if (first >> LENGTH_SHIFT == LENGTH_LONG && at < n)
            length += in[at++];
        if (at == n)
            return -1;
        size_t distance = ((first & DISTANCE_HIGH) << 8 | in[at++]) + 1;
        if (distance > made || length > out_bytes - made)
            return -1;
        if (length <= WIDE && distance >= HALF && out_bytes - made >= WIDE) {
            memcpy(out + made, out + made - distance,
                   HALF); /* in two halves, because the second half may repeat the first */
            memcpy(out + made + HALF, out + made + HALF - distance, HALF);
        } else {
            repeat(out + made, distance, length);
        }
        made += length;
    }
    return (long)made;
}
