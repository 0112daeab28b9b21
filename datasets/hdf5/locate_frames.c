/* Locates each frame of a camera from the description of its dataset. Reads the file, but never through the HDF5
 * library. */
#include "base/claims.h"
#include "base/shortage.h"
#include "datasets/chunks/heap.h"
#include "datasets/hdf5/chunk_walk_priv.h"
#include "datasets/hdf5/hdf5_open.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { REF_BYTES = 16, REFS_AT_ONCE = 256 };

struct locating {
    struct weir_frame_map *map;
    const struct weir_h5_description *description;
    const struct weir_raw_file *raw;
    uint64_t held_bytes;
    struct weir_unfilter_context *unfilter;
    struct weir_err *err;
};

static int library(struct locating *p, const char *why)
{
    p->map->storage = WEIR_STORED_LIBRARY;
    p->map->why = why;
    return 0;
}

static int no_memory(struct locating *p)
{
    return weir_err_set(p->err, -ENOMEM, "%s: out of memory", p->map->key);
}

static int cannot(struct locating *p, int rc, const char *what, const char *why)
{
    const char *advice = weir_machine_advice(rc);
    if (strstr(why, "; ")) /* has advice */
        return weir_err_set(p->err, rc, "%s: %s: %s", p->map->key, what, why);
    return weir_err_set(p->err, rc, "%s: %s: %s; %s", p->map->key, what, why,
                        advice ? advice : "repair or remove the file");
}

static bool inside(const struct weir_raw_file *raw, uint64_t offset, uint64_t length)
{
    return offset <= raw->size_bytes && length <= raw->size_bytes - offset;
}

/* ---- references ---- */

/* Parses references. Their addresses count from the base, which is the end of the user block. */
static void take_refs(struct locating *p, const uint8_t *raw, size_t n, size_t first)
{
    for (size_t i = 0; i < n; i++, raw += REF_BYTES) {
        uint64_t address = weir_le(raw + 4, 8), base = p->raw->base;
        bool empty = address == 0 || address > UINT64_MAX - base - 1;
        p->map->slots[first + i].ref = (struct weir_heap_ref){empty ? 0 : address + base, (uint32_t)weir_le(raw, 4),
                                                              (uint32_t)weir_le(raw + 12, 4)};
    }
}

static int alloc_slots(struct locating *p)
{
    p->map->storage = WEIR_STORED_HEAP;
    p->map->slots = calloc((size_t)p->map->frames, sizeof *p->map->slots);
    return p->map->slots ? 0 : no_memory(p);
}

static int read_refs(struct locating *p)
{
    int rc = alloc_slots(p);
    uint8_t block[REF_BYTES * REFS_AT_ONCE];
    size_t frames = (size_t)p->map->frames;
    for (size_t done = 0; done < frames && rc == 0; done += REFS_AT_ONCE) {
        size_t n = frames - done < REFS_AT_ONCE ? frames - done : REFS_AT_ONCE;
        rc = p->raw->read(p->raw->user, p->description->offset + done * REF_BYTES, block, n * REF_BYTES);
        if (rc < 0)
            return cannot(p, rc, "its references cannot be read", strerror(-rc));
        take_refs(p, block, n, done);
    }
    return rc;
}

/* Marks the frames whose references lie in a damaged chunk as lost. */
static void lose_refs(struct locating *p, size_t n, size_t first)
{
    for (size_t i = 0; i < n; i++)
        p->map->slots[first + i].ref = (struct weir_heap_ref){WEIR_CHUNK_BAD, 1, 0};
}

/* Reads references that are stored in chunks, filtered or not. */
static int unpack_refs(struct locating *p)
{
    struct weir_blocks *blocks = p->map->blocks;
    uint32_t stored_max = weir_blocks_stored_max(blocks);
    uint8_t *stored = malloc(stored_max ? stored_max : 1);
    if (!stored)
        return no_memory(p);
    int rc = alloc_slots(p);
    for (uint32_t i = 0; i < blocks->n_chunks && rc == 0; i++) {
        const struct weir_chunk *chunk = &blocks->chunks[i];
        if (chunk->offset == WEIR_CHUNK_NONE)
            continue; /* references remain empty, because these frames were never written */
        const uint8_t *refs;
        const char *reason = "cannot be read";
        rc = chunk->offset == WEIR_CHUNK_BAD ? -EBADMSG
                                             : p->raw->read(p->raw->user, chunk->offset, stored, chunk->bytes);
        if (rc == 0)
            rc = weir_unfilter(p->unfilter, &blocks->filters, chunk->mask, stored, chunk->bytes, blocks->chunk_bytes,
                               &refs, &reason);
        size_t first = (size_t)i * blocks->rows, left = (size_t)p->map->frames - first;
        size_t n = left < blocks->rows ? left : blocks->rows;
        if (rc == 0)
            take_refs(p, refs, n, first);
        else if (rc == -EBADMSG && n < (size_t)p->map->frames)
            lose_refs(p, n, first);
        else
            weir_err_set(p->err, rc, "%s: the chunk with the references of frame %zu and later: %s", p->map->key, first,
                         reason);
        rc = rc == -EBADMSG && n < (size_t)p->map->frames ? 0 : rc;
    }
    free(stored);
    weir_blocks_close(blocks);
    p->map->blocks = NULL;
    return rc;
}

/* ---- chunks ---- */

/* Returns false if the library reports another location for the probed chunk. In this case the library is right. */
static bool agrees(const struct weir_h5_description *description, const struct weir_blocks *blocks)
{
    if (!description->has_probe)
        return true;
    uint64_t i = 0;
    for (int d = 0; d < blocks->grid.rank; d++) {
        uint64_t chunk = blocks->grid.chunk[d];
        i = i * ((blocks->grid.dims[d] + chunk - 1) / chunk) + description->probe_coord[d] / chunk;
    }
    const struct weir_chunk *found = i < blocks->n_chunks ? &blocks->chunks[i] : NULL;
    return found && found->offset == description->probe.offset && found->bytes == description->probe.bytes;
}

/* For unfiltered chunks that contain whole frames: each frame is an extent. */
static int whole_frames(struct locating *p)
{
    struct weir_blocks *blocks = p->map->blocks;
    struct weir_frame_map *map = p->map;
    map->offsets = malloc((size_t)map->frames * sizeof *map->offsets);
    if (!map->offsets)
        return no_memory(p);
    for (int t = 0; t < map->frames; t++) {
        uint64_t offset = blocks->chunks[(uint32_t)t / blocks->rows].offset;
        map->offsets[t] = offset == WEIR_CHUNK_NONE || offset == WEIR_CHUNK_BAD
                              ? offset
                              : offset + (uint64_t)((uint32_t)t % blocks->rows) * map->row_bytes;
    }
    map->storage = WEIR_STORED_CHUNKS;
    weir_blocks_close(blocks);
    map->blocks = NULL;
    return 0;
}

static int missing_filter(struct locating *p, int id)
{
    return weir_err_set(p->err, -ENOTSUP,
                        "%s: compressed with filter %d (%s), which neither Weir nor this HDF5 library can undo; "
                        "rewrite the file with h5repack -f GZIP=4 on a machine with this filter",
                        p->map->key, id, weir_filter_name(id));
}

static uint64_t stored_bytes(const struct locating *p)
{
    return p->held_bytes ? p->held_bytes : p->raw->size_bytes;
}

static const char *why_not_blocks(const struct locating *p, struct weir_blocks *blocks)
{
    const struct weir_h5_description *d = p->description;
    if (!d->plain_sizes)
        return "addresses not 8 bytes wide";
    if (!d->filters_kept)
        return "too many filters";
    if (!weir_filters_can_undo(&d->filters))
        for (int i = 0; i < d->filters.n; i++) {
            int id = d->filters.filter[i].id;
            if (id == WEIR_FILTER_SZIP || id == WEIR_FILTER_NBIT || id == WEIR_FILTER_SCALEOFFSET)
                return id == WEIR_FILTER_SZIP ? "szip" : id == WEIR_FILTER_NBIT ? "n-bit" : "scale-offset";
        }
    if (!weir_filters_can_undo(&d->filters))
        return "a filter that only the library has";
    bool vlen = p->map->rows == WEIR_ROWS_VLEN;
    if (!vlen && !d->fill_is_zero && !d->fill_is_known)
        return "an unknown fill value";
    if (!weir_blocks_init(blocks) || blocks->chunk_bytes / 2048 > p->raw->size_bytes)
        return "chunks of an invalid size";
    /* Every existing chunk takes 8 bytes in an index, or as data, and neither lies in a hole of the file. */
    return blocks->n_chunks / 64 > 2048 + stored_bytes(p) / 512 ? "more chunks than the file can hold" : NULL;
}

static int locate_chunked(struct locating *p)
{
    const struct weir_h5_description *d = p->description;
    struct weir_frame_map *map = p->map;
    for (int i = 0; i < d->filters.n; i++) /* lzf comes from h5py, so the library may not have it */
        if (d->filter_missing == d->filters.filter[i].id && !weir_filters_can_undo(&d->filters))
            return missing_filter(p, d->filter_missing);
    int rc = d->written ? weir_chunk_grid_claim(&d->grid, stored_bytes(p), p->err) : 0; /* the library allocates too */
    if (rc < 0) {
        weir_err_prefix(p->err, "%s", map->key);
        return rc;
    }
    struct weir_blocks *blocks = map->blocks = calloc(1, sizeof *blocks);
    if (!blocks)
        return no_memory(p);
    blocks->grid = d->grid;
    blocks->filters = d->filters;
    memcpy(blocks->fill, d->fill, sizeof blocks->fill);
    const char *why = why_not_blocks(p, blocks), *reason = "";
    if (why)
        return library(p, why);
    blocks->chunks = malloc(blocks->n_chunks * sizeof *blocks->chunks);
    if (!blocks->chunks)
        return no_memory(p);
    if (d->written)
        rc = weir_chunk_index(p->raw, d->object_address, &d->grid, blocks->chunks, &reason);
    else
        for (uint32_t i = 0; i < blocks->n_chunks; i++)
            blocks->chunks[i] = (struct weir_chunk){.offset = WEIR_CHUNK_NONE};
    if (rc == -ENOTSUP)
        return library(p, "an unknown kind of chunk index");
    if (rc < 0)
        return cannot(p, rc, "its chunks cannot be located", *reason ? reason : strerror(-rc));
    if (d->written && !agrees(d, blocks))
        return library(p, "the library reports a different location for a chunk than Weir's own chunk index");
    if (!weir_claim_fits(weir_blocks_stored_max(blocks), stored_bytes(p)))
        return cannot(p, -EBADMSG, "its chunks cannot be read", "one is larger than all that the file stores");
    if (map->rows == WEIR_ROWS_VLEN)
        return unpack_refs(p);
    if (d->filters.n == 0 && blocks->per_block == 1)
        return whole_frames(p);
    map->storage = WEIR_STORED_BLOCKS;
    return 0;
}

/* ---- all storage ---- */

static int locate_contiguous(struct locating *p)
{
    const struct weir_h5_description *d = p->description;
    struct weir_frame_map *map = p->map;
    if (!d->written)
        return library(p, "never written");
    if (d->offset == UINT64_MAX)
        return library(p, "without an address");
    uint64_t row_bytes = map->rows == WEIR_ROWS_VLEN ? REF_BYTES : map->row_bytes, total;
    if (__builtin_mul_overflow((uint64_t)map->frames, row_bytes, &total) || !inside(p->raw, d->offset, total))
        return weir_err_set(p->err, -ENODATA, "%s: its data extends past the end of the file; is the file truncated?",
                            map->key);
    map->base = d->offset;
    map->storage = WEIR_STORED_CONTIGUOUS;
    return map->rows == WEIR_ROWS_VLEN ? read_refs(p) : 0;
}

static int place(struct locating *p)
{
    const struct weir_h5_description *d = p->description;
    if (d->other_file)
        return library(p, "behind an external link");
    if (d->shape.is_big_endian)
        return library(p, "big-endian");
    if (p->map->rows == WEIR_ROWS_VLEN && !d->plain_sizes)
        return library(p, "references not 16 bytes long");
    switch (d->layout) {
    case WEIR_H5_CONTIGUOUS:
        return locate_contiguous(p);
    case WEIR_H5_CHUNKED:
        return locate_chunked(p);
    case WEIR_H5_COMPACT:
        return library(p, "compact");
    case WEIR_H5_EXTERNAL:
        return library(p, "external raw files");
    default:
        return library(p, "virtual dataset");
    }
}

/* Keeps the ends of images only for rows that are extents, because all other rows are read whole. */
static int keep_ends(struct locating *p)
{
    struct weir_frame_map *map = p->map;
    bool padded = map->rows == WEIR_ROWS_PADDED || map->rows == WEIR_ROWS_STRINGS;
    if (!padded || (map->storage != WEIR_STORED_CONTIGUOUS && map->storage != WEIR_STORED_CHUNKS)) {
        free(map->ends);
        map->ends = NULL;
        return 0;
    }
    if (!map->ends)
        map->ends = calloc((size_t)map->frames, sizeof *map->ends);
    return map->ends ? 0 : no_memory(p);
}

int weir_locate_frames(struct weir_frame_map *map, const struct weir_h5_description *description,
                       const struct weir_raw_file *raw, uint64_t held_bytes, struct weir_unfilter_context *unfilter,
                       struct weir_err *err)
{
    struct locating p = {map, description, raw, held_bytes, unfilter, err};
    int rc = place(&p);
    if (map->storage == WEIR_STORED_LIBRARY && map->blocks) {
        weir_blocks_close(map->blocks);
        map->blocks = NULL;
    }
    return rc < 0 ? rc : keep_ends(&p);
}
