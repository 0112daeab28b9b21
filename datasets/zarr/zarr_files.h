/* zarr_files.h: the keys of a Zarr store. They are files in a folder, or uncompressed members of one zip archive. */
#ifndef WEIR_DATASETS_ZARR_ZARR_FILES_H
#define WEIR_DATASETS_ZARR_ZARR_FILES_H

#include "datasets/chunks/chunk_grid.h"
#include "datasets/chunks/filters.h"
#include "datasets/parts.h"
#include "datasets/zarr/zip_index.h"
#include "origin/source.h"
#include "weir/base.h"
#include "weir/dataset.h"
#include "weir/frames.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- zarray.c: the metadata of a Zarr v2 array: .zarray, which is JSON of at most 1 MiB. Messages name the metadata
 * that is not supported. */

enum { WEIR_ZARRAY_BYTES_MAX = 1 << 20 };

struct weir_zarray {
    struct weir_chunk_grid grid; /* rank 1..8; chunk sizes are not zero; elements as stored */
    char kind;                   /* kind of the type, as in numpy: 'f', 'i', 'u', 'b' */
    bool big_endian;
    uint8_t fill[8];             /* fill value of one stored element; zero if it is null */
    char separator;              /* character between the numbers in a chunk's name */
    struct weir_filters filters; /* at most one filter */
    bool is_image;               /* chunks are encoded images */
    enum weir_frame_kind image; /* kind of the images; WEIR_FRAME_IMAGE: decided by their first bytes, also for depth */
};

/* Returns 0; or -EBADMSG, -ENOTSUP, -EFBIG or -ENOMEM with err, which does not name the array. */
int weir_zarray_parse(const char *text, size_t n, struct weir_zarray *array, struct weir_err *err);

/* ---- zarr_files.c */

enum { WEIR_ZARR_WINDOW = 128 };

/* Chunks of an array that were read ahead. */
struct weir_zarr_window {
    uint32_t first_part, first, n;    /* first: number of the chunk in the array */
    uint8_t *bytes[WEIR_ZARR_WINDOW]; /* NULL = never written, or not read */
};

struct weir_zarr_value;

struct weir_zarr_files {
    const char *path;           /* path of the store; lent */
    struct weir_origin *origin; /* NULL = this machine */
    int fd;                     /* descriptor of the folder; -1 = an archive, or on a server */
    struct weir_parts *parts;   /* parts of a folder, which the caller can take over; NULL for an archive */
    struct weir_zip zip;
    struct weir_raw_file raw;
    struct weir_source *source;          /* the archive; NULL for a folder */
    uint32_t headers_first, headers_end; /* chunks of an array whose members' headers were announced */
    /* Of a folder on a server: */
    struct weir_path_list keys;     /* sorted */
    struct weir_zarr_value *values; /* read ahead; sorted by key */
    int n_values;
    struct weir_zarr_window window;
};

/* Implements weir_format_ops.mark: the file that every folder contains. */
const char *weir_zarr_mark(const char *name);
/* Returns 0, or a negative code with err, which does not contain path. */
int weir_zarr_files_open(struct weir_zarr_files *files, struct weir_origin *origin, const char *path,
                         struct weir_err *err);
void weir_zarr_files_close(struct weir_zarr_files *files);

bool weir_zarr_has(struct weir_zarr_files *files, const char *key);
/* Reads the whole value of a key, which may have at most `most` bytes. *bytes is followed by a zero byte; the caller
 * frees it. Returns -ENOENT if the key does not exist, and -EBADMSG if its checksum (in an archive) is wrong. */
int weir_zarr_read(struct weir_zarr_files *files, const char *key, size_t most, uint8_t **bytes, size_t *n,
                   struct weir_err *err);
/* Lists the names of the arrays in a group ("data"), sorted. Returns -ENAMETOOLONG if a name has over 63 bytes. The
 * caller frees *names. */
int weir_zarr_list(struct weir_zarr_files *files, const char *group, char (**names)[64], int *n, struct weir_err *err);

/* Locates the chunks of an array: weir_chunk_grid_count of them, in row-major order. The caller frees *chunks. In an
 * archive, their offsets are in the archive. In a folder, every chunk starts at the beginning of its own file, and
 * chunk i is part *first_part + i. */
int weir_zarr_chunks(struct weir_zarr_files *files, const char *array, const struct weir_zarray *about,
                     struct weir_chunk **chunks, uint32_t *n, uint32_t *first_part, struct weir_err *err);
/* Reads chunk i, which must exist, as stored. buffer has room for chunks[i].bytes. In an archive, also verifies the
 * checksum. Returns 0, or a negative code with err, which does not name the chunk. */
int weir_zarr_read_chunk(struct weir_zarr_files *files, const char *array, const struct weir_zarray *about,
                         uint32_t first_part, const struct weir_chunk *chunks, uint32_t i, void *buffer,
                         struct weir_err *err);

/* Declares that the chunks from number i on will be read in order. Of a server, they are read now, many at once. */
void weir_zarr_announce(struct weir_zarr_files *files, uint32_t first_part, const struct weir_chunk *chunks, uint32_t i,
                        uint32_t n);
/* Declares that the texts of all episodes will be read. */
int weir_zarr_announce_texts(struct weir_zarr_files *files, int episodes, struct weir_err *err);

/* Implements weir_format_ops.check: verifies the checksums of all members of an archive. A folder has no checksums. */
int weir_zarr_check(struct weir_zarr_files *files, weir_damaged_fn *damaged, void *user, struct weir_err *err);

#endif
