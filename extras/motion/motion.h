/* motion.h: samples motion clips for thousands of environments, as a whole-body-tracking trainer does in each step of
 * its simulation. Each environment has a clip and a time in it, and gets the state of the robot at that time,
 * interpolated between two frames and also expressed in the frame of the robot's root. weir motion profiles this code.
 *
 *     weir_motion_open(&motion, &config, &err);
 *     for (...) weir_motion_update(motion, &err);
 *     weir_motion_finish(motion, &err);
 *     weir_motion_close(&motion);
 *
 * The semantics, and the names of the ranges, follow legged_lab (github.com/zitongbai/legged_lab,
 * managers/motion_data_manager.py and animation_manager.py, utils/math.py), which is built on Isaac Lab. Its
 * AnimationTerm.update fetches the states and then advances the times. Its MotionDataTerm.get_motion_state computes the
 * following for each query, in float32:
 *
 *     phase = time / duration, where duration = (frames - 1) / fps; if the clip loops, phase -= floor(phase);
 *     phase is clamped to 0..1; at = phase * (frames - 1);
 *     frame0 = trunc(at), frame1 = min(frame0 + 1, frames - 1), blend = at - frame0
 *
 * So a clip that does not loop holds its first frame before its beginning, and its last frame after its end. (Isaac
 * Lab's own humanoid_amp/motions/motion_loader.py rounds to the nearest frame and extrapolates with a blend that can be
 * negative.) Numbers are interpolated linearly, and quaternions (w x y z) by slerp on the shorter arc. If the sine of
 * half the angle is below 0.001, the trainer uses the midpoint of both quaternions, whereas this implementation still
 * applies the blend. A time that is NaN selects the beginning of the clip.
 *
 * A motion must be used by one thread only. Calls may be queued; weir_motion_finish, weir_motion_result and
 * weir_motion_times wait for them. */
#ifndef WEIR_EXTRAS_MOTION_MOTION_H
#define WEIR_EXTRAS_MOTION_MOTION_H

#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_motion_clips; /* see extras/motion/clips/motion_clips.h */

/* Results of a query, in the world frame (_w) or in the root's frame (_b). */
enum weir_motion_result {
    WEIR_MOTION_ROOT_POS_W,     /* [3] metres */
    WEIR_MOTION_ROOT_QUAT,      /* [4] w x y z */
    WEIR_MOTION_ROOT_VEL_W,     /* [3] m/s */
    WEIR_MOTION_ROOT_VEL_B,     /* [3] m/s */
    WEIR_MOTION_ROOT_ANG_VEL_W, /* [3] rad/s */
    WEIR_MOTION_ROOT_ANG_VEL_B, /* [3] rad/s */
    WEIR_MOTION_DOF_POS,        /* [dofs] rad */
    WEIR_MOTION_DOF_VEL,        /* [dofs] rad/s */
    WEIR_MOTION_KEY_BODY_POS_B, /* [bodies][3] metres: R(root_quat)^-1 (key_body_pos_w - root_pos_w) */
    WEIR_MOTION_RESULTS
};
/* Returns the name that the trainer uses, such as "root_pos_w". */
const char *weir_motion_result_name(enum weir_motion_result result);

enum weir_motion_variant {
    WEIR_MOTION_OPS,  /* one operator at a time, each with its result in memory, like an eager framework */
    WEIR_MOTION_FUSED /* one pass per query, with the fast slerp */
};

/* The usual advice for optimising the trainer's loop. Each member changes the operators of the variant ops. Results
 * change only by rounding. */
struct weir_motion_advice {
    bool indices; /* look up the clip data of each query when clips are set, not in each fetch; store the parts of a
                   * frame contiguously; do not index environments */
    bool in_place_lerp; /* store the result of lerp in its first operand */
    bool fast_slerp;    /* one operator with an error bound (motion_slerp.h) instead of 19 operators */
    bool rotations;     /* rotate all vectors of a query in one operation instead of three */
    bool no_copies;     /* broadcast repeated clips and quaternions instead of copying them */
    bool preallocated;  /* keep temporaries across fetches, and write results directly to their destination */
};

struct weir_motion_config {
    const struct weir_motion_clips *clips; /* copied by open; at most 2^24 frames per clip */
    size_t envs;                           /* number of environments, at least 1 */
    int steps;                             /* queries per environment, dt_s apart (num_steps_to_use); 0 selects 1 */
    double dt_s;                           /* seconds per simulation step; 0 selects 0.02 */
    enum weir_motion_variant variant;
    struct weir_motion_advice advice; /* only for the variant ops */
    uint64_t seed;                    /* seed of the initial clips and times */
    int gpu;                          /* GPU index, or -1 for the CPU */
    int threads;                      /* CPU threads, including the caller; 0: one per usable core */
    void *stream;                     /* cudaStream_t for all work, borrowed; NULL: the backend creates one */
};

/* Selects one query per environment, the CPU, the variant ops and no advice. */
void weir_motion_config_default(struct weir_motion_config *config);

/* Opens the CUDA module, and checks that it supports motion and that the GPU exists. 0, -ENODEV or -ENOTSUP. */
int weir_motion_gpu_check(int gpu, struct weir_err *err);

struct weir_motion;

/* Draws the initial clip and time of each environment from the seed. 0, -EINVAL (invalid configuration), -ENOMEM,
 * -EAGAIN (cannot start threads), -ENODEV (no such GPU) or -ENOTSUP (CUDA module built without motion). */
int weir_motion_open(struct weir_motion **out, const struct weir_motion_config *config, struct weir_err *err);
/* Accepts a pointer to NULL, and sets the pointer to NULL. */
void weir_motion_close(struct weir_motion **motion);

/* Returns a name such as "2 threads, AVX2", valid until close. */
const char *weir_motion_engine(const struct weir_motion *motion);

/* Sets the clips [envs] and the times [envs][steps] in seconds. Both are copied. 0 or -EINVAL (no such clip). */
int weir_motion_set(struct weir_motion *motion, const int64_t *clips, const float *times, struct weir_err *err);

/* Checks n clip numbers in host memory. 0 or -EINVAL (no such clip). */
int weir_motion_check_clips(const struct weir_motion *motion, const int64_t *clips, size_t n, struct weir_err *err);

/* Runs one simulation step in the range AnimationTerm::update: fetches, then adds dt_s to all times. 0, or -ENOMEM (no
 * memory for temporaries). */
int weir_motion_update(struct weir_motion *motion, struct weir_err *err);
/* Runs only the fetch of a step, in the range AnimationTerm::_fetch_motion_data. */
int weir_motion_fetch(struct weir_motion *motion, struct weir_err *err);

enum {
    WEIR_MOTION_SPARE = 16
}; /* a backend may write this many numbers after a result, and read this many after the frames */

/* Queries in device memory that belongs to the caller. results[i] has space for weir_motion_result_width numbers per
 * query plus WEIR_MOTION_SPARE numbers, and is aligned to 64 bytes. */
struct weir_motion_queries {
    size_t envs;                         /* at least 1; may differ from the configuration */
    int steps;                           /* at least 1 */
    const int64_t *clips;                /* [envs] */
    const float *times;                  /* [envs][steps], seconds */
    float *results[WEIR_MOTION_RESULTS]; /* [envs][steps][width] */
};
/* Computes the results of the queries in one pass. The variant must be fused. 0 or -EINVAL (no such clip, or more than
 * 2^32 queries). On a GPU the clip numbers are not checked, because the check would wait for the GPU. The caller must
 * check the numbers. */
int weir_motion_sample(struct weir_motion *motion, const struct weir_motion_queries *queries, struct weir_err *err);
/* Returns the cudaStream_t of all calls; NULL on the CPU. */
void *weir_motion_stream(struct weir_motion *motion);

/* Waits for all queued work. 0, -EIO (GPU lost) or -ENOMEM. */
int weir_motion_finish(struct weir_motion *motion, struct weir_err *err);

/* Returns how many numbers the result has per query. */
int weir_motion_result_width(const struct weir_motion *motion, enum weir_motion_result result);
/* Copies a result of the last fetch, [envs][steps][width]. Waits, and returns the errors of weir_motion_finish. */
int weir_motion_result(struct weir_motion *motion, enum weir_motion_result result, float *to, struct weir_err *err);
/* Copies the times, [envs][steps]. Waits, and returns the errors of weir_motion_finish. */
int weir_motion_times(struct weir_motion *motion, float *to, struct weir_err *err);
/* Returns the number of operators in the last fetch; 0 before the first fetch. */
int weir_motion_operators(const struct weir_motion *motion);

#endif
