/* motion_reference.h: what extras/motion/motion.h gives, in float64 but for where in the clip a query is, which is
 * float32 by its definition. Written from the header, with quaternion products in place of the formulas of the
 * backends. */
#ifndef WEIR_EXTRAS_MOTION_TESTS_MOTION_REFERENCE_H
#define WEIR_EXTRAS_MOTION_TESTS_MOTION_REFERENCE_H

#include "extras/motion/clips/motion_clips.h"
#include "extras/motion/motion.h"

/* Each number is within WEIR_MOTION_TOLERANCE of the largest number that goes into it (of frames, blended or not, and
 * of quaternions 1), and of what WEIR_MOTION_FRAMES_OFF times the frames of the clip make of it: the rounding of the
 * blend. */
#define WEIR_MOTION_TOLERANCE  1e-6
#define WEIR_MOTION_FRAMES_OFF 0x1p-23

/* A number of a result and how far off it may be. */
struct motion_number {
    double value, off;
};

/* Of one query; to has the width of the result. */
void motion_reference(const struct weir_motion_clips *clips, int64_t clip, float time, enum weir_motion_result result,
                      struct motion_number *to);

/* Fetches once what clips and times ask (as weir_motion_set), and compares all results with the reference; a failure
 * names the first number that is off. Returns the largest part of what it may be off that a number was. */
double motion_compare(struct weir_motion *motion, const struct weir_motion_clips *clips, size_t envs, int steps,
                      const int64_t *clip_of, const float *times, const char *what);

#endif
