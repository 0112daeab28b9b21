/* motion_reference.h: computes the results of extras/motion/motion.h in float64. Only the position in the clip is
 * float32, because motion.h defines it so. The code follows the description in that header, and uses quaternion
 * products where the backends use other formulas. */
#ifndef WEIR_EXTRAS_MOTION_TESTS_MOTION_REFERENCE_H
#define WEIR_EXTRAS_MOTION_TESTS_MOTION_REFERENCE_H

#include "extras/motion/clips/motion_clips.h"
#include "extras/motion/motion.h"

/* The tolerance of a number is the sum of two parts. The first is WEIR_MOTION_TOLERANCE times the largest number that
 * contributes to it (1 for quaternions). The second is the effect of rounding the blend, whose error is at most
 * WEIR_MOTION_FRAMES_OFF times the number of frames in the clip. */
#define WEIR_MOTION_TOLERANCE  1e-6
#define WEIR_MOTION_FRAMES_OFF 0x1p-23

/* A number of a result, and its maximum error. */
struct motion_number {
    double value, off;
};

/* Computes one result of one query. "to" has the width of the result. */
void motion_reference(const struct weir_motion_clips *clips, int64_t clip, float time, enum weir_motion_result result,
                      struct motion_number *to);

/* Fetches the given clips and times once (like weir_motion_set), and compares all results with the reference. A failure
 * reports the first number outside its tolerance. Returns the largest error as a fraction of its tolerance. */
double motion_compare(struct weir_motion *motion, const struct weir_motion_clips *clips, size_t envs, int steps,
                      const int64_t *clip_of, const float *times, const char *what);

#endif
