/* motion_part_priv.h: one clip, from the arrays that a file has of it. */
#ifndef WEIR_EXTRAS_MOTION_CLIPS_MOTION_PART_PRIV_H
#define WEIR_EXTRAS_MOTION_CLIPS_MOTION_PART_PRIV_H

#include "extras/motion/clips/motion_clips.h"
#include "extras/motion/clips/motion_source_priv.h"

/* Whether arrays of one of the known sets of keys are there. */
bool weir_motion_part_is_there(const struct weir_motion_source *source);
/* Adds the clip to *clips, which are made when they are NULL. 0 or a negative code with err, which names the array;
 * what was added to *clips is then not complete. */
int weir_motion_part_read(struct weir_motion_clips **clips, const struct weir_motion_source *source, const char *name,
                          const struct weir_motion_read_options *options, struct weir_err *err);

/* ---- arrays of it ---- */

/* Numbers of so many frames, width of them for each of its bodies. */
struct weir_motion_rows {
    const char *key;
    size_t frames, bodies, width; /* bodies 0: the array has no such dimension. frames 0, width 0: any */
    struct weir_file_array array;
};

/* Reads the array of rows->key and checks its shape; fills frames, bodies (but for 0) and width. array is for the
 * caller to free. */
int weir_motion_rows_read(const struct weir_motion_source *source, struct weir_motion_rows *rows, struct weir_err *err);
/* out[frames][n][width]: of the n bodies in which (NULL: the only one). -EBADMSG when a number is not finite. */
int weir_motion_rows_copy(const struct weir_motion_rows *rows, const size_t *which, size_t n, float *out,
                          struct weir_err *err);

/* Makes each of the quaternions a unit. -EBADMSG when one is zero; of body which of key, or SIZE_MAX. */
int weir_motion_normalise(float *quats, size_t frames, const char *key, size_t body, struct weir_err *err);

/* What legged_lab's vel_forward_diff computes: (next - this) / dt, the last frame's as the one before it. */
void weir_motion_forward_differences(const float *values, size_t frames, size_t width, double fps, float *rates);
/* Its ang_vel_from_quat_diff with in_frame = "world": the shorter rotation from this frame to the next, as axis times
 * angle in the world, divided by dt; the last frame's as the one before it. */
void weir_motion_turning_rates(const float *quats, size_t frames, double fps, float *rates);

#endif
