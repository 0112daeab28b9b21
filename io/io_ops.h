/* io_ops.h: what an io engine implements. io.c times and counts; an engine holds no clocks.
 *
 * A new engine is a file with a struct weir_io_ops, its extern below, its row in io_table.c, a line of CMake, a row in
 * README and a test (tests/checks/check_backends.py says which of these is missing). */
#ifndef WEIR_IO_IO_OPS_H
#define WEIR_IO_IO_OPS_H

#include "io/io.h"

/* Reads that are on their way, all of one thread: read-ahead's (ahead.c). */
struct weir_ring_ops {
    /* For depth reads in flight into pool, which stays where it is until close. Writes what the kernel gave it into
     * features. */
    int (*open)(void **ring, struct weir_file_set *set, int depth, uint8_t *pool, size_t pool_bytes, char *features,
                size_t size, struct weir_err *err);
    void (*close)(void *ring);
    /* Queues a read of a file that is open as fd, until its completion; it starts with the next wait. */
    int (*queue)(void *ring, int file, int fd, uint64_t offset, size_t length, uint8_t *to, uint32_t tag);
    /* Starts what is queued and waits until something is complete: the number of tags and results (bytes, or -errno)
     * filled, at most max; or -errno. */
    int (*wait)(void *ring, uint32_t *tags, int *results, int max);
};

struct weir_io_ops {
    const char *name, *summary;
    const char *why_not; /* not built in: the reason; the functions are NULL then */
    /* State that all readers of a set share is made by the first open and lives in the set; may be NULL. */
    int (*shared_open)(void **shared, struct weir_file_set *set, struct weir_err *err);
    void (*shared_close)(void *shared);
    /* One blocking read of a file that is open as fd. The bytes are complete (and their pages touched) on return. Not
     * asked of sets that read directly: those are served by io.c (direct.c). */
    int (*read)(void *shared, int file, int fd, uint64_t offset, size_t length, void *buffer, const uint8_t **data);
    bool can_direct;  /* sets with O_DIRECT are fine */
    bool auto_tries;  /* --io auto times it and takes the fastest */
    bool from_memory; /* bytes come from memory, whatever is in the page cache */
    bool maps;        /* pages of the files that it reads count as the process's resident memory */
    /* Read-ahead into the pool's buffers by a ring, or by hints to the kernel; or none. */
    const struct weir_ring_ops *ring;
    bool hints;
};

extern const struct weir_io_ops weir_io_pread, weir_io_mmap, weir_io_uring, weir_io_null;

/* Row i of the table; NULL past the end. */
const struct weir_io_ops *weir_io_ops_at(int row);
/* NULL for a name that is no engine's. */
const struct weir_io_ops *weir_io_find(const char *engine);

/* One thread's aligned memory for direct reads. */
struct weir_bounce {
    uint8_t *bytes;
    size_t capacity;
};
/* Reads the aligned blocks around the bytes; *data lies in bounce until the next call. */
int weir_direct_read(struct weir_bounce *bounce, int fd, size_t align, uint64_t offset, size_t length,
                     const uint8_t **data);

#endif
