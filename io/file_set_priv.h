/* file_set_priv.h: the bounded table of open files behind io.h: engines pin a handle, read, and release it. */
#ifndef WEIR_IO_FILE_SET_PRIV_H
#define WEIR_IO_FILE_SET_PRIV_H

#include "io/io.h"

/* Pins the file's handle: *fd stays open until weir_file_release. Opens it when needed, closing one that is not pinned
 * and was not used for a while (a clock, so that a file that is open needs no lock); when all are pinned the limit is
 * exceeded for the moment. Any thread. */
int weir_file_acquire(struct weir_file_set *set, int file, int *fd);
void weir_file_release(struct weir_file_set *set, int file);

int weir_file_set_open_max(const struct weir_file_set *set);
uint64_t weir_file_set_size(const struct weir_file_set *set, int file);

static inline bool weir_file_id_same(const struct weir_file_id *a, const struct weir_file_id *b)
{
    bool same = a->size_bytes == b->size_bytes && a->mtime_ns == b->mtime_ns;
    return a->device == b->device && a->inode == b->inode && (same || a->may_be_written || b->may_be_written);
}

/* After a read: 0, or -ESTALE when the open file has been written to since it was indexed. A write sets the time before
 * the bytes, so after 0 the bytes are those that were indexed. Network file systems answer from their cache. */
int weir_file_check(const struct weir_file_set *set, int file, int fd);

/* As weir_file_set_changed, of a path that had this id. */
int weir_file_id_compare(const char *path, const struct weir_file_id *then, bool ask_server,
                         char text[WEIR_FILE_CHANGE]);
/* What an open file is now: how is AT_STATX_*. 0 or -errno. */
int weir_file_id_now(int fd, const char *path, int how, struct weir_file_id *now);

struct weir_io_ops;
/* The set's state of the engine, made on first use; one engine per set (-EBUSY for a second). */
int weir_file_set_share(struct weir_file_set *set, const struct weir_io_ops *ops, void **shared, struct weir_err *err);

#endif
