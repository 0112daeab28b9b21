/* builder.h: collects what a layout names in an episode: state, actions and cameras, each checked as it is added. The
 * HDF5 helper process uses it, and what opens other formats: one builder an episode. */
#ifndef WEIR_DATASETS_BUILDER_H
#define WEIR_DATASETS_BUILDER_H

#include "datasets/index.h"
#include "datasets/store_ops.h"

enum { WEIR_STATE_PARTS_MAX = 256 };

/* Columns read from one dataset. */
struct weir_state_part {
    enum weir_number_type type; /* that it has in the file */
    float *values;
    void *own; /* values of that type; NULL when it is float32, or config->own_types is not set */
    int steps, dim;
    bool next_row;
};

struct weir_state_columns {
    struct weir_state_part parts[WEIR_STATE_PARTS_MAX];
    int n;
    char *keys; /* "a, b" */
};

struct weir_episode_builder {
    const struct weir_store_ops *store; /* and what its functions take */
    void *opened;
    struct weir_episode *episode;
    const struct weir_dataset_config *config;
    bool by_keys; /* what is added now was named by the user */
    int last;     /* index of the camera added last; -1 when it was passed over */
    struct weir_state_columns qpos, actions;
    struct weir_h5_description *descriptions; /* of the cameras, in the order of episode->maps */
};

/* Puts the columns together, checks that all parts have the same length (or cuts them, allow_ragged) and gives the
 * episode its state. */
int weir_builder_complete(struct weir_episode_builder *builder, struct weir_err *err);
/* Frees what the builder holds; descriptions are the caller's. */
void weir_builder_drop(struct weir_episode_builder *builder);

/* Red and blue as files record them: "rgb", or "bgr" for swapped ones. -EBADMSG with err for any other value (NULL: no
 * text); where is what holds it, for the message. */
int weir_color_parse(const char *where, const char *value, bool *is_bgr, struct weir_err *err);

/* The image that a row of an array is by its shape. */
struct weir_image_shape {
    uint64_t height, width;
    uint32_t channels; /* 1, 3 or 4; 0: rows are no images */
    bool is_planar;    /* channels come first */
};
/* (steps, height, width, channels), (steps, channels, height, width) or (steps, height, width), the first of these that
 * it may be. Arrays of less than 8 x 8, or of floats and less than 32 x 32 in one channel, are numbers
 * (transformations, keypoints), unless they end in three channels. */
struct weir_image_shape weir_image_shape(int rank, const uint64_t *dims, bool is_float);

/* The key as messages show it: from the file's root. */
void weir_builder_full_key(const struct weir_episode_builder *builder, const char *key, char text[WEIR_H5_PATH_MAX]);

/* -EINVAL when one of the lists of keys has an empty name. */
int weir_keys_check(const struct weir_dataset_config *config, struct weir_err *err);
/* Applies --qpos-keys, --action-keys and --image-keys in place of what the layout named. */
int weir_builder_user_keys(struct weir_episode_builder *builder, struct weir_err *err);

#endif
