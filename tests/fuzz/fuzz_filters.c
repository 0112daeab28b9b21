/* libFuzzer: unfilters chunks with hostile pipelines, masks, sizes and bytes. Each stream is also decompressed as lzf.
 *
 * Input: number of filters (1 byte), 2 bytes for each (filter, element size), mask (1 byte), size of the chunk (3
 * bytes), then the chunk's bytes. */
#include "datasets/chunks/filters.h"
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <string.h>

enum { OUT_MAX = 1 << 16 };

/* Returns known filters most of the time, since unknown ones differ only in their names. */
static int filter_id(uint8_t byte)
{
    static const int ids[] = {WEIR_FILTER_DEFLATE, WEIR_FILTER_SHUFFLE,    WEIR_FILTER_FLETCHER32,
                              WEIR_FILTER_LZF,     WEIR_FILTER_ZARR_BLOSC, WEIR_FILTER_ZARR_ZSTD,
                              WEIR_FILTER_GZIP,    WEIR_FILTER_FLOATS};
    return byte < 200 ? ids[byte % 4] : byte < 250 ? ids[byte % 8] : byte % 8;
}

static uint32_t element_bytes(uint8_t byte)
{
    return byte < 128 ? byte % 17u : byte < 250 ? byte * 7u : UINT32_MAX - byte;
}

static size_t read_pipeline(struct weir_filters *filters, const uint8_t *data, size_t size)
{
    size_t at = 1;
    filters->n = 0;
    for (int n = data[0] % (WEIR_FILTERS_MAX + 1); filters->n < n && size - at >= 2; at += 2) {
        filters->filter[filters->n].id = filter_id(data[at]);
        filters->filter[filters->n++].element_bytes = element_bytes(data[at + 1]);
    }
    return at;
}

/* Unfilters a chunk twice, from a buffer of exact size so that reads past its end are detected. The second pass reuses
 * the context's buffers. */
static void try_chunk(const struct weir_filters *filters, uint32_t mask, const uint8_t *data, size_t n,
                      size_t out_bytes)
{
    struct weir_unfilter_context *context = weir_unfilter_open();
    uint8_t *in = malloc(n > 0 ? n : 1), *first = NULL;
    memcpy(in, data, n);
    for (int turn = 0; turn < 2; turn++) {
        const uint8_t *out = in;
        const char *reason = NULL;
        int rc = weir_unfilter(context, filters, mask, in, n, out_bytes, &out, &reason);
        require(rc == 0 || rc == -EBADMSG || rc == -ENOTSUP);
        require(rc == 0 ? out != NULL : !out && reason && *reason);
        require(rc != -ENOTSUP || !weir_filters_can_undo(filters));
        require(turn == 0 || (rc == 0) == (first != NULL));
        if (rc == 0 && turn == 0) {
            first = malloc(out_bytes > 0 ? out_bytes : 1);
            memcpy(first, out, out_bytes);
        } else if (rc == 0) {
            require(memcmp(first, out, out_bytes) == 0);
        }
    }
    free(first);
    free(in);
    weir_unfilter_close(&context);
}

static void try_lzf(const uint8_t *data, size_t n, size_t out_bytes)
{
    uint8_t *in = malloc(n > 0 ? n : 1), *out = malloc(out_bytes > 0 ? out_bytes : 1);
    memcpy(in, data, n);
    long made = weir_lzf_decompress(in, n, out, out_bytes);
    require(made >= -1 && made <= (long)out_bytes);
    require(made <= 0 || weir_lzf_decompress(in, n, out, (size_t)made) == made);
    require(made <= 0 || weir_lzf_decompress(in, n, out, (size_t)made - 1) == -1);
    free(in);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 5)
        return 0;
    struct weir_filters filters;
    size_t at = read_pipeline(&filters, data, size);
    if (size - at < 4)
        return 0;
    uint32_t mask = data[at];
    size_t out_bytes = ((size_t)data[at + 1] | (size_t)data[at + 2] << 8 | (size_t)data[at + 3] << 16) % (OUT_MAX + 1);
    data += at + 4;
    size -= at + 4;
    try_chunk(&filters, mask, data, size, out_bytes);
    try_lzf(data, size, out_bytes);
    return 0;
}
