/* motion_slerp.h: the fast slerp of motion. It uses no acos, sin, square root or branches, and works for vectors and
 * single numbers, on the CPU and in CUDA kernels.
 *
 * Slerp of unit quaternions a and b by t is w0 a + w1 b, with w0 = sin((1 - t) h) / sin(h) and w1 = sin(t h) / sin(h).
 * Here cos(h) = |a . b|, and b is negated if a . b < 0, so that 0 <= h <= pi/2. Let S(v) = sin(sqrt(v)) / sqrt(v). Then
 *
 *     w1 = t S(t t u) / S(u)  with  u = h h,  and w0 is the same with 1 - t instead of t.
 *
 * Two functions are smooth: S(v) on 0..pi^2/4, and u / c as a function of c = 1 - cos(h) on 0..1. Minimax polynomials
 * of degree 4 and 6 (found by Lawson's iteration) approximate them with relative errors of at most 5.4e-9 and 2.9e-7. A
 * relative error e of u changes a weight by at most w e u (1 - t t) / 6, which is at most 4.6e-8. Together with the
 * rounding of about thirty float32 operations, WEIR_MOTION_SLERP_ERROR bounds the error of each component relative to
 * exact slerp at any angle (extras/motion/tests/test_motion_slerp.c tests this). At angle 0 the result equals lerp. For
 * t of 0 and 1 the result is exactly a and b (or -b). The length of the result differs from 1 by at most twice the
 * bound. */
#ifndef WEIR_EXTRAS_MOTION_MOTION_SLERP_H
#define WEIR_EXTRAS_MOTION_MOTION_SLERP_H

#define WEIR_MOTION_SLERP_ERROR 5e-7f

#ifdef __CUDACC__
#define WEIR_MOTION_INLINE static inline __host__ __device__
#else
#define WEIR_MOTION_INLINE static inline __attribute__((always_inline))
#endif

/* Returns sin(sqrt(v)) / sqrt(v) for v in 0..pi^2/4. */
WEIR_MOTION_INLINE float weir_motion_sinc_root(float v)
{
    return 1.0f + v * (-0.166666567f + v * (0.0083330255f + v * (-0.000198074194f + v * 2.60190313e-06f)));
}

/* Returns the square of the angle whose cosine is 1 - c, for c in 0..1. */
WEIR_MOTION_INLINE float weir_motion_square_angle(float c)
{
    float high = 0.0240945686f + c * (0.021714516f + c * (-0.0105984025f + c * 0.00921768136f));
    return c * (2.00000048f + c * (0.333280295f + c * (0.089691177f + c * high)));
}

/* Computes the weights of a and b from their dot product. *w1 is negative if that puts b on the shorter arc. */
WEIR_MOTION_INLINE void weir_motion_slerp_weights(float dot, float t, float *w0, float *w1)
{
    float cosine = dot < 0 ? -dot : dot, rest = 1 - t;
    float u = weir_motion_square_angle(1 - cosine), whole = weir_motion_sinc_root(u);
    float along = t * (weir_motion_sinc_root(t * t * u) / whole);
    *w0 = rest * (weir_motion_sinc_root(rest * rest * u) / whole);
    *w1 = dot < 0 ? -along : along;
}

#endif
