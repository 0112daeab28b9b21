/* builder.h: collects and checks the state, actions and cameras that a layout names in one episode. */
#ifndef WEIR_DATASETS_BUILDER_H
#define WEIR_DATASETS_BUILDER_H

#include "datasets/index.h"

enum { WEIR_STATE_PARTS_MAX = 256 };

/* Columns read from one dataset. */
struct weir_state_part {
    enum weir_number_type type; /* in the file */
    float *values;
    void *own; /* values in that type; NULL for float32, or without config->own_types */
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
    bool by_keys; /* the user's keys are being added */
    int last;     /* index of the last camera added; -1 when it was passed over */
    struct weir_state_columns qpos, actions;
};

/* Joins the columns, checks that all parts have the same length (with allow_ragged, cuts them), and gives the state to
 * the episode. */
int weir_builder_complete(struct weir_episode_builder *builder, struct weir_err *err);
void weir_builder_drop(struct weir_episode_builder *builder);

/* Writes the key for messages: from the file's root. */
void weir_builder_full_key(const struct weir_episode_builder *builder, const char *key, char text[WEIR_STORE_PATH_MAX]);

/* Returns -EINVAL when a list of keys has an empty name. */
int weir_keys_check(const struct weir_dataset_config *config, struct weir_err *err);
/* Adds the datasets of --qpos-keys, --action-keys and --image-keys, which replace the layout's. */
int weir_builder_user_keys(struct weir_episode_builder *builder, struct weir_err *err);

/* ---- columns of state and actions ---- */

/* Concatenates the rows of all parts, `steps` rows; free(*out). */
int weir_columns_join(const struct weir_state_columns *columns, int steps, float **out, int *dim, struct weir_err *err);
/* The same in the smallest type that holds the types of all parts; -ERANGE when a value does not fit. */
int weir_columns_join_own(const struct weir_state_columns *columns, int steps, struct weir_own_numbers *own,
                          struct weir_err *err);

/* Appends to "a, b"; returns false without memory. */
bool weir_append_name(char **list, const char *name, const char *after);

#endif
