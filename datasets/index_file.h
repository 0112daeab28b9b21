/* index_file.h: saves the index in a file, so that a dataset opens again without the HDF5 library.
 *
 * Native byte order and sizes. Contents: "WEIRIDX", version, a byte order mark, size and XXH3 of the rest; the options
 * that shaped the index; then one entry per file: path, size, mtime, hash of its first 4 KiB, and its episodes with
 * their arrays as in memory, aligned to 8. An entry is used when path, size, mtime and hash match the file; its counts
 * and lengths are checked nevertheless. */
#ifndef WEIR_DATASETS_INDEX_FILE_H
#define WEIR_DATASETS_INDEX_FILE_H

#include "datasets/index.h"

struct weir_index_file;

/* Loads config->index. *out is NULL, with 0, when the file does not exist, is damaged, or is of another version or
 * other options: it is then rewritten. Negative with err when the file is something else. */
int weir_index_file_load(struct weir_index_file **out, const struct weir_dataset_config *config, struct weir_err *err);
/* Returns the number of entries (files); 0 for NULL. */
int weir_index_file_count(const struct weir_index_file *index);
/* Returns true, with result->file filled and its arrays lent, when the index describes the file in its current state.
 * Any thread. */
bool weir_index_file_find(const struct weir_index_file *index, const char *path, struct weir_file_result *result);
/* Returns true when an episode from an index file, whose counts and lengths are checked already, is plausible for a
 * file of so many bytes: it has cameras, its pixels fill their rows, all offsets lie inside the file. */
bool weir_index_file_is_sane(const struct weir_episode *episode, uint64_t file_bytes);
/* The same without offsets: dimensions, and pixels that fill their rows. */
bool weir_index_shapes_fit(const struct weir_episode *episode);
/* Frees the index except for lent memory, which it returns to the caller (may be NULL). */
uint8_t *weir_index_file_release(struct weir_index_file **index);

/* Writes the dataset's index to a temporary file and renames it. Omits files with episodes that were left out, or with
 * frames marked bad: they are described at every open. */
int weir_index_file_save(const struct weir_dataset *dataset, const struct weir_dataset_config *config,
                         struct weir_err *err);

#endif
