/* names.h: names of ranges, counters and instants as small numbers, which records carry.
 *
 * Ids below WEIR_STAGE_MAX are those of stages (stages.h); the others are given out here, at most 65,463 in a process,
 * and live as long as it does. Any thread. */
#ifndef WEIR_PROF_RECORD_NAMES_H
#define WEIR_PROF_RECORD_NAMES_H

#include "prof/trace/events.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef uint16_t weir_name;

/* The id of a name in a category (WEIR_CAT_CPU_OP: an operator; WEIR_CAT_USER_ANNOTATION: a part of the program), made
 * if new: text is copied. When there are too many, or no memory, that of "(too many names)". Takes a lock: keep the id.
 */
weir_name weir_name_intern(const char *text, enum weir_cat cat);

/* Lent for the life of the process; "" for an id that nobody was given. */
const char *weir_name_text(weir_name name);
enum weir_cat weir_name_cat(weir_name name);

/* Shapes and types of what a range works on, as records carry them: 0 = none. dims: n tensors, rank numbers each, one
 * after another in sizes; types: "unsigned char", "float", ... for each. The same shapes have the same id; at most
 * 65,535 different ones, 0 beyond. Takes a lock: keep the id. */
uint32_t weir_shapes_intern(int n, const int *ranks, const int64_t *sizes, const char *const *types);

/* "Input Dims" and "Input type" of shapes as JSON text, lent for the life of the process; "" for 0. */
const char *weir_shapes_dims(uint32_t shapes);
const char *weir_shapes_types(uint32_t shapes);

#ifdef __cplusplus
}
#endif

#endif
