/* file_set_priv.h: the bounded table of open files that implements the file sets of io.h. Readers and read-ahead pin a
 * handle, read, and release the handle. */
#ifndef WEIR_IO_FILE_SET_PRIV_H
#define WEIR_IO_FILE_SET_PRIV_H

#include "io/io.h"

/* Pins the file's handle: *fd stays open until weir_file_release; it is -1 for files of an origin, which have none.
 * Opens the file if necessary. If the limit is reached, first closes an unpinned handle that has not been used recently
 * (chosen by the clock algorithm, so that pinning an open file needs no lock). If all handles are pinned, the limit is
 * exceeded temporarily. Can be called by any thread.
 */
int weir_file_acquire(struct weir_file_set *set, int file, int *fd);
void weir_file_release(struct weir_file_set *set, int file);

int weir_file_set_open_max(const struct weir_file_set *set);
uint64_t weir_file_set_size(const struct weir_file_set *set, int file);
struct weir_file_id weir_file_set_id(const struct weir_file_set *set, int file);

static inline bool weir_file_id_same(const struct weir_file_id *a, const struct weir_file_id *b)
{
    bool same = a->size_bytes == b->size_bytes && a->mtime_ns == b->mtime_ns;
    return a->device == b->device && a->inode == b->inode && (same || a->may_be_written || b->may_be_written);
}

/* Call after a read. Returns 0, or -ESTALE if the open file has been written to since it was indexed. A write changes
 * the modification time before it changes the bytes, so 0 means that the indexed bytes were read. On network file
 * systems, the result comes from the client's cache. */
int weir_file_check(const struct weir_file_set *set, int file, int fd);

/* Like weir_file_set_changed, for a path and its id in the index. */
int weir_file_id_compare(const char *path, const struct weir_file_id *then, bool ask_server,
                         char text[WEIR_FILE_CHANGE]);
/* Reads the current id of an open file. how: AT_STATX_* flags. Returns 0 or -errno. */
int weir_file_id_now(int fd, const char *path, int how, struct weir_file_id *now);

struct weir_io_ops;
/* Returns the engine's shared state for this set in *shared and creates it on first use. A set can be used by only one
 * engine; for a second one, fails with -EBUSY. */
int weir_file_set_share(struct weir_file_set *set, const struct weir_io_ops *ops, void **shared, struct weir_err *err);

#endif
