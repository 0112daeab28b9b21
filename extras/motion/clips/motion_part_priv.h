/* motion_part_priv.h: builds one clip from the arrays of a file. */
#ifndef WEIR_EXTRAS_MOTION_CLIPS_MOTION_PART_PRIV_H
#define WEIR_EXTRAS_MOTION_CLIPS_MOTION_PART_PRIV_H

#include "extras/motion/clips/motion_clips.h"
#include "extras/motion/clips/motion_source_priv.h"

/* Whether the source has arrays of a known set of keys. */
bool weir_motion_part_is_there(const struct weir_motion_source *source);
/* Adds the clip to *clips, creating them if NULL. 0, or -errno with err, which names the array; *clips is incomplete
 * then. */
int weir_motion_part_read(struct weir_motion_clips **clips, const struct weir_motion_source *source, const char *name,
                          const struct weir_motion_read_options *options, struct weir_err *err);

/* ---- arrays of it ---- */

/* An array of frames x bodies x width numbers. */
struct weir_motion_rows {
    const char *key;
    size_t frames, bodies, width; /* bodies 0: no such dimension. frames 0, width 0: any */
    struct weir_file_array array;
};

/* Reads the array of rows->key and checks its shape; sets frames, bodies (unless 0) and width. The caller frees array.
 */
int weir_motion_rows_read(const struct weir_motion_source *source, struct weir_motion_rows *rows, struct weir_err *err);
/* Copies out[frames][n][width] for the n bodies in which (NULL: the only one). -EBADMSG if a number is not finite. */
int weir_motion_rows_copy(const struct weir_motion_rows *rows, const size_t *which, size_t n, float *out,
                          struct weir_err *err);

/* Normalises the quaternions. -EBADMSG if one is zero; err names body and key, unless body is SIZE_MAX. */
int weir_motion_normalise(float *quats, size_t frames, const char *key, size_t body, struct weir_err *err);

/* As legged_lab's vel_forward_diff: (next - this) / dt; the last frame repeats the previous value. */
void weir_motion_forward_differences(const float *values, size_t frames, size_t width, double fps, float *rates);
/* As its ang_vel_from_quat_diff with in_frame = "world": the shorter rotation to the next frame, as axis times angle in
 * the world frame, divided by dt; the last frame repeats the previous value. */
void weir_motion_turning_rates(const float *quats, size_t frames, double fps, float *rates);

#endif
