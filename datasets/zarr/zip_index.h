/* zip_index.h: locates the members of a zip archive through its central directory (APPNOTE.TXT 4.3, including ZIP64),
 * like Python's zipfile: if several members have the same name, the last one counts, and data before the archive is
 * ignored. Every byte is hostile: nothing outside the file is read, and memory grows only with the entries that were
 * read. */
#ifndef WEIR_DATASETS_ZARR_ZIP_INDEX_H
#define WEIR_DATASETS_ZARR_ZIP_INDEX_H

#include "datasets/chunks/chunk_grid.h"
#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WEIR_ZIP_HEADER_BYTES = 30 }; /* of a member, before its name */

struct weir_zip_member {
    const char *name;       /* lent by the index; zero-terminated */
    uint64_t header, bytes; /* offset of its local header; size of its stored data */
    uint64_t unpacked;      /* unpacked size */
    uint32_t number;        /* position in the central directory */
    uint32_t crc;           /* CRC-32 of the unpacked data */
    uint16_t method, flags; /* method 0: the member is not compressed */
};

struct weir_zip {
    struct weir_zip_member *members; /* sorted by name */
    uint32_t n;
    uint32_t repeated;  /* members replaced by later ones of the same name */
    uint64_t directory; /* offset of the central directory */
    char *names;
};

/* Returns 0, or a negative code with err, which does not name the file. raw->base must be 0. */
int weir_zip_open(struct weir_zip *zip, const struct weir_raw_file *raw, struct weir_err *err);
void weir_zip_close(struct weir_zip *zip);
/* Returns the index of the first member whose name is not less than `name`, or zip->n if none exists. */
uint32_t weir_zip_lower_bound(const struct weir_zip *zip, const char *name);
/* Returns NULL if the member does not exist. */
const struct weir_zip_member *weir_zip_find(const struct weir_zip *zip, const char *name);
/* Locates the stored data of a member, with one read. Returns -ENOTSUP if the member is encrypted, -EBADMSG if its
 * header is missing or has another name, and -ENAMETOOLONG if its name has over 1,024 bytes; all with err. */
int weir_zip_locate(const struct weir_raw_file *raw, const struct weir_zip_member *member, uint64_t *offset,
                    struct weir_err *err);
/* Like weir_zip_locate, for uncompressed members: also returns -ENOTSUP for compressed members. */
int weir_zip_data(const struct weir_raw_file *raw, const struct weir_zip_member *member, uint64_t *offset,
                  struct weir_err *err);

/* ---- zip_unpack.c: unpacks a member of a zip archive from start to end. Supports stored members, and deflate (RFC
 * 1951) through zlib. Memory use is a few buffers, whatever size the archive claims. Length and CRC-32 are verified at
 * the end. */

/* Per-thread state. raw and member are lent to it until close. */
struct weir_zip_unpack;

/* offset: start of the member's data (weir_zip_locate). Returns 0; -ENOTSUP for other compression methods, -EBADMSG for
 * impossible sizes, -ENOMEM. Here and below, err does not name the member. */
int weir_zip_unpack_open(struct weir_zip_unpack **unpack, const struct weir_raw_file *raw,
                         const struct weir_zip_member *member, uint64_t offset, struct weir_err *err);
/* Reads the next n bytes. Returns 0; -EBADMSG if the data is damaged or too short; or an error of reading the file. */
int weir_zip_unpack_read(struct weir_zip_unpack *unpack, void *bytes, size_t n, struct weir_err *err);
/* Checks that no data remains, and verifies the checksum of all data. Returns 0 or -EBADMSG. */
int weir_zip_unpack_end(struct weir_zip_unpack *unpack, struct weir_err *err);
void weir_zip_unpack_close(struct weir_zip_unpack **unpack);

#endif
