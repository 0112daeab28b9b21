/* filter_floats.h: pixels that are stored as floats, of 0..255 or of 0..1, as uint8. A kind (uint32_t) says which
 * floats they are: their width in bytes, WEIR_FLOATS_BIG_ENDIAN, WEIR_FLOATS_TO_ONE. */
#ifndef WEIR_DATASETS_CHUNKS_FILTER_FLOATS_H
#define WEIR_DATASETS_CHUNKS_FILTER_FLOATS_H

#include <stddef.h>
#include <stdint.h>

enum { WEIR_FLOATS_WIDTH = 15, WEIR_FLOATS_BIG_ENDIAN = 16, WEIR_FLOATS_TO_ONE = 32 /* 1 is white, else 255 is */ };

/* 2, 4 or 8; 0 when there is no such kind. */
size_t weir_floats_width(uint32_t kind);
/* Pixels, rounded to the nearest, halves up; what lies outside becomes 0 or 255, and what is no number 0. */
void weir_floats_to_pixels(uint32_t kind, const uint8_t *in, size_t n, uint8_t *out);
/* One of them. */
double weir_float_at(uint32_t kind, const uint8_t *in);

#endif
