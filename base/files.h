/* files.h: opening, reading, writing and renaming files. Any thread. */
#ifndef WEIR_BASE_FILES_H
#define WEIR_BASE_FILES_H

#include "weir/base.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* ---- bytes ---- */

/* Reads n bytes at offset without moving the file's position. 0 or -errno; -ENODATA at the end of the file. */
int weir_read_at(int fd, uint64_t offset, void *buffer, size_t n);
/* Writes n bytes at offset. 0 or -errno; -EIO when the file accepts no more. */
int weir_write_at(int fd, uint64_t offset, const void *bytes, size_t n);
/* Flushes and closes. 0 or -errno; -EIO when an earlier write failed. */
int weir_file_close(FILE *file);

/* n little-endian bytes as a number. */
static inline uint64_t weir_le(const uint8_t *bytes, int n)
{
    uint64_t value = 0;
    for (int i = n - 1; i >= 0; i--)
        value = value << 8 | bytes[i];
    return value;
}

/* ---- outputs ---- */

/* Creates the folder and its parents. 0, also when it exists; -ENOTDIR when the path is something else, or -errno. */
int weir_folders_make(const char *folder);

/* Returns the path that symbolic links lead to, existing or not, for the caller to free. NULL: errno is ELOOP or
 * ENOMEM. */
char *weir_output_resolve(const char *path);

/* Whether the file, existing or not, lies in this folder or below it, links followed. */
bool weir_output_is_inside(const char *path, dev_t device, ino_t inode);

/* Opens a file that the user named for writing, and empties it. A missing file is created; an existing one is not
 * replaced, so that links and permissions remain. Follows links, as a shell does. A FIFO must get a reader within 3 s,
 * else -ENXIO. Returns the descriptor or -errno. */
int weir_output_fd(const char *path);

/* As weir_output_fd, as a stream. NULL with errno. */
FILE *weir_output_file(const char *path);

/* Opens a file at a path that the user did not name, in a folder that may be someone else's: follows no link, and
 * refuses hard-linked files and everything but regular files. flags must not include O_TRUNC, which acts before the
 * file is checked. Returns the descriptor, or -errno with an error that names the path. */
int weir_output_private(const char *path, int flags, mode_t mode, struct weir_err *err);

/* ---- files that survive a power failure ---- */

/* Flushes a file's data, or a folder's entries, to storage. */
int weir_durable_sync(const char *path, struct weir_err *err);
/* Renames a flushed file or folder within its folder; the new name must be free. */
int weir_durable_rename(const char *from, const char *to, struct weir_err *err);
/* Renames a flushed file over an existing one: the name always refers to a whole file. */
int weir_durable_replace(const char *from, const char *to, struct weir_err *err);

/* ---- installed files ---- */

/* Resolves relative ("name", "../bin/name") from the folder of the program or library that contains ours, a constant or
 * function. 0; on -ENOENT or another -errno path is "". */
int weir_path_beside(const void *ours, const char *relative, char path[PATH_MAX]);

#endif
