/* dataset_ops.h: what a layout implements. A layout names the arrays of an episode, whatever file format they are
 * in (store.h). */
#ifndef WEIR_DATASETS_DATASET_OPS_H
#define WEIR_DATASETS_DATASET_OPS_H

#include "datasets/store.h"
#include "weir/dataset.h"

struct weir_episode_builder;

struct weir_layout_ops {
    const char *name, *summary;
    /* True when the file looks like this layout, even if half of it is missing: index then reports what is missing.
     * The first row of the table that returns true gets the file. NULL: only for files whose keys the user names. */
    bool (*detect)(struct weir_store *store);
    /* Lists the groups of a file of many episodes, in order; free(*groups). NULL: a file is one episode. */
    int (*list)(struct weir_store *store, char (**groups)[64], int *n, struct weir_err *err);
    /* Describes one episode with the calls below, cameras in any order. Paths are relative to its group. 0 or a
     * negative code with err. NULL: nothing but what the user's keys name. */
    int (*index)(struct weir_store *store, struct weir_episode_builder *builder, struct weir_err *err);
};

extern const struct weir_layout_ops weir_layout_act, weir_layout_actpp, weir_layout_agilex, weir_layout_astrobench,
    weir_layout_robotwin, weir_layout_robomind, weir_layout_robomimic, weir_layout_libero, weir_layout_isaaclab,
    weir_layout_custom, weir_layout_custom_demos, weir_layout_rlds, weir_layout_diffusion_policy, weir_layout_weir;

/* State and actions: numbers (steps, dimensions) or (steps), one row a step. Columns are put side by side in the order
 * of the calls. */
int weir_builder_qpos(struct weir_episode_builder *builder, const char *key, struct weir_err *err);
int weir_builder_actions(struct weir_episode_builder *builder, const char *key, struct weir_err *err);
/* The actions are the next row of what key holds, the last one repeated: recordings of state alone. */
int weir_builder_actions_next(struct weir_episode_builder *builder, const char *key, struct weir_err *err);

/* Depth beside the images ("cam_high_depth", "depth_main"). */
bool weir_is_depth_name(const char *name);

/* A camera: raw frames of uint8 (steps, height, width, 3); or one encoded image (JPEG, PNG) a step, in rows padded with
 * zeros, in fixed strings or of variable length. Depth, described only when asked for by name: raw uint16 (steps,
 * height, width) or 16-bit PNGs stored as other images are. */
int weir_builder_camera(struct weir_episode_builder *builder, const char *name, const char *key, struct weir_err *err);
int weir_builder_depth(struct weir_episode_builder *builder, const char *name, const char *key, struct weir_err *err);
/* For the camera named in the call before, when its rows are padded: so many bytes of each row will probably hold the
 * image (n of them, one a frame, 0 = not known). Where it ends is decided by the image. */
int weir_builder_hints(struct weir_episode_builder *builder, const uint32_t *hints, uint64_t n, struct weir_err *err);
/* What is odd about the episode and no reason to refuse it. */
void weir_builder_note(struct weir_episode_builder *builder, enum weir_note note);

/* A camera that weir_builder_camera would refuse, of a layout that passes over what it does not know: noted for
 * weir_dataset_left_out. Refused with -ENOTSUP when the user named the camera. */
int weir_builder_unread(struct weir_episode_builder *builder, const char *name, const char *key,
                        const struct weir_array_shape *shape, struct weir_err *err);
/* All members of a group as cameras; names ending in _depth as depth. Those of a group of depth alone are named
 * depth_NAME. */
int weir_builder_group(struct weir_episode_builder *builder, const char *group, bool depth, struct weir_err *err);

#endif
