/* Velocities of motions whose file has none. */
#include "extras/motion/clips/motion_part_priv.h"

#include <errno.h>
#include <math.h>
#include <string.h>

void weir_motion_forward_differences(const float *values, size_t frames, size_t width, double fps, float *rates)
{
    const float dt = (float)(1 / fps);
    for (size_t i = 0; i < (frames - 1) * width; i++)
        rates[i] = (values[i + width] - values[i]) / dt;
    memcpy(rates + (frames - 1) * width, rates + (frames - 2) * width, width * sizeof *rates);
}

/* conj(from) * to, turned so that its first number is not negative: the shorter way. */
static void between(const float from[4], const float to[4], double turn[4])
{
    const double a[4] = {(double)from[0], -(double)from[1], -(double)from[2], -(double)from[3]};
    const double b[4] = {(double)to[0], (double)to[1], (double)to[2], (double)to[3]};
    turn[0] = a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3];
    turn[1] = a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2];
    turn[2] = a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1];
    turn[3] = a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0];
    const double sign = turn[0] < 0 ? -1 : 1;
    for (int i = 0; i < 4; i++)
        turn[i] *= sign;
}

/* v + 2 w (u x v) + 2 u x (u x v), of the quaternion (w, u). */
static void rotate(const float q[4], double v[3])
{
    const double w = (double)q[0], u[3] = {(double)q[1], (double)q[2], (double)q[3]};
    const double t[3] = {2 * (u[1] * v[2] - u[2] * v[1]), 2 * (u[2] * v[0] - u[0] * v[2]),
                         2 * (u[0] * v[1] - u[1] * v[0])};
    v[0] += w * t[0] + u[1] * t[2] - u[2] * t[1];
    v[1] += w * t[1] + u[2] * t[0] - u[0] * t[2];
    v[2] += w * t[2] + u[0] * t[1] - u[1] * t[0];
}

void weir_motion_turning_rates(const float *quats, size_t frames, double fps, float *rates)
{
    for (size_t f = 0; f + 1 < frames; f++) {
        double turn[4], v[3];
        between(quats + 4 * f, quats + 4 * f + 4, turn);
        double sine = sqrt(turn[1] * turn[1] + turn[2] * turn[2] + turn[3] * turn[3]);
        double angle = 2 * atan2(sine, turn[0]), scale = sine > 0 ? angle / sine : 0;
        for (int i = 0; i < 3; i++)
            v[i] = turn[i + 1] * scale * fps;
        rotate(quats + 4 * f, v);
        for (int i = 0; i < 3; i++)
            rates[3 * f + (size_t)i] = (float)v[i];
    }
    memcpy(rates + 3 * (frames - 1), rates + 3 * (frames - 2), 3 * sizeof *rates);
}

int weir_motion_normalise(float *quats, size_t frames, const char *key, size_t body, struct weir_err *err)
{
    for (size_t f = 0; f < frames; f++) {
        float *q = quats + 4 * f;
        double norm = 0;
        for (int i = 0; i < 4; i++)
            norm += (double)q[i] * (double)q[i];
        norm = sqrt(norm);
        if (norm < 1e-6 && body == SIZE_MAX)
            return weir_err_set(err, -EBADMSG, "%s[%zu]: is a quaternion of zeros; repair it", key, f);
        if (norm < 1e-6)
            return weir_err_set(err, -EBADMSG, "%s[%zu][%zu]: is a quaternion of zeros; repair it", key, f, body);
        for (int i = 0; i < 4; i++)
            q[i] = (float)((double)q[i] / norm);
    }
    return 0;
}
