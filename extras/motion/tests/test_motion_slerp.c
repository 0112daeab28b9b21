/* Compares the fast slerp with slerp in float64, over all angles and blends. */
#include "extras/motion/motion_slerp.h"

#include <criterion/criterion.h>
#include <math.h>

static const double half_turn = 3.14159265358979323846;

Test(motion_slerp, polynomials)
{
    for (int i = 0; i <= 1000000; i++) {
        float v = (float)(half_turn * half_turn / 4 * i / 1000000), c = (float)i / 1000000;
        double root = sqrt((double)v), sinc = root > 0 ? sin(root) / root : 1;
        double angle = 2 * asin(sqrt((double)c / 2)), square = angle * angle;
        cr_assert_float_eq((double)weir_motion_sinc_root(v), sinc, 1.5e-7, "%g", (double)v);
        cr_assert_float_eq((double)weir_motion_square_angle(c), square, 2.9e-7 * square + 3e-7 * square, "%g",
                           (double)c);
    }
}

static double dot_of(const float a[4], const float b[4])
{
    double dot = 0;
    for (int i = 0; i < 4; i++)
        dot += (double)a[i] * (double)b[i];
    return dot;
}

static float dot_in_float(const float a[4], const float b[4])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3];
}

/* Returns the largest error of the components. */
static double error_of(const float a[4], const float b[4], float t)
{
    double dot = dot_of(a, b), angle = acos(fmin(fabs(dot), 1)), v0 = 1 - (double)t, v1 = (double)t, most = 0;
    float w0, w1;
    weir_motion_slerp_weights(dot_in_float(a, b), t, &w0, &w1);
    if (angle > 1e-8) {
        v0 = sin(v0 * angle) / sin(angle);
        v1 = sin(v1 * angle) / sin(angle);
    }
    v1 = w1 < 0 ? -v1 : v1; /* at 90 degrees, rounding decides which arc is shorter */
    cr_assert(fabs(dot) < 1e-6 || (dot < 0) == (w1 < 0) || t == 0);
    for (int i = 0; i < 4; i++)
        most = fmax(most, fabs((double)(w0 * a[i] + w1 * b[i]) - (v0 * (double)a[i] + v1 * (double)b[i])));
    return most;
}

/* Makes two float32 quaternions whose four-dimensional angle is the given one. */
static void pair(double angle, double turn, float a[4], float b[4])
{
    const double base[4] = {cos(turn), sin(turn) * 0.36, sin(turn) * 0.48, sin(turn) * 0.8};
    const double side[4] = {-sin(turn), cos(turn) * 0.36, cos(turn) * 0.48, cos(turn) * 0.8};
    for (int i = 0; i < 4; i++) {
        a[i] = (float)base[i];
        b[i] = (float)(cos(angle) * base[i] + sin(angle) * side[i]);
    }
}

Test(motion_slerp, error)
{
    double most = 0, longest = 0;
    float a[4], b[4], w0, w1;
    for (int i = 0; i <= 4000; i++)
        for (int j = 0; j <= 250; j++) {
            float t = (float)j / 250;
            pair(half_turn * i / 4000, 0.7 * j, a, b); /* beyond 90 degrees, the shorter arc reverses */
            most = fmax(most, error_of(a, b, t));
            weir_motion_slerp_weights(dot_in_float(a, b), t, &w0, &w1);
            double length = 0;
            for (int k = 0; k < 4; k++)
                length += pow((double)(w0 * a[k] + w1 * b[k]), 2);
            longest = fmax(longest, fabs(sqrt(length) - 1));
        }
    cr_log_info("largest error %.3g, length differs by %.3g", most, longest);
    cr_assert_leq(most, (double)WEIR_MOTION_SLERP_ERROR, "%g", most);
    cr_assert_leq(longest, 2 * (double)WEIR_MOTION_SLERP_ERROR, "%g", longest);
}

Test(motion_slerp, small_angles)
{
    float a[4], b[4];
    for (double angle = 1e-9; angle < 0.1; angle *= 1.3)
        for (int j = 0; j <= 100; j++) {
            pair(angle, 0.1 * j, a, b);
            cr_assert_leq(error_of(a, b, (float)j / 100), (double)WEIR_MOTION_SLERP_ERROR, "%g", angle);
        }
}

Test(motion_slerp, ends)
{
    float a[4], b[4], w0, w1;
    for (int i = 0; i <= 1000; i++) {
        pair(half_turn * i / 1000, 0.3, a, b);
        float dot = dot_in_float(a, b);
        weir_motion_slerp_weights(dot, 0, &w0, &w1);
        cr_assert(w0 == 1 && w1 == 0, "%d: %g %g", i, (double)w0, (double)w1);
        weir_motion_slerp_weights(dot, 1, &w0, &w1);
        cr_assert(w0 == 0 && w1 == (dot < 0 ? -1 : 1), "%d: %g %g", i, (double)w0, (double)w1);
    }
}

/* Because of rounding, the dot product of equal quaternions can exceed 1. */
Test(motion_slerp, beyond_one)
{
    float w0, w1;
    for (float dot = 1; dot < 1.000001f; dot = nextafterf(dot, 2)) {
        weir_motion_slerp_weights(dot, 0.25f, &w0, &w1);
        cr_assert_float_eq((double)w0, 0.75, 1e-6);
        cr_assert_float_eq((double)w1, 0.25, 1e-6);
        weir_motion_slerp_weights(-dot, 0.25f, &w0, &w1);
        cr_assert_float_eq((double)w1, -0.25, 1e-6);
    }
}
