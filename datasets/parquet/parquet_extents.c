/* Values of pages that are in the file as they are: in uncompressed pages, and in literals of Snappy. Images compress
 * so little that Snappy stores almost all of their bytes as literals of at most 64 KiB. */
#include "base/grow.h"
#include "datasets/parquet/parquet_priv.h"
#include "datasets/parquet/snappy.h"

#include <errno.h>
#include <string.h>

enum { PIECE_MIN = 256, TAG_MAX = 5 };

struct listing {
    struct weir_page_values *values;
    uint64_t offset; /* of the stored bytes in the file */
    size_t at;       /* of their first byte in the page */
};

static int add_piece(void *user, size_t out_at, size_t in_at, size_t n)
{
    struct listing *listing = user;
    struct weir_page_values *values = listing->values;
    if (n < PIECE_MIN) /* too short for images; a page of short literals takes no memory */
        return 0;
    if (!weir_grow(&values->pieces, values->n_pieces, sizeof *values->pieces))
        return -ENOMEM;
    values->pieces[values->n_pieces++] =
        (struct weir_page_piece){listing->offset + in_at, (uint32_t)(listing->at + out_at), (uint32_t)n};
    return 0;
}

int weir_page_locate(struct weir_page_values *values, int codec, const uint8_t *stored, size_t n, uint64_t offset,
                     size_t at)
{
    struct listing listing = {values, offset, at};
    if (codec == WEIR_PARQUET_SNAPPY)
        return weir_snappy_literals(stored, n, add_piece, &listing);
    return codec == WEIR_PARQUET_UNCOMPRESSED ? add_piece(&listing, 0, 0, n) : 0;
}

/* Returns the last piece that begins at or before a byte of the page, or NULL. */
static const struct weir_page_piece *piece_at(const struct weir_page_values *values, size_t at)
{
    size_t low = 0, high = values->n_pieces;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (values->pieces[middle].at <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? &values->pieces[low - 1] : NULL;
}

struct weir_parquet_extent weir_page_extent(const struct weir_page_values *values, uint32_t value)
{
    const struct weir_page_bytes *bytes = &values->bytes[value];
    size_t at = (size_t)(bytes->at - values->memory), end = at + bytes->length;
    struct weir_parquet_extent extent = {UINT64_MAX, bytes->length, 0, 0};
    const struct weir_page_piece *piece = piece_at(values, at);
    if (!piece || at >= (size_t)piece->at + piece->n)
        return extent;
    uint64_t begin = piece->offset + (at - piece->at);
    size_t first = (size_t)piece->at + piece->n - at;
    while ((size_t)piece->at + piece->n < end) {
        const struct weir_page_piece *next = piece + 1;
        if (next == values->pieces + values->n_pieces || next->at != piece->at + piece->n ||
            next->offset - piece->offset - piece->n > TAG_MAX)
            return extent;
        piece = next;
    }
    uint64_t span = piece->offset + (end - piece->at) - begin;
    if (span > UINT32_MAX)
        return extent;
    return (struct weir_parquet_extent){begin, bytes->length, (uint32_t)(first < bytes->length ? first : bytes->length),
                                        (uint32_t)span};
}

int weir_parquet_join(const struct weir_parquet_extent *extent, const uint8_t *stored, uint8_t *out)
{
    size_t at = 0, done = 0, n = extent->first;
    for (;;) {
        if (n > extent->length - done)
            n = extent->length - done;
        if (n > extent->span - at)
            return -EBADMSG;
        memcpy(out + done, stored + at, n);
        done += n;
        at += n;
        if (done == extent->length)
            return 0;
        size_t tag = weir_snappy_literal_tag(stored + at, extent->span - at, &n);
        if (tag == 0)
            return -EBADMSG;
        at += tag;
    }
}
