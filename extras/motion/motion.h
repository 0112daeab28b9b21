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

/* Results of a query. _w: in the world frame, _b: in the root's frame. */
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
/* Returns the trainer's name, such as "root_pos_w". */
const char *weir_motion_result_name(enum weir_motion_result result);

enum weir_motion_variant {
    WEIR_MOTION_OPS,  /* one operator at a time, each with its result in memory, as in an eager framework */
    WEIR_MOTION_FUSED /* one pass per query, with the fast slerp */
};

/* The usual advice for the trainer's loop. Each changes the operators of the variant ops, and results only by rounding.
 */
struct weir_motion_advice {
    bool indices;       /* precompute clip data per query when clips are set instead of in each fetch; keep each frame
                           contiguous; do not index environments */
    bool in_place_lerp; /* overwrite the first operand */
    bool fast_slerp;    /* one operator with an error bound (motion_ops.h) instead of 19 */
    bool rotations;     /* one inverse rotation for all vectors of a query instead of three */
    bool no_copies;     /* broadcast repeated clips and quaternions instead of copying them */
    bool preallocated;  /* keep temporaries across fetches, and compute results in place */
};

struct weir_motion_config {
    const struct weir_motion_clips *clips; /* copied; at most 2^24 frames per clip */
    size_t envs;                           /* environments, at least 1 */
    int steps;                             /* queries per environment, dt_s apart (num_steps_to_use); 0 = 1 */
    double dt_s;                           /* seconds per simulation step; 0 = 0.02 */
    enum weir_motion_variant variant;
    struct weir_motion_advice advice; /* for the variant ops */
    uint64_t seed;                    /* of the initial clips and times */
    int gpu;                          /* index; -1: the CPU */
    int threads;                      /* CPU threads, including the caller; 0: one per usable core */
    void *stream;                     /* GPU stream (cudaStream_t), borrowed; NULL: the backend's own */
};

/* One query per environment, the CPU, ops, no advice. */
void weir_motion_config_default(struct weir_motion_config *config);

/* Checks that the GPU exists and that the module has motion for it: 0, -ENODEV or -ENOTSUP. Opens the CUDA module. */
int weir_motion_gpu_check(int gpu, struct weir_err *err);

struct weir_motion;

/* Draws the initial clip and time of each environment from seed. 0, -EINVAL (configuration), -ENOMEM, -EAGAIN
 * (threads), -ENODEV (no such GPU) or -ENOTSUP (GPU module without motion). */
int weir_motion_open(struct weir_motion **out, const struct weir_motion_config *config, struct weir_err *err);
/* Accepts NULL, and sets it to NULL. */
void weir_motion_close(struct weir_motion **motion);

/* Returns a name such as "2 threads, AVX2", lent until close. */
const char *weir_motion_engine(const struct weir_motion *motion);

/* Sets the queries. clips: [envs]; times: [envs][steps], seconds; both are copied. 0 or -EINVAL (no such clip). */
int weir_motion_set(struct weir_motion *motion, const int64_t *clips, const float *times, struct weir_err *err);

/* Checks n clip numbers in host memory. 0 or -EINVAL (no such clip). */
int weir_motion_check_clips(const struct weir_motion *motion, const int64_t *clips, size_t n, struct weir_err *err);

/* Runs one simulation step, in the range AnimationTerm::update: fetch, then all times += dt. 0 or -ENOMEM
 * (temporaries). */
int weir_motion_update(struct weir_motion *motion, struct weir_err *err);
/* Runs its fetch alone, in the range AnimationTerm::_fetch_motion_data. */
int weir_motion_fetch(struct weir_motion *motion, struct weir_err *err);

enum {
    WEIR_MOTION_SPARE = 16
}; /* numbers that a backend may write past the end of a result, and read past the frames */

/* Queries in the caller's device memory. results[i] has weir_motion_result_width numbers per query plus
 * WEIR_MOTION_SPARE, and is aligned to 64 bytes. */
struct weir_motion_queries {
    size_t envs;                         /* at least 1; independent of the configuration */
    int steps;                           /* at least 1 */
    const int64_t *clips;                /* [envs] */
    const float *times;                  /* [envs][steps], seconds */
    float *results[WEIR_MOTION_RESULTS]; /* [envs][steps][width] */
};
/* Samples them in one pass; the variant must be fused. On a GPU, where checking clips would wait, the caller checks
 * them. 0 or -EINVAL (no such clip, or more than 2^32 queries). */
int weir_motion_sample(struct weir_motion *motion, const struct weir_motion_queries *queries, struct weir_err *err);
/* Returns the stream of all calls (cudaStream_t); NULL on the CPU. */
void *weir_motion_stream(struct weir_motion *motion);

/* Waits for queued work. 0, -EIO (GPU lost) or -ENOMEM. */
int weir_motion_finish(struct weir_motion *motion, struct weir_err *err);

/* Returns the numbers per query of a result. */
int weir_motion_result_width(const struct weir_motion *motion, enum weir_motion_result result);
/* Copies a result of the last fetch: [envs][steps][width]. Waits and fails as finish. */
int weir_motion_result(struct weir_motion *motion, enum weir_motion_result result, float *to, struct weir_err *err);
/* Copies the times: [envs][steps]. Waits and fails as finish. */
int weir_motion_times(struct weir_motion *motion, float *to, struct weir_err *err);
/* Returns the operators of the last fetch; 0 before the first. */
int weir_motion_operators(const struct weir_motion *motion);

#endif
