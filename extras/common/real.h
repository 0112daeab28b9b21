/* real.h: the number type of the network engine, float. Tests also compile the engine with double, to compare gradients
 * with finite differences. */
#ifndef WEIR_EXTRAS_COMMON_REAL_H
#define WEIR_EXTRAS_COMMON_REAL_H

#ifdef WEIR_REAL_DOUBLE
typedef double weir_real;
#else
typedef float weir_real;
#endif

#endif
