#include "datasets/motion/motion_clips.h"

#include <errno.h>

int weir_motion_read_paths(struct weir_motion_clips **clips, const char *const *paths, size_t n,
                           const struct weir_motion_read_options *options, struct weir_err *err)
{
    (void)options;
    *clips = NULL;
    return weir_err_set(err, -ENOTSUP, "%s: motion files are not read yet; take synthetic motions", n ? paths[0] : "");
}

int weir_motion_read(struct weir_motion_clips **clips, const char *path, const struct weir_motion_read_options *options,
                     struct weir_err *err)
{
    return weir_motion_read_paths(clips, &path, 1, options, err);
}
