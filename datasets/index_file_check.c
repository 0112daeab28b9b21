/* Whether an episode that an index file describes can be what a recording is, as far as its own numbers and the file's
 * size tell: the hash of an index file says that it is whole, not who wrote it. */
#include "datasets/blocks_priv.h"
#include "datasets/index_file_priv.h"

#include <string.h>

enum { DIM_MAX = 65536, SIDE_MAX = 65500 }; /* as for recordings: builder.c */

static bool inside(uint64_t offset, uint64_t length, uint64_t file_bytes)
{
    return offset <= file_bytes && length <= file_bytes - offset;
}

static bool pixels_fit(const struct weir_track *track)
{
    bool raw = strcmp(track->codec, "raw") == 0, raw16 = strcmp(track->codec, "raw16") == 0;
    if (!raw && !raw16)
        return track->rows != WEIR_ROWS_PIXELS && track->width == 0 && track->height == 0 && track->row_bytes > 0;
    return track->rows == WEIR_ROWS_PIXELS && track->width > 0 && track->width <= SIDE_MAX && track->height > 0 &&
           track->height <= SIDE_MAX &&
           (uint64_t)track->width * (uint64_t)track->height * (raw ? 3 : 2) == track->row_bytes;
}

static bool offsets_fit(const struct weir_track *track, uint64_t file_bytes)
{
    for (int t = 0; t < track->frames; t++)
        if (track->offsets[t] != UINT64_MAX && !inside(track->offsets[t], track->row_bytes, file_bytes))
            return false;
    return track->rows != WEIR_ROWS_VLEN;
}

static bool slots_fit(const struct weir_track *track, uint64_t file_bytes)
{
    for (int t = 0; t < track->frames; t++) {
        const struct weir_heap_slot *slot = &track->slots[t];
        uint64_t payload = atomic_load_explicit(&slot->payload, memory_order_relaxed);
        if (slot->ref.address > file_bytes || (payload && !inside(payload, slot->ref.length, file_bytes)))
            return false;
    }
    return track->rows == WEIR_ROWS_VLEN;
}

static bool blocks_fit(const struct weir_blocks *blocks, uint64_t file_bytes)
{
    for (uint32_t i = 0; i < blocks->n_chunks; i++) {
        const struct weir_chunk *chunk = &blocks->chunks[i];
        if (chunk->offset != WEIR_CHUNK_NONE && !inside(chunk->offset, chunk->bytes, file_bytes))
            return false;
    }
    return weir_filters_can_undo(&blocks->filters);
}

static bool storage_fits(const struct weir_track *track, uint64_t file_bytes)
{
    uint64_t all;
    switch (track->storage) {
    case WEIR_STORED_CONTIGUOUS:
        return track->rows != WEIR_ROWS_VLEN &&
               !__builtin_mul_overflow((uint64_t)track->frames, track->row_bytes, &all) &&
               inside(track->base, all, file_bytes);
    case WEIR_STORED_CHUNKS:
        return offsets_fit(track, file_bytes);
    case WEIR_STORED_BLOCKS:
        return track->rows != WEIR_ROWS_VLEN && blocks_fit(track->blocks, file_bytes);
    case WEIR_STORED_HEAP:
        return slots_fit(track, file_bytes);
    case WEIR_STORED_LIBRARY:
        return true;
    }
    return false;
}

bool weir_index_file_is_sane(const struct weir_episode *episode, uint64_t file_bytes)
{
    bool sane = episode->n_tracks >= 1 && episode->qpos_dim <= DIM_MAX && episode->action_dim <= DIM_MAX;
    for (int i = 0; i < episode->n_tracks && sane; i++)
        sane = pixels_fit(&episode->tracks[i]) && storage_fits(&episode->tracks[i], file_bytes);
    return sane;
}
