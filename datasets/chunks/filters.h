/* filters.h: undoes chunk filters: HDF5's deflate, shuffle and fletcher32, h5py's lzf, and Zarr's compressors. Other
 * filters cannot be undone, but their names are known. */
#ifndef WEIR_DATASETS_CHUNKS_FILTERS_H
#define WEIR_DATASETS_CHUNKS_FILTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WEIR_FILTERS_MAX = 8 };

/* Identifiers from the HDF5 library and from the registry of HDF5 filters. */
enum {
    WEIR_FILTER_DEFLATE = 1,
    WEIR_FILTER_SHUFFLE = 2,
    WEIR_FILTER_FLETCHER32 = 3,
    WEIR_FILTER_SZIP = 4,
    WEIR_FILTER_NBIT = 5,
    WEIR_FILTER_SCALEOFFSET = 6,
    WEIR_FILTER_LZF = 32000,
};
/* Zarr's compressors without an HDF5 identifier. These values are above the 16 bits of registered identifiers. */
enum {
    WEIR_FILTER_GZIP = 65536,
    WEIR_FILTER_ZARR_BLOSC,
    WEIR_FILTER_ZARR_ZSTD,
    WEIR_FILTER_FLOATS, /* pixels stored as floats; element_bytes contains the kind (see below) */
};

/* A dataset's filter pipeline, in the order in which it is applied when writing. */
struct weir_filters {
    int n;
    struct {
        int id;
        uint32_t element_bytes; /* parameter of shuffle, or kind of floats; 0 for other filters */
    } filter[WEIR_FILTERS_MAX];
};

/* Returns a static string: "deflate", "blosc", "zstd", ... for common identifiers, "unknown" for all others. */
const char *weir_filter_name(int id);

/* Returns true if weir_unfilter can undo all filters. */
bool weir_filters_can_undo(const struct weir_filters *filters);

/* Per-thread state. */
struct weir_unfilter_context;
struct weir_unfilter_context *weir_unfilter_open(void); /* NULL = out of memory */
void weir_unfilter_close(struct weir_unfilter_context **context);

/* Undoes the filters of one chunk; its n stored bytes must become exactly out_bytes bytes. mask: bit i is set if filter
 * i was not applied. *out points to the result, which lies in context until the next call, or in `in` if no bytes had
 * to be moved. The context's memory grows to the largest chunk. Returns 0. On failure sets *out to NULL and *reason to
 * a static string and returns -EBADMSG for damage, a wrong size or a wrong checksum; -ENOTSUP for an unknown filter,
 * which *reason names; or -ENOMEM. */
int weir_unfilter(struct weir_unfilter_context *context, const struct weir_filters *filters, uint32_t mask,
                  const uint8_t *in, size_t n, size_t out_bytes, const uint8_t **out, const char **reason);
/* Like weir_unfilter, but the last step can write to `to` (out_bytes bytes, or NULL); *out is then `to`. If it does
 * not, or after a failure, the contents of `to` are undefined. */
int weir_unfilter_to(struct weir_unfilter_context *context, const struct weir_filters *filters, uint32_t mask,
                     const uint8_t *in, size_t n, uint8_t *to, size_t out_bytes, const uint8_t **out,
                     const char **reason);

/* Unpacks LZF (LibLZF's format, as stored by h5py). Returns the number of bytes, or -1 if the input is damaged or
 * unpacks to more than out_bytes bytes. */
long weir_lzf_decompress(const uint8_t *in, size_t n, uint8_t *out, size_t out_bytes);

/* ---- Blosc 1 containers, through libblosc (filter_blosc.c): any thread, without locks ---- */

/* Sets *bytes to the unpacked size, from a checked header. Returns 0, or -EBADMSG for a malformed header. */
int weir_blosc_bytes(const uint8_t *in, size_t n, size_t *bytes);
/* Unpacks a container into out, which has room for the size from weir_blosc_bytes. Returns 0 or -EBADMSG. */
int weir_blosc_unpack(const uint8_t *in, size_t n, uint8_t *out, size_t bytes);

/* Packs n bytes into out (n + 16 bytes) with zarr's defaults: lz4, level 5, and shuffle for elements of element_bytes
 * bytes. Returns the packed size, or 0 on failure. */
size_t weir_blosc_pack(const uint8_t *in, size_t n, size_t element_bytes, uint8_t *out, size_t capacity);

/* ---- Zstandard frames, through libzstd (filter_zstd.c) ---- */

/* Per-thread state. */
struct weir_zstd;
struct weir_zstd *weir_zstd_open(void); /* NULL = out of memory */
void weir_zstd_close(struct weir_zstd **zstd);

/* Sets *bytes to the size that the first frame declares, or to SIZE_MAX if it declares none. Returns 0, or -EBADMSG if
 * the data is not a Zstandard frame. */
int weir_zstd_bytes(const uint8_t *in, size_t n, size_t *bytes);
/* Unpacks all frames. Returns 0 with *made bytes in out; -ENOSPC if they exceed capacity; -EBADMSG if the data is
 * damaged. */
int weir_zstd_unpack(struct weir_zstd *zstd, const uint8_t *in, size_t n, uint8_t *out, size_t capacity, size_t *made);

/* ---- pixels stored as floats ---- */

enum {
    WEIR_FLOATS_WIDTH = 15,
    WEIR_FLOATS_BIG_ENDIAN = 16,
    WEIR_FLOATS_TO_ONE = 32 /* white is 1; without this flag it is 255 */
};

/* Returns 2, 4 or 8; 0 for an unknown kind. */
size_t weir_floats_width(uint32_t kind);
/* Converts n values to bytes. Rounds to nearest, with halves rounded up. Values outside the range become 0 or 255, and
 * NaN becomes 0. */
void weir_floats_to_pixels(uint32_t kind, const uint8_t *in, size_t n, uint8_t *out);
/* Returns the value at `in`. */
double weir_float_at(uint32_t kind, const uint8_t *in);

#endif
