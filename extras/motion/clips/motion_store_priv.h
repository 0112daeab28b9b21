/* motion_store_priv.h: clips that grow while they are made. */
#ifndef WEIR_EXTRAS_MOTION_CLIPS_MOTION_STORE_PRIV_H
#define WEIR_EXTRAS_MOTION_CLIPS_MOTION_STORE_PRIV_H

#include "extras/motion/clips/motion_clips.h"

/* No clips yet, without names. 0; -EINVAL when dofs or bodies are out of range, -ENOMEM. */
int weir_motion_clips_new(struct weir_motion_clips **clips, size_t dofs, size_t bodies, struct weir_err *err);
/* Room for one more clip of so many frames, with the values of the arrays not set, and its duration. *added is lent
 * until the next call. 0; -EINVAL when frames or fps are out of range, -EFBIG, -ENOMEM. */
int weir_motion_clips_add(struct weir_motion_clips *clips, size_t frames, double fps, struct weir_motion_clip **added,
                          struct weir_err *err);

#endif
