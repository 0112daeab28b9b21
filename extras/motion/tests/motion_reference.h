/* motion_reference.h: the results of extras/motion/motion.h in float64, except for the position in the clip, which is
 * float32 by definition. Written from the header's description, with quaternion products in place of the backends'
 * formulas. */
#ifndef WEIR_EXTRAS_MOTION_TESTS_MOTION_REFERENCE_H
#define WEIR_EXTRAS_MOTION_TESTS_MOTION_REFERENCE_H

#include "extras/motion/clips/motion_clips.h"
#include "extras/motion/motion.h"

/* The tolerance of a number: WEIR_MOTION_TOLERANCE times the largest number that goes into it (of frames, blended or
 * not; 1 for quaternions), plus the effect of WEIR_MOTION_FRAMES_OFF times the clip's frames, the rounding of the
 * blend. */
#define WEIR_MOTION_TOLERANCE  1e-6
#define WEIR_MOTION_FRAMES_OFF 0x1p-23

/* A number of a result and its maximum error. */
struct motion_number {
    double value, off;
};

/* For one query; "to" has the width of the result. */
void motion_reference(const struct weir_motion_clips *clips, int64_t clip, float time, enum weir_motion_result result,
                      struct motion_number *to);

/* Fetches the given clips and times once (as weir_motion_set), and compares all results with the reference. A failure
 * names the first number that is off. Returns the largest error as a fraction of its tolerance. */
double motion_compare(struct weir_motion *motion, const struct weir_motion_clips *clips, size_t envs, int steps,
                      const int64_t *clip_of, const float *times, const char *what);

#endif
