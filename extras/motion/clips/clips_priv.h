/* clips_priv.h: shared by the files that build clips: the growing set of clips, the arrays of a file, one clip of it.
 */
#ifndef WEIR_EXTRAS_MOTION_CLIPS_CLIPS_PRIV_H
#define WEIR_EXTRAS_MOTION_CLIPS_CLIPS_PRIV_H

#include "datasets/chunks/chunk_grid.h"
#include "datasets/file_array.h"
#include "extras/motion/clips/motion_clips.h"
#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>

/* ---- motion_clips.c: clips under construction ---- */

/* Creates an empty set of clips, without names. 0, -EINVAL (dofs or bodies out of range) or -ENOMEM. */
int weir_motion_clips_new(struct weir_motion_clips **clips, size_t dofs, size_t bodies, struct weir_err *err);
/* Adds a clip with its duration; the array values are uninitialised. *added is lent until the next call. 0, -EINVAL
 * (frames or fps out of range), -EFBIG or -ENOMEM. */
int weir_motion_clips_add(struct weir_motion_clips *clips, size_t frames, double fps, struct weir_motion_clip **added,
                          struct weir_err *err);

/* ---- motion_npz.c, motion_hdf5.c: a motion file as arrays by name; one thread ---- */

struct weir_motion_source_ops {
    bool (*has)(void *file, const char *key);
    /* Reads an array; release with weir_file_array_free. Errors name the array, not the file. */
    int (*read)(void *file, const char *key, struct weir_file_array *array, struct weir_err *err);
    /* Selects part i, which has its own arrays. Its name is lent until the next call; *name is NULL past the last
     * part. A NULL function: the file has a single part. */
    int (*enter)(void *file, size_t i, const char **name, struct weir_err *err);
    void (*close)(void *file);
};

struct weir_motion_source {
    const struct weir_motion_source_ops *ops;
    void *file;
};

/* Errors do not name the file. Nothing remains open after an error. */
int weir_motion_npz_open(struct weir_motion_source *source, const char *path, struct weir_err *err);
int weir_motion_hdf5_open(struct weir_motion_source *source, const char *path, struct weir_err *err);
/* Opens an archive in raw, which is borrowed until close. */
int weir_motion_raw_npz_open(struct weir_motion_source *source, const struct weir_raw_file *raw, struct weir_err *err);

/* ---- motion_part.c: one clip from the arrays of a file ---- */

/* Whether the source has arrays of a known set of keys. */
bool weir_motion_part_is_there(const struct weir_motion_source *source);
/* Adds the clip to *clips, creating them if NULL. 0, or -errno with err, which names the array; *clips is incomplete
 * then. */
int weir_motion_part_read(struct weir_motion_clips **clips, const struct weir_motion_source *source, const char *name,
                          const struct weir_motion_read_options *options, struct weir_err *err);

/* ---- motion_rows.c: conversions of arrays ---- */

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
