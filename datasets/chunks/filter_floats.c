#include "datasets/chunks/filters.h"

#include <endian.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

size_t weir_floats_width(uint32_t kind)
{
    size_t width = kind & WEIR_FLOATS_WIDTH;
    return width == 2 || width == 4 || width == 8 ? width : 0;
}

static double from_half(uint16_t half)
{
    int exponent = half >> 10 & 31;
    double fraction = half & 1023, value;
    if (exponent == 31)
        value = fraction > 0 ? NAN : INFINITY;
    else
        value = exponent == 0 ? ldexp(fraction, -24) : ldexp(fraction + 1024, exponent - 25);
    return half & 0x8000 ? -value : value;
}

double weir_float_at(uint32_t kind, const uint8_t *in)
{
    bool big = kind & WEIR_FLOATS_BIG_ENDIAN;
    uint16_t half;
    uint32_t single_bits;
    uint64_t bits;
    float single;
    double value;
    switch (kind & WEIR_FLOATS_WIDTH) {
    case 2:
        memcpy(&half, in, sizeof half);
        return from_half(big ? be16toh(half) : le16toh(half));
    case 4:
        memcpy(&single_bits, in, sizeof single_bits);
        single_bits = big ? be32toh(single_bits) : le32toh(single_bits);
        memcpy(&single, &single_bits, sizeof single);
        return (double)single;
    default:
        memcpy(&bits, in, sizeof bits);
        bits = big ? be64toh(bits) : le64toh(bits);
        memcpy(&value, &bits, sizeof value);
        return value;
    }
}

static uint8_t pixel(float value, float scale)
{
    float scaled = value * scale + 0.5f;
    return scaled >= 255 ? 255 : scaled > 0 ? (uint8_t)scaled : 0; /* NaN fails both comparisons and becomes 0 */
}

void weir_floats_to_pixels(uint32_t kind, const uint8_t *in, size_t n, uint8_t *out)
{
    float scale = kind & WEIR_FLOATS_TO_ONE ? 255 : 1;
    size_t width = kind & WEIR_FLOATS_WIDTH;
    if (width == sizeof(float) &&
        !(kind & WEIR_FLOATS_BIG_ENDIAN)) /* the most common case, written so that the compiler vectorises it */
        for (size_t i = 0; i < n; i++) {
            float value;
            memcpy(&value, in + i * sizeof value, sizeof value);
            out[i] = pixel(value, scale);
        }
    else
        for (size_t i = 0; i < n; i++)
            out[i] = pixel((float)weir_float_at(kind, in + i * width), scale);
}
