/* Depth in millimetres, as lerobot 0.6 converts it. Videos contain 12-bit codes on a logarithmic or linear scale,
 * images contain millimetres or metres. */
#include "base/shortage.h"
#include "datasets/lerobot/lerobot_priv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- images of depth that are not marked ---- */

/* Returns whether the bytes are a PNG of 16-bit gray. */
static bool is_gray16(const uint8_t *bytes, size_t n)
{
    static const uint8_t begin[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    enum { BITS_AT = 24, COLOR_AT = 25 }; /* in the chunk IHDR, which is the first */
    return n > COLOR_AT && memcmp(bytes, begin, sizeof begin) == 0 && bytes[BITS_AT] == 16 && bytes[COLOR_AT] == 0;
}

/* Returns whether the first image of a feature is a PNG of 16-bit gray. Errors show when the episode is opened. */
static bool has_gray16(struct weir_lerobot *lerobot, const struct weir_lerobot_feature *feature)
{
    struct weir_lerobot_table table;
    struct weir_parquet_bytes images = {0};
    struct weir_err ignored = WEIR_ERR_NONE;
    bool found = false;
    if (weir_lerobot_open_table(&table, lerobot, &lerobot->episodes[0], &ignored) < 0)
        return false;
    int column = weir_parquet_find(table.parquet, feature->key, "bytes");
    if (column >= 0 && weir_parquet_bytes(table.parquet, column, 0, 1, &images, &ignored) == 0 && images.n > 0) {
        size_t n;
        const uint8_t *image = weir_parquet_value(&images, 0, &n);
        found = is_gray16(image, n);
    }
    weir_parquet_bytes_free(&images);
    weir_lerobot_close_table(&table);
    return found;
}

int weir_lerobot_find_depth(struct weir_lerobot *lerobot, char **note, struct weir_err *err)
{
    for (int i = 0; i < lerobot->n_features; i++) {
        struct weir_lerobot_feature *feature = &lerobot->features[i];
        bool has_one_channel = feature->rank == 3 && (feature->dims[0] == 1 || feature->dims[2] == 1);
        if (feature->kind != WEIR_LEROBOT_IMAGE || feature->is_depth || !has_one_channel ||
            !has_gray16(lerobot, feature))
            continue;
        feature->is_depth = true;
        if (!*note && asprintf(note,
                               "feature %s has PNGs of 16 bits, so it is a depth camera, although meta/info.json does "
                               "not mark it (is_depth_map); it is read by its name (--cameras)",
                               feature->key) < 0) {
            *note = NULL;
            return weir_no_memory(err);
        }
    }
    return 0;
}
