/* Depth in millimetres, as lerobot 0.6 converts it. Videos contain 12-bit codes on a logarithmic or linear scale,
 * images contain millimetres or metres. */
#include "base/shortage.h"
#include "datasets/lerobot/lerobot_priv.h"

#include <math.h>
#include <stdlib.h>

enum { CODE_MAX = 4095 };
static const float MM_PER_M = 1000;

static float clamped(float value, float min, float max)
{
    return value < min ? min : value > max ? max : value;
}

/* The float32 arithmetic of lerobot, except that the exponential of torch can differ in the last bit. */
static void fill_from_codes(const struct weir_lerobot_depth *depth, float *values)
{
    double first = depth->is_log ? log(depth->min_m + depth->shift_m) : depth->min_m;
    double last = depth->is_log ? log(depth->max_m + depth->shift_m) : depth->max_m;
    float scale = (float)((last - first) / CODE_MAX), offset = (float)first;
    for (int code = 0; code < WEIR_DEPTH_VALUES; code++) {
        float value = (float)code * scale + offset;
        if (depth->is_log)
            value = (float)exp((double)value) - (float)depth->shift_m;
        value = clamped(value, (float)depth->min_m, (float)depth->max_m);
        values[code] = clamped(rintf(value * MM_PER_M), 0, WEIR_DEPTH_VALUES - 1);
    }
}

static void fill_from_unit(const struct weir_lerobot_depth *depth, float *values)
{
    for (int value = 0; value < WEIR_DEPTH_VALUES; value++)
        values[value] = (float)value * (depth->is_metres ? MM_PER_M : 1);
}

int weir_lerobot_fill_depth(struct weir_lerobot *lerobot, struct weir_err *err)
{
    size_t n = 0;
    for (int i = 0; i < lerobot->n_features; i++)
        n += lerobot->features[i].is_depth;
    if (n == 0)
        return 0;
    float *values = lerobot->videos->depth_values = malloc(n * WEIR_DEPTH_VALUES * sizeof *values);
    if (!values)
        return weir_no_memory(err);
    lerobot->videos->depth_bytes = n * WEIR_DEPTH_VALUES * sizeof *values;
    for (int i = 0; i < lerobot->n_features; i++) {
        struct weir_lerobot_feature *feature = &lerobot->features[i];
        if (!feature->is_depth)
            continue;
        if (feature->kind == WEIR_LEROBOT_VIDEO)
            fill_from_codes(&feature->depth, values);
        else
            fill_from_unit(&feature->depth, values);
        feature->depth_values = values;
        values += WEIR_DEPTH_VALUES;
    }
    return 0;
}
