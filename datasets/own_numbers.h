/* own_numbers.h: state and actions in the files' own types, for lossless copies. The loader has float32. */
#ifndef WEIR_DATASETS_OWN_NUMBERS_H
#define WEIR_DATASETS_OWN_NUMBERS_H

#include "base/numbers.h"
#include "weir/dataset.h"

/* Returns steps x dim numbers of *type, row-major, lent until close, from a dataset opened with own_types. float16
 * becomes float32; columns of several datasets get the smallest type that holds them all. */
const void *weir_own_qpos(const struct weir_dataset *dataset, int episode, enum weir_number_type *type);
const void *weir_own_actions(const struct weir_dataset *dataset, int episode, enum weir_number_type *type);

#endif
