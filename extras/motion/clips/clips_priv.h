/* clips_priv.h: declarations shared by the files that build clips: the growing set of clips, the arrays of a file, and
 * one clip of a file. */
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
/* Adds a clip and sets its duration. Its array values are uninitialised. *added is valid until the next call. 0,
 * -EINVAL (frames or fps out of range), -EFBIG or -ENOMEM. */
int weir_motion_clips_add(struct weir_motion_clips *clips, size_t frames, double fps, struct weir_motion_clip **added,
                          struct weir_err *err);

/* ---- motion_npz.c, motion_hdf5.c: a motion file as named arrays; for one thread only ---- */

struct weir_motion_source_ops {
    bool (*has)(void *file, const char *key);
    /* Reads an array, which the caller releases with weir_file_array_free. err contains the name of the array but not
     * of the file. */
    int (*read)(void *file, const char *key, struct weir_file_array *array, struct weir_err *err);
    /* Selects part i of the file. Each part has its own arrays. *name is the part's name, valid until the next call, or
     * NULL after the last part. If the function pointer is NULL, the file has a single part. */
    int (*enter)(void *file, size_t i, const char **name, struct weir_err *err);
    void (*close)(void *file);
};

struct weir_motion_source {
    const struct weir_motion_source_ops *ops;
    void *file;
};

/* err does not contain the file name. After an error, the source is not open. */
int weir_motion_npz_open(struct weir_motion_source *source, const char *path, struct weir_err *err);
int weir_motion_hdf5_open(struct weir_motion_source *source, const char *path, struct weir_err *err);
/* Opens an NPZ archive in raw, which is borrowed until close. */
int weir_motion_raw_npz_open(struct weir_motion_source *source, const struct weir_raw_file *raw, struct weir_err *err);

/* ---- motion_part.c: one clip from the arrays of a file ---- */

/* Returns whether the source has arrays with a known set of keys. */
bool weir_motion_part_is_there(const struct weir_motion_source *source);
/* Adds the source's clip to *clips, which is created if NULL. 0 or -errno with err, which contains the name of the
 * array. After an error *clips is incomplete and must be freed. */
int weir_motion_part_read(struct weir_motion_clips **clips, const struct weir_motion_source *source, const char *name,
                          const struct weir_motion_read_options *options, struct weir_err *err);

/* ---- motion_rows.c: conversions of arrays ---- */

/* An array of frames x bodies x width numbers, or of frames x width numbers. */
struct weir_motion_rows {
    const char *key;
    size_t frames, bodies, width; /* bodies: 0 means no such dimension. frames and width: 0 means any */
    struct weir_file_array array;
};

/* Reads the array called rows->key and checks its shape. Sets frames, bodies (unless 0) and width to the actual sizes.
 * The caller frees rows->array. */
int weir_motion_rows_read(const struct weir_motion_source *source, struct weir_motion_rows *rows, struct weir_err *err);
/* Copies the numbers of n bodies to out[frames][n][width]. "which" lists the bodies; NULL means the only body. -EBADMSG
 * if a number is not finite. */
int weir_motion_rows_copy(const struct weir_motion_rows *rows, const size_t *which, size_t n, float *out,
                          struct weir_err *err);

/* Normalises the quaternions. -EBADMSG if one is zero. err contains the key and, unless "body" is SIZE_MAX, the number
 * of the body. */
int weir_motion_normalise(float *quats, size_t frames, const char *key, size_t body, struct weir_err *err);

/* Computes rates like legged_lab's vel_forward_diff: (next - this) / dt. The last frame repeats the previous rate. */
void weir_motion_forward_differences(const float *values, size_t frames, size_t width, double fps, float *rates);
/* Computes rates like legged_lab's ang_vel_from_quat_diff with in_frame = "world": the shorter rotation to the next
 * frame, as axis times angle in the world frame, divided by dt. The last frame repeats the previous rate. */
void weir_motion_turning_rates(const float *quats, size_t frames, double fps, float *rates);

#endif
