/* Values of pages that can be read on their own. Those of uncompressed pages, and in literals of Snappy, are in the
 * file as they are: images compress so little that Snappy stores almost all of their bytes as literals of at most 64
 * KiB. Other values compressed by Snappy are decompressed from the start of a block, because Snappy's compressors
 * divide data into blocks of 64 KiB, which do not refer to each other. */
#include "base/grow.h"
#include "datasets/chunks/unpack.h"
#include "datasets/parquet/parquet_priv.h"

#include <errno.h>
#include <string.h>

enum { PIECE_MIN = 256, TAG_MAX = 5, BLOCK = 64 << 10 };

struct listing {
    struct weir_page_values *values;
    uint64_t offset; /* of the stored bytes in the file */
    size_t at;       /* of their first byte in the page */
};

static int add_piece(struct listing *listing, size_t out_at, size_t in_at, size_t n)
{
    struct weir_page_values *values = listing->values;
    if (n < PIECE_MIN) /* too short for images; a page of short literals takes no memory */
        return 0;
    if (!weir_grow(&values->pieces, values->n_pieces, sizeof *values->pieces))
        return -ENOMEM;
    values->pieces[values->n_pieces++] =
        (struct weir_page_piece){listing->offset + in_at, (uint32_t)(listing->at + out_at), (uint32_t)n};
    return 0;
}

static int add_restart(struct listing *listing, size_t out_at, size_t in_at)
{
    struct weir_page_values *values = listing->values;
    if (!weir_grow(&values->restarts, values->n_restarts, sizeof *values->restarts))
        return -ENOMEM;
    values->restarts[values->n_restarts++] =
        (struct weir_page_restart){listing->offset + in_at, (uint32_t)(listing->at + out_at)};
    return 0;
}

static int add_element(void *user, const struct weir_snappy_element *element)
{
    struct listing *listing = user;
    struct weir_page_values *values = listing->values;
    int rc = element->out_at % BLOCK == 0 ? add_restart(listing, element->out_at, element->tag_at) : 0;
    if (rc < 0 || !element->offset)
        return rc < 0 ? rc : add_piece(listing, element->out_at, element->in_at, element->length);
    size_t copied_at = listing->at + element->out_at - element->offset;
    while (values->n_restarts > 0 && values->restarts[values->n_restarts - 1].at > copied_at)
        values->n_restarts--;
    return 0;
}

int weir_page_locate(struct weir_page_values *values, int codec, const uint8_t *stored, size_t n, uint64_t offset,
                     size_t at)
{
    struct listing listing = {values, offset, at};
    values->stored_end = offset + n;
    if (codec == WEIR_PARQUET_SNAPPY)
        return weir_snappy_walk(stored, n, add_element, &listing);
    return codec == WEIR_PARQUET_UNCOMPRESSED ? add_piece(&listing, 0, 0, n) : 0;
}

/* Returns the last piece that begins at or before a byte of the page, or NULL. */
static const struct weir_page_piece *piece_at(const struct weir_page_values *values, size_t at)
{
    size_t behind = WEIR_FIRST(i, values->n_pieces, values->pieces[i].at > at);
    return behind ? &values->pieces[behind - 1] : NULL;
}

/* Locates bytes at .. end - 1 of the page in literals that follow each other. Returns false if they are not there. */
static bool in_literals(const struct weir_page_values *values, size_t at, size_t end,
                        struct weir_parquet_extent *extent)
{
    const struct weir_page_piece *piece = piece_at(values, at);
    if (!piece || at >= (size_t)piece->at + piece->n)
        return false;
    uint64_t begin = piece->offset + (at - piece->at);
    size_t first = (size_t)piece->at + piece->n - at;
    while ((size_t)piece->at + piece->n < end) {
        const struct weir_page_piece *next = piece + 1;
        if (next == values->pieces + values->n_pieces || next->at != piece->at + piece->n ||
            next->offset - piece->offset - piece->n > TAG_MAX)
            return false;
        piece = next;
    }
    uint64_t span = piece->offset + (end - piece->at) - begin;
    if (span > UINT32_MAX)
        return false;
    extent->offset = begin;
    extent->span = (uint32_t)span;
    extent->first = first < extent->length ? (uint32_t)first : extent->length;
    return true;
}

/* Returns the number of restarts before a byte of the page. */
static size_t restarts_before(const struct weir_page_values *values, size_t at)
{
    return WEIR_FIRST(i, values->n_restarts, values->restarts[i].at >= at);
}

/* Locates bytes at .. end - 1 of the page between two restarts. Returns false if none precedes them. */
static bool in_blocks(const struct weir_page_values *values, size_t at, size_t end, struct weir_parquet_extent *extent)
{
    size_t from = restarts_before(values, at + 1), to = restarts_before(values, end);
    if (from == 0)
        return false;
    const struct weir_page_restart *restart = &values->restarts[from - 1];
    uint64_t span = (to < values->n_restarts ? values->restarts[to].offset : values->stored_end) - restart->offset;
    if (span > UINT32_MAX)
        return false;
    extent->offset = restart->offset;
    extent->span = (uint32_t)span;
    extent->skip = (uint32_t)(at - restart->at);
    return true;
}

struct weir_parquet_extent weir_page_extent(const struct weir_page_values *values, uint32_t value)
{
    const struct weir_page_bytes *bytes = &values->bytes[value];
    size_t at = (size_t)(bytes->at - values->memory), end = at + bytes->length;
    struct weir_parquet_extent extent = {.offset = UINT64_MAX, .length = bytes->length};
    if (!in_literals(values, at, end, &extent))
        in_blocks(values, at, end, &extent);
    return extent;
}
