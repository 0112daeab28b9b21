#include "datasets/synth/scene_priv.h"

#include <errno.h>
#include <stdlib.h>

/* Millions of these are needed, so a short hash. */
static inline float corner(uint32_t seed, int x, int y)
{
    uint32_t h = seed + (uint32_t)x * 0x9e3779b1u + (uint32_t)y * 0x85ebca77u;
    h = (h ^ (h >> 15)) * 0x2c1b3c6du;
    h = (h ^ (h >> 12)) * 0x297a2d39u;
    return (float)((h ^ (h >> 15)) >> 8) * (1.0f / 16777216.0f);
}

/* Value noise on a lattice that repeats after px by py cells: -1..1. x and y are 0..px and 0..py. */
static float noise(uint64_t seed64, float x, float y, int px, int py)
{
    uint32_t seed = (uint32_t)(seed64 ^ seed64 >> 32);
    int x0 = (int)x, y0 = (int)y;
    float fx = x - (float)x0, fy = y - (float)y0;
    int x1 = x0 + 1 == px ? 0 : x0 + 1, y1 = y0 + 1 == py ? 0 : y0 + 1;
    float a = corner(seed, x0, y0), b = corner(seed, x1, y0);
    float c = corner(seed, x0, y1), d = corner(seed, x1, y1);
    fx = fx * fx * (3 - 2 * fx);
    fy = fy * fy * (3 - 2 * fy);
    float top = a + (b - a) * fx, bottom = c + (d - c) * fx;
    return 2 * (top + (bottom - top) * fy) - 1;
}

/* u and v are 0..1 over the tile; cells_u by cells_v lattice cells in the first octave. */
static float octaves(uint64_t seed, float u, float v, int cells_u, int cells_v, int count, float gain)
{
    float sum = 0, amplitude = 1;
    for (int i = 0; i < count; i++) {
        sum += amplitude *
               noise(seed + (uint64_t)i * 0x9e3779b9u, u * (float)cells_u, v * (float)cells_v, cells_u, cells_v);
        cells_u *= 2;
        cells_v *= 2;
        amplitude *= gain;
    }
    return sum;
}

static float edge(float distance, float width)
{
    return distance < width ? 1 - distance / width : 0;
}

static struct weir_v3 wood(uint64_t seed, float u, float v)
{
    enum { PLANKS = 6 };
    int plank = weir_scene_floor(v * PLANKS);
    float across = v * PLANKS - (float)plank;
    uint64_t own = weir_scene_mix(seed, 50 + (uint64_t)plank);
    float tone = weir_scene_range(own, 0.84f, 1.10f);
    float warp = noise(own, u * 4, v * 12, 4, 12);
    float rings = weir_scene_sin((across * 9 + 1.6f * warp) * 6.28f);
    float grain = octaves(own + 7, u, v, 12, 192, 3, 0.65f);
    float pores = noise(own + 20, u * 96, v * 512, 96, 512);
    float light = tone * (1 + 0.05f * rings + 0.052f * grain);
    if (pores > 0.55f)
        light *= 1 - 0.22f * (pores - 0.55f) * 2;
    light *= 1 - 0.35f * edge(across < 0.5f ? across : 1 - across, 0.018f);
    return weir_v3(0.70f * light, (0.51f + 0.015f * warp) * light, 0.335f * light);
}

static struct weir_v3 cloth(uint64_t seed, float u, float v)
{
    enum { THREADS = 64 };
    float warp = weir_scene_sin(u * THREADS * 6.2831853f), weft = weir_scene_sin(v * THREADS * 6.2831853f);
    bool over = (weir_scene_floor(u * THREADS * 2) + weir_scene_floor(v * THREADS * 2)) & 1;
    float thread = over ? warp * warp : weft * weft;
    float light = 0.80f + 0.20f * thread + 0.08f * octaves(seed, u, v, 16, 16, 4, 0.7f);
    float stripe = v * 4 - (float)weir_scene_floor(v * 4);
    float wide = u * 2 - (float)weir_scene_floor(u * 2);
    struct weir_v3 colour = weir_v3(0.30f, 0.38f, 0.47f);
    if (stripe < 0.10f || (stripe > 0.16f && stripe < 0.19f))
        colour = weir_v3(0.78f, 0.74f, 0.64f);
    else if (wide < 0.08f)
        colour = weir_v3(0.55f, 0.24f, 0.22f);
    return weir_v3_mul(colour, light);
}

static struct weir_v3 wall(uint64_t seed, float u, float v)
{
    enum { COURSES = 8, BRICKS = 4 };
    int course = weir_scene_floor(v * COURSES);
    float along = u * BRICKS + ((course & 1) ? 0.5f : 0);
    int brick = weir_scene_floor(along) % BRICKS;
    float fu = along - (float)weir_scene_floor(along), fv = v * COURSES - (float)course;
    float du = (fu < 0.5f ? fu : 1 - fu) * 2.4f, dv = fv < 0.5f ? fv : 1 - fv;
    float mortar = edge(du < dv ? du : dv, 0.09f);
    float tone = weir_scene_range(weir_scene_mix(seed, (uint64_t)(course * BRICKS + brick)), 0.94f, 1.04f);
    float rough = octaves(seed + 3, u, v, 16, 16, 5, 0.72f);
    float light = tone * (1 + 0.035f * rough) * (1 - 0.14f * mortar);
    return weir_v3(0.68f * light, 0.67f * light, 0.645f * light);
}

static struct weir_v3 floor_tiles(uint64_t seed, float u, float v)
{
    float pile = octaves(seed, u, v, 32, 32, 4, 0.85f);
    float speck = noise(seed + 9, u * 200, v * 200, 200, 200);
    float du = u < 0.5f ? u : 1 - u, dv = v < 0.5f ? v : 1 - v;
    float light = 0.30f + 0.025f * pile + (speck > 0.6f ? 0.05f : 0) - 0.10f * edge(du < dv ? du : dv, 0.008f);
    return weir_v3(light, light * 1.02f, light * 1.06f);
}

/* Labels and posters: blocks of colour, lines that look like text, bars. */
static struct weir_v3 print(uint64_t seed, float u, float v)
{
    enum { COLUMNS = 4, ROWS = 8 };
    int column = weir_scene_floor(u * COLUMNS), row = weir_scene_floor(v * ROWS);
    uint64_t cell = weir_scene_mix(seed, (uint64_t)(row * COLUMNS + column) + 1);
    float fu = u * COLUMNS - (float)column, fv = v * ROWS - (float)row;
    struct weir_v3 paper = weir_v3(0.86f, 0.84f, 0.79f);
    float ink = 0;
    switch (cell % 4) {
    case 0: /* a block of colour */
        paper = weir_v3(weir_scene_range(cell, 0.2f, 0.9f), weir_scene_range(cell * 3, 0.2f, 0.7f),
                        weir_scene_range(cell * 7, 0.15f, 0.7f));
        break;
    case 1: /* bars */
        ink = weir_scene_unit(weir_scene_mix(cell, (uint64_t)(int)(fu * 28))) > 0.5f && fv > 0.15f && fv < 0.85f;
        break;
    default: { /* text: lines of glyph-like marks */
        int line = (int)(fv * 5), letter = (int)(fu * 16);
        uint64_t glyph = weir_scene_mix(cell, (uint64_t)(line * 16 + letter));
        float lu = fu * 16 - (float)letter, lv = fv * 5 - (float)line;
        if (glyph % 6 != 0 && lv > 0.25f && lv < 0.8f && lu > 0.12f && lu < 0.88f)
            ink = weir_scene_unit(weir_scene_mix(glyph, (uint64_t)((int)(lu * 3) * 3 + (int)(lv * 4)))) > 0.42f;
    }
    }
    float light = (1 - 0.52f * ink) * (1 + 0.05f * octaves(seed + 2, u, v, 16, 16, 4, 0.7f));
    return weir_v3_mul(paper, light);
}

static struct weir_v3 metal(uint64_t seed, float u, float v)
{
    float brushed = noise(seed, u * 8, v * 256, 8, 256) + 0.6f * noise(seed + 1, u * 24, v * 512, 24, 512);
    float worn = octaves(seed + 2, u, v, 8, 8, 4, 0.6f);
    float screw = edge(u < 0.5f ? u : 1 - u, 0.03f);
    float light = 0.80f + 0.07f * brushed + 0.07f * worn - 0.35f * screw;
    return weir_v3(light, light, light);
}

static uint64_t pack(struct weir_v3 c)
{
    float channel[3] = {c.x, c.y, c.z};
    uint64_t packed = 0;
    for (int i = 0; i < 3; i++) {
        float v = channel[i] * 255.0f + 0.5f;
        packed = packed << 16 | (uint64_t)(v < 0 ? 0 : v > 255 ? 255 : (int)v);
    }
    return packed;
}

/* Each level is the mean of two by two texels of the one before. */
static void make_levels(struct weir_texture *texture)
{
    for (int l = 1; l <= texture->size_log2; l++) {
        const uint64_t *from = texture->texels + texture->level[l - 1];
        uint64_t *to = texture->texels + texture->level[l];
        size_t size = (size_t)1 << (texture->size_log2 - l), wide = size * 2;
        for (size_t y = 0; y < size; y++) {
            for (size_t x = 0; x < size; x++) {
                const uint64_t *p = from + 2 * y * wide + 2 * x;
                to[y * size + x] = ((p[0] + p[1] + p[wide] + p[wide + 1] + 0x000200020002u) >> 2) & 0x00ff00ff00ffu;
            }
        }
    }
}

int weir_texture_make(struct weir_texture *texture, enum weir_texture_name name, uint64_t seed, int shrink)
{
    static struct weir_v3 (*const paint[])(uint64_t, float, float) = {
        [WEIR_TEX_WOOD] = wood,         [WEIR_TEX_CLOTH] = cloth, [WEIR_TEX_WALL] = wall,
        [WEIR_TEX_FLOOR] = floor_tiles, [WEIR_TEX_PRINT] = print, [WEIR_TEX_METAL] = metal,
    };
    texture->size_log2 = name == WEIR_TEX_WOOD ? 10 : name == WEIR_TEX_METAL ? 8 : 9;
    texture->size_log2 -= shrink;
    size_t total = 0;
    for (int l = 0; l <= texture->size_log2; l++) {
        texture->level[l] = total;
        total += (size_t)1 << 2 * (texture->size_log2 - l);
    }
    texture->texels = malloc(total * sizeof *texture->texels);
    if (!texture->texels)
        return -ENOMEM;
    size_t size = (size_t)1 << texture->size_log2;
    for (size_t y = 0; y < size; y++)
        for (size_t x = 0; x < size; x++)
            texture->texels[y * size + x] =
                pack(paint[name](seed, ((float)x + 0.5f) / (float)size, ((float)y + 0.5f) / (float)size));
    make_levels(texture);
    return 0;
}

void weir_texture_free(struct weir_texture *texture)
{
    free(texture->texels);
    texture->texels = NULL;
}
