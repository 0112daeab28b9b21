/* npz.h: arrays by name in a zip archive, as numpy.savez and numpy.savez_compressed write them: each is a member
 * NAME.npy. Every byte is taken to be hostile. Beyond what zip_index.h, zip_unpack.h and npy.h refuse, these are: two
 * members of one name, members that share bytes, and one that is not exactly as long as its npy header says. */
#ifndef WEIR_EXTRAS_MOTION_CLIPS_NPZ_H
#define WEIR_EXTRAS_MOTION_CLIPS_NPZ_H

#include "datasets/chunks/chunk_grid.h"
#include "datasets/file_array.h"
#include "weir/base.h"

#include <stdbool.h>

/* One thread's. */
struct weir_npz;

/* raw is lent until close, its base is 0. 0 or a negative code with err, which does not name the file. */
int weir_npz_open(struct weir_npz **npz, const struct weir_raw_file *raw, struct weir_err *err);
/* Accepts a pointer to NULL; sets NULL. */
void weir_npz_close(struct weir_npz **npz);

bool weir_npz_has(const struct weir_npz *npz, const char *name);
/* The array of this name, for weir_file_array_free. 0; or a negative code with err, which begins with the name:
 * -ENOENT when there is none, -EBADMSG, -ENOTSUP, -EFBIG, -ENAMETOOLONG, -ENOMEM, or what reading returned. */
int weir_npz_read(struct weir_npz *npz, const char *name, struct weir_file_array *array, struct weir_err *err);

#endif
