/* zarr_files.h: the keys of a Zarr store, in a folder (a file each) or in one zip archive (a stored member each). */
#ifndef WEIR_DATASETS_ZARR_ZARR_FILES_H
#define WEIR_DATASETS_ZARR_ZARR_FILES_H

#include "datasets/parts.h"
#include "datasets/zarr/zarray.h"
#include "datasets/zarr/zip_index.h"
#include "weir/base.h"
#include "weir/dataset.h"

struct weir_zarr_files {
    const char *path;         /* lent */
    int fd;                   /* of the folder or of the archive */
    struct weir_parts *parts; /* of a folder; for the caller to take over */
    struct weir_zip zip;
    struct weir_raw_file raw;
};

/* 0 or a negative code with err, which does not name path. */
int weir_zarr_files_open(struct weir_zarr_files *files, const char *path, struct weir_err *err);
void weir_zarr_files_close(struct weir_zarr_files *files);

bool weir_zarr_has(struct weir_zarr_files *files, const char *key);
/* All of a key of at most most bytes. *bytes has a zero behind it; free(*bytes). -ENOENT when it is not there,
 * -EBADMSG when its checksum (in an archive) is wrong. */
int weir_zarr_read(struct weir_zarr_files *files, const char *key, size_t most, uint8_t **bytes, size_t *n,
                   struct weir_err *err);
/* Names of the arrays in a group ("data"), sorted; free(*names). Those of over 63 bytes are -ENAMETOOLONG. */
int weir_zarr_list(struct weir_zarr_files *files, const char *group, char (**names)[64], int *n, struct weir_err *err);

/* Where the chunks of an array lie (weir_chunk_grid_count of them, row-major; free(*chunks)): in the archive; or each
 * at the beginning of its own file, of which chunk i is part *first_part + i. */
int weir_zarr_chunks(struct weir_zarr_files *files, const char *array, const struct weir_zarray *about,
                     struct weir_chunk **chunks, uint32_t *n, uint32_t *first_part, struct weir_err *err);
/* The bytes of chunk i of them, which was written, as stored; buffer has room for chunks[i].bytes. Of an archive the
 * checksum is compared. 0 or negative with err, which does not name the chunk. */
int weir_zarr_read_chunk(struct weir_zarr_files *files, const char *array, const struct weir_zarray *about,
                         uint32_t first_part, const struct weir_chunk *chunks, uint32_t i, void *buffer,
                         struct weir_err *err);

/* weir_format_ops.check: compares the checksums of all members of an archive; a folder has none. */
int weir_zarr_check(struct weir_zarr_files *files, weir_damaged_fn *damaged, void *user, struct weir_err *err);

#endif
