/* zip_unpack.h: what a member of a zip archive unpacks to, from its beginning to its end: stored members, and deflate
 * (RFC 1951) by zlib. Memory is a few buffers, whatever the member claims; its length and its CRC-32 are compared at
 * its end. */
#ifndef WEIR_DATASETS_ZARR_ZIP_UNPACK_H
#define WEIR_DATASETS_ZARR_ZIP_UNPACK_H

#include "datasets/zarr/zip_index.h"
#include "weir/base.h"

/* One thread's. raw and member are lent until close. */
struct weir_zip_unpack;

/* offset: where its data begins (weir_zip_locate). 0; -ENOTSUP for other methods, -EBADMSG when its sizes cannot be
 * right, -ENOMEM; err does not name the member, here and below. */
int weir_zip_unpack_open(struct weir_zip_unpack **unpack, const struct weir_raw_file *raw,
                         const struct weir_zip_member *member, uint64_t offset, struct weir_err *err);
/* The next n bytes. 0; -EBADMSG when it is damaged or has not that many, or what reading the file returned. */
int weir_zip_unpack_read(struct weir_zip_unpack *unpack, void *bytes, size_t n, struct weir_err *err);
/* Checks that nothing is left, and the checksum of all that was read. 0 or -EBADMSG. */
int weir_zip_unpack_end(struct weir_zip_unpack *unpack, struct weir_err *err);
void weir_zip_unpack_close(struct weir_zip_unpack **unpack);

#endif
