/* io.h: reads byte extents of files, by one of several engines. It knows no formats.
 *
 * A file set holds the dataset's files with the size, inode and time that the index saw; handles are opened on demand,
 * bounded in number, and checked against those on every opening and after every read. A reader is one thread's context
 * of an engine. */
#ifndef WEIR_IO_IO_H
#define WEIR_IO_IO_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct weir_file_set;
struct weir_reader;
struct weir_ahead;

/* What a file looked like when it was indexed. */
struct weir_file_id {
    uint64_t size_bytes;
    uint64_t device, inode;
    int64_t mtime_ns;
    bool may_be_written; /* size and time may change: who indexed the file knows that what is read stays */
};

/* max_open = 0: half of what RLIMIT_NOFILE allows. */
int weir_file_set_open(struct weir_file_set **out, int max_open);
/* Closes all handles. Every reader of the set is closed before. */
void weir_file_set_close(struct weir_file_set **set);
/* Adds a file; returns its number (0, 1, 2, ...) or -ENOMEM. path is copied. Not while readers run. */
int weir_file_set_add(struct weir_file_set *set, const char *path, const struct weir_file_id *id);
const char *weir_file_set_path(const struct weir_file_set *set, int file);
int weir_file_set_count(const struct weir_file_set *set);
/* The same files with other handles (max_open as above), direct when set is. */
int weir_file_set_copy(struct weir_file_set **out, const struct weir_file_set *set, int max_open);

/* Whether a file that was opened to be read is still the one that was indexed, size, time of writing and inode: what
 * its path leads to now. 0: it is, or nobody read it. 1: it is not; text (WEIR_FILE_CHANGE) says what is different, and
 * since when. Negative: this cannot be found out, with text. ask_server: not by what a network file system remembers.
 * Any thread. */
enum { WEIR_FILE_CHANGE = 256 };
int weir_file_set_changed(struct weir_file_set *set, int file, bool ask_server, char text[WEIR_FILE_CHANGE]);
/* From now on every read of the file is -ESTALE, whatever is open. Whether it was not so before. Any thread. */
bool weir_file_set_spoil(struct weir_file_set *set, int file);
bool weir_file_set_is_spoiled(const struct weir_file_set *set, int file);
/* Somebody else reads the file (the HDF5 library): weir_file_set_changed looks at it too. */
void weir_file_set_note(struct weir_file_set *set, int file);

/* From now on all reads pass the page cache by (O_DIRECT). Before the first one. -ENOTSUP, naming a file, when its file
 * system has no such reads. */
int weir_file_set_direct(struct weir_file_set *set, struct weir_err *err);
/* What offsets, lengths and memory of direct reads are multiples of; 1 when the set does not read directly. */
size_t weir_file_set_align(const struct weir_file_set *set);

struct weir_extent {
    int file;
    uint64_t offset;
    size_t length;
};

/* 0 when an engine of this name is there; -EINVAL or -ENOTSUP with the names there are, or the reason. */
int weir_io_check(const char *engine, struct weir_err *err);

/* The same; and -EINVAL with those that do when it has no direct reads. */
int weir_io_check_direct(const char *engine, struct weir_err *err);

/* The engine that always works, taken when nothing better is known: plain reads. */
const char *weir_io_default(void);
/* Bytes come from memory, whatever is in the page cache. */
bool weir_io_from_memory(const char *engine);

/* Pages of the files that the engine reads count as the process's resident memory. */
bool weir_io_maps(const char *engine);
/* The engine has reads in flight ahead of the workers: a depth. */
bool weir_io_has_depth(const char *engine);

/* Opens a reader on the engine of this name ("pread", "mmap", "uring", "null"). */
int weir_reader_open(struct weir_reader **out, const char *engine, struct weir_file_set *set, struct weir_err *err);
void weir_reader_close(struct weir_reader **reader);

/* Reads length bytes at offset of file. buffer (capacity >= length) is lent to the engine; *data is where the bytes
 * are: in buffer, or in the engine's memory until the next call on this reader. Times 01_file_cache and
 * 03c_read_bytes. 0, or -ENODATA when the file is shorter, -ESTALE when it was written to since it was indexed (its
 * bytes are then of either version), or -errno of open or read. */
int weir_read(struct weir_reader *reader, int file, uint64_t offset, size_t length, void *buffer, const uint8_t **data);

/* From now on this reader looks for its extents among what was read ahead for the task, before it reads; until
 * weir_reader_end, which gives back what it did not ask for. ahead: ahead.h's, of the same set; NULL: neither does
 * anything. */
void weir_reader_begin(struct weir_reader *reader, struct weir_ahead *ahead, uint64_t task_id);
void weir_reader_end(struct weir_reader *reader);

/* A sentence for a code that weir_read returned. */
const char *weir_read_reason(int code);

struct weir_read_counts {
    uint64_t reads, bytes;
    uint64_t ahead; /* reads of these that had been read ahead */
};
/* Counts of this reader so far (any thread). */
void weir_reader_counts(const struct weir_reader *reader, struct weir_read_counts *counts);

/* Row i of the engine table for help and doctor; false past the end. *why_not is NULL when the engine is there. */
bool weir_io_row(int i, const char **name, const char **summary, const char **why_not);

/* Describes what liburing and the kernel offer engine uring; false, and why not, when this process has none. */
bool weir_uring_describe(char *text, size_t size);

#endif
