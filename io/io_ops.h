/* io_ops.h: interface of an I/O engine. io.c times and counts; an engine holds no clocks.
 *
 * A new engine is a file with a struct weir_io_ops, its extern below, its row in io_table.c, a line in CMakeLists.txt,
 * a row in README and a test (tests/checks/check_backends.py reports what is missing). */
#ifndef WEIR_IO_IO_OPS_H
#define WEIR_IO_IO_OPS_H

#include "io/io.h"

/* Asynchronous reads, all issued by one thread: read-ahead (ahead.c). */
struct weir_ring_ops {
    /* Opens a ring with depth reads in flight into pool, which stays in place until close. Writes the kernel features
     * in use to features. */
    int (*open)(void **ring, struct weir_file_set *set, int depth, uint8_t *pool, size_t pool_bytes, char *features,
                size_t size, struct weir_err *err);
    void (*close)(void *ring);
    /* Queues a read of a file that stays open as fd until its completion; it starts at the next wait. */
    int (*queue)(void *ring, int file, int fd, uint64_t offset, size_t length, uint8_t *to, uint32_t tag);
    /* Starts the queued reads and waits for at least one completion. Fills at most max tags and results (bytes, or
     * -errno) and returns their number, or -errno. */
    int (*wait)(void *ring, uint32_t *tags, int *results, int max);
};

struct weir_io_ops {
    const char *name, *summary;
    const char *why_not; /* reason when the engine is not built in; the functions are NULL then */
    /* Creates state shared by all readers of a set, on the first open; it belongs to the set. May be NULL. */
    int (*shared_open)(void **shared, struct weir_file_set *set, struct weir_err *err);
    void (*shared_close)(void *shared);
    /* One blocking read of a file that is open as fd. The bytes are complete, and their pages touched, on return. Not
     * called for sets with direct reads, which io.c serves (direct.c). */
    int (*read)(void *shared, int file, int fd, uint64_t offset, size_t length, void *buffer, const uint8_t **data);
    bool can_direct;  /* supports sets with O_DIRECT */
    bool auto_tries;  /* --io auto times it as a candidate */
    bool from_memory; /* serves bytes from memory, regardless of the page cache */
    bool maps;        /* mapped file pages count as the process's resident memory */
    /* Read-ahead into the pool's buffers by a ring, or by hints to the kernel; or none. */
    const struct weir_ring_ops *ring;
    bool hints;
};

extern const struct weir_io_ops weir_io_pread, weir_io_mmap, weir_io_uring, weir_io_null;

/* Row i of the table; NULL past the end. */
const struct weir_io_ops *weir_io_ops_at(int row);
/* Returns NULL for an unknown name. */
const struct weir_io_ops *weir_io_find(const char *engine);

/* One thread's aligned memory for direct reads. */
struct weir_bounce {
    uint8_t *bytes;
    size_t capacity;
};
/* Reads the aligned blocks around the bytes; *data points into bounce until the next call. */
int weir_direct_read(struct weir_bounce *bounce, int fd, size_t align, uint64_t offset, size_t length,
                     const uint8_t **data);

#endif
