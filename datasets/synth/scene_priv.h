/* scene_priv.h: the parts of the synthetic scene: arithmetic, motion, textures, rasteriser. Distances are metres; x is
 * right, y away from the viewer, z up; the table top is z = 0. */
#ifndef WEIR_DATASETS_SYNTH_SCENE_PRIV_H
#define WEIR_DATASETS_SYNTH_SCENE_PRIV_H

#include "datasets/synth/scene.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef __clang__ /* gcc does this by itself under -std=c17, and does not know the pragma */
#pragma STDC FP_CONTRACT OFF
#endif

struct weir_v3 {
    float x, y, z;
};

static inline struct weir_v3 weir_v3(float x, float y, float z)
{
    return (struct weir_v3){x, y, z};
}

static inline struct weir_v3 weir_v3_add(struct weir_v3 a, struct weir_v3 b)
{
    return weir_v3(a.x + b.x, a.y + b.y, a.z + b.z);
}

static inline struct weir_v3 weir_v3_sub(struct weir_v3 a, struct weir_v3 b)
{
    return weir_v3(a.x - b.x, a.y - b.y, a.z - b.z);
}

static inline struct weir_v3 weir_v3_mul(struct weir_v3 a, float k)
{
    return weir_v3(a.x * k, a.y * k, a.z * k);
}

static inline float weir_v3_dot(struct weir_v3 a, struct weir_v3 b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

static inline struct weir_v3 weir_v3_cross(struct weir_v3 a, struct weir_v3 b)
{
    return weir_v3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}

struct weir_v3 weir_v3_unit(struct weir_v3 a);

/* Hashes (splitmix64 finaliser); the same on every machine. */
uint64_t weir_scene_mix(uint64_t a, uint64_t b);
float weir_scene_unit(uint64_t hash);                      /* 0..1 */
float weir_scene_range(uint64_t hash, float lo, float hi); /* lo..hi */

/* Own functions: those of libm may round differently from one machine to the next. Error below 1e-5. */
float weir_scene_sin(float radians);
float weir_scene_cos(float radians);
float weir_scene_atan2(float y, float x);
float weir_scene_acos(float x);

static inline int weir_scene_floor(float x)
{
    int i = (int)x;
    return (float)i > x ? i - 1 : i;
}

/* ---- motion ---- */

struct weir_arm_pose {
    float joint[WEIR_SCENE_ARM_JOINTS];
    struct weir_v3 base, shoulder, elbow, wrist, tip;
    struct weir_v3 ahead, side; /* unit: where the gripper points, and the line on which its fingers move */
    struct weir_v3 object;      /* the object this arm handles: its centre */
    float object_yaw;
    bool holding;
};

/* Where an arm is at a step of an episode (steps -1 and past the end are fine: the plan goes on). */
void weir_motion_pose(uint64_t episode_seed, int steps, int arm, int step, struct weir_arm_pose *pose);

/* Half the edge of the object that an arm handles. */
float weir_motion_object_half(uint64_t episode_seed, int arm);

/* ---- textures ---- */

enum weir_texture_name {
    WEIR_TEX_WOOD,
    WEIR_TEX_CLOTH,
    WEIR_TEX_WALL,
    WEIR_TEX_FLOOR,
    WEIR_TEX_PRINT,
    WEIR_TEX_METAL,
    WEIR_TEX_COUNT,
};

/* Square, tiling, with all mip levels; a texel is 0x00RR00GG00BB so that one multiplication scales three channels. */
struct weir_texture {
    uint64_t *texels;
    size_t level[12]; /* offset of each level */
    int size_log2;
};

/* shrink: halvings of the size, 0..3, for small pictures. */
int weir_texture_make(struct weir_texture *texture, enum weir_texture_name name, uint64_t seed, int shrink);
void weir_texture_free(struct weir_texture *texture);

/* ---- rasteriser ---- */

struct weir_view {
    struct weir_v3 eye, right, down, ahead;
    float focal, cx, cy;  /* pixels */
    struct weir_v3 light; /* towards the light, in camera axes (right, down, ahead) */
};

struct weir_canvas {
    int width, height;
    struct weir_view view;
    uint32_t *pixels;     /* 0x00RRGGBB */
    float *inverse_depth; /* 1 / metres */
    uint8_t *rows;        /* room for blurred rows */
};

enum { WEIR_FACE_CORNERS = 16 };

/* A convex plane polygon, textured by p = origin + u * u_axis + v * v_axis (one repetition of the texture per unit). */
struct weir_face {
    struct weir_v3 corner[WEIR_FACE_CORNERS];
    int n_corners;
    struct weir_v3 origin, u_axis, v_axis;
    const struct weir_texture *texture;
    struct weir_v3 tint;    /* 0..1 per channel, light included */
    float light_u, light_v; /* change of light per unit of u and v */
};

struct weir_round {
    struct weir_v3 a, b; /* ends of the axis; equal for a ball */
    float radius_a, radius_b;
    const struct weir_texture *texture;
    struct weir_v3 tint;
    float gloss, repeat; /* 0..1; repetitions of the texture per metre of axis */
};

void weir_raster_clear(struct weir_canvas *canvas);
void weir_raster_face(struct weir_canvas *canvas, const struct weir_face *face);
void weir_raster_round(struct weir_canvas *canvas, const struct weir_round *shape);
/* Darkens a soft ellipse lying on a surface; after everything opaque. strength 0..1. */
void weir_raster_shadow(struct weir_canvas *canvas, struct weir_v3 centre, struct weir_v3 u_radius,
                        struct weir_v3 v_radius, float strength);

/* ---- lens and sensor ---- */

struct weir_sensor {
    int8_t *noise;  /* four per pixel, WEIR_SENSOR_PERIOD + width pixels */
    uint16_t *loss; /* four per pixel of a row: light lost to the left and right, in 1/4096 */
};

enum { WEIR_SENSOR_PERIOD = 1 << 16 };

int weir_sensor_make(struct weir_sensor *sensor, int width, int height, uint64_t seed);
void weir_sensor_free(struct weir_sensor *sensor);
/* Blur, vignette, noise; canvas -> rgb. */
void weir_sensor_expose(const struct weir_sensor *sensor, struct weir_canvas *canvas, uint64_t frame_seed,
                        uint8_t *rgb);
void weir_sensor_depth(const struct weir_canvas *canvas, uint16_t *depth_mm);

#endif
