/* builder.h: collects and checks the state, actions and cameras that a layout names in one episode. */
#ifndef WEIR_DATASETS_BUILDER_H
#define WEIR_DATASETS_BUILDER_H

#include "datasets/index.h"

enum { WEIR_STATE_PARTS_MAX = 256 };

/* Columns read from one dataset. */
struct weir_state_part {
    enum weir_number_type type; /* type in the file */
    float *values;
    void *own; /* values in the file's type; NULL for float32, or if config->own_types is not set */
    int steps, dim;
    bool next_row;
};

struct weir_state_columns {
    struct weir_state_part parts[WEIR_STATE_PARTS_MAX];
    int n;
    char *keys; /* names of the datasets: "a, b" */
};

struct weir_episode_builder {
    struct weir_store *store; /* borrowed */
    struct weir_episode *episode;
    const struct weir_dataset_config *config;
    bool by_keys;    /* the arrays being added come from the user's keys */
    int last;        /* index of the last camera added; -1 if that camera was skipped */
    bool has_unread; /* weir_builder_unread has listed a camera, in the first line of episode->left_out */
    struct weir_state_columns qpos, actions;
};

/* Frees the columns. */
void weir_builder_drop(struct weir_episode_builder *builder);

/* Writes the key as a path from the file's root, for messages. */
void weir_builder_full_key(const struct weir_episode_builder *builder, const char *key, char text[WEIR_STORE_PATH_MAX]);

/* Returns -EINVAL if a list of keys contains an empty name. */
int weir_keys_check(const struct weir_dataset_config *config, struct weir_err *err);

/* ---- arrays that could be named ---- */

enum { WEIR_ADVICE_MAX = 720 };
enum { WEIR_NEEDS_STATE = 1, WEIR_NEEDS_ACTIONS = 2, WEIR_NEEDS_IMAGES = 4 };

/* Lists arrays of numbers and images, with the shapes of their rows: "joint (7), cam/color (images)". */
void weir_keys_list(struct weir_store *store, char *text, size_t size);
/* Lists the same, followed by a command that names those that are needed, as far as names and shapes show them.
 * group: an episode of a file with many, whose arrays are named relative to it; "" = the file, or the episode that the
 * store has entered. */
void weir_keys_advise(struct weir_store *store, const struct weir_dataset_config *config, unsigned needs,
                      const char *group, char *text, size_t size);
/* With config->list_unused, lists the arrays of numbers of a file's first episode that it does not use. */
int weir_builder_not_used(struct weir_episode_builder *builder, struct weir_err *err);

/* ---- columns of state and actions ---- */

/* Concatenates the rows of all parts into `steps` rows. The caller frees *out. */
int weir_columns_join(const struct weir_state_columns *columns, int steps, float **out, int *dim, struct weir_err *err);
/* Like weir_columns_join, but in the smallest type that can hold the types of all parts. Returns -ERANGE if a value
 * does not fit. */
int weir_columns_join_own(const struct weir_state_columns *columns, int steps, struct weir_own_numbers *own,
                          struct weir_err *err);

/* Appends `name` and the suffix `after` to a list like "a, b". Returns false if out of memory. */
bool weir_append_name(char **list, const char *name, const char *after);

#endif
