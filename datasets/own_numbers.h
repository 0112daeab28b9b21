/* own_numbers.h: state and actions as files have them, for copies that are to lose nothing. The loader has float32. */
#ifndef WEIR_DATASETS_OWN_NUMBERS_H
#define WEIR_DATASETS_OWN_NUMBERS_H

#include "base/numbers.h"
#include "weir/dataset.h"

/* steps x dim numbers of *type, row by row, lent until close; of a dataset that was opened with own_types. float16 is
 * float32; columns of several datasets have the smallest type that all of them fit into. */
const void *weir_own_qpos(const struct weir_dataset *dataset, int episode, enum weir_number_type *type);
const void *weir_own_actions(const struct weir_dataset *dataset, int episode, enum weir_number_type *type);

#endif
