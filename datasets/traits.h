/* traits.h: what the files of a dataset have in common besides the form of their numbers and frames, such as the frame
 * rate and the names of joints. Files that differ are different datasets. */
#ifndef WEIR_DATASETS_TRAITS_H
#define WEIR_DATASETS_TRAITS_H

#include "weir/dataset.h"

/* Adds a property. is_optional: another file may lack it. *traits, which may be NULL, is owned by the caller. Returns
 * 0, or -ENOMEM with err. */
int weir_traits_add(char **traits, const char *name, const char *value, bool is_optional, struct weir_err *err);
/* Adds the properties of `more`, which may be NULL, that *traits lacks. Returns 0, or -ENOMEM with err. */
int weir_traits_merge(char **traits, const char *more, struct weir_err *err);
/* Describes the properties in which a file differs from another. Both may be NULL. Returns false if there are none. */
bool weir_traits_differ(const char *traits, const char *first, char *text, size_t size);
/* Returns the traits of all files together, or NULL. */
const char *weir_dataset_traits(const struct weir_dataset *dataset);

#endif
