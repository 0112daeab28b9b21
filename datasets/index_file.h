/* index_file.h: saves the index of a dataset in a file, so that the dataset can be opened again without the HDF5
 * library.
 *
 * Byte order and sizes are native. Contents: "WEIRIDX", version, a byte order mark, size and XXH3 hash of the rest; the
 * options that the index depends on; then one entry per file: path, size, mtime, hash of the file's first 4 KiB, and
 * its episodes with their arrays as in memory, aligned to 8 bytes. An entry is used if path, size, mtime and hash match
 * the file. Its counts and lengths are still checked. */
#ifndef WEIR_DATASETS_INDEX_FILE_H
#define WEIR_DATASETS_INDEX_FILE_H

#include "datasets/index.h"

struct weir_index_file;

/* Loads config->index. If the file does not exist, is damaged, has another version or was written with other options,
 * *out is NULL, 0 is returned, and the caller writes a new index. If the file is not an index file, returns a negative
 * code with err. */
int weir_index_file_load(struct weir_index_file **out, const struct weir_dataset_config *config, struct weir_err *err);
/* Returns the number of entries (files); 0 for NULL. */
int weir_index_file_count(const struct weir_index_file *index);
/* If the index describes the file in its current state, fills result->file, whose arrays are lent, and returns true.
 * Any thread. */
bool weir_index_file_find(const struct weir_index_file *index, struct weir_origin *origin, const char *path,
                          struct weir_file_result *result);
/* Returns true if an episode from an index file is plausible for a file of file_bytes bytes: it has cameras, its pixels
 * fill their rows, and all offsets lie inside the file. Its counts and lengths must already be checked. */
bool weir_index_file_is_sane(const struct weir_episode *episode, uint64_t file_bytes);
/* Like weir_index_file_is_sane without the offsets: checks dimensions, and that pixels fill their rows. */
bool weir_index_shapes_fit(const struct weir_episode *episode);
/* Frees the index, except for lent memory. Returns this memory to the caller, who owns it; may be NULL. */
uint8_t *weir_index_file_release(struct weir_index_file **index);

/* Writes the dataset's index to a temporary file and renames it. Files with left-out episodes, LMDB files and folders
 * of chunk files are omitted, so they are described again at every open. */
int weir_index_file_save(const struct weir_dataset *dataset, const struct weir_dataset_config *config,
                         struct weir_err *err);

#endif
