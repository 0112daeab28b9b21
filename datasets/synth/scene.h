/* scene.h: a made-up robot table: two arms that pick and place objects, their joint angles, and pictures of them. The
 * pictures are cheap to make and as heavy and as costly to decode as a camera's JPEGs; they are not meant to look real.
 *
 * Everything is a pure function of (seed, episode, step, camera): no state is carried from frame to frame, so frames
 * may be made in any order by any number of threads. Arithmetic is limited to + - * / and square roots, which IEEE 754
 * rounds alike everywhere (compile with -ffp-contract=off). */
#ifndef WEIR_DATASETS_SYNTH_SCENE_H
#define WEIR_DATASETS_SYNTH_SCENE_H

#include <stdint.h>

enum {
    WEIR_SCENE_ARMS = 2,
    WEIR_SCENE_ARM_JOINTS =
        7, /* waist, shoulder, elbow, forearm roll, wrist angle, wrist rotation, gripper (0..1 open) */
    WEIR_SCENE_JOINTS = WEIR_SCENE_ARMS * WEIR_SCENE_ARM_JOINTS, /* left arm first */
};

struct weir_scene_config {
    uint64_t seed;
    int steps;           /* per episode */
    double rate_hz;      /* steps per second, for velocities */
    int width, height;   /* of every camera */
    const char **camera; /* names; "wrist" in a name makes the camera ride on an arm. Read by open only */
    int n_cameras;
};

struct weir_scene; /* shared by all threads, never written after open */

struct weir_scene_state {
    float qpos[WEIR_SCENE_JOINTS];    /* radians, with encoder noise */
    float qvel[WEIR_SCENE_JOINTS];    /* radians per second */
    float action[WEIR_SCENE_JOINTS];  /* the commanded position: where the arm is one step later */
    float tip[WEIR_SCENE_ARMS][7];    /* gripper position (metres) and orientation (quaternion xyzw) */
    float target[WEIR_SCENE_ARMS][7]; /* the same, as commanded */
    int holding;                      /* number of objects held */
};

/* Returns 0 or -ENOMEM. *scene is owned by the caller; NULL after failure. */
int weir_scene_open(struct weir_scene **scene, const struct weir_scene_config *config);
void weir_scene_close(struct weir_scene **scene);

void weir_scene_state_at(const struct weir_scene *scene, int episode, int step, struct weir_scene_state *state);

/* Makes the picture of one frame: height rows of width * 3 bytes in rgb, width * height millimetres in depth_mm. */
void weir_scene_render(const struct weir_scene *scene, int episode, int step, int camera, uint8_t *rgb,
                       uint16_t *depth_mm);

#endif
