/* own_numbers.h: state and actions in the types that the files use, for lossless copies. The loader itself uses
 * float32. */
#ifndef WEIR_DATASETS_OWN_NUMBERS_H
#define WEIR_DATASETS_OWN_NUMBERS_H

#include "base/numbers.h"
#include "weir/dataset.h"

/* Returns steps x dim numbers of *type in row-major order, lent until the dataset is closed. The dataset must have been
 * opened with own_types. float16 is returned as float32. Columns from several datasets are returned in the smallest
 * type that can hold all of them. */
const void *weir_own_qpos(const struct weir_dataset *dataset, int episode, enum weir_number_type *type);
const void *weir_own_actions(const struct weir_dataset *dataset, int episode, enum weir_number_type *type);

#endif
