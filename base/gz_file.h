/* gz_file.h: writing plain or gzip files, completely or not at all, and reading them.
 *
 * Output is written to PATH.tmp-XXXXXX, which weir_gz_commit renames. If the path is a symbolic link, the link is kept
 * and its target is replaced. If the path exists and is not a regular file (a pipe, /dev/stdout), it is written
 * directly. Each file must be used by one thread at a time. */
#ifndef WEIR_BASE_GZ_FILE_H
#define WEIR_BASE_GZ_FILE_H

#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Compression levels are zlib's 1 to 9. Level 1 reduces a trace to an eighth of its size; level 6 reduces it to a tenth
 * but takes twice as long (docs/internals/trace.md). */
enum { WEIR_GZ_PLAIN = 0, WEIR_GZ_FAST = 1 };

struct weir_gz_file;

/* Returns true if the name ends in .gz. */
bool weir_gz_named(const char *path);
/* Starts writing a file. Errors contain the path and what to do. */
int weir_gz_open(struct weir_gz_file **out, const char *path, int level, struct weir_err *err);
/* Writes n bytes. Returns 0 or the file's first error. After an error, further calls have no effect, and weir_gz_commit
 * reports the error. */
int weir_gz_write(struct weir_gz_file *file, const void *bytes, size_t n);
/* Flushes the data written so far to storage, so that it survives a power failure once the file is committed. For
 * uncompressed files only. Handles errors like weir_gz_write. */
int weir_gz_sync(struct weir_gz_file *file);
/* Completes the file and renames it to its path. After an error, no file is left. Frees the struct in either case. */
int weir_gz_commit(struct weir_gz_file **file, struct weir_err *err);
/* Writes a plain file of n bytes, completely or not at all. */
int weir_gz_write_plain(const char *path, const void *bytes, size_t n, struct weir_err *err);
/* Removes the unfinished file and frees the struct. Accepts NULL. */
void weir_gz_discard(struct weir_gz_file **file);

struct weir_gz_reader;

/* Opens a gzip or plain file. Returns 0 or -errno. */
int weir_gz_read_open(struct weir_gz_reader **out, const char *path);
/* Reads up to n bytes. Returns their number, 0 at the end of the file, -EBADMSG if the compressed data is damaged or
 * truncated, -EFBIG once WEIR_CLAIM_SPARE bytes and WEIR_GZ_RATIO times the file's were read, or another -errno. */
ssize_t weir_gz_read(struct weir_gz_reader *reader, void *bytes, size_t n);
/* Traces are compressed to a tenth or a fortieth; zeros to a thousandth. */
enum { WEIR_GZ_RATIO = 256 };
/* Returns the bytes of the file before decompression, or UINT64_MAX for files that are not regular. */
uint64_t weir_gz_stored(const struct weir_gz_reader *reader);
/* Accepts NULL. */
void weir_gz_read_close(struct weir_gz_reader **reader);

#endif
