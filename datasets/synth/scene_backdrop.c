/* The backdrop: a quilt of grainy, woven, printed and plain patches, which have the size of objects in an image of a
 * table. Each kind adds energy to a different part of a JPEG's spectrum. Grain and weave add it to high frequencies,
 * which quality 50 discards; seams and print add it to frequencies that quality 50 keeps. */
#include "datasets/synth/scene_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TILE_MIN = 64, TILE_MAX = 1024, ROWS = 8, COLUMNS = 8 };

/* Returns 0..1 from a hash, which is simple because it is computed millions of times. */
static float corner(uint32_t seed, int x, int y)
{
    uint32_t h = seed + (uint32_t)x * 0x9e3779b1u + (uint32_t)y * 0x85ebca77u;
    h = (h ^ (h >> 15)) * 0x2c1b3c6du;
    h = (h ^ (h >> 12)) * 0x297a2d39u;
    return (float)((h ^ (h >> 15)) >> 8) * (1.0f / 16777216.0f);
}

/* Value noise, -1..1, on a lattice that repeats after px by py cells. u and v are 0..1 over the lattice. */
static float noise(uint32_t seed, float u, float v, int px, int py)
{
    float x = u * (float)px, y = v * (float)py;
    int x0 = (int)x % px, y0 = (int)y % py, x1 = (x0 + 1) % px, y1 = (y0 + 1) % py;
    float fx = x - (float)(int)x, fy = y - (float)(int)y;
    fx = fx * fx * (3 - 2 * fx);
    fy = fy * fy * (3 - 2 * fy);
    float a = corner(seed, x0, y0), b = corner(seed, x1, y0), c = corner(seed, x0, y1), d = corner(seed, x1, y1);
    float top = a + (b - a) * fx, bottom = c + (d - c) * fx;
    return 2 * (top + (bottom - top) * fy) - 1;
}

static float octaves(uint32_t seed, float u, float v, int px, int py, int count)
{
    float sum = 0, amplitude = 1;
    for (int i = 0; i < count; i++, px *= 2, py *= 2, amplitude *= 0.7f)
        sum += amplitude * noise(seed + (uint32_t)i, u, v, px, py);
    return sum;
}

/* Lines of marks that resemble letters; fu and fv are 0..1 over the patch. */
static float print(uint64_t cell, float fu, float fv)
{
    int line = (int)(fv * 6), letter = (int)(fu * 16);
    float lu = fu * 16 - (float)letter, lv = fv * 6 - (float)line;
    uint64_t glyph = weir_scene_mix(cell, (uint64_t)(line * 16 + letter));
    bool inside = glyph % 6 && lv > 0.25f && lv < 0.8f && lu > 0.12f && lu < 0.88f;
    return inside && weir_scene_mix(glyph, (uint64_t)((int)(lu * 3) * 3 + (int)(lv * 4))) % 5 > 1 ? 0.66f : 1.0f;
}

static void paint(uint32_t seed, float u, float v, uint8_t rgb[3], int16_t *relief_mm)
{
    static const float colours[][3] = {{182, 134, 88},  {170, 124, 78},  {192, 142, 96}, {80, 98, 122},
                                       {172, 168, 160}, {216, 208, 194}, {140, 66, 58},  {84, 84, 88}};
    int row = (int)(v * ROWS);
    float along = u * COLUMNS + 0.5f * (float)(row & 1), fu = along - (float)(int)along, fv = v * ROWS - (float)row;
    int column = (int)along % COLUMNS;
    uint64_t cell = weir_scene_mix(seed, (uint64_t)(row * COLUMNS + column));
    float light = weir_scene_range(cell, 0.85f, 1.1f);
    switch ((column + 2 * row + row / 2) % 4) { /* not random, so that each image contains all kinds */
    case 0:                                     /* grain */
        light *= 1 + 0.09f * octaves((uint32_t)cell, u, v, 16, 128, 3);
        break;
    case 1: /* weave */
        light *= 1 + 0.10f * weir_scene_sin(u * 6.2831853f * 96) * weir_scene_sin(v * 6.2831853f * 96);
        break;
    case 2:
        light *= print(cell, fu, fv);
        break;
    }
    float edge = fu < fv ? fu : fv;
    light *= (edge < 0.02f ? 0.84f : 1.0f) * (1 + 0.05f * octaves(seed, u, v, 16, 16, 5));
    for (int c = 0; c < 3; c++) {
        float level = colours[(cell >> 8) % 8][c] * light + 0.5f;
        rgb[c] = (uint8_t)(level > 255 ? 255 : level);
    }
    *relief_mm = (int16_t)(14 * octaves(seed + 9, u, v, 4, 4, 2));
}

/* Filters a line of n pixels, `step` bytes apart, with (1 2 1) / 4. The first and the last pixel count as neighbours.
 */
static void blur(uint8_t *line, size_t n, size_t step)
{
    uint8_t first[3], before[3];
    memcpy(first, line, 3);
    memcpy(before, line + (n - 1) * step, 3);
    for (size_t i = 0; i < n; i++) {
        uint8_t *here = line + i * step;
        const uint8_t *after = i + 1 < n ? here + step : first;
        for (int c = 0; c < 3; c++) {
            uint8_t old = here[c];
            here[c] = (uint8_t)((before[c] + 2 * old + after[c] + 2) >> 2);
            before[c] = old;
        }
    }
}

int weir_backdrop_make(struct weir_backdrop *backdrop, int longest, uint64_t seed)
{
    size_t size = TILE_MIN;
    while (4 * size < 5 * (size_t)longest && size < TILE_MAX)
        size *= 2;
    backdrop->size = size;
    backdrop->rgb = malloc(3 * size * size);
    backdrop->relief_mm = malloc(size * size * sizeof *backdrop->relief_mm);
    if (!backdrop->rgb || !backdrop->relief_mm)
        return -ENOMEM;
    for (size_t i = 0; i < size * size; i++)
        paint((uint32_t)(seed ^ seed >> 32), ((float)(i % size) + 0.5f) / (float)size,
              ((float)(i / size) + 0.5f) / (float)size, backdrop->rgb + 3 * i, &backdrop->relief_mm[i]);
    for (size_t i = 0; i < size; i++)
        blur(backdrop->rgb + 3 * i * size, size, 3);
    for (size_t i = 0; i < size; i++)
        blur(backdrop->rgb + 3 * i, size, 3 * size);
    return 0;
}

void weir_backdrop_free(struct weir_backdrop *backdrop)
{
    free(backdrop->rgb);
    free(backdrop->relief_mm);
}
