/* index_file.h: keeps the index in a file, so that a dataset opens again without the HDF5 library.
 *
 * Native byte order and sizes: a file for this kind of machine. "WEIRIDX", version, a mark of the byte order, the size
 * and an XXH3 of all that follows; the options that shaped it; then an entry for each file: path, size, mtime, hash of
 * its first 4 KiB, and its episodes with their arrays as they lie in memory, aligned to 8. An entry is used when path,
 * size, mtime and hash are still those of the file; every count and length in it is checked all the same. */
#ifndef WEIR_DATASETS_INDEX_FILE_H
#define WEIR_DATASETS_INDEX_FILE_H

#include "datasets/index.h"

struct weir_index_file;

/* 0 with *out: the index that config->index holds, NULL when there is none yet, or when it is of another version, of
 * other options, or damaged: all reasons to write it anew. Negative with err when the file is something else. */
int weir_index_file_load(struct weir_index_file **out, const struct weir_dataset_config *config, struct weir_err *err);
/* Entries (files) in it; 0 for NULL. */
int weir_index_file_count(const struct weir_index_file *index);
/* True when the index describes the file as it is now: result->file is filled, its arrays lent by the index. Any
 * thread. */
bool weir_index_file_find(const struct weir_index_file *index, const char *path, struct weir_file_result *result);
/* Whether the numbers of an episode from such a file (its counts and lengths are checked already) can be a recording's
 * in a file of so many bytes: cameras there, pixels that fill their rows, all offsets inside the file. */
bool weir_index_file_is_sane(const struct weir_episode *episode, uint64_t file_bytes);
/* The same of the numbers that are no offsets: dimensions, and pixels that fill their rows. */
bool weir_index_shapes_fit(const struct weir_episode *episode);
/* Frees all but the memory that was lent, which is the caller's from now on (may be NULL). */
uint8_t *weir_index_file_release(struct weir_index_file **index);

/* Writes the dataset's index aside and renames it. Files with episodes that were left out, or with frames that were
 * marked bad, are not in it: they are described anew every time. */
int weir_index_file_save(const struct weir_dataset *dataset, const struct weir_dataset_config *config,
                         struct weir_err *err);

#endif
