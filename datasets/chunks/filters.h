/* filters.h: chunk filters, undone: HDF5's deflate, shuffle, fletcher32 and h5py's lzf, and Zarr's compressors; what
 * else a pipeline may name is known by name only. */
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
/* Of Zarr's compressors that HDF5 has not; beyond the registry's identifiers, which have 16 bits. */
enum {
    WEIR_FILTER_GZIP = 65536,
    WEIR_FILTER_ZARR_BLOSC,
    WEIR_FILTER_ZARR_ZSTD,
    WEIR_FILTER_FLOATS, /* pixels that were stored as floats: filter_floats.h; element_bytes is the kind */
};

/* A dataset's pipeline, in the order in which filters were applied when writing. */
struct weir_filters {
    int n;
    struct {
        int id;
        uint32_t element_bytes; /* shuffle's parameter, or the kind of floats; else 0 */
    } filter[WEIR_FILTERS_MAX];
};

/* "deflate", "blosc", "zstd", ... for the identifiers that users meet; "unknown" for others. Static text. */
const char *weir_filter_name(int id);

/* True when weir_unfilter can undo all of them. */
bool weir_filters_can_undo(const struct weir_filters *filters);

/* One thread's tools. */
struct weir_unfilter_context;
struct weir_unfilter_context *weir_unfilter_open(void); /* NULL = out of memory */
void weir_unfilter_close(struct weir_unfilter_context **context);

/* Undoes the filters of one chunk: in (n bytes as stored; mask: bit i set = filter i was not applied) becomes exactly
 * out_bytes. *out is where they are: in context's memory until the next call, or in itself when nothing had to be
 * moved. Memory grows to the largest chunk and stays. 0; or with *reason (static text) and *out NULL: -EBADMSG:
 * damaged, too short, too long, wrong checksum; -ENOTSUP: a filter that is not known was applied, *reason is its name;
 * -ENOMEM. */
int weir_unfilter(struct weir_unfilter_context *context, const struct weir_filters *filters, uint32_t mask,
                  const uint8_t *in, size_t n, size_t out_bytes, const uint8_t **out, const char **reason);
/* The same, but the last step may put them into to (out_bytes; NULL = nowhere), and then *out is to. Else, or after a
 * failure, its contents are undefined. */
int weir_unfilter_to(struct weir_unfilter_context *context, const struct weir_filters *filters, uint32_t mask,
                     const uint8_t *in, size_t n, uint8_t *to, size_t out_bytes, const uint8_t **out,
                     const char **reason);

/* LZF (LibLZF's format, as h5py stores it): the bytes made, or -1 when in is damaged or does not fit out_bytes. */
long weir_lzf_decompress(const uint8_t *in, size_t n, uint8_t *out, size_t out_bytes);

#endif
