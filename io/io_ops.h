/* io_ops.h: interface of an I/O engine. io.c times and counts reads, so engines do neither.
 *
 * A new engine is a file with a struct weir_io_ops, its extern declaration below, its row in io_table.c, a line in
 * CMakeLists.txt, a row in README and a test (tests/checks/check_backends.py reports what is missing). */
#ifndef WEIR_IO_IO_OPS_H
#define WEIR_IO_IO_OPS_H

#include "io/io.h"

/* Asynchronous reads for read-ahead (ahead.c). All functions are called by one thread. */
struct weir_ring_ops {
    /* Opens a ring for at most depth reads in flight into pool, which must stay valid until close. is_fixed: the user
     * chose the depth, so pace keeps it. Writes the names of the kernel features in use to features. */
    int (*open)(void **ring, struct weir_file_set *set, int depth, bool is_fixed, uint8_t *pool, size_t pool_bytes,
                char *features, size_t size, struct weir_err *err);
    void (*close)(void *ring);
    /* Makes the reads in flight complete soon, with -ECANCELED or any other result. NULL: they always do. */
    void (*cancel)(void *ring);
    /* Returns what offsets and lengths of reads must be multiples of, apart from the end of a file. NULL: the file
     * set's alignment. */
    size_t (*align)(const struct weir_file_set *set);
    /* Whether the taker of an extent had better read it itself, because it is on this machine. Must not block. NULL: no
     * extent is. */
    bool (*is_near)(void *ring, int file, uint64_t offset, size_t length);
    /* Queues a read, which starts at the next wait. fd must stay open until the read completes. */
    int (*queue)(void *ring, int file, int fd, uint64_t offset, size_t length, uint8_t *to, uint32_t tag);
    /* Starts the queued reads and waits for at least one completion. Stores at most max tags and results (bytes read,
     * or -errno). Returns the number of completions, or -errno. */
    int (*wait)(void *ring, uint32_t *tags, int *results, int max);
    /* Called once for each read with bytes, by the thread that first takes some of them. NULL = not needed. */
    void (*taken)(void *ring, int file, uint64_t offset, const uint8_t *bytes, size_t n);
    /* Returns the number of reads to keep in flight, at most the ring's depth, and sets the maximum gap between extents
     * that are merged. NULL: the depth, and gap_bytes below. */
    int (*pace)(void *ring, size_t *gap_bytes);
};

struct weir_io_ops {
    const char *name, *summary;
    const char *why_not; /* reason if the engine is not built in (its functions are then NULL), otherwise NULL */
    /* Create and destroy the state shared by all readers of a set. It is created at the first open and belongs to the
     * set. May be NULL. */
    int (*shared_open)(void **shared, struct weir_file_set *set, struct weir_err *err);
    void (*shared_close)(void *shared);
    /* Reads length bytes of a file that is open as fd, and blocks until all bytes are available and their pages have
     * been touched. Not called for sets with direct reads, which io.c handles itself (direct.c). err may be set to a
     * message that says more than the code, without the file's name. */
    int (*read)(void *shared, int file, int fd, uint64_t offset, size_t length, void *buffer, const uint8_t **data,
                struct weir_err *err);
    bool can_direct;  /* supports file sets with O_DIRECT */
    bool auto_tries;  /* is a candidate of --io auto */
    bool from_memory; /* serves bytes from its own memory, regardless of the page cache */
    bool is_remote;   /* reads files of an origin (origin.h), and no files of this machine; fd is then -1 */
    size_t gap_bytes; /* maximum gap between extents that read-ahead merges; 0: 16 KiB */
    bool maps;        /* maps files, so that file pages count as the process's resident memory */
    /* How the engine reads ahead: into the pool's buffers with a ring, with hints to the kernel, or (NULL and false)
     * not at all. */
    const struct weir_ring_ops *ring;
    bool hints;
    /* Returns 0 if this process can use the engine, or -errno. NULL: it always can. */
    int (*ready)(struct weir_err *err);
};

extern const struct weir_io_ops weir_io_pread, weir_io_mmap, weir_io_uring, weir_io_http, weir_io_null;

/* `read` of the engines that read through the page cache. */
int weir_pread_extent(void *shared, int file, int fd, uint64_t offset, size_t length, void *buffer,
                      const uint8_t **data, struct weir_err *err);

/* Returns a row of the engine table; NULL past the end. */
const struct weir_io_ops *weir_io_ops_at(int row);
/* Returns the engine with this name, or NULL. */
const struct weir_io_ops *weir_io_find(const char *engine);

/* Aligned memory for direct reads, owned by one thread. */
struct weir_bounce {
    uint8_t *bytes;
    size_t capacity;
};
/* Reads the aligned blocks that contain the extent. *data points into bounce until the next call. Returns 0 or -errno
 * (-ENODATA: the file is shorter). */
int weir_direct_read(struct weir_bounce *bounce, int fd, size_t align, uint64_t offset, size_t length,
                     const uint8_t **data);

#endif
