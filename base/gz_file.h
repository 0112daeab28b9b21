/* gz_file.h: a file that is written whole or not at all, plain or compressed as gzip does.
 *
 * What is written goes to PATH.tmp-XXXXXX and gets its name by weir_gz_commit. Symbolic links keep their place: the
 * file that they lead to is replaced. A path that exists and is not a regular file (a pipe, /dev/stdout) is written to
 * directly. One thread per file. */
#ifndef WEIR_BASE_GZ_FILE_H
#define WEIR_BASE_GZ_FILE_H

#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>

/* zlib's levels are 1 to 9. Of a trace 1 leaves an eighth, 6 a tenth in twice the time (docs/trace.md). */
enum { WEIR_GZ_PLAIN = 0, WEIR_GZ_FAST = 1 };

struct weir_gz_file;

/* True when the name ends in .gz. */
bool weir_gz_named(const char *path);
/* Errors name the path and what to do. */
int weir_gz_open(struct weir_gz_file **out, const char *path, int level, struct weir_err *err);
/* 0, or the first error of the file: later calls do nothing, and weir_gz_commit reports it. */
int weir_gz_write(struct weir_gz_file *file, const void *bytes, size_t n);
/* fsync: what was written so far survives a crash of the machine, too, once the file has its name. For uncompressed
 * files. Errors as in weir_gz_write. */
int weir_gz_sync(struct weir_gz_file *file);
/* Ends the file and gives it its name; on an error there is no file. Frees it either way. */
int weir_gz_commit(struct weir_gz_file **file, struct weir_err *err);
/* Gives the file up: nothing is left of it. Accepts NULL. */
void weir_gz_discard(struct weir_gz_file **file);

#endif
