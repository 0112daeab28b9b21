/* dataset_ops.h: what a layout implements. A layout names the datasets of an episode; where their frames lie is found
 * by the builder, from how HDF5 stores them. */
#ifndef WEIR_DATASETS_DATASET_OPS_H
#define WEIR_DATASETS_DATASET_OPS_H

#include "datasets/h5_read_priv.h"

struct weir_episode_builder;

struct weir_layout_ops {
    const char *name, *summary;
    /* True when the file looks like this layout, even if half of it is missing: index then says what. The first row of
     * the table that says true gets the file. */
    bool (*detect)(struct weir_h5 *h5);
    /* Describes the episode with the calls below, cameras in any order. 0 or a negative code with err. */
    int (*index)(struct weir_h5 *h5, struct weir_episode_builder *builder, struct weir_err *err);
};

extern const struct weir_layout_ops weir_layout_act, weir_layout_actpp, weir_layout_astrobench;

/* State and actions: two-dimensional numbers, one row a step; their lengths must agree. */
int weir_builder_state(struct weir_episode_builder *builder, const char *qpos_key, const char *action_key,
                       struct weir_err *err);

/* Depth beside the images ("cam_high_depth"): not a camera of the readers here. */
bool weir_is_depth_name(const char *name);

/* A camera whose rows are whole frames of height x width x 3 bytes. */
int weir_builder_raw_camera(struct weir_episode_builder *builder, const char *name, const char *key,
                            struct weir_err *err);
/* A camera of JPEGs in rows padded with zeros, or of variable length. lengths (steps of them, copied) are the used
 * bytes of each row, or NULL. */
int weir_builder_jpeg_camera(struct weir_episode_builder *builder, const char *name, const char *key,
                             const float *lengths, struct weir_err *err);

/* Steps of the episode, once weir_builder_state was called. */
int weir_builder_steps(const struct weir_episode_builder *builder);

#endif
