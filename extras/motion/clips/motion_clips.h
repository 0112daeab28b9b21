/* motion_clips.h: motions of a robot (motion-capture clips retargeted to it), as trainers of whole-body tracking keep
 * them: for each frame the state of the root, the joints and the positions of some bodies.
 *
 * What the arrays mean is what these have, and files of all of them are read (docs/motion.md):
 * - Isaac Lab's humanoid_amp example (github.com/isaac-sim/IsaacLab, source/isaaclab_tasks/isaaclab_tasks/direct/
 *   humanoid_amp/motions: README.md has keys and shapes, motion_loader.py reads them);
 * - BeyondMimic's whole_body_tracking (github.com/HybridRobotics/whole_body_tracking; its scripts/csv_to_npz.py writes
 *   them);
 * - legged_lab's trainer (MotionDataTerm in motion_data_manager.py), whose sampling is kept here as well: a motion
 * lasts (frames - 1) / fps seconds; phase = time / duration, of which a clip that loops takes phase - floor(phase), and
 *   every clip clips it to 0..1; frame0 = trunc(phase * (frames - 1)), frame1 = min(frame0 + 1, frames - 1), blend =
 *   phase * (frames - 1) - frame0. (humanoid_amp's loader rounds frame0 to the nearest frame and extrapolates with a
 *   negative blend: that is not done here.)
 *
 * Units are metres, radians and seconds; quaternions are w x y z, and turn vectors of the root's frame to the world.
 *
 * Clips do not change once they are made: any number of threads may read them. */
#ifndef WEIR_EXTRAS_MOTION_CLIPS_MOTION_CLIPS_H
#define WEIR_EXTRAS_MOTION_CLIPS_MOTION_CLIPS_H

#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WEIR_MOTION_NAME = 64,        /* bytes of a name with its final zero */
    WEIR_MOTION_PARTS_MAX = 4096, /* dofs, and bodies */
    WEIR_MOTION_CLIPS_MAX = 1 << 20,
    WEIR_MOTION_FRAMES_MAX = 1 << 24, /* of a clip: float32 counts them */
};

struct weir_motion_clip {
    size_t first_frame, frames; /* of the arrays below; frames: 2 to WEIR_MOTION_FRAMES_MAX */
    double fps, duration_s;     /* duration_s = (frames - 1) / fps; both are positive */
    bool loop;                  /* past its end it begins again; else its last frame stays */
    char name[WEIR_MOTION_NAME];
};

/* The frames of all clips, one clip behind the other, in arrays of C order. All numbers are finite. */
struct weir_motion_clips {
    size_t clips, frames;                 /* frames of all clips: at most INT32_MAX */
    size_t dofs, bodies;                  /* 1..WEIR_MOTION_PARTS_MAX; bodies: the key bodies, without the root */
    struct weir_motion_clip *clip;        /* [clips] */
    char (*dof_names)[WEIR_MOTION_NAME];  /* [dofs]; NULL: the file has none */
    char (*body_names)[WEIR_MOTION_NAME]; /* [bodies], of the key bodies; NULL: the file has none */
    float *root_pos_w;                    /* [frames][3] metres, world */
    float *root_quat;                     /* [frames][4] w x y z, unit, root to world */
    float *root_vel_w;                    /* [frames][3] m/s, world */
    float *root_ang_vel_w;                /* [frames][3] rad/s, world */
    float *dof_pos, *dof_vel;             /* [frames][dofs] rad, rad/s */
    float *key_body_pos_w;                /* [frames][bodies][3] metres, world */
};

/* Accepts NULL and a pointer to NULL; sets NULL. */
void weir_motion_clips_free(struct weir_motion_clips **clips);

/* ---- motions from files ---- */

enum weir_motion_loop {
    WEIR_MOTION_LOOP_AS_FILE, /* what the file's loop_mode says; without one clips do not loop */
    WEIR_MOTION_LOOP_NEVER,
    WEIR_MOTION_LOOP_ALWAYS,
};

/* All zero is the default. Texts are lent for the call. A body is given by its name where the file has names, or by its
 * number from 0. */
struct weir_motion_read_options {
    const char *root_body; /* NULL: body 0 */
    const char
        *key_bodies; /* separated by commas, in the order wanted; NULL: all bodies but the root, as in the file */
    enum weir_motion_loop loop;
};

/* Reads motions from a file (NPZ or HDF5), or from all such files (*.npz, *.hdf5, *.h5) that lie in a folder itself, by
 * name: each file is a clip, or each group of an HDF5 file. docs/motion.md has the keys. Quaternions become units.
 * Velocities that a file lacks are computed as legged_lab's trainer does (vel_forward_diff and ang_vel_from_quat_diff
 * of its utils/math.py): (next frame - this frame) / dt, of rotations the shorter one as axis times angle in the world;
 * the last frame has those of the frame before it. options may be NULL. Any thread. 0 and the clips, which the caller
 * owns; or -errno with err, which names file, array and frame, and *clips is NULL: -EBADMSG for numbers that are not
 * finite and for whatever is damaged, -ENOENT for what is missing, -ENOTSUP (pickles among others), -EFBIG over 1 GiB
 * an array, -EINVAL for a body that there is not, a single frame, or fps that are not positive. */
int weir_motion_read(struct weir_motion_clips **clips, const char *path, const struct weir_motion_read_options *options,
                     struct weir_err *err);
/* The same of n such paths, in this order. All files must have the same dofs and bodies. */
int weir_motion_read_paths(struct weir_motion_clips **clips, const char *const *paths, size_t n,
                           const struct weir_motion_read_options *options, struct weir_err *err);

/* ---- motions made up ---- */

/* All zero is the default, for each field by itself. */
struct weir_motion_synthetic {
    size_t clips;        /* 8 */
    size_t dofs, bodies; /* 29 and 13, as a humanoid of Unitree's (G1) is trained with */
    double fps;          /* 50 */
    double duration_s;   /* of the clips on average, 10; each has from half to one and a half of it */
    bool loop;           /* all of them loop */
    uint64_t seed;
};

/* A body that walks in circles with swinging limbs. The velocities are the exact derivatives of the positions, and each
 * motion ends as it began, so that it has no jump where it loops. The same numbers from the same options on one machine
 * (sin and cos are those of its C library). options may be NULL. 0 and the clips, which the caller owns; -EINVAL for
 * options out of range, -ENOMEM. */
int weir_motion_synthetic(struct weir_motion_clips **clips, const struct weir_motion_synthetic *options,
                          struct weir_err *err);

#endif
