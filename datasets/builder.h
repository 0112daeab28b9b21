/* builder.h: collects what a layout names in an episode: state, actions and cameras, each checked as it is added. The
 * HDF5 helper process uses it, and what opens other formats: one builder an episode. */
#ifndef WEIR_DATASETS_BUILDER_H
#define WEIR_DATASETS_BUILDER_H

#include "datasets/index.h"

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
    struct weir_store *store; /* borrowed */
    struct weir_episode *episode;
    const struct weir_dataset_config *config;
    bool by_keys; /* what is added now was named by the user */
    int last;     /* index of the camera added last; -1 when it was passed over */
    struct weir_state_columns qpos, actions;
};

/* Puts the columns together, checks that all parts have the same length (or cuts them, allow_ragged) and gives the
 * episode its state. */
int weir_builder_complete(struct weir_episode_builder *builder, struct weir_err *err);
/* Frees what the builder holds. */
void weir_builder_drop(struct weir_episode_builder *builder);

/* The key as messages show it: from the file's root. */
void weir_builder_full_key(const struct weir_episode_builder *builder, const char *key, char text[WEIR_STORE_PATH_MAX]);

/* -EINVAL when one of the lists of keys has an empty name. */
int weir_keys_check(const struct weir_dataset_config *config, struct weir_err *err);
/* Applies --qpos-keys, --action-keys and --image-keys in place of what the layout named. */
int weir_builder_user_keys(struct weir_episode_builder *builder, struct weir_err *err);

#endif
