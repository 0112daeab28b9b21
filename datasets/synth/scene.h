/* scene.h: a synthetic robot table: two arms that pick and place objects, their joint angles, and images of them. The
 * images are not realistic but cheap to render, and their JPEGs have the size and decoding cost of camera images.
 *
 * Everything is a pure function of (seed, episode, step, camera), so any number of threads may render frames in any
 * order. Arithmetic is limited to + - * / and square roots, which IEEE 754 rounds identically everywhere (compile with
 * -ffp-contract=off). */
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
    int steps;           /* steps per episode */
    double rate_hz;      /* steps per second, from which velocities follow */
    int width, height;   /* size of every camera's images */
    const char **camera; /* names; a camera with "wrist" in its name is mounted on an arm. Only open reads them */
    int n_cameras;
};

struct weir_scene; /* shared by all threads; constant after open */

struct weir_scene_state {
    float qpos[WEIR_SCENE_JOINTS];    /* joint positions in radians, with encoder noise */
    float qvel[WEIR_SCENE_JOINTS];    /* joint velocities in radians per second */
    float action[WEIR_SCENE_JOINTS];  /* the commanded position, which is the position of the next step */
    float tip[WEIR_SCENE_ARMS][7];    /* gripper position (metres) and orientation (quaternion xyzw) */
    float target[WEIR_SCENE_ARMS][7]; /* commanded gripper position and orientation */
    int holding;                      /* number of objects held */
};

/* Returns 0 or -ENOMEM. The caller owns *scene, which is NULL after a failure. */
int weir_scene_open(struct weir_scene **scene, const struct weir_scene_config *config);
void weir_scene_close(struct weir_scene **scene);

void weir_scene_state_at(const struct weir_scene *scene, int episode, int step, struct weir_scene_state *state);

/* Renders one frame: writes height rows of width * 3 bytes to rgb, and width * height distances in millimetres to
 * depth_mm. */
void weir_scene_render(const struct weir_scene *scene, int episode, int step, int camera, uint8_t *rgb,
                       uint16_t *depth_mm);

#endif
