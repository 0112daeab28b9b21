/* files.h: opening, reading, writing and renaming files. All functions are thread-safe. */
#ifndef WEIR_BASE_FILES_H
#define WEIR_BASE_FILES_H

#include "weir/base.h"

#include <endian.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

/* ---- bytes ---- */

/* Reads n bytes at offset without moving the file position. Returns 0, -ENODATA if the file ends first, or another
 * -errno. */
int weir_read_at(int fd, uint64_t offset, void *buffer, size_t n);
/* Writes n bytes at offset. Returns 0, -EIO if the file accepts no more bytes, or another -errno. */
int weir_write_at(int fd, uint64_t offset, const void *bytes, size_t n);
/* Flushes and closes a stream. Returns 0, -EIO if an earlier write failed, or another -errno. */
int weir_file_close(FILE *file);

/* Closes the descriptors from first to last. Only for processes with one thread. Linux before 5.9 has no close_range;
 * there the open descriptors are read from /proc. */
void weir_descriptors_close(unsigned first, unsigned last);

/* Return the number that n little-endian or big-endian bytes represent; n is 1 to 8. */
static inline uint64_t weir_le(const uint8_t *bytes, int n)
{
    uint64_t value = 0;
    memcpy(&value, bytes, (size_t)n);
    return le64toh(value);
}
static inline uint64_t weir_be(const uint8_t *bytes, int n)
{
    uint64_t value = 0;
    memcpy(&value, bytes, (size_t)n);
    return be64toh(value) >> (64 - 8 * n);
}
/* Writes a number as n little-endian bytes. */
static inline void weir_put_le(uint8_t *bytes, uint64_t value, int n)
{
    value = htole64(value);
    memcpy(bytes, &value, (size_t)n);
}

/* Returns whether a file that begins with these n bytes, at least WEIR_LFS_BYTES, only names the contents, which Git
 * LFS has not fetched. */
enum { WEIR_LFS_BYTES = 40 };
bool weir_is_lfs_pointer(const void *bytes, size_t n);
#define WEIR_LFS_ERROR "is a Git LFS pointer; fetch the file with `git lfs pull`" /* without the path */

/* ---- outputs ---- */

/* Creates the folder and its parents. Returns 0 if the folder exists afterwards, -ENOTDIR if the path is not a folder,
 * or another -errno. */
int weir_folders_make(const char *folder);

/* Returns the path to which `path` leads through symbolic links, whether or not a file exists there. The caller
 * frees it. On failure, returns NULL with errno ELOOP or ENOMEM. */
char *weir_output_resolve(const char *path);

/* Returns true if the file, which need not exist, is in or below the folder with this device and inode number, after
 * following links. */
bool weir_output_is_inside(const char *path, dev_t device, ino_t inode);

/* Opens a user-specified file for writing and truncates it. A missing file is created. An existing file
 * is not replaced, so its links and permissions are kept. Symbolic links are followed, as in a shell. If a FIFO has no
 * reader within 3 s, fails with -ENXIO. Returns the descriptor or -errno. */
int weir_output_fd(const char *path);

/* Like weir_output_fd, but returns a stream. On failure, returns NULL and sets errno. */
FILE *weir_output_file(const char *path);

/* Opens a file whose path the user did not specify, in a folder that may belong to another user. Does not follow a
 * symbolic link, and rejects files with several hard links and everything that is not a regular file. flags must not
 * include O_TRUNC, because truncation would precede these checks. Returns the descriptor, or -errno with an error that
 * contains the path. */
int weir_output_private(const char *path, int flags, mode_t mode, struct weir_err *err);

/* ---- files that survive a power failure ---- */

/* Flushes a file's data or a folder's entries to storage. */
int weir_durable_sync(const char *path, struct weir_err *err);
/* Renames a flushed file or folder within its parent folder. The new name must not exist. */
int weir_durable_rename(const char *from, const char *to, struct weir_err *err);
/* Replaces an existing file with a flushed one by renaming. At all times the name refers to a complete file. */
int weir_durable_replace(const char *from, const char *to, struct weir_err *err);

/* ---- installed files ---- */

/* Find a file relative to the folder of the program or library that contains `ours`, the address of a constant or
 * function. Return 0, or -ENOENT or another -errno, in which case path is "". */

/* Searches the folders, such as "" or "../bin/", and then the Python package. The last folder is followed by NULL. */
int weir_path_installed(const void *ours, const char *name, const char *const *folders, char path[PATH_MAX]);

/* Searches the Python package that pip installed together with the program: PREFIX/lib/pythonX.Y/site-packages/weir. */
int weir_path_in_package(const void *ours, const char *name, char path[PATH_MAX]);

/* Searches the libraries of NVIDIA's packages, for a file of the Python package: SITE-PACKAGES/nvidia/X/lib. */
int weir_path_in_nvidia(const void *ours, const char *name, char path[PATH_MAX]);

/* ---- spool.c: collects byte strings in an unnamed file until their number and their maximum length are known. A spool
 * belongs to one thread. */

struct weir_spool {
    int fd;
    const char *folder; /* borrowed, for messages */
    int n;
    size_t *lengths; /* length of each string */
    size_t longest;
    uint64_t bytes; /* sum of the lengths */
};

/* Creates the file in an existing folder. */
int weir_spool_open(struct weir_spool *spool, const char *folder, struct weir_err *err);
/* No effect on a zeroed or closed spool. */
void weir_spool_close(struct weir_spool *spool);
/* Removes all strings. */
int weir_spool_reset(struct weir_spool *spool, struct weir_err *err);
int weir_spool_add(struct weir_spool *spool, const void *data, size_t bytes, struct weir_err *err);
/* Reads the string with this length at offset `at`, which is the sum of the lengths of the strings before it. */
int weir_spool_get(const struct weir_spool *spool, uint64_t at, void *data, size_t bytes, struct weir_err *err);

#endif
