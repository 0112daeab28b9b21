/* gz_file.h: files that are plain or gzip, written whole or not at all, and read.
 *
 * Output goes to PATH.tmp-XXXXXX, which weir_gz_commit renames. A symbolic link remains: the file it leads to is
 * replaced. A path that exists and is not a regular file (a pipe, /dev/stdout) is written directly. One thread per
 * file. */
#ifndef WEIR_BASE_GZ_FILE_H
#define WEIR_BASE_GZ_FILE_H

#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Levels are zlib's, 1 to 9. Level 1 reduces a trace to an eighth, level 6 to a tenth in twice the time
 * (docs/trace.md). */
enum { WEIR_GZ_PLAIN = 0, WEIR_GZ_FAST = 1 };

struct weir_gz_file;

/* Whether the name ends in .gz. */
bool weir_gz_named(const char *path);
/* Errors name the path and what to do. */
int weir_gz_open(struct weir_gz_file **out, const char *path, int level, struct weir_err *err);
/* 0, or the file's first error: later calls do nothing, and weir_gz_commit reports it. */
int weir_gz_write(struct weir_gz_file *file, const void *bytes, size_t n);
/* fsync: the data so far survives a power failure once the file has its name. Only for uncompressed files. Errors as in
 * weir_gz_write. */
int weir_gz_sync(struct weir_gz_file *file);
/* Completes the file and gives it its name; after an error no file remains. Frees it either way. */
int weir_gz_commit(struct weir_gz_file **file, struct weir_err *err);
/* Removes an unfinished file and frees it. Accepts NULL. */
void weir_gz_discard(struct weir_gz_file **file);

struct weir_gz_reader;

/* Opens a gzip or plain file. 0 or -errno. */
int weir_gz_read_open(struct weir_gz_reader **out, const char *path);
/* Reads up to n bytes. 0 = end of file; -EBADMSG: compressed data is damaged or cut off; else -errno. */
ssize_t weir_gz_read(struct weir_gz_reader *reader, void *bytes, size_t n);
/* Accepts NULL. */
void weir_gz_read_close(struct weir_gz_reader **reader);

#endif
