/* sized.h: configuration structs that start with their own size, so that programs and the library may be of different
 * versions. Options are only ever appended: an older program's struct ends earlier, and the options that it lacks have
 * their defaults; a newer program's struct ends later, and what it sets there must be 0. */
#ifndef WEIR_BASE_SIZED_H
#define WEIR_BASE_SIZED_H

#include "weir/base.h"

#include <stddef.h>

/* Size of the first version of a struct, whose last member was this one. */
#define WEIR_SIZED_LEAST(type, last) (offsetof(type, last) + sizeof(((type *)0)->last))

/* Copies a caller's struct into one of this library's, which holds the defaults: both start with a size_t, and full's
 * is its own size then. -EINVAL: the caller's size is below that of the first version, or is no size; -ENOTSUP: it sets
 * an option that this library does not have. type: "struct weir_loader_config", for the message. */
int weir_sized_copy(void *full, size_t full_size, size_t least, const void *given, const char *type,
                    struct weir_err *err);

/* The other way, for structs that are filled with defaults: copies full to *out, of size bytes in the caller's version,
 * and zeros to the rest of it. out's size is set. */
void weir_sized_fill(void *out, size_t size, const void *full, size_t full_size);

#endif
