/* state_columns_priv.h: joins columns of state and actions. */
#ifndef WEIR_DATASETS_STATE_COLUMNS_PRIV_H
#define WEIR_DATASETS_STATE_COLUMNS_PRIV_H

#include "datasets/builder.h"

/* Concatenates the rows of all parts, `steps` rows; free(*out). */
int weir_columns_join(const struct weir_state_columns *columns, int steps, float **out, int *dim, struct weir_err *err);
/* The same in the smallest type that holds the types of all parts; -ERANGE when a value does not fit. */
int weir_columns_join_own(const struct weir_state_columns *columns, int steps, struct weir_own_numbers *own,
                          struct weir_err *err);

/* Appends to "a, b"; returns false without memory. */
bool weir_append_name(char **list, const char *name, const char *after);

#endif
