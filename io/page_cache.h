/* page_cache.h: measures how much of the files is in the page cache, and drops them from it. */
#ifndef WEIR_IO_PAGE_CACHE_H
#define WEIR_IO_PAGE_CACHE_H

#include "io/io.h"

/* Bytes of this part of the file that are in the page cache, whole pages counted as part of it (at most length). Reads
 * nothing. -EPERM and the like where the kernel does not report it. */
int weir_page_cache_bytes(int fd, uint64_t offset, uint64_t length, uint64_t *cached);

/* The same as a fraction of all n extents, 0..1; -1 when it cannot be known. */
double weir_page_cache_fraction(struct weir_file_set *set, const struct weir_extent *extents, int n);

/* Writes out and drops all files of the set, and looks how much stayed (another process may have them mapped). */
struct weir_cold {
    int files;
    uint64_t bytes, stayed_bytes;
};
int weir_page_cache_drop(struct weir_file_set *set, struct weir_cold *cold, struct weir_err *err);

#endif
