/* zip_unpack.h: unpacks a member of a zip archive from start to end: stored members, and deflate (RFC 1951) by zlib.
 * Memory is a few buffers for any claimed size; length and CRC-32 are verified at the end. */
#ifndef WEIR_DATASETS_ZARR_ZIP_UNPACK_H
#define WEIR_DATASETS_ZARR_ZIP_UNPACK_H

#include "datasets/zarr/zip_index.h"
#include "weir/base.h"

/* Per-thread state. raw and member are lent until close. */
struct weir_zip_unpack;

/* offset: start of its data (weir_zip_locate). 0; -ENOTSUP for other methods, -EBADMSG for impossible sizes, -ENOMEM.
 * Here and below, err does not name the member. */
int weir_zip_unpack_open(struct weir_zip_unpack **unpack, const struct weir_raw_file *raw,
                         const struct weir_zip_member *member, uint64_t offset, struct weir_err *err);
/* Reads the next n bytes. 0; -EBADMSG for damage or fewer bytes; or an error of reading the file. */
int weir_zip_unpack_read(struct weir_zip_unpack *unpack, void *bytes, size_t n, struct weir_err *err);
/* Checks that no data remains, and the checksum of all data. 0 or -EBADMSG. */
int weir_zip_unpack_end(struct weir_zip_unpack *unpack, struct weir_err *err);
void weir_zip_unpack_close(struct weir_zip_unpack **unpack);

#endif
