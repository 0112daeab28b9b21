/* source.h: an open file, of this machine or of an origin, for code that reads formats. Files of an origin are read in
 * blocks that are kept for a while, because readers of formats read small pieces near each other. A source belongs to
 * one thread. */
#ifndef WEIR_ORIGIN_SOURCE_H
#define WEIR_ORIGIN_SOURCE_H

#include "origin/origin.h"

struct weir_source;

/* id: the identity that the file must have; used for origins only. Returns 0, or -errno with err (without the path). */
int weir_source_open(struct weir_source **out, struct weir_origin *origin, const char *path,
                     const struct weir_file_id *id, struct weir_err *err);
/* Identifies a regular file and opens it. Returns 0, or -errno with err (without the path). */
int weir_source_find(struct weir_source **out, struct weir_origin *origin, const char *path, struct weir_file_id *id,
                     struct weir_err *err);
void weir_source_close(struct weir_source **source);

/* Reads n bytes at offset. Returns 0; -ENODATA if the file ends before; or another -errno. Has the form of
 * weir_raw_file.read, with the source as user. */
int weir_source_read(void *source, uint64_t offset, void *buffer, size_t n);
/* Reads a whole file of at most `most` bytes. *text is followed by a zero byte, and freed by the caller. Returns 0;
 * -EFBIG with err "it has more than N MiB"; or another negative code with err (without the path). */
int weir_source_text(struct weir_origin *origin, const char *path, size_t most, char **text, size_t *n,
                     struct weir_err *err);
/* Returns the reason why a read failed with this code. Valid until the next read. */
const char *weir_source_reason(const struct weir_source *source, int code);

/* Announces reads of these ranges (the memory in them is not used). Of an origin's file they are read now, with many
 * requests at once, and kept until the next call: 256 ranges and 64 MiB at most, the rest is ignored. Errors show when
 * the range is read. */
void weir_source_announce(struct weir_source *source, const struct weir_origin_range *ranges, int n);
/* Returns how many bytes of the file are stored: of a sparse file its data, of an origin's file all. */
uint64_t weir_source_stored(const struct weir_source *source, uint64_t file_bytes);
/* Whether the source is a file of an origin. */
bool weir_source_is_remote(const struct weir_source *source);

#endif
