/* origin.h: where the files of a dataset are, if they are not files of this machine. Code that reads files takes an
 * origin; NULL stands for this machine. A file's path is the name that the origin gives it, such as a URL. */
#ifndef WEIR_ORIGIN_ORIGIN_H
#define WEIR_ORIGIN_ORIGIN_H

#include "origin/disk_cache.h"
#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Identity of a file when it was indexed. */
struct weir_file_id {
    uint64_t size_bytes;
    uint64_t device, inode;
    int64_t mtime_ns;
    bool may_be_written; /* size and time may differ from the index, because writers are known not to change the indexed
                            bytes */
};

/* The first member of every origin. */
struct weir_origin {
    const struct weir_origin_ops *ops;
};

/* Totals since an origin was opened. Sums over requests: wait_ns until the first byte, transfer_ns from there to the
 * last.
 */
struct weir_origin_counts {
    uint64_t requests, bytes, retries, limited, connections, wait_ns, transfer_ns;
    struct weir_disk_counts cache;
    const char *host; /* that gets the requests; owned by the origin; NULL = none */
};

/* A part of a file, and the memory for it. */
struct weir_origin_range {
    uint64_t offset;
    size_t length;
    uint8_t *to;
};

/* Any thread may call all functions except close. */
struct weir_origin_ops {
    const char *engine; /* the I/O engine that reads these files */
    /* Determines the identity of a file, which stays the same once it is known. Returns 0, or a negative code with err
     * (without the path). */
    int (*identify)(struct weir_origin *origin, const char *path, struct weir_file_id *id, struct weir_err *err);
    /* Reads all n ranges of a file that still has this identity. Blocks. Returns 0; -ESTALE if the file changed; or
     * another negative code, with err (without the path). */
    int (*read)(struct weir_origin *origin, const char *path, const struct weir_file_id *id,
                const struct weir_origin_range *ranges, int n, struct weir_err *err);
    void (*counts)(const struct weir_origin *origin, struct weir_origin_counts *counts);
    /* Makes all reads in progress and all later ones fail with -ECANCELED. Safe in signal handlers. */
    void (*cancel)(struct weir_origin *origin);
    void (*close)(struct weir_origin *origin);
};

static inline void weir_origin_close(struct weir_origin **origin)
{
    if (*origin)
        (*origin)->ops->close(*origin);
    *origin = NULL;
}

#endif
