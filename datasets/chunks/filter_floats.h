/* filter_floats.h: converts pixels stored as floats, of 0..255 or of 0..1, to uint8. A kind (uint32_t) describes the
 * floats: their width in bytes, WEIR_FLOATS_BIG_ENDIAN, WEIR_FLOATS_TO_ONE. */
#ifndef WEIR_DATASETS_CHUNKS_FILTER_FLOATS_H
#define WEIR_DATASETS_CHUNKS_FILTER_FLOATS_H

#include <stddef.h>
#include <stdint.h>

enum { WEIR_FLOATS_WIDTH = 15, WEIR_FLOATS_BIG_ENDIAN = 16, WEIR_FLOATS_TO_ONE = 32 /* white is 1, else 255 */ };

/* Returns 2, 4 or 8; 0 for an unknown kind. */
size_t weir_floats_width(uint32_t kind);
/* Rounds to nearest, halves up; values outside the range become 0 or 255, NaN becomes 0. */
void weir_floats_to_pixels(uint32_t kind, const uint8_t *in, size_t n, uint8_t *out);
/* Returns one value. */
double weir_float_at(uint32_t kind, const uint8_t *in);

#endif
