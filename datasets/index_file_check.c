/* Checks whether an episode from an index file, or from the HDF5 helper process, is plausible: against its own numbers
 * and the file's size. The hash of an index file proves that it is whole, not who wrote it. */
#include "datasets/blocks_priv.h"
#include "datasets/index_file.h"
#include "decoders/frame_kind.h"

#include <string.h>

enum { DIM_MAX = 65536, SIDE_MAX = 65500 }; /* as for recordings: builder.c */

static bool inside(uint64_t offset, uint64_t length, uint64_t file_bytes)
{
    return offset <= file_bytes && length <= file_bytes - offset;
}

static bool pixels_fit(const struct weir_frame_map *map)
{
    if (weir_frame_is_encoded(map->kind))
        return map->rows != WEIR_ROWS_PIXELS && map->width == 0 && map->height == 0 && map->row_bytes > 0;
    return map->rows == WEIR_ROWS_PIXELS && map->width > 0 && map->width <= SIDE_MAX && map->height > 0 &&
           map->height <= SIDE_MAX && weir_frame_raw_bytes(map->kind, map->width, map->height) == map->row_bytes;
}

static bool offsets_fit(const struct weir_frame_map *map, uint64_t file_bytes)
{
    for (int t = 0; t < map->frames; t++)
        if (map->offsets[t] != WEIR_CHUNK_NONE && map->offsets[t] != WEIR_CHUNK_BAD &&
            !inside(map->offsets[t], map->row_bytes, file_bytes))
            return false;
    return map->rows != WEIR_ROWS_VLEN;
}

static bool slots_fit(const struct weir_frame_map *map, uint64_t file_bytes)
{
    for (int t = 0; t < map->frames; t++) {
        const struct weir_heap_slot *slot = &map->slots[t];
        uint64_t payload = atomic_load_explicit(&slot->payload, memory_order_relaxed);
        if (slot->ref.address == WEIR_CHUNK_BAD && slot->ref.length == 1 && payload == 0)
            continue; /* its reference is lost */
        if (slot->ref.address > file_bytes || (payload && !inside(payload, slot->ref.length, file_bytes)))
            return false;
    }
    return map->rows == WEIR_ROWS_VLEN;
}

static bool blocks_fit(const struct weir_blocks *blocks, uint64_t file_bytes)
{
    for (uint32_t i = 0; i < blocks->n_chunks; i++) {
        const struct weir_chunk *chunk = &blocks->chunks[i];
        bool lost = chunk->offset == WEIR_CHUNK_BAD && chunk->bytes == 0;
        if (chunk->offset != WEIR_CHUNK_NONE && !lost && !inside(chunk->offset, chunk->bytes, file_bytes))
            return false;
    }
    return weir_filters_can_undo(&blocks->filters);
}

static bool extents_fit(const struct weir_frame_map *map, uint64_t file_bytes)
{
    for (int t = 0; t < map->frames; t++)
        if (map->extents[t].length > INT32_MAX || !inside(map->extents[t].offset, map->extents[t].length, file_bytes))
            return false;
        else if (map->rows == WEIR_ROWS_PIXELS && map->extents[t].length != map->row_bytes)
            return false;
    return map->rows == WEIR_ROWS_VLEN || map->rows == WEIR_ROWS_PIXELS;
}

static bool storage_fits(const struct weir_frame_map *map, uint64_t file_bytes)
{
    uint64_t all;
    switch (map->storage) {
    case WEIR_STORED_CONTIGUOUS:
        return map->rows != WEIR_ROWS_VLEN && !__builtin_mul_overflow((uint64_t)map->frames, map->row_bytes, &all) &&
               inside(map->base, all, file_bytes);
    case WEIR_STORED_CHUNKS:
        return offsets_fit(map, file_bytes);
    case WEIR_STORED_BLOCKS:
        return map->rows != WEIR_ROWS_VLEN && blocks_fit(map->blocks, file_bytes);
    case WEIR_STORED_HEAP:
        return slots_fit(map, file_bytes);
    case WEIR_STORED_EXTENTS:
        return extents_fit(map, file_bytes);
    case WEIR_STORED_LIBRARY:
        return true;
    }
    return false;
}

/* ---- before frames are located ---- */

/* A bool of another value must not be read as one. */
static bool is_bool(const bool *value)
{
    unsigned char byte;
    memcpy(&byte, value, 1);
    return byte <= 1;
}

static bool bools_fit(const struct weir_h5_description *d)
{
    return is_bool(&d->other_file) && is_bool(&d->plain_sizes) && is_bool(&d->written) && is_bool(&d->filters_kept) &&
           is_bool(&d->fill_is_zero) && is_bool(&d->fill_is_known) && is_bool(&d->has_probe) &&
           is_bool(&d->shape.is_big_endian) && is_bool(&d->shape.is_signed) && is_bool(&d->grid.filtered);
}

/* What is no grid of blocks is left to the library; one that is has the rows that were announced. */
static bool grid_fits(const struct weir_frame_map *map, const struct weir_h5_description *d)
{
    enum { REF_BYTES = 16 };
    struct weir_blocks blocks = {.grid = d->grid};
    if (d->layout != WEIR_H5_CHUNKED || !weir_blocks_init(&blocks))
        return true;
    uint64_t row_bytes = map->rows == WEIR_ROWS_VLEN ? REF_BYTES : map->row_bytes;
    return blocks.row_bytes == row_bytes && d->grid.dims[0] >= (uint64_t)map->frames;
}

static bool description_fits(const struct weir_frame_map *map, const struct weir_h5_description *d)
{
    return map->storage == WEIR_STORED_CONTIGUOUS && (unsigned)d->layout <= WEIR_H5_EXTERNAL && bools_fit(d) &&
           d->shape.rank >= 0 && d->shape.rank <= WEIR_H5_RANK_MAX && d->grid.rank >= 0 &&
           d->grid.rank <= WEIR_GRID_RANK_MAX && d->filters.n >= 0 && d->filters.n <= WEIR_FILTERS_MAX &&
           grid_fits(map, d);
}

static bool shapes_fit(const struct weir_episode *episode)
{
    bool sane = episode->qpos_dim <= DIM_MAX && episode->action_dim <= DIM_MAX;
    for (int i = 0; i < episode->n_maps && sane; i++)
        sane = pixels_fit(&episode->maps[i]);
    return sane;
}

bool weir_described_is_sane(const struct weir_episode *episode, const struct weir_h5_description *descriptions)
{
    /* An episode without any of the cameras that were asked for has no map; dataset.c reports that. */
    bool sane = shapes_fit(episode);
    for (int i = 0; i < episode->n_maps && sane; i++)
        sane = description_fits(&episode->maps[i], &descriptions[i]);
    return sane;
}

/* ---- all ---- */

bool weir_index_file_is_sane(const struct weir_episode *episode, uint64_t file_bytes)
{
    bool sane = episode->n_maps >= 1 && shapes_fit(episode);
    for (int i = 0; i < episode->n_maps && sane; i++)
        sane = storage_fits(&episode->maps[i], file_bytes);
    return sane;
}
