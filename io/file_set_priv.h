/* file_set_priv.h: the bounded table of open files behind io.h: engines pin a handle, read, and release it. */
#ifndef WEIR_IO_FILE_SET_PRIV_H
#define WEIR_IO_FILE_SET_PRIV_H

#include "io/io.h"

/* Pins the file's handle: *fd stays open until weir_file_release. Opens the file if necessary, closing an unpinned
 * handle that was not used recently (clock algorithm, so that an open file needs no lock). When all are pinned, the
 * limit is exceeded temporarily. Any thread. */
int weir_file_acquire(struct weir_file_set *set, int file, int *fd);
void weir_file_release(struct weir_file_set *set, int file);

int weir_file_set_open_max(const struct weir_file_set *set);
uint64_t weir_file_set_size(const struct weir_file_set *set, int file);

static inline bool weir_file_id_same(const struct weir_file_id *a, const struct weir_file_id *b)
{
    bool same = a->size_bytes == b->size_bytes && a->mtime_ns == b->mtime_ns;
    return a->device == b->device && a->inode == b->inode && (same || a->may_be_written || b->may_be_written);
}

/* To be called after a read. Returns 0, or -ESTALE when the open file was written to since it was indexed. A write sets
 * the time before the bytes, so 0 means that the bytes are the indexed ones. Network file systems answer from their
 * cache. */
int weir_file_check(const struct weir_file_set *set, int file, int fd);

/* Like weir_file_set_changed, for a path and the id it had. */
int weir_file_id_compare(const char *path, const struct weir_file_id *then, bool ask_server,
                         char text[WEIR_FILE_CHANGE]);
/* Reads the current id of an open file; how is AT_STATX_*. Returns 0 or -errno. */
int weir_file_id_now(int fd, const char *path, int how, struct weir_file_id *now);

struct weir_io_ops;
/* Returns the engine's state of the set, created on first use; one engine per set (-EBUSY for a second). */
int weir_file_set_share(struct weir_file_set *set, const struct weir_io_ops *ops, void **shared, struct weir_err *err);

#endif
