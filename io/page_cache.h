/* page_cache.h: measures how much of the files is in the page cache, and drops them from it. */
#ifndef WEIR_IO_PAGE_CACHE_H
#define WEIR_IO_PAGE_CACHE_H

#include "io/io.h"

/* Stores the number of bytes of this part of the file that are in the page cache; partial pages count up to length.
 * Reads nothing. Returns -EPERM or the like when the kernel does not report it. */
int weir_page_cache_bytes(int fd, uint64_t offset, uint64_t length, uint64_t *cached);

/* The same as a fraction (0..1) over n extents; -1 when unknown. */
double weir_page_cache_fraction(struct weir_file_set *set, const struct weir_extent *extents, int n);

/* Writes out and drops all files of the set, and reports how much remained (another process may have them mapped). */
struct weir_cold {
    int files;
    uint64_t bytes, stayed_bytes;
};
int weir_page_cache_drop(struct weir_file_set *set, struct weir_cold *cold, struct weir_err *err);

#endif
