/* io.h: reads byte extents of files with one of several engines. Independent of file formats.
 *
 * A file set contains the dataset's files with the size, inode and modification time from the index. Handles are opened
 * on demand, and their number is limited. Each file is compared with the index at every open and after every read. A
 * reader is the context of an engine for one thread. */
#ifndef WEIR_IO_IO_H
#define WEIR_IO_IO_H

#include "origin/origin.h"
#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct weir_file_set;
struct weir_reader;
struct weir_ahead;

/* max_open: maximum number of open handles; 0 selects half of RLIMIT_NOFILE (at most 8192). */
int weir_file_set_open(struct weir_file_set **out, int max_open);
/* Closes all handles. Close every reader of the set first. */
void weir_file_set_close(struct weir_file_set **set);
/* Adds a file and copies its path. Returns the file's index (0, 1, 2, ...) or -ENOMEM. Must not be called while readers
 * are in use. */
int weir_file_set_add(struct weir_file_set *set, const char *path, const struct weir_file_id *id);
const char *weir_file_set_path(const struct weir_file_set *set, int file);
int weir_file_set_count(const struct weir_file_set *set);
/* Creates a set with the same files, but with its own handles (max_open as above). The copy uses direct reads if the
 * original does. */
int weir_file_set_copy(struct weir_file_set **out, const struct weir_file_set *set, int max_open);

/* Compares a file that was opened for reading with the index, by the size, modification time and inode of the file that
 * is now at its path. Returns 0 if they are equal or if the file was never read; 1 if they differ, with a description
 * in text (WEIR_FILE_CHANGE bytes); negative, with the reason in text, if they cannot be compared. ask_server: whether
 * to bypass the attribute cache of network file systems. Returns 0 for files of an origin, which compares each read.
 * Can be called by any thread. */
enum { WEIR_FILE_CHANGE = 256 };
int weir_file_set_changed(struct weir_file_set *set, int file, bool ask_server, char text[WEIR_FILE_CHANGE]);
/* Makes every further read of the file fail with -ESTALE, even if the file is open. Returns false if the file was
 * spoiled before. Can be called by any thread. */
bool weir_file_set_spoil(struct weir_file_set *set, int file);
bool weir_file_set_is_spoiled(const struct weir_file_set *set, int file);
/* Records that other code (the HDF5 library) reads the file, so that weir_file_set_changed checks it as well. */
void weir_file_set_note(struct weir_file_set *set, int file);

/* Declares that the files are those of an origin (origin.h), which must stay open. Call before the first read. */
void weir_file_set_use(struct weir_file_set *set, struct weir_origin *origin);
struct weir_origin *weir_file_set_origin(const struct weir_file_set *set);
/* Returns the name of the default engine for these files. It is always available. */
const char *weir_file_set_engine(const struct weir_file_set *set);

/* Makes all reads bypass the page cache (O_DIRECT). Call before the first read. Returns -ENOTSUP and names a file if
 * its file system does not support direct reads; otherwise 0 or -errno. */
int weir_file_set_direct(struct weir_file_set *set, struct weir_err *err);
/* Returns the alignment of offsets, lengths and memory for direct reads; 1 if the set does not use direct reads. */
size_t weir_file_set_align(const struct weir_file_set *set);

struct weir_extent {
    int file;
    uint64_t offset;
    size_t length;
};

/* Returns 0 if the engine is available. Otherwise returns -EINVAL with the available names, or -ENOTSUP with the
 * reason. */
int weir_io_check(const char *engine, struct weir_err *err);

/* Like weir_io_check, but also requires direct reads. If the engine does not support them, returns -EINVAL with the
 * names of engines that do. */
int weir_io_check_direct(const char *engine, struct weir_err *err);

/* Returns the name of the default engine for files of this machine, which is always available: plain reads. */
const char *weir_io_default(void);
/* Whether the engine serves bytes from its own memory, regardless of the page cache. */
bool weir_io_from_memory(const char *engine);

/* Whether the engine reads files of servers, and none of this machine. */
bool weir_io_is_remote(const char *engine);

/* Whether the engine maps files, so that file pages count as the process's resident memory. */
bool weir_io_maps(const char *engine);
/* Whether the engine keeps reads in flight before workers need them, so that --io-depth applies. */
bool weir_io_has_depth(const char *engine);

/* Opens a reader with the named engine ("pread", "mmap", "uring", "null"). */
int weir_reader_open(struct weir_reader **out, const char *engine, struct weir_file_set *set, struct weir_err *err);
void weir_reader_close(struct weir_reader **reader);

/* Reads length bytes at offset. *data points to the bytes until the next call with this reader, either in buffer (at
 * least length bytes) or in the engine's memory. Times 01_file_cache and 03c_read_bytes. Returns 0; -ENODATA if the
 * file is shorter; -ESTALE if the file has been written to since it was indexed (the bytes can then be old or new); or
 * -errno from open or read. */
int weir_read(struct weir_reader *reader, int file, uint64_t offset, size_t length, void *buffer, const uint8_t **data);

/* Between weir_reader_begin and weir_reader_end, this reader uses the extents that were read ahead for the task, and
 * reads only the other extents itself. weir_reader_end returns the unused ones. ahead must be opened for the same set;
 * if it is NULL, both calls do nothing. */
void weir_reader_begin(struct weir_reader *reader, struct weir_ahead *ahead, uint64_t task_id);
void weir_reader_end(struct weir_reader *reader);

/* Returns a description of an error code returned by weir_read. */
const char *weir_read_reason(int code);
/* The same for the reader's last read; servers say more than a code. Valid until the next read. */
const char *weir_reader_reason(const struct weir_reader *reader, int code);

struct weir_read_counts {
    uint64_t reads, bytes;
    uint64_t ahead; /* number of reads that read-ahead served entirely */
};
/* Copies this reader's current counts. Can be called by any thread. */
void weir_reader_counts(const struct weir_reader *reader, struct weir_read_counts *counts);

/* Returns row i of the engine table for the help and `weir doctor`, or false past the end. *why_not is NULL if the
 * engine is available. */
bool weir_io_row(int i, const char **name, const char **summary, const char **why_not);

/* Returns 0 if this process can use the engine; otherwise the same as weir_io_check, or -errno with the reason. */
int weir_io_ready(const char *engine, struct weir_err *err);

/* Describes the features that liburing and the kernel offer to the engine uring. Returns false, with the reason in
 * text, if this process cannot use io_uring. */
bool weir_uring_describe(char *text, size_t size);

#endif
