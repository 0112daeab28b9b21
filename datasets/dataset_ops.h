/* dataset_ops.h: the interface that layouts implement. A layout names the arrays of an episode, whatever the file
 * format is (store.h). */
#ifndef WEIR_DATASETS_DATASET_OPS_H
#define WEIR_DATASETS_DATASET_OPS_H

#include "datasets/store.h"
#include "weir/dataset.h"

struct weir_episode_builder;

struct weir_layout_ops {
    const char *name, *summary;
    /* Returns true if the file looks like this layout, even if some arrays are missing; index() then reports them. A
     * file gets the first layout in the table that returns true. NULL: the layout is never detected. */
    bool (*detect)(struct weir_store *store);
    /* For files that hold many episodes: the path of an episode's group up to its number. With "/data/demo_", the
     * groups /data/demo_0, /data/demo_1, ... are the episodes. NULL: each file holds one episode. */
    const char *episodes;
    /* The arrays of an episode, added in this order. Paths are relative to the episode's group. NULL: none, or index
     * adds them. Without any of them, only the arrays that the user's keys name are added. */
    const char *state, *actions;
    bool next_actions; /* the file has only states: the action of a step is the next row of `actions` */
    /* Describes the rest of the episode through the functions below. Cameras can be added in any order. Returns 0, or a
     * negative code with err. */
    int (*index)(struct weir_store *store, struct weir_episode_builder *builder, struct weir_err *err);
    const char *images, *depth; /* groups of cameras (weir_builder_group); a file may lack the group `depth` */
    bool is_swapped;            /* red and blue of JPEGs are swapped, unless their comment is XPL-RGB1 */
    bool ignores_exif;          /* programs that read this layout do not turn images by their EXIF orientation */
    bool has_scalars; /* state and actions of one dimension are stored as numbers, not as rows of one number */
};

extern const struct weir_layout_ops weir_layout_act, weir_layout_actpp, weir_layout_agilex, weir_layout_astrobench,
    weir_layout_robotwin, weir_layout_robomind, weir_layout_robomimic, weir_layout_libero, weir_layout_isaaclab,
    weir_layout_custom, weir_layout_custom_demos, weir_layout_rlds, weir_layout_diffusion_policy, weir_layout_weir,
    weir_layout_lerobot;

enum { WEIR_PREFIX_MAX = 72 };
/* Finds what precedes the number in the paths of a file's episodes: that of the layout, or, of layout custom-demos,
 * that of groups at the file's root ("/traj_"). prefix is "" if a file is one episode. */
void weir_layout_prefix(const struct weir_layout_ops *layout, struct weir_store *store, char prefix[WEIR_PREFIX_MAX]);
/* Lists the numbers of the groups whose paths consist of prefix and a number, in numerical order. The caller frees
 * *numbers. A file without such groups has *n == 0. */
int weir_layout_episodes(struct weir_store *store, const char *prefix, char (**numbers)[64], int *n,
                         struct weir_err *err);

/* Add columns of state or actions from a numeric array of shape (steps, dimensions) or (steps). Columns are
 * concatenated in call order. */
int weir_builder_qpos(struct weir_episode_builder *builder, const char *key, struct weir_err *err);
int weir_builder_actions(struct weir_episode_builder *builder, const char *key, struct weir_err *err);
/* For recordings that contain only states: the action of a step is the next row of `key`, and the last row is repeated.
 */
int weir_builder_actions_next(struct weir_episode_builder *builder, const char *key, struct weir_err *err);

/* Adds a column of numbers besides state and actions (weir_dataset_column). */
int weir_builder_column(struct weir_episode_builder *builder, const char *name, const char *key, struct weir_err *err);

/* Returns true if the name is that of a depth camera ("cam_high_depth", "depth_main"). */
bool weir_is_depth_name(const char *name);

/* Add a camera. Colour frames are raw uint8 (steps, height, width, 3), or one encoded image (JPEG, PNG) per step,
 * stored in rows padded with zeros, in fixed-length strings or as variable-length data. Depth cameras are added only if
 * requested. Their frames are raw uint16 (steps, height, width), or 16-bit PNGs stored like other images. */
int weir_builder_camera(struct weir_episode_builder *builder, const char *name, const char *key, struct weir_err *err);
int weir_builder_depth(struct weir_episode_builder *builder, const char *name, const char *key, struct weir_err *err);
/* Adds all members of a group ("": the root); weir_builder_camera is one of the functions that can add a member. */
typedef int weir_member_fn(struct weir_episode_builder *builder, const char *name, const char *key,
                           struct weir_err *err);
int weir_builder_members(struct weir_episode_builder *builder, const char *group, weir_member_fn *add,
                         struct weir_err *err);
/* Sets the probable image length in each row of the last camera, if its rows are padded. hints: n lengths, one per
 * frame; 0 = unknown. The real end is determined from the image itself. */
int weir_builder_hints(struct weir_episode_builder *builder, const uint32_t *hints, uint64_t n, struct weir_err *err);
/* Records an irregularity of the episode that does not prevent loading it. */
void weir_builder_note(struct weir_episode_builder *builder, enum weir_note note);

/* Adds a camera that weir_builder_camera would refuse to the list of weir_dataset_left_out. Returns -ENOTSUP if the
 * user requested that camera. */
int weir_builder_unread(struct weir_episode_builder *builder, const char *name, const char *key,
                        const struct weir_array_shape *shape, struct weir_err *err);
/* Adds all members of a group as cameras; weir_is_depth_name decides which are depth cameras. If `depth` is set, all of
 * them are depth cameras, and those without a depth name are renamed depth_NAME. */
int weir_builder_group(struct weir_episode_builder *builder, const char *group, bool depth, struct weir_err *err);

#endif
