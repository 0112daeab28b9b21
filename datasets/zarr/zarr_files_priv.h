/* zarr_files_priv.h: shared by the files that read stores; those on a server are in zarr_remote.c. */
#ifndef WEIR_DATASETS_ZARR_ZARR_FILES_PRIV_H
#define WEIR_DATASETS_ZARR_ZARR_FILES_PRIV_H

#include "base/shortage.h"
#include "datasets/zarr/zarr_files.h"

#include <errno.h>
#include <stdlib.h>

static inline bool weir_zarr_is_folder(const struct weir_zarr_files *files)
{
    return files->parts != NULL;
}

/* Reads an uncompressed member, whose data begins at `at`. Returns -EBADMSG if the checksum is wrong. */
int weir_zarr_read_member(struct weir_zarr_files *files, const struct weir_zip_member *member, uint64_t at, void *bytes,
                          struct weir_err *err);
/* Allocates length bytes, if that is at most `most`, and a final zero. */
static inline int weir_zarr_make_room(uint8_t **bytes, uint64_t length, size_t most, struct weir_err *err)
{
    if (length > most)
        return weir_err_set(err, -EFBIG, "its size of %llu bytes is implausible", (unsigned long long)length);
    *bytes = malloc((size_t)length + 1);
    return *bytes ? 0 : weir_no_memory(err);
}

/* Lists the keys, and reads the metadata of the store's arrays. */
int weir_zarr_remote_open(struct weir_zarr_files *files, struct weir_err *err);
void weir_zarr_remote_close(struct weir_zarr_files *files);
/* Reads the texts of episodes ahead. */
int weir_zarr_remote_texts(struct weir_zarr_files *files, int episodes, struct weir_err *err);
bool weir_zarr_remote_has(struct weir_zarr_files *files, const char *key);
int weir_zarr_remote_read(struct weir_zarr_files *files, const char *key, size_t most, uint8_t **bytes, size_t *n,
                          struct weir_err *err);
/* Calls `add` for each array in a group. Returns 0 or its result. */
int weir_zarr_remote_names(struct weir_zarr_files *files, const char *group,
                           int (*add)(void *user, const char *name, size_t length), void *user);
/* Returns the number of keys below an array. */
uint64_t weir_zarr_remote_count(const struct weir_zarr_files *files, const char *array);
/* Identifies the files of an array's chunks. */
int weir_zarr_remote_chunks(struct weir_zarr_files *files, const char *array, const struct weir_part_folder *folder,
                            uint32_t first_part, struct weir_chunk *chunks, struct weir_err *err);
int weir_zarr_remote_part(struct weir_zarr_files *files, uint32_t part, const struct weir_chunk *chunk, void *buffer,
                          struct weir_err *err);
/* Reads chunk i, and the chunks after it, into the window unless it is there. */
void weir_zarr_remote_ahead(struct weir_zarr_files *files, uint32_t first_part, const struct weir_chunk *chunks,
                            uint32_t i, uint32_t n);
/* Returns the bytes of chunk i, or NULL if the window does not have it. */
const uint8_t *weir_zarr_window_at(const struct weir_zarr_window *window, uint32_t first_part, uint32_t i);
void weir_zarr_window_drop(struct weir_zarr_window *window);

#endif
