/* output_file.h: files that are written: where a path leads, and opening it without harm to another file. Any thread.
 */
#ifndef WEIR_BASE_OUTPUT_FILE_H
#define WEIR_BASE_OUTPUT_FILE_H

#include "weir/base.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/* Returns the path that symbolic links lead to, existing or not, for the caller to free. NULL: errno is ELOOP or
 * ENOMEM. */
char *weir_output_resolve(const char *path);

/* Whether the file, existing or not, lies in this folder or in one below it, links followed. */
bool weir_output_is_inside(const char *path, dev_t device, ino_t inode);

/* Opens a file that the user named for writing, and empties it; it is created when missing and not replaced, so that
 * links and permissions stay. Links are followed, as by a shell. A FIFO must get a reader within 3 s, else -ENXIO.
 * Returns the descriptor or -errno. */
int weir_output_fd(const char *path);

/* The same as a stream. NULL with errno. */
FILE *weir_output_file(const char *path);

/* Opens a file at a place that the user did not name, in a folder that may be someone else's: follows no link, and
 * refuses a file with a second name and everything that is not a regular file. flags must not hold O_TRUNC, which acts
 * before the file is checked. Returns the descriptor, or -errno with a line that names the path. */
int weir_output_private(const char *path, int flags, mode_t mode, struct weir_err *err);

#endif
