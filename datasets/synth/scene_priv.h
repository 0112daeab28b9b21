/* scene_priv.h: internal parts of the synthetic scene: arithmetic, motion and the backdrop. Distances are in metres.
 * The x axis points right, y away from the viewer, and z up; the table top is at z = 0. */
#ifndef WEIR_DATASETS_SYNTH_SCENE_PRIV_H
#define WEIR_DATASETS_SYNTH_SCENE_PRIV_H

#include "datasets/synth/scene.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef __clang__ /* gcc does not support the pragma, but has this default with -std=c17 */
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

/* Hashes (splitmix64 finaliser), identical on every machine. */
uint64_t weir_scene_mix(uint64_t a, uint64_t b);
float weir_scene_range(uint64_t hash, float lo, float hi); /* Returns a number in lo..hi. */

/* Replacements for libm's functions, whose rounding differs between machines. The error is below 1e-5. */
float weir_scene_sin(float radians);
float weir_scene_cos(float radians);
float weir_scene_atan2(float y, float x);

static inline int weir_scene_floor(float x)
{
    int i = (int)x;
    return (float)i > x ? i - 1 : i;
}

/* ---- motion ---- */

struct weir_arm_pose {
    float joint[WEIR_SCENE_ARM_JOINTS];
    struct weir_v3 base, shoulder, elbow, wrist, tip;
    struct weir_v3 object; /* centre of the arm's object */
    bool holding;
};

/* Computes an arm's pose at a step of an episode. Step -1 and steps past the end are also valid, because the motion
 * continues there. */
void weir_motion_pose(uint64_t episode_seed, int steps, int arm, int step, struct weir_arm_pose *pose);

/* ---- the backdrop ---- */

/* Square, periodic images of `size` x `size` pixels; size is a power of two. */
struct weir_backdrop {
    size_t size;
    uint8_t *rgb;
    int16_t *relief_mm; /* distance behind the plane */
};

/* longest: longer side of the images. Returns 0 or -ENOMEM; free the backdrop in either case. */
int weir_backdrop_make(struct weir_backdrop *backdrop, int longest, uint64_t seed);
void weir_backdrop_free(struct weir_backdrop *backdrop);

#endif
