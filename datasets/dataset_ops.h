/* dataset_ops.h: the interface that layouts implement. A layout names the arrays of an episode, in any file format
 * (store.h). */
#ifndef WEIR_DATASETS_DATASET_OPS_H
#define WEIR_DATASETS_DATASET_OPS_H

#include "datasets/store.h"
#include "weir/dataset.h"

struct weir_episode_builder;

struct weir_layout_ops {
    const char *name, *summary;
    /* Returns true when the file looks like this layout, even if parts are missing: index then reports them. The first
     * row of the table that returns true gets the file. NULL: the layout is never detected. */
    bool (*detect)(struct weir_store *store);
    /* Lists the groups of a file of many episodes, in order; free(*groups). NULL: a file is one episode. */
    int (*list)(struct weir_store *store, char (**groups)[64], int *n, struct weir_err *err);
    /* Describes one episode with the calls below, cameras in any order. Paths are relative to its group. 0 or a
     * negative code with err. NULL: only the arrays that the user's keys name. */
    int (*index)(struct weir_store *store, struct weir_episode_builder *builder, struct weir_err *err);
};

extern const struct weir_layout_ops weir_layout_act, weir_layout_actpp, weir_layout_agilex, weir_layout_astrobench,
    weir_layout_robotwin, weir_layout_robomind, weir_layout_robomimic, weir_layout_libero, weir_layout_isaaclab,
    weir_layout_custom, weir_layout_custom_demos, weir_layout_rlds, weir_layout_diffusion_policy, weir_layout_weir;

/* Adds columns of state or actions: numbers (steps, dimensions) or (steps). Columns are concatenated in call order. */
int weir_builder_qpos(struct weir_episode_builder *builder, const char *key, struct weir_err *err);
int weir_builder_actions(struct weir_episode_builder *builder, const char *key, struct weir_err *err);
/* For recordings of state alone: the action of a step is the next row of key; the last row is repeated. */
int weir_builder_actions_next(struct weir_episode_builder *builder, const char *key, struct weir_err *err);

/* Returns true for depth by name ("cam_high_depth", "depth_main"). */
bool weir_is_depth_name(const char *name);

/* Adds a camera: raw uint8 frames (steps, height, width, 3), or one encoded image (JPEG, PNG) per step, in rows padded
 * with zeros, in fixed strings or of variable length. Depth, which is added only on request: raw uint16 (steps, height,
 * width), or 16-bit PNGs stored like other images. */
int weir_builder_camera(struct weir_episode_builder *builder, const char *name, const char *key, struct weir_err *err);
int weir_builder_depth(struct weir_episode_builder *builder, const char *name, const char *key, struct weir_err *err);
/* Sets the probable image length of each row of the last camera, if its rows are padded: n lengths, one per frame, 0 =
 * unknown. The image itself decides where it ends. */
int weir_builder_hints(struct weir_episode_builder *builder, const uint32_t *hints, uint64_t n, struct weir_err *err);
/* Records an oddity of the episode that does not prevent loading it. */
void weir_builder_note(struct weir_episode_builder *builder, enum weir_note note);

/* Lists a camera that weir_builder_camera would refuse in weir_dataset_left_out. -ENOTSUP when the user named the
 * camera. */
int weir_builder_unread(struct weir_episode_builder *builder, const char *name, const char *key,
                        const struct weir_array_shape *shape, struct weir_err *err);
/* Adds all members of a group as cameras; names that end in _depth as depth. depth: all of them are depth, and those
 * without it in their name become depth_NAME. */
int weir_builder_group(struct weir_episode_builder *builder, const char *group, bool depth, struct weir_err *err);

#endif
