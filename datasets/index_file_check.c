/* Checks whether an episode from an index file or from the HDF5 helper process is plausible, given its own numbers and
 * the file's size. The hash in an index file proves integrity, but not origin. */
#include "datasets/blocks_priv.h"
#include "datasets/index_file.h"
#include "decoders/frame_kind.h"

#include <string.h>

enum { DIM_MAX = 65536, SIDE_MAX = 65500 }; /* same limits as in builder.c */

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
            continue; /* the frame's reference is lost */
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
    case WEIR_STORED_VIDEO:
        return false;
    }
    return false;
}

bool weir_index_shapes_fit(const struct weir_episode *episode)
{
    bool sane = episode->qpos_dim <= DIM_MAX && episode->action_dim <= DIM_MAX;
    for (int i = 0; i < episode->n_maps && sane; i++)
        sane = pixels_fit(&episode->maps[i]);
    return sane;
}

/* ---- index files ---- */

bool weir_index_file_is_sane(const struct weir_episode *episode, uint64_t file_bytes)
{
    bool sane = weir_index_shapes_fit(episode);
    for (int i = 0; i < episode->n_maps && sane; i++)
        sane = storage_fits(&episode->maps[i], file_bytes);
    return sane;
}
