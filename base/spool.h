/* spool.h: collects byte strings in an unnamed file until their number and their maximum length are known. A spool
 * belongs to one thread. */
#ifndef WEIR_BASE_SPOOL_H
#define WEIR_BASE_SPOOL_H

#include "weir/base.h"

#include <stddef.h>
#include <stdint.h>

struct weir_spool {
    int fd;
    const char *folder; /* borrowed, for messages */
    int n;
    size_t *lengths; /* length of each string */
    size_t longest;
    uint64_t bytes; /* sum of the lengths */
};

/* Creates the file in an existing folder. */
int weir_spool_open(struct weir_spool *spool, const char *folder, struct weir_err *err);
/* No effect on a zeroed or closed spool. */
void weir_spool_close(struct weir_spool *spool);
/* Removes all strings. */
int weir_spool_reset(struct weir_spool *spool, struct weir_err *err);
int weir_spool_add(struct weir_spool *spool, const void *data, size_t bytes, struct weir_err *err);
/* Reads the string with this length at offset `at`, which is the sum of the lengths of the strings before it. */
int weir_spool_get(const struct weir_spool *spool, uint64_t at, void *data, size_t bytes, struct weir_err *err);

#endif
