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
    WEIR_MOTION_NAME = 64,        /* bytes per name, including the final zero */
    WEIR_MOTION_PARTS_MAX = 4096, /* maximum dofs, and bodies */
    WEIR_MOTION_CLIPS_MAX = 1 << 20,
    WEIR_MOTION_FRAMES_MAX = 1 << 24, /* per clip: float32 can count them */
};

struct weir_motion_clip {
    size_t first_frame, frames; /* range in the arrays below; frames: 2 to WEIR_MOTION_FRAMES_MAX */
    double fps, duration_s;     /* duration_s = (frames - 1) / fps; both are positive */
    bool loop;                  /* repeats after its end; else holds its last frame */
    char name[WEIR_MOTION_NAME];
};

/* The frames of all clips, concatenated, in C-order arrays. All numbers are finite. */
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
    WEIR_MOTION_LOOP_AS_FILE, /* as loop_mode in the file; without one, clips do not loop */
    WEIR_MOTION_LOOP_NEVER,
    WEIR_MOTION_LOOP_ALWAYS,
};

/* All zero is the default. Texts are borrowed for the call. A body is given by its name, if the file has names, or by
 * its index from 0. */
struct weir_motion_read_options {
    const char *root_body;  /* NULL: body 0 */
    const char *key_bodies; /* comma-separated, in order; NULL: all bodies but the root, in file order */
    enum weir_motion_loop loop;
};

/* Reads motions from a file (NPZ or HDF5), or from all such files (*.npz, *.hdf5, *.h5) directly in a folder, by name.
 * A clip is a file, or a group of an HDF5 file. docs/motion.md lists the keys. Quaternions are normalised. Missing
 * velocities are computed as in legged_lab's trainer (vel_forward_diff and ang_vel_from_quat_diff of its
 * utils/math.py): (next frame - this frame) / dt; for rotations the shorter one, as axis times angle in the world
 * frame; the last frame repeats the previous value. options may be NULL. Any thread. 0 and the clips, which the caller
 * owns; or -errno with *clips NULL, and err names file, array and frame: -EBADMSG (damaged, or not finite), -ENOENT
 * (missing), -ENOTSUP (such as pickles), -EFBIG (over 1 GiB per array), -EINVAL (no such body, a single frame, or fps
 * not positive). */
int weir_motion_read(struct weir_motion_clips **clips, const char *path, const struct weir_motion_read_options *options,
                     struct weir_err *err);
/* Reads n such paths, in order. All files must have the same dofs and bodies. */
int weir_motion_read_paths(struct weir_motion_clips **clips, const char *const *paths, size_t n,
                           const struct weir_motion_read_options *options, struct weir_err *err);

/* ---- motions made up ---- */

/* A zero field selects its default. */
struct weir_motion_synthetic {
    size_t clips;        /* 8 */
    size_t dofs, bodies; /* 29 and 13, as for Unitree's G1 humanoid */
    double fps;          /* 50 */
    double duration_s;   /* mean duration of the clips, 10; each is 0.5 to 1.5 times as long */
    bool loop;           /* all clips loop */
    uint64_t seed;
};

/* Makes clips of a body that walks in circles with swinging limbs. Velocities are the exact derivatives of the
 * positions, and each motion ends as it began, so looping is smooth. The same options give the same numbers on one
 * machine (sin and cos come from its C library). options may be NULL. 0 and the clips, which the caller owns; -EINVAL
 * (options out of range) or -ENOMEM. */
int weir_motion_synthetic(struct weir_motion_clips **clips, const struct weir_motion_synthetic *options,
                          struct weir_err *err);

#endif
