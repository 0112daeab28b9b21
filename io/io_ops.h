/* io_ops.h: what an io engine implements. Engines hold no clocks: io.c times and counts. */
#ifndef WEIR_IO_IO_OPS_H
#define WEIR_IO_IO_OPS_H

#include "io/io.h"

struct weir_io_ops {
    const char *name, *summary;
    const char *why_not; /* not built in: the reason; the functions are NULL then */
    /* State that all readers of a set share is made by the first open and lives in the set; may be NULL. */
    int (*shared_open)(void **shared, struct weir_file_set *set, struct weir_err *err);
    void (*shared_close)(void *shared);
    /* One blocking read of a file that is open as fd. The bytes are complete (and their pages touched) on return. */
    int (*read)(void *shared, int file, int fd, uint64_t offset, size_t length, void *buffer, const uint8_t **data);
};

extern const struct weir_io_ops weir_io_pread, weir_io_null;

#endif
