/* io.h: reads byte extents of files with one of several engines. Independent of file formats.
 *
 * A file set holds the dataset's files with their size, inode and time from the index. Handles are opened on demand,
 * bounded in number, and compared with the index at every open and after every read. A reader is one thread's context
 * of an engine. */
#ifndef WEIR_IO_IO_H
#define WEIR_IO_IO_H

#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct weir_file_set;
struct weir_reader;
struct weir_ahead;

/* Identity of a file when it was indexed. */
struct weir_file_id {
    uint64_t size_bytes;
    uint64_t device, inode;
    int64_t mtime_ns;
    bool may_be_written; /* size and time may change: the indexed bytes are known not to */
};

/* max_open = 0: half of RLIMIT_NOFILE. */
int weir_file_set_open(struct weir_file_set **out, int max_open);
/* Closes all handles. Every reader of the set must be closed before. */
void weir_file_set_close(struct weir_file_set **set);
/* Adds a file; returns its index (0, 1, 2, ...) or -ENOMEM. path is copied. Not while readers run. */
int weir_file_set_add(struct weir_file_set *set, const char *path, const struct weir_file_id *id);
const char *weir_file_set_path(const struct weir_file_set *set, int file);
int weir_file_set_count(const struct weir_file_set *set);
/* Copies the list of files with handles of its own (max_open as above), direct if set is. */
int weir_file_set_copy(struct weir_file_set **out, const struct weir_file_set *set, int max_open);

/* Compares a file that was opened for reading with the index (size, modification time and inode of its path now).
 * Returns 0 when they agree or nothing read it; 1 when they differ, with the difference and its age in text
 * (WEIR_FILE_CHANGE bytes); negative with text when this cannot be determined. ask_server: bypass the attribute cache
 * of network file systems. Any thread. */
enum { WEIR_FILE_CHANGE = 256 };
int weir_file_set_changed(struct weir_file_set *set, int file, bool ask_server, char text[WEIR_FILE_CHANGE]);
/* Makes every further read of the file fail with -ESTALE, whatever is open. Returns false if that was already so. Any
 * thread. */
bool weir_file_set_spoil(struct weir_file_set *set, int file);
bool weir_file_set_is_spoiled(const struct weir_file_set *set, int file);
/* Records that the file is read by other code (the HDF5 library), so that weir_file_set_changed checks it too. */
void weir_file_set_note(struct weir_file_set *set, int file);

/* Makes all reads bypass the page cache (O_DIRECT). Call before the first read. Returns -ENOTSUP, naming a file, when
 * its file system does not support it. */
int weir_file_set_direct(struct weir_file_set *set, struct weir_err *err);
/* Alignment of offsets, lengths and memory for direct reads; 1 when the set does not read directly. */
size_t weir_file_set_align(const struct weir_file_set *set);

struct weir_extent {
    int file;
    uint64_t offset;
    size_t length;
};

/* Returns 0 if the engine is available, else -EINVAL or -ENOTSUP with the available names or the reason. */
int weir_io_check(const char *engine, struct weir_err *err);

/* Likewise, and -EINVAL with the names of those that do if the engine does not support direct reads. */
int weir_io_check_direct(const char *engine, struct weir_err *err);

/* The engine that is always available, and the default: plain reads. */
const char *weir_io_default(void);
/* Whether the engine serves bytes from memory regardless of the page cache. */
bool weir_io_from_memory(const char *engine);

/* Whether mapped file pages count as the process's resident memory. */
bool weir_io_maps(const char *engine);
/* Whether the engine keeps reads in flight ahead of the workers, so that --io-depth applies. */
bool weir_io_has_depth(const char *engine);

/* Opens a reader on the named engine ("pread", "mmap", "uring", "null"). */
int weir_reader_open(struct weir_reader **out, const char *engine, struct weir_file_set *set, struct weir_err *err);
void weir_reader_close(struct weir_reader **reader);

/* Reads length bytes at offset of file. buffer (capacity >= length) is lent to the engine; *data points to the bytes,
 * in buffer or in the engine's memory, until the next call on this reader. Times 01_file_cache and 03c_read_bytes.
 * Returns 0, -ENODATA when the file is shorter, -ESTALE when it was written to since it was indexed (the bytes may then
 * be of either version), or -errno from open or read. */
int weir_read(struct weir_reader *reader, int file, uint64_t offset, size_t length, void *buffer, const uint8_t **data);

/* Until weir_reader_end, this reader looks for its extents among those read ahead for the task before it reads them
 * itself; the end returns the unused ones. ahead: of the same set; NULL makes both calls do nothing. */
void weir_reader_begin(struct weir_reader *reader, struct weir_ahead *ahead, uint64_t task_id);
void weir_reader_end(struct weir_reader *reader);

/* Returns a sentence for an error code of weir_read. */
const char *weir_read_reason(int code);

struct weir_read_counts {
    uint64_t reads, bytes;
    uint64_t ahead; /* reads that were served by read-ahead */
};
/* Copies this reader's counts so far. Any thread. */
void weir_reader_counts(const struct weir_reader *reader, struct weir_read_counts *counts);

/* Row i of the engine table for help and doctor; false past the end. *why_not is NULL when the engine is available. */
bool weir_io_row(int i, const char **name, const char **summary, const char **why_not);

/* Describes what liburing and the kernel offer the engine uring; returns false, with the reason, when this process
 * cannot use it. */
bool weir_uring_describe(char *text, size_t size);

#endif
