/* motion.h: motion clips sampled for thousands of environments, as a whole-body-tracking trainer does it in each step
 * of its simulation: at a time of its own in a clip of its own every environment gets the state of the robot, blended
 * from two frames and seen from the robot's root. It is what weir motion profiles.
 *
 *     weir_motion_open(&motion, &config, &err);
 *     for (...) weir_motion_update(motion, &err);
 *     weir_motion_finish(motion, &err);
 *     weir_motion_close(&motion);
 *
 * Source of the semantics, and of the names of ranges: legged_lab (github.com/zitongbai/legged_lab,
 * managers/motion_data_manager.py and animation_manager.py, utils/math.py), which is built on Isaac Lab. There
 * AnimationTerm.update fetches and then advances its times; MotionDataTerm.get_motion_state does the following for each
 * query, in float32:
 *
 *     phase = time / duration, where duration = (frames - 1) / fps; of a clip that loops phase -= floor(phase);
 *     0 <= phase <= 1 by clamping; at = phase * (frames - 1);
 *     frame0 = trunc(at), frame1 = min(frame0 + 1, frames - 1), blend = at - frame0
 *
 * so a clip that does not loop stands still in its first frame before its beginning, and in its last one past its end.
 * (Isaac Lab's own humanoid_amp/motions/motion_loader.py rounds to the nearer frame and extrapolates with a blend that
 * may be negative.) Rows are interpolated linearly, quaternions (w x y z) by slerp on the shorter arc. The trainer
 * takes the middle of both where the sine of half the angle is below 0.001; here the blend counts there as well. A time
 * that is not a number stands for the beginning of the clip.
 *
 * One thread uses it. Calls queue: weir_motion_finish waits, and so do weir_motion_result and weir_motion_times. */
#ifndef WEIR_EXTRAS_MOTION_MOTION_H
#define WEIR_EXTRAS_MOTION_MOTION_H

#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_motion_clips; /* extras/motion/clips/motion_clips.h */

/* What a query gives. _w: in the world's frame, _b: in the root's. */
enum weir_motion_result {
    WEIR_MOTION_ROOT_POS_W,     /* [3] metres */
    WEIR_MOTION_ROOT_QUAT,      /* [4] w x y z */
    WEIR_MOTION_ROOT_VEL_W,     /* [3] m/s */
    WEIR_MOTION_ROOT_VEL_B,     /* [3] */
    WEIR_MOTION_ROOT_ANG_VEL_W, /* [3] rad/s */
    WEIR_MOTION_ROOT_ANG_VEL_B, /* [3] */
    WEIR_MOTION_DOF_POS,        /* [dofs] rad */
    WEIR_MOTION_DOF_VEL,        /* [dofs] rad/s */
    WEIR_MOTION_KEY_BODY_POS_B, /* [bodies][3] metres: R(root_quat)^-1 (key_body_pos_w - root_pos_w) */
    WEIR_MOTION_RESULTS
};
/* "root_pos_w": as the trainer has it. */
const char *weir_motion_result_name(enum weir_motion_result result);

enum weir_motion_variant {
    WEIR_MOTION_OPS,  /* an operator at a time, each with a result in memory, as an eager framework computes */
    WEIR_MOTION_FUSED /* all of a query in one pass, the quaternions by the fast slerp */
};

/* The usual advice for the trainer's loop; each changes what the variant ops does, and no result beyond rounding. */
struct weir_motion_advice {
    bool indices;       /* precomputed and contiguous: what a query needs of its clip is gathered when clips are set,
                         * not in each fetch, all of a frame lies in one row, and environments are not indexed */
    bool in_place_lerp; /* the first operand is overwritten */
    bool fast_slerp;    /* one operator with an error bound (motion_ops.h) in place of 19 */
    bool rotations;     /* one inverse rotation of all vectors of a query in place of three */
    bool no_copies;     /* repetition (of clips for the steps of an environment, of quaternions for bodies) by
                         * broadcasting in place of copies */
    bool preallocated;  /* temporaries are kept from fetch to fetch, and results computed where they belong */
};

struct weir_motion_config {
    const struct weir_motion_clips *clips; /* copied; a clip has at most 2^24 frames */
    size_t envs;                           /* environments, at least 1 */
    int steps;                             /* queries of an environment, dt_s apart: num_steps_to_use; 0 = 1 */
    double dt_s;                           /* of a simulation step; 0 = 0.02 */
    enum weir_motion_variant variant;
    struct weir_motion_advice advice; /* of the variant ops */
    uint64_t seed;                    /* of the clips and times that environments begin with */
    int gpu;                          /* its number; -1: the CPU */
    int threads;                      /* of the CPU, the caller's counted; 0: one per usable core */
    void *stream;                     /* of the GPU (cudaStream_t), borrowed; NULL: one of the backend's own */
};

/* One query per environment, the CPU, ops, no advice. */
void weir_motion_config_default(struct weir_motion_config *config);

/* Whether GPU number gpu is there, and motion for it: 0, -ENODEV or -ENOTSUP with a line. Opens the CUDA module. */
int weir_motion_gpu_check(int gpu, struct weir_err *err);

struct weir_motion;

/* Each environment begins with a clip and a time in it that are drawn from seed. 0; -EINVAL (the configuration: a line
 * says what), -ENOMEM, -EAGAIN (threads), -ENODEV (the GPU is not there), -ENOTSUP (the GPU module has no motion). */
int weir_motion_open(struct weir_motion **out, const struct weir_motion_config *config, struct weir_err *err);
/* Accepts NULL, and sets it to NULL. */
void weir_motion_close(struct weir_motion **motion);

/* "2 threads, AVX2"; lent until close. */
const char *weir_motion_engine(const struct weir_motion *motion);

/* What is asked from now on. clips: [envs]; times: [envs][steps], seconds; copied. 0, or -EINVAL: there is no such
 * clip.
 */
int weir_motion_set(struct weir_motion *motion, const int64_t *clips, const float *times, struct weir_err *err);

/* clips: [n], of the host. 0, or -EINVAL with a line: there is no such clip. */
int weir_motion_check_clips(const struct weir_motion *motion, const int64_t *clips, size_t n, struct weir_err *err);

/* A step of the simulation: fetch, then all times += dt, as the range AnimationTerm::update. 0; -ENOMEM: there is no
 * memory for temporaries. */
int weir_motion_update(struct weir_motion *motion, struct weir_err *err);
/* The range AnimationTerm::_fetch_motion_data of it. */
int weir_motion_fetch(struct weir_motion *motion, struct weir_err *err);

enum { WEIR_MOTION_SPARE = 16 }; /* numbers that a backend may write past the end of a result, and read past frames */

/* Queries of the caller's. Memory is the device's; results[i] has weir_motion_result_width numbers per query and
 * WEIR_MOTION_SPARE more, and begins at a multiple of 64 bytes. */
struct weir_motion_queries {
    size_t envs;                         /* at least 1; need not be those of the configuration */
    int steps;                           /* at least 1 */
    const int64_t *clips;                /* [envs] */
    const float *times;                  /* [envs][steps], seconds */
    float *results[WEIR_MOTION_RESULTS]; /* [envs][steps][width] */
};
/* Samples them by one pass; the variant must be fused. On a GPU, where clips cannot be checked without a wait, the
 * caller checks them. 0; -EINVAL: no such clip, or more than 2^32 queries. */
int weir_motion_sample(struct weir_motion *motion, const struct weir_motion_queries *queries, struct weir_err *err);
/* The stream that calls queue on (cudaStream_t); NULL on the CPU. */
void *weir_motion_stream(struct weir_motion *motion);

/* Waits. 0, or what went wrong in what was queued: -EIO (the GPU is lost), -ENOMEM. */
int weir_motion_finish(struct weir_motion *motion, struct weir_err *err);

/* Numbers of one query's result. */
int weir_motion_result_width(const struct weir_motion *motion, enum weir_motion_result result);
/* What the last fetch gave: [envs][steps][width]. As finish. */
int weir_motion_result(struct weir_motion *motion, enum weir_motion_result result, float *to, struct weir_err *err);
/* The times: [envs][steps]. As finish. */
int weir_motion_times(struct weir_motion *motion, float *to, struct weir_err *err);
/* Operators in a fetch: those of the last one, 0 before. */
int weir_motion_operators(const struct weir_motion *motion);

#endif
