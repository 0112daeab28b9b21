/* filters.h: undoes chunk filters: HDF5's deflate, shuffle, fletcher32, h5py's lzf, and Zarr's compressors. Other
 * filters are known by name only. */
#ifndef WEIR_DATASETS_CHUNKS_FILTERS_H
#define WEIR_DATASETS_CHUNKS_FILTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WEIR_FILTERS_MAX = 8 };

/* Identifiers of the HDF5 library and of the registry of filters. */
enum {
    WEIR_FILTER_DEFLATE = 1,
    WEIR_FILTER_SHUFFLE = 2,
    WEIR_FILTER_FLETCHER32 = 3,
    WEIR_FILTER_SZIP = 4,
    WEIR_FILTER_NBIT = 5,
    WEIR_FILTER_SCALEOFFSET = 6,
    WEIR_FILTER_LZF = 32000,
};
/* Zarr's compressors without an HDF5 identifier; registered identifiers have 16 bits. */
enum {
    WEIR_FILTER_GZIP = 65536,
    WEIR_FILTER_ZARR_BLOSC,
    WEIR_FILTER_ZARR_ZSTD,
    WEIR_FILTER_FLOATS, /* pixels stored as floats: filter_floats.h; element_bytes is the kind */
};

/* A dataset's pipeline, in the order of writing. */
struct weir_filters {
    int n;
    struct {
        int id;
        uint32_t element_bytes; /* shuffle's parameter, or the kind of floats; else 0 */
    } filter[WEIR_FILTERS_MAX];
};

/* Returns "deflate", "blosc", "zstd", ... for common identifiers, "unknown" for others. Static text. */
const char *weir_filter_name(int id);

/* Returns true when weir_unfilter can undo all filters. */
bool weir_filters_can_undo(const struct weir_filters *filters);

/* Per-thread state. */
struct weir_unfilter_context;
struct weir_unfilter_context *weir_unfilter_open(void); /* NULL = out of memory */
void weir_unfilter_close(struct weir_unfilter_context **context);

/* Undoes the filters of one chunk: n stored bytes become exactly out_bytes. mask: bit i set = filter i was not applied.
 * *out points to the result: in context until the next call, or in itself when nothing had to move. Memory grows to the
 * largest chunk. 0; or, with *reason (static text) and *out NULL: -EBADMSG for damage, a wrong size or checksum;
 * -ENOTSUP for an unknown filter, named by *reason; -ENOMEM. */
int weir_unfilter(struct weir_unfilter_context *context, const struct weir_filters *filters, uint32_t mask,
                  const uint8_t *in, size_t n, size_t out_bytes, const uint8_t **out, const char **reason);
/* The same, but the last step may write to `to` (out_bytes; NULL = nowhere), and then *out is to. Otherwise, and after
 * a failure, its contents are undefined. */
int weir_unfilter_to(struct weir_unfilter_context *context, const struct weir_filters *filters, uint32_t mask,
                     const uint8_t *in, size_t n, uint8_t *to, size_t out_bytes, const uint8_t **out,
                     const char **reason);

/* Unpacks LZF (LibLZF's format, as stored by h5py). Returns the number of bytes, or -1 for damaged input or more than
 * out_bytes. */
long weir_lzf_decompress(const uint8_t *in, size_t n, uint8_t *out, size_t out_bytes);

/* ---- Blosc 1 containers, by libblosc (filter_blosc.c): any thread, without locks ---- */

/* Returns the unpacked size in *bytes, from a checked header; -EBADMSG for a malformed one. */
int weir_blosc_bytes(const uint8_t *in, size_t n, size_t *bytes);
/* Unpacks a container into out, which holds the size from weir_blosc_bytes. 0 or -EBADMSG. */
int weir_blosc_unpack(const uint8_t *in, size_t n, uint8_t *out, size_t bytes);

/* Packs n bytes into out (n + 16 bytes) with zarr's defaults: lz4, level 5, shuffled by elements of so many bytes.
 * Returns the packed size; 0 on failure. */
size_t weir_blosc_pack(const uint8_t *in, size_t n, size_t element_bytes, uint8_t *out, size_t capacity);

/* ---- Zstandard frames, by libzstd (filter_zstd.c) ---- */

/* Per-thread state. */
struct weir_zstd;
struct weir_zstd *weir_zstd_open(void); /* NULL = out of memory */
void weir_zstd_close(struct weir_zstd **zstd);

/* Returns the declared size of the first frame in *bytes; SIZE_MAX when undeclared. -EBADMSG for another format. */
int weir_zstd_bytes(const uint8_t *in, size_t n, size_t *bytes);
/* Unpacks all frames. 0 with *made bytes in out; -ENOSPC when they exceed capacity; -EBADMSG. */
int weir_zstd_unpack(struct weir_zstd *zstd, const uint8_t *in, size_t n, uint8_t *out, size_t capacity, size_t *made);

/* ---- pixels stored as floats ---- */

enum { WEIR_FLOATS_WIDTH = 15, WEIR_FLOATS_BIG_ENDIAN = 16, WEIR_FLOATS_TO_ONE = 32 /* white is 1, else 255 */ };

/* Returns 2, 4 or 8; 0 for an unknown kind. */
size_t weir_floats_width(uint32_t kind);
/* Rounds to nearest, halves up; values outside the range become 0 or 255, NaN becomes 0. */
void weir_floats_to_pixels(uint32_t kind, const uint8_t *in, size_t n, uint8_t *out);
/* Returns one value. */
double weir_float_at(uint32_t kind, const uint8_t *in);

#endif
