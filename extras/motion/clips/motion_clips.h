/* motion_clips.h: motions of a robot (motion-capture clips retargeted to it) in the form that whole-body-tracking
 * trainers use. Each frame has the state of the root, the joints and the positions of some bodies.
 *
 * The arrays have the same meaning as in the following projects, and the files of all three can be read
 * (extras/motion/README.md):
 * - Isaac Lab's humanoid_amp example (github.com/isaac-sim/IsaacLab, source/isaaclab_tasks/isaaclab_tasks/direct/
 *   humanoid_amp/motions: README.md lists keys and shapes, motion_loader.py reads the files);
 * - BeyondMimic's whole_body_tracking (github.com/HybridRobotics/whole_body_tracking; its scripts/csv_to_npz.py writes
 *   the files);
 * - legged_lab's trainer (MotionDataTerm in motion_data_manager.py). motion.h describes how it samples clips.
 *
 * Units are metres, radians and seconds. Quaternions are w x y z, and rotate vectors from the root's frame to the
 * world.
 *
 * Clips do not change once they are complete, so any number of threads may read them. */
#ifndef WEIR_EXTRAS_MOTION_CLIPS_MOTION_CLIPS_H
#define WEIR_EXTRAS_MOTION_CLIPS_MOTION_CLIPS_H

#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WEIR_MOTION_NAME = 64,        /* bytes per name, including the terminating zero */
    WEIR_MOTION_PARTS_MAX = 4096, /* maximum number of dofs, and of bodies */
    WEIR_MOTION_CLIPS_MAX = 1 << 20,
    WEIR_MOTION_FRAMES_MAX = 1 << 24, /* per clip, because float32 can represent every integer up to this */
};

struct weir_motion_clip {
    size_t first_frame, frames; /* range in the arrays below; frames is 2 to WEIR_MOTION_FRAMES_MAX */
    double fps, duration_s;     /* duration_s = (frames - 1) / fps; both are positive */
    bool loop;                  /* true: repeats after its end; false: holds its last frame */
    char name[WEIR_MOTION_NAME];
};

/* The frames of all clips, concatenated in C-order arrays. All numbers are finite. */
struct weir_motion_clips {
    size_t clips, frames;          /* frames: sum over all clips, at most INT32_MAX */
    size_t dofs, bodies;           /* 1 to WEIR_MOTION_PARTS_MAX; bodies counts the key bodies, without the root */
    struct weir_motion_clip *clip; /* [clips] */
    char (*dof_names)[WEIR_MOTION_NAME];  /* [dofs]; NULL: the file has no names */
    char (*body_names)[WEIR_MOTION_NAME]; /* [bodies], of the key bodies; NULL: the file has no names */
    float *root_pos_w;                    /* [frames][3] metres, world */
    float *root_quat;                     /* [frames][4] w x y z, unit, root to world */
    float *root_vel_w;                    /* [frames][3] m/s, world */
    float *root_ang_vel_w;                /* [frames][3] rad/s, world */
    float *dof_pos, *dof_vel;             /* [frames][dofs] rad, rad/s */
    float *key_body_pos_w;                /* [frames][bodies][3] metres, world */
};

/* Accepts NULL and a pointer to NULL, and sets the pointer to NULL. */
void weir_motion_clips_free(struct weir_motion_clips **clips);

/* ---- motions from files ---- */

enum weir_motion_loop {
    WEIR_MOTION_LOOP_AS_FILE, /* as loop_mode in the file says; without loop_mode, clips do not loop */
    WEIR_MOTION_LOOP_NEVER,
    WEIR_MOTION_LOOP_ALWAYS,
};

/* All zero selects the defaults. Strings are borrowed during the call. A body is specified by its name, if the file has
 * names, or by its index from 0. */
struct weir_motion_read_options {
    const char *root_body;  /* NULL: body 0 */
    const char *key_bodies; /* comma-separated, in order; NULL: all bodies except the root, in file order */
    enum weir_motion_loop loop;
};

/* Reads motions from a file (NPZ or HDF5), or from all files called *.npz, *.hdf5 or *.h5 in a folder (sorted by name,
 * without subfolders). A clip is a file, or a group of an HDF5 file. README.md of extras/motion lists the keys.
 * Quaternions are normalised. Missing velocities are computed like in legged_lab's trainer (vel_forward_diff and
 * ang_vel_from_quat_diff of its utils/math.py): (next frame - this frame) / dt, where a rotation's difference is the
 * shorter rotation, as axis times angle in the world frame. The last frame repeats the previous value. options may be
 * NULL. Thread-safe.
 *
 * Returns 0 and clips that the caller owns, or -errno with *clips NULL. err contains the file, array and frame. Errors
 * are -EBADMSG (damaged file, or a number is not finite), -ENOENT (file or array not found), -ENOTSUP (unsupported
 * type, such as a pickle), -EFBIG (an array is larger than 1 GiB) or -EINVAL (no such body, a single frame, or fps is
 * not positive). */
int weir_motion_read(struct weir_motion_clips **clips, const char *path, const struct weir_motion_read_options *options,
                     struct weir_err *err);
/* Reads n paths, in order, like weir_motion_read. All files must have the same dofs and bodies. */
int weir_motion_read_paths(struct weir_motion_clips **clips, const char *const *paths, size_t n,
                           const struct weir_motion_read_options *options, struct weir_err *err);

/* ---- synthetic motions ---- */

/* A member that is zero selects its default. */
struct weir_motion_synthetic {
    size_t clips;        /* default 8 */
    size_t dofs, bodies; /* default 29 and 13, as for Unitree's humanoid G1 */
    double fps;          /* default 50 */
    double duration_s;   /* mean duration of the clips, default 10; a clip's duration is 0.5 to 1.5 times the mean */
    bool loop;           /* all clips loop */
    uint64_t seed;
};

/* Makes clips of a body that walks in circles with swinging limbs. Velocities are the exact derivatives of the
 * positions. Each motion ends as it began, so it loops smoothly. The same options give the same numbers on a given
 * machine, whose C library computes sin and cos. options may be NULL. Returns 0 and clips that the caller owns, -EINVAL
 * (options out of range) or -ENOMEM. */
int weir_motion_synthetic(struct weir_motion_clips **clips, const struct weir_motion_synthetic *options,
                          struct weir_err *err);

#endif
