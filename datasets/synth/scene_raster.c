#include "datasets/synth/scene_priv.h"

#include <math.h>
#include <string.h>

static const float near_m = 0.02f;
static const uint64_t lanes = 0x00ff00ff00ffu;

enum { BLOCK = 16 }; /* pixels between two perspective divisions */

static struct weir_v3 to_camera(const struct weir_view *view, struct weir_v3 p)
{
    p = weir_v3_sub(p, view->eye);
    return weir_v3(weir_v3_dot(p, view->right), weir_v3_dot(p, view->down), weir_v3_dot(p, view->ahead));
}

static struct weir_v3 turn(const struct weir_view *view, struct weir_v3 d)
{
    return weir_v3(weir_v3_dot(d, view->right), weir_v3_dot(d, view->down), weir_v3_dot(d, view->ahead));
}

void weir_raster_clear(struct weir_canvas *canvas)
{
    size_t n = (size_t)canvas->width * (size_t)canvas->height;
    memset(canvas->pixels, 0x20, n * sizeof *canvas->pixels);
    memset(canvas->inverse_depth, 0, n * sizeof *canvas->inverse_depth);
}

/* u and v are 16.16 fixed point texels of a level with 1 << size_log2 texels a side. */
static inline uint64_t sample(const uint64_t *texels, int size_log2, uint32_t u, uint32_t v)
{
    uint32_t mask = (1u << size_log2) - 1;
    uint32_t x0 = (u >> 16) & mask, x1 = (x0 + 1) & mask, y0 = (v >> 16) & mask, y1 = (y0 + 1) & mask;
    const uint64_t *row0 = texels + ((size_t)y0 << size_log2), *row1 = texels + ((size_t)y1 << size_log2);
    uint64_t fu = (u >> 8) & 255, fv = (v >> 8) & 255;
    /* a * 256 + (b - a) * f: borrows between lanes cancel in the sum. */
    uint64_t top = (((row0[x0] << 8) + (row0[x1] - row0[x0]) * fu) >> 8) & lanes;
    uint64_t bottom = (((row1[x0] << 8) + (row1[x1] - row1[x0]) * fu) >> 8) & lanes;
    return (((top << 8) + (bottom - top) * fv) >> 8) & lanes;
}

static inline uint64_t nearest(const uint64_t *texels, int size_log2, uint32_t u, uint32_t v)
{
    uint32_t mask = (1u << size_log2) - 1;
    return texels[((size_t)(v >> 16 & mask) << size_log2) + (u >> 16 & mask)];
}

static inline uint32_t clamp255(uint32_t v)
{
    return v > 255 ? 255 : v;
}

static inline uint32_t shade(uint64_t texel, const uint32_t tint[3])
{
    uint32_t r = ((uint32_t)(texel >> 32) & 255) * tint[0] >> 8;
    uint32_t g = ((uint32_t)(texel >> 16) & 255) * tint[1] >> 8;
    uint32_t b = ((uint32_t)texel & 255) * tint[2] >> 8;
    return clamp255(r) << 16 | clamp255(g) << 8 | clamp255(b);
}

static uint32_t to_fixed8(float v)
{
    return v <= 0 ? 0 : v >= 4 ? 1024 : (uint32_t)(v * 256.0f);
}

/* ---- polygons ---- */

/* 1/z, u/z and v/z are linear on the screen: value = c + x * dx + y * dy. */
struct linear {
    float c, dx, dy;
};

static struct linear linear_make(struct weir_v3 n, float scale, const struct weir_view *view)
{
    float kx = n.x * scale / view->focal, ky = n.y * scale / view->focal;
    return (struct linear){n.z * scale - kx * view->cx - ky * view->cy, kx, ky};
}

static inline float linear_at(const struct linear *l, float x, float y)
{
    return l->c + x * l->dx + y * l->dy;
}

struct plane {
    struct linear iz, uz, vz;
};

static bool plane_make(struct plane *plane, const struct weir_view *view, struct weir_v3 origin, struct weir_v3 u,
                       struct weir_v3 v)
{
    struct weir_v3 o = to_camera(view, origin), cu = turn(view, u), cv = turn(view, v);
    struct weir_v3 normal = weir_v3_cross(cu, cv);
    float volume = weir_v3_dot(o, normal);
    if (volume > -1e-9f && volume < 1e-9f)
        return false; /* seen edge on */
    plane->iz = linear_make(normal, 1.0f / volume, view);
    plane->uz = linear_make(weir_v3_cross(cv, o), 1.0f / volume, view);
    plane->vz = linear_make(weir_v3_cross(o, cu), 1.0f / volume, view);
    return true;
}

struct outline {
    float x[WEIR_FACE_CORNERS + 2], y[WEIR_FACE_CORNERS + 2];
    int n;
    int y0, y1; /* rows */
};

static int bounded(float v, int limit)
{
    return v <= 0 ? 0 : v >= (float)limit ? limit : (int)v;
}

/* Clips to the near plane and projects; false when nothing is left. */
static bool outline_make(struct outline *outline, const struct weir_canvas *canvas, const struct weir_v3 *corner, int n)
{
    const struct weir_view *view = &canvas->view;
    float top = 1e9f, bottom = -1e9f;
    outline->n = 0;
    struct weir_v3 last = to_camera(view, corner[n - 1]);
    for (int i = 0; i < n; i++) {
        struct weir_v3 p = to_camera(view, corner[i]);
        struct weir_v3 add[2];
        int n_add = 0;
        if ((p.z > near_m) != (last.z > near_m)) {
            float s = (near_m - last.z) / (p.z - last.z);
            add[n_add] = weir_v3_add(last, weir_v3_mul(weir_v3_sub(p, last), s));
            add[n_add++].z = near_m;
        }
        if (p.z > near_m)
            add[n_add++] = p;
        for (int k = 0; k < n_add && outline->n < WEIR_FACE_CORNERS + 2; k++) {
            float x = view->cx + view->focal * add[k].x / add[k].z, y = view->cy + view->focal * add[k].y / add[k].z;
            outline->x[outline->n] = x;
            outline->y[outline->n++] = y;
            top = y < top ? y : top;
            bottom = y > bottom ? y : bottom;
        }
        last = p;
    }
    outline->y0 = bounded(top, canvas->height);
    outline->y1 = bounded(bottom + 1, canvas->height);
    return outline->n >= 3 && outline->y0 < outline->y1;
}

/* The pixels of row y that the outline covers: *x0 .. *x1 - 1. */
static bool outline_row(const struct outline *outline, int y, int width, int *x0, int *x1)
{
    float at = (float)y + 0.5f, left = 1e9f, right = -1e9f;
    for (int i = 0, j = outline->n - 1; i < outline->n; j = i++) {
        float ya = outline->y[j], yb = outline->y[i];
        if ((ya <= at) == (yb <= at))
            continue;
        float x = outline->x[j] + (at - ya) / (yb - ya) * (outline->x[i] - outline->x[j]);
        left = x < left ? x : left;
        right = x > right ? x : right;
    }
    if (left > right)
        return false;
    *x0 = bounded(left, width);
    *x1 = bounded(right + 1, width);
    return *x0 < *x1;
}

struct uv {
    float iz, u, v;
};

static struct uv plane_at(const struct plane *plane, float x, float y)
{
    struct uv at = {.iz = linear_at(&plane->iz, x, y)};
    /* Past the horizon, which a rounded edge can touch. */
    float z = 1.0f / (at.iz < 1e-3f ? 1e-3f : at.iz);
    at.u = linear_at(&plane->uz, x, y) * z;
    at.v = linear_at(&plane->vz, x, y) * z;
    return at;
}

static float magnitude(float v)
{
    return v < 0 ? -v : v;
}

/* Texels of the finest level per pixel, in the direction where they are densest. */
static float texel_density(const struct plane *plane, struct uv a, struct uv b, int n, int size)
{
    float z = 1.0f / (a.iz < 1e-3f ? 1e-3f : a.iz);
    float ux = magnitude(b.u - a.u) / (float)n, vx = magnitude(b.v - a.v) / (float)n;
    float uy = magnitude((plane->uz.dy - a.u * plane->iz.dy) * z);
    float vy = magnitude((plane->vz.dy - a.v * plane->iz.dy) * z);
    float most = ux > vx ? ux : vx;
    most = uy > most ? uy : most;
    return (vy > most ? vy : most) * (float)size;
}

static uint32_t to_texels(float coordinate, int size_log2)
{
    if (!(coordinate > -1e6f && coordinate < 1e6f)) /* seen almost edge on */
        return 0;
    float whole = (float)weir_scene_floor(coordinate);
    return (uint32_t)((coordinate - whole) * (float)(1 << size_log2) * 65536.0f);
}

static uint32_t to_step(float difference, int n, int size_log2)
{
    float step = difference / (float)n * (float)(1 << size_log2) * 65536.0f;
    step = step > 2e9f ? 2e9f : step < -2e9f ? -2e9f : step;
    return (uint32_t)(int32_t)step;
}

static bool hidden(const float *depth, int n, float a, float b)
{
    float nearest_iz = a > b ? a : b;
    int i = 0;
    while (i < n && depth[i] >= nearest_iz)
        i++;
    return i == n;
}

/* a and b: at the first pixel and just past the last. */
static void draw_block(struct weir_canvas *canvas, const struct weir_face *face, const struct plane *plane, int y,
                       int x0, int n, struct uv a, struct uv b)
{
    size_t row = (size_t)y * (size_t)canvas->width + (size_t)x0;
    uint32_t *pixels = canvas->pixels + row;
    float *depth = canvas->inverse_depth + row;
    if (hidden(depth, n, a.iz, b.iz))
        return;
    const struct weir_texture *texture = face->texture;
    float density = texel_density(plane, a, b, n, 1 << texture->size_log2);
    int level = 0;
    for (; density > 0.8f && level < texture->size_log2; level++)
        density *= 0.5f;
    int size_log2 = texture->size_log2 - level;
    const uint64_t *texels = texture->texels + texture->level[level];
    uint32_t u = to_texels(a.u, size_log2), v = to_texels(a.v, size_log2);
    uint32_t du = to_step(b.u - a.u, n, size_log2), dv = to_step(b.v - a.v, n, size_log2);
    float light = 1 + face->light_u * a.u + face->light_v * a.v;
    uint32_t tint[3] = {to_fixed8(face->tint.x * light), to_fixed8(face->tint.y * light),
                        to_fixed8(face->tint.z * light)};
    /* Texels smaller than pixels need no interpolation: the lens blurs what that leaves. */
    bool smooth = level == 0;
    float iz = a.iz, step = plane->iz.dx;
    for (int i = 0; i < n; i++, u += du, v += dv, iz += step) {
        if (iz <= depth[i])
            continue;
        depth[i] = iz;
        pixels[i] = shade(smooth ? sample(texels, size_log2, u, v) : nearest(texels, size_log2, u, v), tint);
    }
}

void weir_raster_face(struct weir_canvas *canvas, const struct weir_face *face)
{
    struct outline outline;
    struct plane plane;
    if (!outline_make(&outline, canvas, face->corner, face->n_corners) ||
        !plane_make(&plane, &canvas->view, face->origin, face->u_axis, face->v_axis))
        return;
    for (int y = outline.y0; y < outline.y1; y++) {
        int x0, x1;
        if (!outline_row(&outline, y, canvas->width, &x0, &x1))
            continue;
        struct uv a = plane_at(&plane, (float)x0 + 0.5f, (float)y + 0.5f);
        for (int x = x0; x < x1; x += BLOCK) {
            int n = x1 - x < BLOCK ? x1 - x : BLOCK;
            struct uv b = plane_at(&plane, (float)(x + n) + 0.5f, (float)y + 0.5f);
            draw_block(canvas, face, &plane, y, x, n, a, b);
            a = b;
        }
    }
}

static void darken(uint32_t *pixel, uint32_t keep)
{
    uint32_t rb = (*pixel & 0xff00ff) * keep >> 8 & 0xff00ff, g = (*pixel & 0x00ff00) * keep >> 8 & 0x00ff00;
    *pixel = rb | g;
}

static void darken_row(struct weir_canvas *canvas, const struct plane *plane, int y, int x0, int x1, float strength)
{
    size_t row = (size_t)y * (size_t)canvas->width;
    float px = (float)x0 + 0.5f, py = (float)y + 0.5f;
    float iz = linear_at(&plane->iz, px, py), u = linear_at(&plane->uz, px, py), v = linear_at(&plane->vz, px, py);
    for (int x = x0; x < x1; x++, iz += plane->iz.dx, u += plane->uz.dx, v += plane->vz.dx) {
        float out2 = u * u + v * v, edge2 = iz * iz;
        /* Outside the ellipse, or on something above the surface, which is a little farther than the shadow. */
        if (out2 >= edge2 || iz * 1.004f <= canvas->inverse_depth[row + (size_t)x])
            continue;
        float inside = 1 - out2 / edge2;
        darken(&canvas->pixels[row + (size_t)x], 256 - to_fixed8(strength * inside * (2 - inside)));
    }
}

void weir_raster_shadow(struct weir_canvas *canvas, struct weir_v3 centre, struct weir_v3 u_radius,
                        struct weir_v3 v_radius, float strength)
{
    struct weir_v3 right = weir_v3_add(centre, u_radius), left = weir_v3_sub(centre, u_radius);
    struct weir_v3 corner[4] = {weir_v3_sub(left, v_radius), weir_v3_sub(right, v_radius), weir_v3_add(right, v_radius),
                                weir_v3_add(left, v_radius)};
    struct outline outline;
    struct plane plane;
    if (!outline_make(&outline, canvas, corner, 4) || !plane_make(&plane, &canvas->view, centre, u_radius, v_radius))
        return;
    for (int y = outline.y0; y < outline.y1; y++) {
        int x0, x1;
        if (!outline_row(&outline, y, canvas->width, &x0, &x1))
            continue;
        darken_row(canvas, &plane, y, x0, x1, strength);
    }
}

/* ---- balls and rounded cylinders ---- */

struct rod {
    float ax, ay, dx, dy, length2; /* the axis on the screen */
    float ra, rb, iza, izb;
    float radius;        /* metres, the larger */
    struct weir_v3 half; /* between light and viewer, for the highlight */
    float repeats;
};

static bool rod_make(struct rod *rod, const struct weir_canvas *canvas, const struct weir_round *shape)
{
    const struct weir_view *view = &canvas->view;
    struct weir_v3 a = to_camera(view, shape->a), b = to_camera(view, shape->b);
    float nearest = a.z < b.z ? a.z : b.z;
    rod->radius = shape->radius_a > shape->radius_b ? shape->radius_a : shape->radius_b;
    if (nearest < near_m + rod->radius)
        return false;
    float fa = view->focal / a.z, fb = view->focal / b.z;
    rod->ax = view->cx + fa * a.x;
    rod->ay = view->cy + fa * a.y;
    rod->dx = view->cx + fb * b.x - rod->ax;
    rod->dy = view->cy + fb * b.y - rod->ay;
    rod->length2 = rod->dx * rod->dx + rod->dy * rod->dy;
    rod->ra = fa * shape->radius_a;
    rod->rb = fb * shape->radius_b;
    rod->iza = 1.0f / a.z;
    rod->izb = 1.0f / b.z;
    rod->half = weir_v3_unit(weir_v3_add(view->light, weir_v3(0, 0, -1)));
    struct weir_v3 axis = weir_v3_sub(shape->b, shape->a);
    rod->repeats = shape->repeat * (sqrtf(weir_v3_dot(axis, axis)) + rod->radius);
    return true;
}

static void rod_pixel(struct weir_canvas *canvas, const struct weir_round *shape, const struct rod *rod, int x, int y)
{
    float px = (float)x + 0.5f - rod->ax, py = (float)y + 0.5f - rod->ay;
    float s = rod->length2 > 1e-6f ? (px * rod->dx + py * rod->dy) / rod->length2 : 0;
    s = s < 0 ? 0 : s > 1 ? 1 : s;
    float r = rod->ra + s * (rod->rb - rod->ra);
    float ox = px - s * rod->dx, oy = py - s * rod->dy;
    if (ox * ox + oy * oy >= r * r)
        return;
    ox /= r;
    oy /= r;
    float inside = 1 - ox * ox - oy * oy, nz = sqrtf(inside > 0 ? inside : 0);
    float z = 1.0f / (rod->iza + s * (rod->izb - rod->iza)) - nz * rod->radius;
    size_t at = (size_t)y * (size_t)canvas->width + (size_t)x;
    if (z < near_m || 1.0f / z <= canvas->inverse_depth[at])
        return;
    canvas->inverse_depth[at] = 1.0f / z;
    struct weir_v3 normal = weir_v3(ox, oy, -nz);
    float diffuse = weir_v3_dot(normal, canvas->view.light);
    float light = 0.34f + 0.72f * (diffuse > 0 ? diffuse : 0);
    float shine = weir_v3_dot(normal, rod->half);
    shine = shine > 0 ? shine * shine : 0;
    shine = shine * shine * shine * shine;
    shine = shine * shine * shape->gloss * 190;
    uint32_t tint[3] = {to_fixed8(shape->tint.x * light), to_fixed8(shape->tint.y * light),
                        to_fixed8(shape->tint.z * light)};
    float length = sqrtf(rod->length2) + 1e-3f;
    float across = rod->length2 > 1 ? (ox * rod->dy - oy * rod->dx) / length : ox;
    float along = rod->length2 > 1 ? s * rod->repeats : (oy * 0.5f + 0.5f) * rod->repeats;
    const struct weir_texture *texture = shape->texture;
    int level = rod->ra > 60 ? 0 : rod->ra > 20 ? 1 : 2, size_log2 = texture->size_log2 - level;
    uint32_t colour = shade(sample(texture->texels + texture->level[level], size_log2, to_texels(along, size_log2),
                                   to_texels(0.35f * across + 0.5f, size_log2)),
                            tint);
    uint32_t bright = (uint32_t)shine;
    canvas->pixels[at] = clamp255((colour >> 16) + bright) << 16 | clamp255((colour >> 8 & 255) + bright) << 8 |
                         clamp255((colour & 255) + bright);
}

void weir_raster_round(struct weir_canvas *canvas, const struct weir_round *shape)
{
    struct rod rod;
    if (!rod_make(&rod, canvas, shape))
        return;
    float r = rod.ra > rod.rb ? rod.ra : rod.rb;
    float top = rod.dy < 0 ? rod.ay + rod.dy : rod.ay, bottom = rod.dy < 0 ? rod.ay : rod.ay + rod.dy;
    int y0 = bounded(top - r, canvas->height), y1 = bounded(bottom + r + 1, canvas->height);
    for (int y = y0; y < y1; y++) {
        /* Only the part of the axis within r of this row can reach it. */
        float s0 = 0, s1 = 1, middle = (float)y + 0.5f - rod.ay;
        if (magnitude(rod.dy) > 1) {
            s0 = (middle - r) / rod.dy;
            s1 = (middle + r) / rod.dy;
            float low = s0 < s1 ? s0 : s1, high = s0 < s1 ? s1 : s0;
            s0 = low < 0 ? 0 : low > 1 ? 1 : low;
            s1 = high > 1 ? 1 : high < 0 ? 0 : high;
        }
        float xa = rod.ax + s0 * rod.dx, xb = rod.ax + s1 * rod.dx;
        int x0 = bounded((xa < xb ? xa : xb) - r, canvas->width),
            x1 = bounded((xa < xb ? xb : xa) + r + 1, canvas->width);
        for (int x = x0; x < x1; x++)
            rod_pixel(canvas, shape, &rod, x, y);
    }
}
