/* Arrays of a motion, checked and turned into floats. */
#include "extras/motion/clips/motion_part_priv.h"

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
        return weir_err_set(err, -EBADMSG, "%s: holds texts; it must be numbers", rows->key);
    if (array->rank != rank || !fits(array->dims[0], rows->frames) ||
        (rank == 3 && !fits(array->dims[1], rows->bodies)) || !fits(array->dims[rank - 1], rows->width))
        return wrong_shape(rows, err);
    rows->frames = (size_t)array->dims[0];
    rows->bodies = rank == 3 ? (size_t)array->dims[1] : 0;
    rows->width = (size_t)array->dims[rank - 1];
    return 0;
}

/* The number as the file has it: what is too large for a float is shown as it is. */
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
    return weir_err_set(err, -EBADMSG, "%s[%zu]%s[%zu]: is %g, which is not a finite float32; repair it", rows->key,
                        frame, bodies, i, value);
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
