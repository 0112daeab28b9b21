/* zip_index.h: where the members of a zip archive lie, by its central directory (APPNOTE.TXT 4.3, ZIP64 included), as
 * Python's zipfile reads it: the last member of a name counts, and bytes before the archive are passed over. Every byte
 * is taken to be hostile: nothing outside the file is read, and memory grows with the entries that were read. */
#ifndef WEIR_DATASETS_ZARR_ZIP_INDEX_H
#define WEIR_DATASETS_ZARR_ZIP_INDEX_H

#include "datasets/chunks/chunk_grid.h"
#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_zip_member {
    const char *name;       /* lent by the index; ends with a zero */
    uint64_t header, bytes; /* of its local header; of its data as stored */
    uint64_t unpacked;      /* bytes that come of it */
    uint32_t number;        /* in the central directory */
    uint32_t crc;           /* CRC-32 of what comes of it */
    uint16_t method, flags; /* 0 = stored */
};

struct weir_zip {
    struct weir_zip_member *members; /* by name */
    uint32_t n;
    uint32_t repeated;  /* members that are left out because a later one has their name */
    uint64_t directory; /* where the central directory begins */
    char *names;
};

/* 0 or a negative code with err, which does not name the file. raw: base is 0. */
int weir_zip_open(struct weir_zip *zip, const struct weir_raw_file *raw, struct weir_err *err);
void weir_zip_close(struct weir_zip *zip);
/* The first member whose name is not below this one; zip->n when all are. */
uint32_t weir_zip_lower_bound(const struct weir_zip *zip, const char *name);
/* NULL when there is none. */
const struct weir_zip_member *weir_zip_find(const struct weir_zip *zip, const char *name);
/* Where its data, as stored, begins: one read. -ENOTSUP for a member that is encrypted, -EBADMSG when its header is not
 * there or has another name, -ENAMETOOLONG past 1,024 bytes; with err. */
int weir_zip_locate(const struct weir_raw_file *raw, const struct weir_zip_member *member, uint64_t *offset,
                    struct weir_err *err);
/* The same of a member that is stored as it is: -ENOTSUP for one that is compressed as well. */
int weir_zip_data(const struct weir_raw_file *raw, const struct weir_zip_member *member, uint64_t *offset,
                  struct weir_err *err);

#endif
