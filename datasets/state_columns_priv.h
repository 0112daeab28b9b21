/* state_columns_priv.h: state and actions as they are put together. */
#ifndef WEIR_DATASETS_STATE_COLUMNS_PRIV_H
#define WEIR_DATASETS_STATE_COLUMNS_PRIV_H

#include "datasets/builder.h"

/* Rows of all parts side by side, steps of them; free(*out). */
int weir_columns_join(const struct weir_state_columns *columns, int steps, float **out, int *dim, struct weir_err *err);
/* The same in the smallest type that holds those of all parts; -ERANGE when it does not hold all of their values. */
int weir_columns_join_own(const struct weir_state_columns *columns, int steps, struct weir_own_numbers *own,
                          struct weir_err *err);

/* Appends to "a, b"; false without memory. */
bool weir_append_name(char **list, const char *name, const char *after);

#endif
