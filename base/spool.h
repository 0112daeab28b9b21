/* spool.h: byte strings of any length, kept in a file without a name until their number and the longest are known. One
 * thread. */
#ifndef WEIR_BASE_SPOOL_H
#define WEIR_BASE_SPOOL_H

#include "weir/base.h"

#include <stddef.h>
#include <stdint.h>

struct weir_spool {
    int fd;
    const char *folder; /* borrowed, for messages */
    int n, capacity;
    size_t *lengths; /* of each */
    size_t longest;
    uint64_t bytes; /* of all */
};

/* The file is in folder, which exists. */
int weir_spool_open(struct weir_spool *spool, const char *folder, struct weir_err *err);
/* Does nothing for one of zeros, and for one that was closed. */
void weir_spool_close(struct weir_spool *spool);
/* Forgets what was added. */
int weir_spool_reset(struct weir_spool *spool, struct weir_err *err);
int weir_spool_add(struct weir_spool *spool, const void *data, size_t bytes, struct weir_err *err);
/* Reads the string that begins at offset at and has so many bytes. Its offset is the sum of the lengths before it. */
int weir_spool_get(const struct weir_spool *spool, uint64_t at, void *data, size_t bytes, struct weir_err *err);

#endif
