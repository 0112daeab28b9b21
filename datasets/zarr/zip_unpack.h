/* zip_unpack.h: unpacks a member of a zip archive from start to end. Supports stored members, and deflate (RFC 1951)
 * through zlib. Memory use is a few buffers, whatever size the archive claims. Length and CRC-32 are verified at the
 * end. */
#ifndef WEIR_DATASETS_ZARR_ZIP_UNPACK_H
#define WEIR_DATASETS_ZARR_ZIP_UNPACK_H

#include "datasets/zarr/zip_index.h"
#include "weir/base.h"

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
