/* real.h: the number that the engine computes with. It is float; tests compile the engine once more for double, so that
 * gradients can be compared with finite differences. */
#ifndef WEIR_EXTRAS_COMMON_REAL_H
#define WEIR_EXTRAS_COMMON_REAL_H

#ifdef WEIR_REAL_DOUBLE
typedef double weir_real;
#else
typedef float weir_real;
#endif

#endif
