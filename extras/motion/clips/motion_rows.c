/* Checks the arrays of a motion and converts them to float. */
#include "extras/motion/clips/clips_priv.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void shape_text(const struct weir_file_array *array, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "(");
    for (int d = 0; d < array->rank && used < size; d++)
        used += (size_t)snprintf(text + used, size - used, "%s%llu", d ? ", " : "", (unsigned long long)array->dims[d]);
    if (used < size)
        snprintf(text + used, size - used, array->rank == 1 ? ",)" : ")");
}

static void wanted_text(const char *what, size_t n, char text[32])
{
    if (n > 0)
        snprintf(text, 32, "%zu", n);
    else
        snprintf(text, 32, "%s", what);
}

static int wrong_shape(const struct weir_motion_rows *rows, struct weir_err *err)
{
    char is[128], frames[32], width[32], bodies[40] = "";
    shape_text(&rows->array, is, sizeof is);
    wanted_text("frames", rows->frames, frames);
    wanted_text("dofs", rows->width, width);
    if (rows->bodies == SIZE_MAX)
        snprintf(bodies, sizeof bodies, ", bodies");
    else if (rows->bodies > 0)
        snprintf(bodies, sizeof bodies, ", %zu", rows->bodies);
    return weir_err_set(err, -EBADMSG, "%s: has shape %s; it must be (%s%s, %s)", rows->key, is, frames, bodies, width);
}

static bool fits(uint64_t is, size_t wanted)
{
    return wanted > 0 && wanted < SIZE_MAX ? is == wanted : is > 0;
}

int weir_motion_rows_read(const struct weir_motion_source *source, struct weir_motion_rows *rows, struct weir_err *err)
{
    struct weir_file_array *array = &rows->array;
    int rc = source->ops->read(source->file, rows->key, array, err), rank = rows->bodies > 0 ? 3 : 2;
    if (rc < 0)
        return rc;
    if (!array->values)
        return weir_err_set(err, -EBADMSG, "%s: holds strings; it must hold numbers", rows->key);
    if (array->rank != rank || !fits(array->dims[0], rows->frames) ||
        (rank == 3 && !fits(array->dims[1], rows->bodies)) || !fits(array->dims[rank - 1], rows->width))
        return wrong_shape(rows, err);
    rows->frames = (size_t)array->dims[0];
    rows->bodies = rank == 3 ? (size_t)array->dims[1] : 0;
    rows->width = (size_t)array->dims[rank - 1];
    return 0;
}

/* Reports the number as stored in the file, because it may be finite but too large for float. */
static int not_finite(const struct weir_motion_rows *rows, size_t frame, size_t body, size_t i, struct weir_err *err)
{
    const struct weir_file_array *array = &rows->array;
    size_t at = (frame * (rows->bodies ? rows->bodies : 1) + body) * rows->width + i;
    double value;
    char bodies[32] = "";
    weir_numbers_convert(array->type, (const char *)array->values + at * weir_number_bytes(array->type), 1, WEIR_F64,
                         &value);
    if (rows->bodies > 0)
        snprintf(bodies, sizeof bodies, "[%zu]", body);
    return weir_err_set(err, -EBADMSG, "%s[%zu]%s[%zu]: is %g, which is not a finite float32; correct the file",
                        rows->key, frame, bodies, i, value);
}

int weir_motion_rows_copy(const struct weir_motion_rows *rows, const size_t *which, size_t n, float *out,
                          struct weir_err *err)
{
    const struct weir_file_array *array = &rows->array;
    size_t width = rows->width, bodies = rows->bodies ? rows->bodies : 1, bytes = weir_number_bytes(array->type);
    for (size_t f = 0; f < rows->frames; f++)
        for (size_t k = 0; k < n; k++, out += width) {
            size_t body = which ? which[k] : 0;
            weir_numbers_convert(array->type, (const char *)array->values + (f * bodies + body) * width * bytes, width,
                                 WEIR_F32, out);
            for (size_t i = 0; i < width; i++)
                if (!isfinite(out[i]))
                    return not_finite(rows, f, body, i, err);
        }
    return 0;
}

/* ---- velocities that are missing in a file ---- */

void weir_motion_forward_differences(const float *values, size_t frames, size_t width, double fps, float *rates)
{
    const float dt = (float)(1 / fps);
    for (size_t i = 0; i < (frames - 1) * width; i++)
        rates[i] = (values[i + width] - values[i]) / dt;
    memcpy(rates + (frames - 1) * width, rates + (frames - 2) * width, width * sizeof *rates);
}

/* Computes the shorter rotation between two quaternions: conj(from) * to, negated if its first number is negative. */
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

/* Rotates v by the quaternion q = (w, u): v + 2 w (u x v) + 2 u x (u x v). */
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
            return weir_err_set(err, -EBADMSG, "%s[%zu]: is an all-zero quaternion; correct the file", key, f);
        if (norm < 1e-6)
            return weir_err_set(err, -EBADMSG, "%s[%zu][%zu]: is an all-zero quaternion; correct the file", key, f,
                                body);
        for (int i = 0; i < 4; i++)
            q[i] = (float)((double)q[i] / norm);
    }
    return 0;
}
